"""Reading as a member of a share group and acknowledging records (KIP-932), as Apache Kafka 4.3 does."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import anyio
import anyio.lowlevel
import pytest
from support.patience import PATIENCE
from support.raw_client import RawClient, batch_of
from support.share_members import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acks,
    ShareMember,
    acquired,
    configure,
    new_share_group,
    offsets_of,
)
from support.transactional import TransactionalProducer

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.metadata import MetadataResponseTopic
from aiokafkawire.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

Joined: TypeAlias = Callable[..., Awaitable[ShareMember]]
LONG = 20_000  # ms: a wait that a passing test never sees the end of


@pytest.fixture
async def share_group(client: RawClient) -> AsyncIterator[str]:
    async for group in new_share_group(client):
        yield group


@pytest.fixture
async def joined(
    kafka: Kafka, client: RawClient, share_group: str, topic: MetadataResponseTopic
) -> AsyncIterator[Joined]:
    """Makes members of a share group that begins at the log's start; each has a connection of its own."""
    await configure(client, share_group, share_auto_offset_reset="earliest")
    async with AsyncExitStack() as stack:

        async def make(version: int = 2) -> ShareMember:
            member = ShareMember(await stack.enter_async_context(await kafka.client()), share_group, version=version)
            await member.join(topic.name or "")
            return member

        yield make


async def written(client: RawClient, topic: MetadataResponseTopic, *sizes: int) -> UUID:
    """Write batches of these sizes; the topic's id."""
    for size in sizes:
        assert not (await client.produce(topic.topic_id, batch_of(*[b"x"] * size))).error_code
    return topic.topic_id


async def begun(client: RawClient, topic: MetadataResponseTopic, member: ShareMember) -> UUID:
    """Begin a session with a record at offset 0 that is accepted: the group's next offset is 1."""
    topic_id = await written(client, topic, 1)
    assert await member.fetched(topic_id) == [(0, 0, 1)]
    assert not (await member.acknowledge(topic_id, (0, 0, ACCEPT))).error_code
    return topic_id


async def answer(member: ShareMember, topic: UUID, *acks: Acks, **fields: int) -> tuple[ErrorCode, str | None]:
    data = await member.acknowledge(topic, *acks, **fields)
    return ErrorCode(data.error_code), data.error_message


@pytest.mark.parametrize("version", [1, 2])
async def test_records_are_acquired_once(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, version: int
) -> None:
    topic_id = await written(client, topic, 3)
    one, other = await joined(version), await joined(version)
    assert await one.fetched(topic_id) == [(0, 2, 1)]
    assert acquired(await other.fetch(topic_id, max_wait_ms=200)) == []
    assert acquired(await one.fetch(topic_id)) == []
    assert await answer(one, topic_id, (0, 2, ACCEPT)) == (ErrorCode.NONE, None)


async def test_the_answer_names_the_lock_s_duration(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, share_group: str
) -> None:
    member = await joined()
    await configure(client, share_group, share_record_lock_duration_ms="17000")
    topic_id = await begun(client, topic, member)
    assert (await member.ask(topic_id)).acquisition_lock_timeout_ms == 17_000
    assert (await member.acknowledgement(topic_id, (0, 0, ACCEPT))).acquisition_lock_timeout_ms == 17_000
    refused = await member.ask(topic_id, session=77)
    assert (refused.error_code, refused.acquisition_lock_timeout_ms) == (ErrorCode.INVALID_SHARE_SESSION_EPOCH, 0)


async def test_each_type_of_acknowledgement(client: RawClient, topic: MetadataResponseTopic, joined: Joined) -> None:
    member = await joined()
    topic_id = await begun(client, topic, member)
    await written(client, topic, 5, 5)
    assert acquired(await member.fetch(topic_id)) == [(1, 10, 1)]
    assert (await answer(member, topic_id, (1, 5, ACCEPT, RELEASE, REJECT, GAP, ACCEPT)))[0] == ErrorCode.NONE
    data = await member.fetch(topic_id)
    assert (acquired(data), offsets_of(data)) == ([(2, 2, 2)], [1, 2, 3, 4, 5])
    assert (await answer(member, topic_id, (6, 10, ACCEPT), (2, 2, RELEASE)))[0] == ErrorCode.INVALID_REQUEST
    assert (await answer(member, topic_id, (2, 2, REJECT), (6, 10, ACCEPT)))[0] == ErrorCode.NONE
    assert acquired(await member.fetch(topic_id)) == []


