"""Fetch sessions (KIP-227), as Apache Kafka keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio
import pytest
from support.patience import PATIENCE
from support.raw_client import RawClient, batch_of, fetch_request, records_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.fetch import FetchRequest, FetchResponse, ForgottenTopic
from aiokafkawire.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

LONG = 30_000  # ms: a wait that a passing test never sees the end of


def request(topic: str | UUID | None, *offsets: int, session: tuple[int, int] = (0, 0), **fields: Any) -> FetchRequest:
    """Partitions from 0 on at these offsets; no topic is no change."""
    session_id, epoch = session
    if topic is None:
        fields = {"max_wait_ms": 0, "min_bytes": 1, **fields}
        return FetchRequest(topics=[], session_id=session_id, session_epoch=epoch, **fields)
    made = fetch_request(topic, 0, session_id=session_id, session_epoch=epoch, **fields)
    made.topics[0].partitions.clear()
    for index, offset in enumerate(offsets):
        made.topics[0].partitions += fetch_request(topic, offset, partition=index).topics[0].partitions
    return made


def told(answer: FetchResponse) -> list[tuple[int, int, int]]:
    """Partition, error and number of records, in the order of the answer."""
    return [
        (data.partition_index, data.error_code, len(records_of(data)))
        for topic in answer.responses
        for data in topic.partitions
    ]


def outcome(answer: FetchResponse) -> tuple[ErrorCode, bool, int]:
    """The error, whether there is a session, and the number of topics."""
    return ErrorCode(answer.error_code), answer.session_id != 0, len(answer.responses)


async def two_partitions(kafka: Kafka) -> str:
    name = (await kafka.topic(partitions=2)).name
    assert name is not None
    return name


@pytest.mark.parametrize("version", [7, 8, 11, 12])
async def test_a_session_tells_what_is_new_alone(kafka: Kafka, client: RawClient, version: int) -> None:
    name = await two_partitions(kafka)
    await client.produce(name, batch_of(b"a"))
    first = await client.ask(request(name, 0, 0), version)
    assert first.session_id > 0
    assert told(first) == [(0, 0, 1), (1, 0, 0)]
    session = first.session_id
    # Partition 0 is still read from offset 0.
    assert told(await client.ask(request(None, session=(session, 1)), version)) == [(0, 0, 1)]
    on = request(name, 1, session=(session, 2))
    assert told(await client.ask(on, version)) == []
    await client.produce(name, batch_of(b"b", b"c"), partition=1)
    third = await client.ask(request(None, session=(session, 3)), version)
    assert (told(third), third.session_id) == ([(1, 0, 2)], session)


@pytest.mark.parametrize("version", [13, 17, 18])
async def test_a_session_by_topic_ids(kafka: Kafka, client: RawClient, version: int) -> None:
    topic = await kafka.topic()
    await client.produce(topic.topic_id, batch_of(b"a"))
    first = await client.ask(request(topic.topic_id, 0), version)
    assert told(first) == [(0, 0, 1)]
    second = await client.ask(request(None, session=(first.session_id, 1)), version)
    assert [one.topic_id for one in second.responses] == [topic.topic_id]


async def test_what_got_records_comes_last_the_next_time(kafka: Kafka, client: RawClient) -> None:
    name = (await kafka.topic(partitions=3)).name
    assert name is not None
    for partition in range(3):
        await client.produce(name, batch_of(b"x" * 100), partition=partition)
    first = await client.ask(request(name, 0, 0, 0, max_bytes=10), 12)
    assert told(first) == [(0, 0, 1), (1, 0, 0), (2, 0, 0)]
    order = []
    for epoch in range(1, 6):
        asked = request(None, session=(first.session_id, epoch), max_bytes=10)
        order += [partition for partition, _, count in told(await client.ask(asked, 12)) if count]
    assert order == [0, 1, 2, 0, 1]  # the full fetch that began it moved nothing


async def test_forgotten_partitions_are_not_read(kafka: Kafka, client: RawClient) -> None:
    name = await two_partitions(kafka)
    for partition in range(2):
        await client.produce(name, batch_of(b"a"), partition=partition)
    session = (await client.ask(request(name, 0, 0), 12)).session_id
    forget = request(None, session=(session, 1))
    forget.forgotten_topics_data = [ForgottenTopic(topic=name, partitions=[0, 7])]
    assert told(await client.ask(forget, 12)) == [(1, 0, 1)]
    forget = request(None, session=(session, 2))
    forget.forgotten_topics_data = [ForgottenTopic(topic=name, partitions=[1])]
    assert outcome(await client.ask(forget, 12)) == (ErrorCode.NONE, False, 0)  # with its last one it ends
    gone = await client.ask(request(None, session=(session, 3)), 12)
    assert outcome(gone) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, False, 0)


async def test_each_request_has_the_next_epoch(client: RawClient, name: str) -> None:
    session = (await client.ask(request(name, 0), 12)).session_id
    for epoch in (2, 7, -5):
        answer = await client.ask(request(None, session=(session, epoch)), 12)
        assert outcome(answer) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, False, 0)
    assert outcome(await client.ask(request(None, session=(session, 1)), 12)) == (ErrorCode.NONE, True, 0)
    again = await client.ask(request(None, session=(session, 1)), 12)
    assert outcome(again) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, False, 0)


async def test_a_full_fetch_ends_the_session_and_begins_another(client: RawClient, name: str) -> None:
    first = (await client.ask(request(name, 0), 12)).session_id
    second = (await client.ask(request(name, 0, session=(first, 0)), 12)).session_id
    assert second not in (0, first)
    ended = await client.ask(request(name, 0, session=(second, -1)), 12)
    assert outcome(ended) == (ErrorCode.NONE, False, 1)
    for session in (first, second):
        gone = await client.ask(request(None, session=(session, 1)), 12)
        assert outcome(gone) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, False, 0)


async def test_a_session_may_begin_without_partitions(client: RawClient, name: str) -> None:
    first = await client.ask(request(None), 12)
    assert outcome(first) == (ErrorCode.NONE, True, 0)
    assert told(await client.ask(request(name, 0, session=(first.session_id, 1)), 12)) == [(0, 0, 0)]


async def test_names_and_ids_do_not_mix(kafka: Kafka, client: RawClient) -> None:
    topic = await kafka.topic()
    assert topic.name is not None
    by_name = (await client.ask(request(topic.name, 0), 12)).session_id
    by_id = (await client.ask(request(topic.topic_id, 0), 13)).session_id
    for session, version in ((by_name, 13), (by_id, 12)):
        answer = await client.ask(request(None, session=(session, 1)), version)
        assert outcome(answer) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, False, 0)


async def test_errors_are_told_each_time_and_their_end_once(kafka: Kafka, client: RawClient) -> None:
    name = (await kafka.topic()).name
    assert name is not None
    first = await client.ask(request(name, 5), 12)
    assert told(first) == [(0, ErrorCode.OFFSET_OUT_OF_RANGE, 0)]
    session = first.session_id
    again = await client.ask(request(None, session=(session, 1), max_wait_ms=LONG), 12)
    assert told(again) == [(0, ErrorCode.OFFSET_OUT_OF_RANGE, 0)]
    assert told(await client.ask(request(name, 0, session=(session, 2)), 12)) == [(0, 0, 0)]
    assert told(await client.ask(request(None, session=(session, 3)), 12)) == []


async def test_unknown_partitions_stay_in_the_session(kafka: Kafka, client: RawClient, name: str) -> None:
    asked = fetch_request("no-such-topic", 0, session_id=0, session_epoch=0)
    asked.topics += fetch_request(name, 0).topics
    asked.topics[1].partitions += fetch_request(name, 0, partition=9).topics[0].partitions
    first = await client.ask(asked, 12)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    # What cannot be read comes after what can.
    assert told(first) == [(0, 0, 0), (0, unknown, 0), (9, unknown, 0)]
    assert [topic.topic for topic in first.responses] == [name, "no-such-topic", name]
    second = await client.ask(request(None, session=(first.session_id, 1)), 12)
    assert told(second) == [(0, unknown, 0), (9, unknown, 0)]


async def test_an_unknown_id_is_told_each_time(kafka: Kafka, client: RawClient, unknown_id: UUID) -> None:
    first = await client.ask(request(unknown_id, 0), 13)
    assert told(first) == [(0, ErrorCode.UNKNOWN_TOPIC_ID, 0)]
    second = await client.ask(request(None, session=(first.session_id, 1)), 13)
    assert told(second) == [(0, ErrorCode.UNKNOWN_TOPIC_ID, 0)]
    assert second.responses[0].topic_id == unknown_id


async def test_a_topic_made_anew_has_another_id_than_the_session(kafka: Kafka, client: RawClient) -> None:
    topic = await kafka.topic()
    assert topic.name is not None
    session = (await client.ask(request(topic.topic_id, 0), 13)).session_id
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=5000)
    assert (await client.ask(delete, 6)).responses[0].error_code == 0
    epoch = 1
    with anyio.fail_after(PATIENCE):  # Apache Kafka takes a moment
        while told(await client.ask(request(None, session=(session, epoch)), 13)) != [
            (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
        ]:
            epoch += 1
    anew = CreatableTopic(name=topic.name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    assert (await client.ask(CreateTopicsRequest(topics=[anew]), 7)).topics[0].error_code == 0
    await kafka.described(client, topic.name)
    not_yet = [[(0, one, 0)] for one in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    with anyio.fail_after(PATIENCE):
        while True:
            epoch += 1
            answer = told(await client.ask(request(None, session=(session, epoch)), 13))
            if answer not in not_yet:
                break
    assert answer == [(0, ErrorCode.INCONSISTENT_TOPIC_ID, 0)]


async def test_a_session_that_another_request_used_meanwhile(kafka: Kafka, client: RawClient, name: str) -> None:
    session = (await client.ask(request(name, 0), 12)).session_id
    waiting = await client.send(request(None, session=(session, 1), max_wait_ms=LONG), 12)
    async with await kafka.client() as other:
        with anyio.fail_after(PATIENCE):  # the waiting one is to come first, on another connection
            while (await other.ask(request(None, session=(session, 2)), 12)).error_code:
                pass
        await other.produce(name, batch_of(b"x"))
    answer = await client.answer(FetchRequest, 12, waiting)
    assert isinstance(answer, FetchResponse)
    assert outcome(answer) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, True, 0)


async def test_a_new_batch_wakes_a_session(kafka: Kafka, client: RawClient) -> None:
    name = await two_partitions(kafka)
    session = (await client.ask(request(name, 0, 0), 12)).session_id
    waiting = await client.send(request(None, session=(session, 1), max_wait_ms=LONG), 12)
    async with await kafka.client() as producer:
        await producer.produce(name, batch_of(b"x"), partition=1)
    answer = await client.answer(FetchRequest, 12, waiting)
    assert isinstance(answer, FetchResponse)
    assert told(answer) == [(1, 0, 1)]


async def test_of_a_partition_named_twice_the_last_counts(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"a"))
    asked = request(name, 0)
    asked.topics += fetch_request(name, 1).topics
    assert told(await client.ask(asked, 12)) == [(0, 0, 0)]
