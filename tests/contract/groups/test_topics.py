"""Topics of a group come, go and grow, and are subscribed to anew."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from contract.conftest import Where
from contract.groups.conftest import COUNT, SOME_CLUSTERS, SOON, all_of, committed_by, members_of, numbers, write
from support.committed import raw
from support.readers import Readers
from support.transactional import settled

from aiokafkawire import Client
from aiokafkawire.protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic

pytestmark = [pytest.mark.anyio, SOME_CLUSTERS]


async def test_a_pattern_means_topics_that_come_later_too(
    cluster: Where, kafka: Client, group: str, readers: Readers, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = f"{group}-a", f"{group}-b"
    await kafka.admin.create_topics({first: 3, f"not-{group}-c": 1})
    async with cluster.client(**SOON) as watching:
        one = await readers.join(watching, group, pattern=rf"{group}-\w")
        await readers.until(lambda: one.owned == all_of(first))
        await kafka.admin.create_topics({second: 3})
        await write(kafka, second, 0, 9)
        await readers.until(lambda: one.owned == all_of(first) | all_of(second))
        await readers.until(lambda: len(one.records) == 9)
        await kafka.admin.delete_topics([first])
        await readers.until(lambda: one.owned == all_of(second))
        await write(kafka, second, 9, 12)
        await readers.until(lambda: numbers(one) == list(range(12)))
        assert one.errors == []
        await one.close()
    # Offsets of a topic that is gone can no more be committed; nobody tried for a whole session.
    assert not [one for one in caplog.messages if "auto-commit" in one]


async def test_a_topic_may_come_after_those_who_read_it(
    cluster: Where, kafka: Client, new_name: Callable[[], str], group: str, readers: Readers
) -> None:
    name = new_name()
    async with cluster.client(**SOON) as watching:
        one = await readers.join(watching, group, name, auto_offset_reset="latest")
        # A member that has nothing is one all the same.
        await settled(partial(members_of, kafka, group), lambda found: found == 1)
        await kafka.admin.create_topics({name: 3})
        await readers.until(lambda: one.owned == all_of(name))
        assert one.errors == []
        await one.close()


async def test_a_topic_that_is_deleted_takes_nothing_else_along_and_may_come_again(
    cluster: Where, kafka: Client, filled: str, new_name: Callable[[], str], group: str, readers: Readers
) -> None:
    other = new_name()
    await kafka.admin.create_topics({other: 3})
    async with cluster.client(**SOON) as watching:
        one = await readers.join(watching, group, filled, other)
        await readers.until(lambda: one.owned == all_of(filled) | all_of(other))
        await readers.until(lambda: len(one.records) == COUNT)
        await one.consumer.commit(one.consumer.positions())
        await kafka.admin.delete_topics([filled])
        await readers.until(lambda: one.owned == all_of(other))
        await write(kafka, other, COUNT, COUNT + 9)
        await readers.until(lambda: numbers(one) == list(range(COUNT + 9)))
        # Nothing is committed for the new one: it begins where it begins.
        await kafka.admin.create_topics({filled: 3})
        await write(kafka, filled, COUNT + 9, COUNT + 18)
        await readers.until(lambda: numbers(one) == list(range(COUNT + 18)))
        assert one.errors == []
        await one.close()


async def test_partitions_that_are_added_are_shared_as_well(
    cluster: Where, kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    async with cluster.client(**SOON) as watching:
        one, two = [await readers.join(watching, group, filled) for _ in range(2)]
        await readers.share(one, two, count=3)
        async with raw(cluster) as client:
            more = CreatePartitionsTopic(name=filled, count=5, assignments=None)
            await client.ask(CreatePartitionsRequest(topics=[more], timeout_ms=10_000, validate_only=False), 3)
        await readers.share(one, two, count=5)
        for reader in (one, two):
            await reader.close()


async def test_subscribing_again_reads_other_topics(
    kafka: Client, filled: str, new_name: Callable[[], str], group: str, readers: Readers
) -> None:
    other = new_name()
    await kafka.admin.create_topics({other: 3})
    await write(kafka, other, 100, 109)
    one = await readers.join(kafka, group, filled)
    two = await readers.join(kafka, group, filled)
    await readers.share(one, two, count=3)
    await readers.until(lambda: len(set(numbers(one, two))) == COUNT)
    one.subscribe(other)
    await readers.until(lambda: one.owned == all_of(other) and two.owned == all_of(filled))
    await readers.until(lambda: len(set(numbers(one, two))) == COUNT + 9)
    assert [number for number in numbers(one, two) if number >= 100] == list(range(100, 109))
    assert await committed_by(kafka, group, filled) == COUNT


async def test_who_has_unsubscribed_is_out_until_it_subscribes_again(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled)
    two = await readers.join(kafka, group, filled)
    await readers.share(one, two, count=3)
    await readers.until(lambda: len(set(numbers(one, two))) == COUNT)
    await one.consumer.unsubscribe()
    assert (one.consumer.assignment, one.owned) == ((), set())
    await readers.until(lambda: two.owned == all_of(filled))
    one.subscribe(filled)
    await readers.share(one, two, count=3)
    await write(kafka, filled, COUNT, COUNT + 9)
    await readers.until(lambda: len(numbers(one, two)) == COUNT + 9)
    assert numbers(one, two) == list(range(COUNT + 9))
    assert one.errors == two.errors == []
