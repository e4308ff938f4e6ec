"""Fetch, as Apache Kafka answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import anyio
import pytest
from support.raw_client import RawClient, batch_of, fetch_request, produce_request, records_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.fetch import FetchRequest
from aiokafkawire.protocol.messages.metadata import MetadataResponseTopic
from aiokafkawire.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from aiokafkawire.types import IsolationLevel

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

LONG = 30_000  # ms: a wait that a passing test never sees the end of


@pytest.mark.parametrize("version", range(4, 13))
async def test_every_version_by_name(client: RawClient, name: str, version: int) -> None:
    await client.produce(name, batch_of(b"a", b"b"))
    data = await client.fetch(name, 0, version=version)
    assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 2, 2)
    assert data.log_start_offset == (0 if version >= 5 else -1)
    assert [(record.offset, record.key, record.value) for record in records_of(data)] == [
        (0, b"key", b"a"),
        (1, b"key", b"b"),
    ]


@pytest.mark.parametrize("version", range(13, 19))
async def test_every_version_by_id(
    client: RawClient, topic: MetadataResponseTopic, unknown_id: UUID, version: int
) -> None:
    await client.produce(topic.topic_id, batch_of(b"a"))
    data = await client.fetch(topic.topic_id, 0, version=version)
    assert [record.value for record in records_of(data)] == [b"a"]
    unknown = await client.fetch(unknown_id, 0, version=version, max_wait_ms=LONG)
    assert (unknown.error_code, unknown.high_watermark) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)


async def test_reading_begins_with_the_batch_that_holds_the_offset(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"a", b"b"))
    await client.produce(name, batch_of(b"c", b"d"))
    assert [record.offset for record in records_of(await client.fetch(name, 1))] == [0, 1, 2, 3]
    assert [record.offset for record in records_of(await client.fetch(name, 2))] == [2, 3]


async def test_the_first_batch_is_whole_however_small_the_limits(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"x" * 1000))
    await client.produce(name, batch_of(b"y" * 1000))
    for limits in ({"partition_max_bytes": 10}, {"max_bytes": 10}, {"max_bytes": 0, "partition_max_bytes": 0}):
        data = await client.fetch(name, 0, **limits)
        assert [record.value for record in records_of(data)] == [b"x" * 1000]


async def test_the_last_batch_is_cut_at_the_limit(kafka: Kafka, client: RawClient) -> None:
    name = (await kafka.topic(partitions=2)).name
    assert name is not None
    batch = batch_of(b"x" * 1000)
    size = len(batch)
    for partition in (0, 0, 0, 1):
        await client.produce(name, batch, partition=partition)
    for limits in ({"partition_max_bytes": size + 100}, {"max_bytes": size + 100}):
        data = await client.fetch(name, 0, **limits)
        assert len(data.records or b"") == size + 100
        assert [record.offset for record in records_of(data)] == [0]
    assert len((await client.fetch(name, 1, partition_max_bytes=2 * size)).records or b"") == 2 * size
    for left, expected in ((100, 0), (size, size)):  # of the first batch of another partition there is no part
        both = fetch_request(name, 0, partition_max_bytes=size, max_bytes=size + left)
        both.topics[0].partitions += fetch_request(name, 0, partition=1).topics[0].partitions
        first, second = (await client.ask(both, 12)).responses[0].partitions
        assert (len(first.records or b""), len(second.records or b"")) == (size, expected)


async def test_limits_hold_for_what_follows_the_first_batch(kafka: Kafka, client: RawClient) -> None:
    name = (await kafka.topic(partitions=2)).name
    assert name is not None
    batch = batch_of(b"x" * 1000)
    for partition in (0, 0, 1):
        await client.produce(name, batch, partition=partition)
    both = fetch_request(name, 0, partition_max_bytes=2 * len(batch), max_bytes=2 * len(batch))
    both.topics[0].partitions += fetch_request(name, 0, partition=1).topics[0].partitions
    first, second = (await client.ask(both, 12)).responses[0].partitions
    assert len(records_of(first)) == 2
    assert len(records_of(second)) == 0  # no room is left, and it is not the answer's first batch
    assert second.high_watermark == 1


@pytest.mark.parametrize("offset", [-1, 2, 1000])
async def test_offsets_out_of_range_answer_at_once(client: RawClient, name: str, offset: int) -> None:
    await client.produce(name, batch_of(b"x"))
    data = await client.fetch(name, offset, max_wait_ms=LONG)
    assert (data.error_code, data.high_watermark, len(data.records or b"")) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, 0)
    assert data.aborted_transactions is None


async def test_unknown_topics_and_partitions_answer_at_once(client: RawClient, name: str) -> None:
    for topic, partition in (("no-such-topic", 0), (name, 1), (name, -1)):
        data = await client.fetch(topic, 0, partition=partition, max_wait_ms=LONG)
        assert (data.error_code, data.high_watermark) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert data.aborted_transactions == []


async def test_a_wrong_offset_of_one_partition_hurries_the_others(kafka: Kafka, client: RawClient) -> None:
    name = (await kafka.topic(partitions=2)).name
    assert name is not None
    both = fetch_request(name, 0, max_wait_ms=LONG)
    both.topics[0].partitions += fetch_request(name, 5, partition=1).topics[0].partitions
    answer = await client.ask(both, 12)
    assert sorted(p.error_code for topic in answer.responses for p in topic.partitions) == [
        0,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    ]


async def test_an_unknown_topic_does_not_hurry_the_others(client: RawClient, name: str) -> None:
    both = fetch_request(name, 0, max_wait_ms=200)
    both.topics += fetch_request("no-such-topic", 0).topics
    began = anyio.current_time()
    await client.ask(both, 12)
    assert anyio.current_time() - began >= 0.19


async def test_leader_epochs_are_compared(client: RawClient, name: str) -> None:
    newer = await client.fetch(name, 0, epoch=1, max_wait_ms=LONG)
    assert newer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    for epoch in (0, -1):
        assert (await client.fetch(name, 0, epoch=epoch)).error_code == 0


async def test_read_committed_lists_aborted_transactions(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"x"))
    committed = await client.fetch(name, 0, isolation_level=IsolationLevel.READ_COMMITTED)
    assert committed.aborted_transactions == []
    assert (await client.fetch(name, 0)).aborted_transactions is None


# --- waiting -----------------------------------------------------------------------------------------------------


async def test_an_empty_answer_comes_when_the_wait_is_over(client: RawClient, name: str) -> None:
    began = anyio.current_time()
    data = await client.fetch(name, 0, max_wait_ms=150)
    assert (data.error_code, len(data.records or b"")) == (0, 0)
    assert anyio.current_time() - began >= 0.14


@pytest.mark.parametrize("waits", [{"max_wait_ms": 0}, {"max_wait_ms": LONG, "min_bytes": 0}])
async def test_who_wants_nothing_does_not_wait(client: RawClient, name: str, waits: dict[str, int]) -> None:
    assert (await client.fetch(name, 0, **waits)).error_code == 0


async def test_no_partitions_answer_at_once(client: RawClient) -> None:
    answer = await client.ask(FetchRequest(max_wait_ms=LONG, min_bytes=1, topics=[]), 12)
    assert answer.responses == []


async def test_a_new_batch_wakes_a_waiting_fetch(kafka: Kafka, client: RawClient, name: str) -> None:
    waiting = await client.send(fetch_request(name, 0, max_wait_ms=LONG), 12)
    async with await kafka.client() as producer:
        await producer.produce(name, batch_of(b"x"))
    answer = await client.answer(FetchRequest, 12, waiting)
    assert [record.value for record in records_of(answer.responses[0].partitions[0])] == [b"x"]  # type: ignore[attr-defined]


async def test_a_fetch_waits_for_its_min_bytes(kafka: Kafka, client: RawClient, name: str) -> None:
    batch = batch_of(b"x" * 100)
    waiting = await client.send(fetch_request(name, 0, max_wait_ms=LONG, min_bytes=3 * len(batch)), 12)
    async with await kafka.client() as producer:
        for _ in range(3):
            await producer.produce(name, batch)
    answer = await client.answer(FetchRequest, 12, waiting)
    assert len(records_of(answer.responses[0].partitions[0])) == 3  # type: ignore[attr-defined]


async def test_requests_behind_a_waiting_fetch_wait_with_it(client: RawClient, name: str) -> None:
    waiting = await client.send(fetch_request(name, 0, max_wait_ms=100), 12)
    behind = await client.send(produce_request(name, batch_of(b"x")), 12)
    fetched = await client.answer(FetchRequest, 12, waiting)
    assert fetched.responses[0].partitions[0].high_watermark == 0  # type: ignore[attr-defined]
    await client.answer(type(produce_request(name, b"")), 12, behind)


async def test_deleting_a_topic_wakes_its_fetches(kafka: Kafka, client: RawClient, name: str) -> None:
    waiting = await client.send(fetch_request(name, 0, max_wait_ms=LONG), 12)
    async with await kafka.client() as admin:
        delete = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000)
        assert (await admin.ask(delete, 6)).responses[0].error_code == 0
    answer = await client.answer(FetchRequest, 12, waiting)
    data = answer.responses[0].partitions[0]  # type: ignore[attr-defined]
    # Apache Kafka may find the partition gone, or just no longer its own.
    assert ErrorCode(data.error_code).name in ("UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER")


# --- sessions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("session_id", "epoch"), [(77, 1), (77, -5)])
async def test_unknown_sessions_are_not_found(client: RawClient, name: str, session_id: int, epoch: int) -> None:
    answer = await client.ask(fetch_request(name, 0, session_id=session_id, session_epoch=epoch), 12)
    assert (answer.error_code, answer.session_id, answer.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])


async def test_a_fetch_without_session_is_whole_each_time(client: RawClient, name: str) -> None:
    for _ in range(2):
        answer = await client.ask(fetch_request(name, 0, session_id=0, session_epoch=-1), 12)
        assert (answer.session_id, len(answer.responses)) == (0, 1)
