"""Members join, share and leave, whichever broker coordinates them."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from contract.groups.conftest import COUNT, SOME_CLUSTERS, all_of, committed_by, numbers, write
from support.patience import PATIENCE
from support.readers import QUICK, Partitions, Readers

from aiokafkawire import Client, TopicPartition
from aiokafkawire.errors import (
    CommitFailed,
    FencedInstanceId,
    InvalidSessionTimeout,
)

pytestmark = [pytest.mark.anyio, SOME_CLUSTERS]


async def test_a_member_joins_reads_all_and_commits_when_it_is_closed(kafka: Client, filled: str, group: str) -> None:
    read = []
    async with kafka.consumer(filled, group_id=group, **QUICK) as consumer:
        with anyio.fail_after(PATIENCE):
            async for record in consumer:
                read.append(int(record.value or b""))
                if len(read) == COUNT - 10:
                    break
        assert set(consumer.assignment) == all_of(filled)
        found = (await kafka.admin.describe_groups(group))[group]
        (member,) = found.members
        assert (found.state, found.protocol, member.client_id) == ("Stable", "range", "aiokafkawire")
        assert (set(member.assignment), member.subscription) == (all_of(filled), (filled,))
        assert member.member_id == consumer.group_metadata().member_id
    # The last record was in hand yet: nobody came for the next.
    assert await committed_by(kafka, group, filled) == COUNT - 11
    async with kafka.consumer(filled, group_id=group, **QUICK) as consumer:
        with anyio.fail_after(PATIENCE):
            again = [int((await anext(consumer)).value or b"") for _ in range(11)]
    assert sorted(read[:-1] + again) == list(range(COUNT))


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_members_share_and_who_leaves_leaves_to_the_others(
    kafka: Client, filled: str, group: str, readers: Readers, strategy: str
) -> None:
    settings: dict[str, Any] = {"partition_assignment_strategy": [strategy]}
    one = await readers.join(kafka, group, filled, **settings)
    two = await readers.join(kafka, group, filled, **settings)
    await readers.share(one, two, count=3)
    await readers.until(lambda: len(set(numbers(one, two))) == COUNT)
    assert set(one.consumer.assignment) == one.owned
    assert set(two.consumer.assignment) == two.owned
    left = len(two.owned)
    await two.close()
    # Told before it left, and all that it had finished was committed.
    assert two.words()[-1] == "revoked"
    await readers.until(lambda: one.owned == all_of(filled))
    await write(kafka, filled, COUNT, COUNT + 30)
    await readers.until(lambda: len(numbers(one, two)) == COUNT + 30)
    assert numbers(one, two) == list(range(COUNT + 30))
    assert len(one.told[-1][1]) == (left if strategy == "cooperative-sticky" else 3)
    assert (one.errors, two.errors) == ([], [])


async def test_who_rebalances_cooperatively_reads_on_what_it_keeps(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    settings: dict[str, Any] = {"partition_assignment_strategy": ["cooperative-sticky"]}
    one = await readers.join(kafka, group, filled, **settings)
    await readers.until(lambda: len(one.records) == COUNT)

    async def read_on(going: Partitions) -> None:
        # In the middle of a rebalance, which waits for this function.
        await write(kafka, filled, COUNT, COUNT + 30)
        kept = [number for number in range(COUNT, COUNT + 30) if TopicPartition(filled, number % 3) not in going]
        await readers.until(lambda: numbers(one)[COUNT:] == kept)

    one.on["revoked"] = read_on
    two = await readers.join(kafka, group, filled, **settings)
    await readers.share(one, two, count=3)
    await readers.until(lambda: len(numbers(one, two)) == COUNT + 30)
    assert numbers(one, two) == list(range(COUNT + 30))
    one.on.clear()
    assert one.words() == ["assigned", "revoked"]
    (gone,) = one.told[1][1]
    assert two.told == [("assigned", (gone,))]
    assert one.errors == []


async def test_a_static_member_comes_back_without_a_rebalance(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled, group_instance_id="one")
    two = await readers.join(kafka, group, filled, group_instance_id="two")
    await readers.share(one, two, count=3)
    await readers.until(lambda: len(set(numbers(one, two))) == COUNT)
    before, told, generation = set(two.consumer.assignment), len(one.told), one.generation
    await two.close()
    await write(kafka, filled, COUNT, COUNT + 30)
    three = await readers.join(kafka, group, filled, group_instance_id="two")
    await readers.until(lambda: three.owned == before)
    await readers.until(lambda: len(set(numbers(one, two, three))) == COUNT + 30)
    assert numbers(one, two, three) == list(range(COUNT + 30))
    assert (three.generation, one.generation, len(one.told)) == (generation, generation, told)


async def test_who_is_replaced_under_its_name_is_fenced(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, filled, group_instance_id="name")
    await readers.until(lambda: len(one.records) == COUNT)
    two = await readers.join(kafka, group, filled, group_instance_id="name")
    await readers.until(lambda: two.owned == all_of(filled))
    await readers.until(lambda: bool(one.errors))
    assert isinstance(one.errors[0], FencedInstanceId)
    await readers.until(lambda: not one.owned)
    assert one.words() == ["assigned", "lost"]
    assert one.consumer.assignment == ()
    for _ in range(2):  # and so it stays
        with pytest.raises(FencedInstanceId, match=group):
            await anext(one.consumer)
    with pytest.raises(FencedInstanceId):
        await one.consumer.commit({TopicPartition(filled, 0): 1})


async def test_a_session_timeout_that_the_broker_does_not_allow(
    kafka: Client, topic: str, group: str, readers: Readers
) -> None:
    one = await readers.join(kafka, group, topic, session_timeout_ms=5_999)
    await readers.until(lambda: bool(one.errors))
    assert isinstance(one.errors[0], InvalidSessionTimeout)
    assert one.consumer.assignment == ()


@pytest.mark.slow
async def test_who_does_not_ask_for_records_leaves_and_comes_back_when_it_does(
    kafka: Client, filled: str, group: str, readers: Readers
) -> None:
    idle = await readers.join(kafka, group, filled, reads=False, max_poll_interval_ms=1_000)
    await readers.until(lambda: idle.owned == all_of(filled))
    busy = await readers.join(kafka, group, filled)
    # The rebalance for `busy` waits for nobody who has no records in hand; then `idle` is out for being silent.
    await readers.until(lambda: busy.owned == all_of(filled))
    assert idle.words()[-1] == "lost"
    assert idle.consumer.assignment == ()
    with pytest.raises(CommitFailed):
        await idle.consumer.commit({TopicPartition(filled, 0): 1})
    readers.read(idle)
    await readers.share(idle, busy, count=3)
    assert idle.errors == []