async def test_acknowledgements_come_with_a_fetch(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined
) -> None:
    member = await joined()
    topic_id = await begun(client, topic, member)
    await written(client, topic, 1)
    assert await member.fetched(topic_id) == [(1, 1, 1)]
    await written(client, topic, 1)
    data = await member.fetch(topic_id, (1, 1, ACCEPT))
    assert data is not None
    assert (data.acknowledge_error_code, acquired(data)) == (ErrorCode.NONE, [(2, 2, 1)])
    data = await member.fetch(topic_id, (7, 7, ACCEPT))
    assert data is not None
    assert (data.error_code, data.acknowledge_error_code) == (ErrorCode.NONE, ErrorCode.INVALID_REQUEST)
    assert data.acknowledge_error_message == (
        "Batch record not found. The first offset in request is past acquired records."
    )


async def test_wrong_acknowledgements(client: RawClient, topic: MetadataResponseTopic, joined: Joined) -> None:
    one, other = await joined(), await joined()
    topic_id = await begun(client, topic, one)
    await written(client, topic, 9)
    assert await one.fetched(topic_id) == [(1, 9, 1)]
    invalid = (ErrorCode.INVALID_REQUEST, None)
    wrong: list[Acks] = [(2, 1, 1), (1, 3, 1, 1), (1, 2, 7), (1, 2, -1), (1, 2), (1, 2, RENEW)]
    for acks in wrong:
        assert await answer(one, topic_id, acks) == invalid
    assert await answer(one, topic_id, (5, 6, 1), (1, 2, 1)) == invalid
    assert await answer(one, topic_id, (5, 60, 1)) == (
        ErrorCode.INVALID_REQUEST,
        "Batch record not found. The last offset in request is past acquired records.",
    )
    await other.ask(topic_id)
    state = ErrorCode.INVALID_RECORD_STATE
    assert await answer(other, topic_id, (1, 9, 1)) == (state, "Member is not the owner of batch record")
    assert (await answer(one, topic_id, (1, 2, 1)))[0] == ErrorCode.NONE
    assert await answer(other, topic_id, (3, 4, 1)) == (state, "Member is not the owner of offset")
    assert await answer(one, topic_id, (3, 3, RELEASE)) == (ErrorCode.NONE, None)
    message = "The offset cannot be acknowledged. The offset is not acquired."
    assert await answer(one, topic_id, (3, 4, 1)) == (state, message)
    assert await answer(one, topic_id, (1, 2, 1)) == (ErrorCode.NONE, None)  # before the start offset


async def test_limits_of_records(client: RawClient, topic: MetadataResponseTopic, joined: Joined) -> None:
    member = await joined()
    topic_id = await begun(client, topic, member)
    await written(client, topic, 5, 5, 5, 5)
    assert acquired(await member.fetch(topic_id, max_records=3, batch_size=2)) == [(1, 5, 1)]
    data = await member.fetch(topic_id, max_records=3, share_acquire_mode=1)
    assert (acquired(data), offsets_of(data)) == ([(6, 8, 1)], [6, 7, 8, 9, 10])
    data = await member.fetch(topic_id, max_records=3, batch_size=2, share_acquire_mode=1)
    assert (acquired(data), offsets_of(data)) == ([(9, 10, 1), (11, 11, 1)], [*range(6, 16)])
    data = await member.fetch(topic_id, batch_size=3)
    assert (acquired(data), offsets_of(data)) == ([(12, 15, 1), (16, 20, 1)], [*range(11, 21)])
    assert (await answer(member, topic_id, (3, 5, RELEASE), (7, 9, RELEASE)))[0] == ErrorCode.NONE
    assert acquired(await member.fetch(topic_id, max_records=2, share_acquire_mode=1)) == [(3, 4, 2)]
    assert acquired(await member.fetch(topic_id, max_records=0)) == []
    assert acquired(await member.fetch(topic_id, max_records=2)) == [(5, 5, 2), (7, 9, 2)]


async def test_failing_records_are_delivered_alone_at_last(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined
) -> None:
    member = await joined()
    topic_id = await begun(client, topic, member)
    await written(client, topic, 6, 2)
    seen = []
    for _ in range(15):
        found = acquired(await member.fetch(topic_id, batch_size=1))
        seen.append(found)
        assert not (
            await member.acknowledge(topic_id, *[(first, last, RELEASE) for first, last, _ in found])
        ).error_code
    whole = [[(1, 6, count), (7, 8, count)] for count in (1, 2, 3)]
    first = [[(1, 3, 4)], [(1, 1, 5)], [(2, 2, 5)], [(3, 3, 5)], [(4, 6, 4)], [(4, 4, 5)], [(5, 5, 5)], [(6, 6, 5)]]
    second = [[(7, 7, 4)], [(7, 7, 5)], [(8, 8, 4)], [(8, 8, 5)]]
    assert seen == whole + first + second
    assert acquired(await member.fetch(topic_id)) == []


