"""What a member commits by itself, and when, on a clock that jumps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import anyio
import pytest
from support.lagging import without_topics
from support.readers import Reader, Readers, reading
from support.virtual_time import virtual_time

from aiokafkawire import Client, TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, virtual_time]

WHERE = TopicPartition("t", 0)


@asynccontextmanager
async def member(*, every_ms: int) -> AsyncIterator[tuple[Broker, Client, Readers, Reader]]:
    """The only member of its group, which has a partition by now, and commits by itself."""
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        async with Client(broker.bootstrap, connector=broker.connect) as kafka, reading() as readers:
            one = await readers.join(kafka, "g", "t", auto_commit_interval_ms=every_ms)
            await readers.until(lambda: one.owned == {WHERE})
            yield broker, kafka, readers, one


@asynccontextmanager
async def has_read() -> AsyncIterator[tuple[Broker, Client]]:
    """A consumer that has finished the only record of the topic, and is about to commit that by itself."""
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        async with Client(broker.bootstrap, connector=broker.connect) as kafka:
            await write(kafka, 0)
            async with kafka.consumer(group_id="g", auto_commit_interval_ms=5_000) as consumer:
                consumer.assign({WHERE: 0})
                assert len(await consumer.poll()) == 1
                assert await consumer.poll(timeout=0) == []
                yield broker, kafka


async def committed(kafka: Client) -> int | None:
    found = (await kafka.admin.list_consumer_group_offsets("g")).get(WHERE)
    return None if found is None else found.offset


async def test_what_is_finished_is_committed_at_intervals() -> None:
    async with member(every_ms=5_000) as (broker, kafka, readers, one):
        joined = anyio.current_time()
        for number in range(3):
            await write(kafka, number)
        await readers.until(lambda: len(one.records) == 3)
        assert await committed(kafka) is None
        await anyio.sleep(joined + 6 - anyio.current_time())
        assert await committed(kafka) == 3
        # Without news nothing is committed.
        before = commits(broker)
        await anyio.sleep(60)
        assert commits(broker) == before
        await write(kafka, 3)
        await readers.until(lambda: len(one.records) == 4)
        assert await committed(kafka) == 3
        await anyio.sleep(6)
        assert await committed(kafka) == 4
        assert commits(broker) == before + 1


async def test_what_is_read_again_after_a_commit_by_hand_is_committed_again() -> None:
    async with member(every_ms=5_000) as (_, kafka, readers, one):
        for number in range(3):
            await write(kafka, number)
        await readers.until(lambda: len(one.records) == 3)
        await anyio.sleep(6)
        assert await committed(kafka) == 3
        one.consumer.seek(WHERE, 1)
        await one.consumer.commit({WHERE: 1})
        await readers.until(lambda: len(one.records) == 5)
        await anyio.sleep(6)
        assert await committed(kafka) == 3


@pytest.mark.slow
async def test_what_was_assigned_anew_is_committed_sooner_at_first() -> None:
    async with member(every_ms=8_000) as (broker, kafka, *_):
        joined, times = anyio.current_time(), list[float]()
        while len(times) < 5:
            await write(kafka, 0)
            before = commits(broker)
            await anyio.sleep(0.1)
            times += [anyio.current_time() - joined] * (commits(broker) - before)
    assert [round(later - before) for before, later in pairwise([0.0, *times])] == [1, 2, 4, 8, 8]


async def test_a_topic_that_is_gone_holds_up_no_commit(caplog: pytest.LogCaptureFixture) -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("gone")
        broker.create_topic("t")
        async with Client(broker.bootstrap, connector=broker.connect) as kafka, reading() as readers:
            one = await readers.join(kafka, "g", "gone", "t", auto_commit_interval_ms=5_000)
            await readers.until(lambda: len(one.owned) == 2)
            await write(kafka, 0)
            await write(kafka, 0, "gone")
            await readers.until(lambda: len(one.records) == 2)
            # Nobody has told the client when the offsets of both are committed.
            await kafka.admin.delete_topics(["gone"])
            await anyio.sleep(6)
            assert await committed(kafka) == 1
            await write(kafka, 1)
            await readers.until(lambda: len(one.records) == 3)
            await anyio.sleep(6)
            assert await committed(kafka) == 2
            assert one.owned == {WHERE}
    assert not [one for one in caplog.messages if "auto-commit" in one]


async def test_a_topic_that_only_seemed_to_be_gone_is_committed_later() -> None:
    async with has_read() as (broker, kafka):
        # As of a broker that has just started: it does not know the topic yet.
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        young = [broker.on(api, answer=unknown, times=None) for api in (ApiKey.METADATA, ApiKey.OFFSET_COMMIT)]
        metadata = kafka._cluster.metadata
        await metadata.refresh(metadata.snapshot, kafka._cluster.deadline(5))
        await anyio.sleep(6)
        assert young[1].count
        for rule in young:
            rule.remove()
        assert await committed(kafka) is None
        await anyio.sleep(6)
        assert await committed(kafka) == 1


async def test_what_was_read_from_a_topic_that_the_metadata_lacks_is_not_committed_for_a_new_one() -> None:
    """The new one was made after the metadata was asked for, so that its name is the only thing known of it."""
    async with has_read() as (broker, kafka):
        hidden = broker.on(ApiKey.METADATA, answer=without_topics(), times=None)
        metadata = kafka._cluster.metadata
        await metadata.refresh(metadata.snapshot, kafka._cluster.deadline(5))
        broker.delete_topic("t")
        broker.create_topic("t")
        before = commits(broker)
        await anyio.sleep(6)
        assert commits(broker) == before + 1
        hidden.remove()
        assert await committed(kafka) is None


async def test_a_commit_that_is_tried_again_has_what_is_finished_by_then() -> None:
    async with member(every_ms=5_000) as (broker, kafka, readers, one):
        away = broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.NOT_COORDINATOR, times=None)
        await write(kafka, 0)
        await readers.until(lambda: len(one.records) == 1)
        await anyio.sleep(8)
        assert commits(broker) > 1
        await write(kafka, 1)
        await readers.until(lambda: len(one.records) == 2)
        away.remove()
        await anyio.sleep(1.5)  # tries are 1.2 s apart at most
        assert await committed(kafka) == 2


async def test_a_commit_that_goes_back_is_tried_again_as_such() -> None:
    async with member(every_ms=5_000) as (broker, kafka, readers, one):
        away = broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.NOT_COORDINATOR, times=None)
        for number in range(3):
            await write(kafka, number)
        await readers.until(lambda: len(one.records) == 3)
        await anyio.sleep(8)
        one.consumer.pause(WHERE)
        one.consumer.seek(WHERE, 1)
        away.remove()
        await anyio.sleep(1.5)
        assert await committed(kafka) == 1


async def test_a_commit_that_took_longer_than_the_interval_is_followed_by_the_next_at_once() -> None:
    async with member(every_ms=5_000) as (broker, kafka, readers, one):
        await write(kafka, 0)
        async with broker.hold(ApiKey.OFFSET_COMMIT) as held:
            await held.arrived()
            await write(kafka, 1)
            await readers.until(lambda: len(one.records) == 2)
            await anyio.sleep(6)
            # The second try is on its way without this one.
            await write(kafka, 2)
            await readers.until(lambda: len(one.records) == 3)
        await anyio.sleep(1)
        assert await committed(kafka) == 3
        assert commits(broker) == 3


async def test_what_is_finished_while_a_commit_is_unanswered_is_sent_as_well() -> None:
    """As when replicas are dead: the coordinator has what it does not answer, and would read nothing behind it."""
    async with member(every_ms=1_000) as (broker, kafka, *_):
        async with broker.hold(ApiKey.OFFSET_COMMIT, at="after") as held:
            await write(kafka, 0)
            await held.arrived()
            assert await committed(kafka) == 1
            await write(kafka, 1)
            await anyio.sleep(1.5)
            assert await committed(kafka) == 2
            await write(kafka, 2)
            await anyio.sleep(2.5)  # each try is waited for twice as long as the one before
            assert await committed(kafka) == 3
            assert commits(broker) == 3
        # One of those left behind could have its effect last.
        await anyio.sleep(8)
        assert commits(broker) == 4
        await anyio.sleep(10)
        assert commits(broker) == 4


async def test_who_closes_while_a_commit_is_unanswered_commits_what_is_finished_by_then() -> None:
    async with (
        member(every_ms=5_000) as (broker, kafka, readers, one),
        broker.hold(ApiKey.OFFSET_COMMIT, at="after") as held,
    ):
        await write(kafka, 0)
        await held.arrived()
        await write(kafka, 1)
        await readers.until(lambda: len(one.records) == 2)
        await anyio.sleep(0.5)
        with anyio.fail_after(3):
            await one.consumer.close(2)
        assert await committed(kafka) == 2


async def test_an_auto_commit_that_waited_for_another_commit_in_vain_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        member(every_ms=60_000) as (broker, kafka, readers, one),
        anyio.create_task_group() as tasks,
        broker.hold(ApiKey.OFFSET_COMMIT) as held,
    ):
        tasks.start_soon(one.consumer.commit, {WHERE: 0})
        await held.arrived()
        await write(kafka, 0)
        await readers.until(lambda: len(one.records) == 1)
        assert one.consumer._auto_commit is not None
        await one.consumer._auto_commit.commit_finished(within=1)
    (line,) = [line for line in caplog.messages if "auto-commit of group 'g' failed" in line]
    assert line.endswith("a commit before this one took longer than 1 s")


async def write(kafka: Client, number: int, topic: str = "t") -> None:
    async with kafka.producer() as producer:
        await producer.send(topic, b"%d" % number)


def commits(broker: Broker) -> int:
    return sum(one.api == ApiKey.OFFSET_COMMIT for one in broker.requests)