async def test_two_deliveries_are_too_few_to_deliver_records_alone(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, share_group: str, release: str | None
) -> None:
    if release == "4.2":
        pytest.skip("the limit is a config of groups since 4.3")
    member = await joined()
    await configure(client, share_group, share_delivery_count_limit="2")
    topic_id = await begun(client, topic, member)
    await written(client, topic, 2, 3)
    for count in (1, 2):
        assert await member.fetched(topic_id, batch_size=1) == [(1, 2, count), (3, 5, count)]
        assert (await answer(member, topic_id, (1, 2, RELEASE), (3, 5, RELEASE)))[0] == ErrorCode.NONE
    assert acquired(await member.fetch(topic_id)) == []


@pytest.mark.slow
async def test_locks_end_in_time(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, share_group: str
) -> None:
    one, other = await joined(), await joined()
    topic_id = await begun(client, topic, one)
    await configure(client, share_group, share_record_lock_duration_ms="1000")
    await written(client, topic, 2)
    assert await one.fetched(topic_id) == [(1, 2, 1)]
    await other.ask(topic_id)
    assert acquired(await other.fetch(topic_id, max_wait_ms=LONG)) == [(1, 2, 2)]
    state = ErrorCode.INVALID_RECORD_STATE
    assert await answer(one, topic_id, (1, 2, ACCEPT)) == (state, "Member is not the owner of batch record")


@pytest.mark.slow
async def test_locks_are_renewed(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, share_group: str
) -> None:
    member = await joined()
    topic_id = await begun(client, topic, member)
    await configure(client, share_group, share_record_lock_duration_ms="2000")
    await written(client, topic, 2)
    assert await member.fetched(topic_id) == [(1, 2, 1)]
    for _ in range(3):
        await anyio.sleep(0.75)  # within the lock that is renewed, and together longer than one
        assert (await answer(member, topic_id, (2, 2, RENEW), is_renew_ack=True))[0] == ErrorCode.NONE
    assert (await answer(member, topic_id, (2, 2, ACCEPT)))[0] == ErrorCode.NONE
    assert acquired(await member.fetch(topic_id, max_wait_ms=LONG)) == [(1, 1, 2)]
    nothing = {"max_bytes": 0, "max_records": 0, "batch_size": 0, "min_bytes": 0}
    data = await member.fetch(topic_id, (1, 1, RENEW), is_renew_ack=True, **nothing)
    assert data is not None
    assert (data.acknowledge_error_code, acquired(data)) == (ErrorCode.NONE, [])
    refused = await member.ask(topic_id, (1, 1, RENEW), is_renew_ack=True)
    assert refused.error_code == ErrorCode.INVALID_REQUEST


async def test_a_fetch_waits_for_records(client: RawClient, topic: MetadataResponseTopic, joined: Joined) -> None:
    member = await joined()
    topic_id = await begun(client, topic, member)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(written, client, topic, 2)
        found = acquired(await member.fetch(topic_id, max_wait_ms=LONG))
        # Apache Kafka may answer without records if they are written in the same moment.
        assert (found or await member.fetched(topic_id)) == [(1, 2, 1)]


async def test_a_fetch_waits_for_another_member_s_release(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined
) -> None:
    one, other = await joined(), await joined()
    topic_id = await begun(client, topic, one)
    await written(client, topic, 2)
    assert await one.fetched(topic_id) == [(1, 2, 1)]
    await other.ask(topic_id)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.acknowledge, topic_id, (1, 2, RELEASE))
        assert await other.fetched(topic_id) == [(1, 2, 2)]  # Apache Kafka may miss a release in the same moment


# --- sessions --------------------------------------------------------------------------------------------------


async def test_epochs_of_a_session(client: RawClient, topic: MetadataResponseTopic, joined: Joined) -> None:
    member = await joined()
    topic_id = await written(client, topic, 1)

    async def error(epoch: int) -> tuple[int, int]:
        fetched = await member.ask(topic_id, session=epoch)
        return fetched.error_code, (await member.acknowledgement(topic_id, (0, 0, 1), session=epoch)).error_code

    missing, wrong = ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert await error(1) == await error(-1) == (missing, missing)
    await member.fetched(topic_id)
    assert await error(member.session + 1) == (wrong, wrong)
    assert (await member.acknowledgement(topic_id, (0, 0, 1), session=0)).error_code == wrong
    refused = await member.ask(topic_id, (0, 0, 1), session=0)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    member.session = 0
    assert not (await member.ask(topic_id)).error_code
    assert member.session == 1
    assert not (await member.acknowledge(topic_id, (0, 0, 1))).error_code


@pytest.mark.parametrize(("member_id", "code"), [("m", 0), ("", ErrorCode.INVALID_REQUEST)])
async def test_any_member_id_but_none(
    kafka: Kafka, topic: MetadataResponseTopic, share_group: str, member_id: str, code: int
) -> None:
    async with await kafka.client() as client:
        assert (await ShareMember(client, share_group, member_id).ask(topic.topic_id)).error_code == code


async def test_the_last_request_releases_the_records(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined
) -> None:
    one, other = await joined(), await joined()
    topic_id = await begun(client, topic, one)
    await written(client, topic, 3)
    assert await one.fetched(topic_id) == [(1, 3, 1)]
    assert (await answer(one, topic_id, (1, 1, ACCEPT), session=-1)) == (ErrorCode.NONE, None)
    assert (await one.ask(topic_id, session=3)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert await other.fetched(topic_id) == [(2, 3, 2)]
    last = await other.ask(topic_id, (2, 2, ACCEPT), session=-1)
    (data,) = last.responses[0].partitions
    assert (last.error_code, data.acknowledge_error_code, acquired(data)) == (0, 0, [])
    one.session = 0
    assert await one.fetched(topic_id) == [(3, 3, 3)]


async def test_a_closed_connection_releases_the_records(
    kafka: Kafka, client: RawClient, topic: MetadataResponseTopic, joined: Joined, share_group: str
) -> None:
    one = await joined()
    topic_id = await begun(client, topic, one)
    await written(client, topic, 3)
    async with await kafka.client() as connection:
        other = ShareMember(connection, share_group)
        await other.join(topic.name or "", partitions=0)
        assert await other.fetched(topic_id) == [(1, 3, 1)]
    assert await one.fetched(topic_id) == [(1, 3, 2)]


async def test_a_session_remembers_and_forgets_partitions(
    kafka: Kafka, client: RawClient, joined: Joined, share_group: str
) -> None:
    two = await kafka.topic(partitions=2)
    member = await joined()
    await member.heartbeat(two.name or "")
    await anyio.lowlevel.checkpoint()
    for index in range(2):
        await client.produce(two.topic_id, batch_of(b"x"), partition=index)

    async def read(**fields: Any) -> set[int]:
        answer = await member.ask(None, max_wait_ms=200, **fields)
        read = [data for one in answer.responses for data in one.partitions]
        # Apache Kafka may fail once while it begins to share a partition.
        return {
            one.partition_index for one in read if one.error_code != ErrorCode.UNKNOWN_SERVER_ERROR and acquired(one)
        }

    assert not (await member.ask(two.topic_id, partitions=(0, 1), max_records=0)).error_code
    seen: set[int] = set()
    with anyio.fail_after(PATIENCE):
        while seen != {0, 1}:
            seen |= await read()
    for index in range(2):
        await client.produce(two.topic_id, batch_of(b"x"), partition=index)
    assert await read(forget=[(two.topic_id, 0)]) == {1}


async def test_partitions_that_do_not_exist(client: RawClient, topic: MetadataResponseTopic, joined: Joined) -> None:
    member = await joined()
    topic_id = await begun(client, topic, member)
    (data,) = (await member.ask(topic_id, partitions=(7,))).responses[0].partitions
    assert (data.partition_index, data.error_code) == (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    refused = await member.acknowledge(topic_id, (0, 0, 1), partition=7)
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_other_partitions_are_waited_for(client: RawClient, topic: MetadataResponseTopic, joined: Joined) -> None:
    member = await joined()
    topic_id = await begun(client, topic, member)
    await member.ask(topic_id, partitions=(7,))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(written, client, topic, 2)
        (one, other) = (await member.ask(None, max_wait_ms=LONG)).responses[0].partitions
    assert {(data.partition_index, data.error_code) for data in (one, other)} == {(0, 0), (7, 3)}


async def test_a_session_opened_again_keeps_the_records(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined
) -> None:
    one, other = await joined(), await joined()
    topic_id = await begun(client, topic, one)
    await written(client, topic, 3)
    assert await one.fetched(topic_id) == [(1, 3, 1)]
    assert acquired(await one.fetch(topic_id, session=0)) == []
    assert (await answer(one, topic_id, (1, 1, ACCEPT)))[0] == ErrorCode.NONE
    assert acquired(await one.fetch(None, forget=[(topic_id, 0)])) == []
    assert (await answer(one, topic_id, (2, 2, ACCEPT)))[0] == ErrorCode.NONE
    assert not (await one.leave()).error_code
    assert acquired(await other.fetch(topic_id, max_wait_ms=200)) == []
    assert (await answer(one, topic_id, (3, 3, RELEASE)))[0] == ErrorCode.NONE
    assert await other.fetched(topic_id) == [(3, 3, 2)]


@pytest.mark.parametrize("max_bytes", [0, 1])
async def test_limits_of_bytes(client: RawClient, topic: MetadataResponseTopic, joined: Joined, max_bytes: int) -> None:
    member = await joined()
    topic_id = await begun(client, topic, member)
    await written(client, topic, 2, 2)
    expected = [(1, 2, 1)] if max_bytes else []
    assert acquired(await member.fetch(topic_id, max_bytes=max_bytes, max_wait_ms=200)) == expected


# --- where groups begin, and what is not delivered -------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("reset", "first"), [("latest", 2), ("earliest", 0), ("by_duration:P1D", 2)])
async def test_where_a_group_begins(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, share_group: str, reset: str, first: int
) -> None:
    member = await joined()
    await configure(client, share_group, share_auto_offset_reset=reset)
    topic_id = await written(client, topic, 2)  # with timestamps of 1970
    data = await member.fetch(topic_id, max_wait_ms=1000)
    if reset.startswith("by_duration"):
        assert data is not None
        assert data.error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    else:
        assert acquired(data) == ([(0, 1, 1)] if first == 0 else [])
    await client.produce(topic_id, batch_of(b"new", timestamp=time.time_ns() // 1_000_000))
    assert await member.fetched(topic_id) == [(2, 2, 1)]


async def test_deleted_records_are_not_delivered(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined
) -> None:
    member = await joined()
    topic_id = await begun(client, topic, member)
    await written(client, topic, 2, 2)
    partition = DeleteRecordsPartition(partition_index=0, offset=4)
    deletion = DeleteRecordsTopic(name=topic.name or "", partitions=[partition])
    assert (
        not (await client.ask(DeleteRecordsRequest(topics=[deletion], timeout_ms=5000), 2))
        .topics[0]
        .partitions[0]
        .error_code
    )
    data = None
    with anyio.fail_after(PATIENCE):
        while data is None or not data.acquired_records:
            data = await member.fetch(topic_id, max_wait_ms=500)
    assert [(part.first_offset, part.last_offset) for part in data.acquired_records][-1][1] == 4


@pytest.mark.parametrize(("level", "expected"), [("read_uncommitted", range(1, 10)), ("read_committed", [3, 4, 5, 6])])
async def test_isolation_levels(
    client: RawClient,
    topic: MetadataResponseTopic,
    joined: Joined,
    share_group: str,
    level: str,
    expected: Iterable[int],
) -> None:
    member = await joined()
    await configure(client, share_group, share_isolation_level=level)
    topic_id = await begun(client, topic, member)
    name = topic.name or ""
    producer = await TransactionalProducer(client).initialized()
    for commit in (False, True):  # at 1 and 2 with a marker at 3; at 4 and 5 with a marker at 6
        assert not (await producer.add((name, 0)))[name, 0]
        assert not (await producer.send(name, b"x", b"y")).error_code
        await producer.ended(commit)
    assert not (await producer.add((name, 0)))[name, 0]
    assert not (await producer.send(name, b"x", b"y")).error_code  # at 7 and 8, and never ended
    await written(client, topic, 1)
    seen: set[int] = set()
    with anyio.fail_after(PATIENCE):
        while not seen >= set(expected):
            for first, last, _ in acquired(await member.fetch(topic_id, max_wait_ms=500)):
                seen |= set(range(first, last + 1))
    assert seen == set(expected)


async def test_a_fetch_that_finds_only_aborted_records_is_answered_at_once(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, share_group: str
) -> None:
    await configure(client, share_group, share_isolation_level="read_committed")
    member, name = await joined(), topic.name or ""
    topic_id = await begun(client, topic, member)
    producer = await TransactionalProducer(client).initialized()
    assert not (await producer.add((name, 0)))[name, 0]
    for _ in range(3):
        assert not (await producer.send(name, b"x", b"y")).error_code
    await producer.ended(commit=False)
    await written(client, topic, 1)
    found, fetches = list[tuple[int, int, int]](), 0
    with anyio.fail_after(15):
        while not found:
            found = acquired(await member.fetch(topic_id, max_wait_ms=LONG, max_records=1, batch_size=1))
            fetches += 1
    assert found == [(7, 7, 1)]  # the marker
    assert fetches > 1
