"""Share groups while time passes and leaders move, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeAlias
from uuid import UUID

import anyio
import pytest
from support.raw_client import RawClient, batch_of, records_of
from support.share_members import ACCEPT, GAP, REJECT, RELEASE, ShareMember, acquired, configure, offsets_of
from support.virtual_groups import reach
from support.virtual_time import virtual_backend

from aiokafkawire.errors import CorruptBatch, ErrorCode
from aiokafkawire.protocol import ApiKey
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.group_admin import DeleteGroupsRequest, ListGroupsRequest
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest, MetadataRequestTopic
from aiokafkawire.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from aiokafkawire.protocol.messages.share_group import DeleteShareGroupOffsetsRequest, ShareGroupDescribeRequest
from aiokafkawire.protocol.messages.transactions import EndTxnRequest, InitProducerIdRequest
from aiokafkawire.records.batch import RecordBatch
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

GROUP = "g"
Reach: TypeAlias = Callable[..., Awaitable[ShareMember]]
three = pytest.mark.parametrize("settings", [{"nodes": 3}])


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return virtual_backend()


@pytest.fixture
def settings() -> dict[str, Any]:
    return {}


@pytest.fixture
async def broker(settings: dict[str, Any]) -> AsyncIterator[Broker]:
    async with Broker(port=None, **settings) as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture
async def member(broker: Broker) -> AsyncIterator[Reach]:
    """Makes members that talk to the leader of the topic's partition, or to another broker."""
    async with AsyncExitStack() as stack:

        async def make(node_id: int = 0, **fields: Any) -> ShareMember:
            node_id = node_id or broker.leader("t")
            return ShareMember(await stack.enter_async_context(await reach(broker, node_id)), GROUP, **fields)

        yield make


@pytest.fixture
async def topic_id(broker: Broker) -> UUID:
    """A topic with five records, of which the group reads all."""
    async with await reach(broker, broker.leader("t")) as client:
        await configure(client, GROUP, share_auto_offset_reset="earliest")
        await write(client, 5)
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
        return (await client.ask(request, 12)).topics[0].topic_id


async def write(client: RawClient, size: int) -> None:
    assert not (await client.produce("t", batch_of(*[b"x"] * size))).error_code


async def test_members_that_are_silent_leave(broker: Broker) -> None:
    async with await reach(broker, broker.coordinator(GROUP)) as client:
        one, other = ShareMember(client, GROUP), ShareMember(client, GROUP)
        for joining in (one, other):
            await joining.join("t")
        await anyio.sleep(40)
        await one.heartbeat()
        await anyio.sleep(10)
        request = ShareGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=False)
        (group,) = (await client.ask(request, 1)).groups
        assert [known.member_id for known in group.members] == [one.member_id]
        assert (await other.heartbeat()).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        await anyio.sleep(46)
        (group,) = (await client.ask(request, 1)).groups
        assert (group.group_state, group.members) == ("Empty", [])


async def test_locks_end_to_the_millisecond(topic_id: UUID, member: Reach) -> None:
    one, other = await member(), await member()
    assert acquired(await one.fetch(topic_id)) == [(0, 4, 1)]
    await other.ask(topic_id)
    began = anyio.current_time()
    await anyio.sleep(20)
    assert acquired(await other.fetch(topic_id, max_wait_ms=15_000)) == [(0, 4, 2)]
    assert anyio.current_time() - began == pytest.approx(30)


async def test_a_fetch_waits_for_min_bytes(broker: Broker, topic_id: UUID, member: Reach) -> None:
    one = await member()
    assert acquired(await one.fetch(topic_id)) == [(0, 4, 1)]
    async with await reach(broker, broker.leader("t")) as client:
        await write(client, 1)
    began = anyio.current_time()
    assert acquired(await one.fetch(topic_id, max_wait_ms=3000, min_bytes=10_000)) == [(5, 5, 1)]
    assert anyio.current_time() - began == pytest.approx(3)
    assert acquired(await one.fetch(topic_id, max_wait_ms=3000)) == []
    assert anyio.current_time() - began == pytest.approx(6)


@three
async def test_another_leader_knows_delivery_counts(broker: Broker, topic_id: UUID, member: Reach) -> None:
    one = await member()
    assert acquired(await one.fetch(topic_id)) == [(0, 4, 1)]
    await one.acknowledge(topic_id, (0, 3, ACCEPT, RELEASE, RELEASE, ACCEPT))
    assert acquired(await one.fetch(topic_id)) == [(1, 2, 2)]
    old, new = broker.leader("t"), next(node for node in broker.node_ids if node != broker.leader("t"))
    broker.move_leader("t", 0, new)
    answer = await one.ask(topic_id)
    (data,) = answer.responses[0].partitions
    assert (data.error_code, data.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, new)
    assert data.current_leader.leader_epoch == 1
    assert [node.node_id for node in answer.node_endpoints] == [new]
    refused = await one.acknowledge(topic_id, (4, 4, ACCEPT))
    assert (refused.error_code, refused.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, new)
    there = await member(new, member_id=one.member_id)
    assert (await there.acknowledgement(topic_id, (4, 4, 1), session=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    # Acquisitions are not stored: the new leader has only seen the deliveries that ended.
    assert acquired(await there.fetch(topic_id)) == [(1, 2, 2), (4, 4, 1)]
    assert old != new


@three
async def test_a_session_with_the_old_leader_releases_nothing_at_the_new_one(
    broker: Broker, topic_id: UUID, member: Reach
) -> None:
    one = await member()
    await one.fetch(topic_id)
    broker.move_leader("t", 0, next(node for node in broker.node_ids if node != broker.leader("t")))
    there, other = await member(member_id=one.member_id), await member()
    assert acquired(await there.fetch(topic_id)) == [(0, 4, 1)]
    await one.acknowledgement(topic_id, session=-1)
    assert acquired(await other.fetch(topic_id)) == []
    await there.acknowledgement(topic_id, session=-1)
    assert acquired(await other.fetch(topic_id)) == [(0, 4, 2)]


@three
async def test_a_waiting_fetch_learns_of_the_new_leader(broker: Broker, topic_id: UUID, member: Reach) -> None:
    one = await member()
    assert acquired(await one.fetch(topic_id)) == [(0, 4, 1)]
    new = next(node for node in broker.node_ids if node != broker.leader("t"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_move_soon, broker, new)
        began = anyio.current_time()
        (data,) = (await one.ask(topic_id, max_wait_ms=20_000)).responses[0].partitions
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert anyio.current_time() - began == pytest.approx(1)


async def _move_soon(broker: Broker, node_id: int) -> None:
    await anyio.sleep(1)
    broker.move_leader("t", 0, node_id)


@three
async def test_a_broker_that_dies_takes_its_sessions_along(broker: Broker, topic_id: UUID, member: Reach) -> None:
    one, old = await member(), broker.leader("t")
    assert acquired(await one.fetch(topic_id)) == [(0, 4, 1)]
    await broker.stop_node(old)
    other = await member()
    assert acquired(await other.fetch(topic_id)) == [(0, 4, 1)]
    await broker.start_node(old)
    again = await member(old, member_id=one.member_id, session=1)
    assert (await again.ask(topic_id)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


async def test_a_reopened_broker_keeps_the_state() -> None:
    broker = Broker(port=None)
    async with broker:
        broker.create_topic("t")
        client = await reach(broker, 1)
        await configure(client, GROUP, share_auto_offset_reset="earliest")
        await write(client, 3)
        one = ShareMember(client, GROUP)
        await one.join("t")
        assert await one.fetched(one.assignment[0][0]) == [(0, 2, 1)]
        await one.acknowledge(one.assignment[0][0], (0, 0, ACCEPT))
    await client.stream.aclose()
    async with broker, await reach(broker, 1) as client:
        again = ShareMember(client, GROUP, one.member_id, epoch=one.epoch, assignment=one.assignment)
        assert not (await again.heartbeat()).error_code
        assert await again.fetched(one.assignment[0][0]) == [(1, 2, 1)]  # the acquisition was not stored


async def test_a_deleted_topic_and_a_deleted_group_are_forgotten(broker: Broker, topic_id: UUID, member: Reach) -> None:
    one = await member()
    await one.join("t")
    assert acquired(await one.fetch(topic_id)) == [(0, 4, 1)]
    broker.delete_topic("t")
    (data,) = (await one.ask(topic_id, max_wait_ms=20_000)).responses[0].partitions
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert (await one.heartbeat()).assignment is not None
    assert one.assignment == []
    await one.leave()
    (deleted,) = (await one.client.ask(DeleteGroupsRequest(groups_names=[GROUP]), 2)).results
    assert deleted.error_code == ErrorCode.NONE


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
async def test_isolation_levels(broker: Broker, topic_id: UUID, member: Reach, level: str) -> None:
    one = await member()
    await configure(one.client, GROUP, share_isolation_level=level)
    assert acquired(await one.fetch(topic_id)) == [(0, 4, 1)]
    sequence = 0

    async def transact(client: RawClient, *, commit: bool | None) -> None:
        nonlocal sequence
        state: dict[str, Any] = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        batch = batch_of(b"x", b"y", base_sequence=sequence, transactional=True, **state)
        sequence += 2
        assert not (await client.produce("t", batch, transactional_id="x")).error_code
        if commit is not None:
            ended = await client.ask(EndTxnRequest(transactional_id="x", committed=commit, **state), 4)
            assert not ended.error_code

    async with await reach(broker, 1) as client:
        beginning = InitProducerIdRequest(
            transactional_id="x", transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        producer = await client.ask(beginning, 4)
        await transact(client, commit=False)  # 5 and 6, and a marker at 7
        await transact(client, commit=True)  # 8 and 9, and a marker at 10
        await transact(client, commit=None)  # 11 and 12
        await write(client, 1)
    found = acquired(await one.fetch(topic_id))
    assert found == ([(5, 13, 1)] if level == "read_uncommitted" else [(7, 10, 1)])
    data = await one.acknowledge(topic_id, (found[0][0], found[0][1], ACCEPT))
    assert data.error_code == ErrorCode.NONE


async def test_a_broker_has_as_many_sessions_as_it_may(broker: Broker, topic_id: UUID, member: Reach) -> None:
    one = await member()
    most = 2000
    for number in range(most):
        one.member_id, one.session = str(number), 0
        assert not (await one.ask(None)).error_code
    one.member_id, one.session = "one more", 0
    assert (await one.ask(None)).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    one.member_id, one.session = "7", -1
    assert not (await one.ask(None)).error_code
    one.member_id, one.session = "one more", 0
    assert not (await one.ask(None)).error_code


@pytest.mark.parametrize("settings", [{"max_versions": "4.1"}])
async def test_release_4_1_has_the_requests_but_not_the_feature(broker: Broker, member: Reach) -> None:
    one = await member(version=1)
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    assert (await one.heartbeat("t")).error_code == unsupported
    assert (await one.ask(None)).error_code == unsupported
    assert (await one.acknowledgement(UUID(int=1), session=1)).error_code == unsupported
    describe = ShareGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=False)
    assert (await one.client.ask(describe, 1)).groups[0].error_code == unsupported
    forgotten = await one.client.ask(DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=[]), 0)
    assert (forgotten.error_code, forgotten.error_message) == (unsupported, "The version of API is not supported.")
    find = FindCoordinatorRequest(key_type=2, coordinator_keys=[f"g:{'A' * 22}:0"])
    (found,) = (await one.client.ask(find, 6)).coordinators
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    hello = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    versions = await one.client.ask(hello, 4)
    assert "share.version" in [feature.name for feature in versions.supported_features or ()]
    assert "share.version" not in [feature.name for feature in versions.finalized_features or ()]


async def test_faults_reach_the_partitions_of_a_session(broker: Broker, topic_id: UUID, member: Reach) -> None:
    one = await member()
    assert acquired(await one.fetch(topic_id)) == [(0, 4, 1)]
    rule = broker.on(ApiKey.SHARE_FETCH, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER, topic="t", group=GROUP)
    (data,) = (await one.ask(None)).responses[0].partitions
    assert (data.error_code, rule.count) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)
    broker.on(ApiKey.SHARE_FETCH, answer=ErrorCode.SHARE_SESSION_NOT_FOUND)
    assert (await one.ask(None)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    broker.on(ApiKey.SHARE_ACKNOWLEDGE, answer=ErrorCode.INVALID_RECORD_STATE, topic="t")
    refused = await one.acknowledgement(topic_id, (0, 4, ACCEPT))
    assert refused.responses[0].partitions[0].error_code == ErrorCode.INVALID_RECORD_STATE
    await one.acknowledge(topic_id, (0, 4, RELEASE))
    broker.on(ApiKey.SHARE_FETCH, corrupt="records", topic="t")
    damaged = await one.fetch(topic_id)
    assert damaged is not None
    assert acquired(damaged) == [(0, 4, 2)]
    with pytest.raises(CorruptBatch):
        RecordBatch.parse(memoryview(damaged.records or b"")).check()


async def test_compacted_records_are_gaps(broker: Broker, member: Reach) -> None:
    topic = broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
    one = await member()
    await configure(one.client, GROUP, share_auto_offset_reset="earliest")
    for _ in range(3):
        await one.client.produce("compacted", batch_of(b"x", b"y"))
    assert acquired(await one.fetch(topic.topic_id, batch_size=1)) == [(0, 1, 1), (2, 3, 1), (4, 5, 1)]
    await one.acknowledge(topic.topic_id, (0, 5, RELEASE))
    broker.compact("compacted")  # one key, of which the last record is left
    data = await one.fetch(None)
    assert (acquired(data), offsets_of(data)) == ([(4, 5, 2)], [5])
    await one.acknowledge(topic.topic_id, (4, 5, GAP, ACCEPT))
    assert acquired(await one.fetch(None)) == []
    assert not (await one.client.produce("compacted", batch_of(b"z"))).error_code
    assert acquired(await one.fetch(None)) == [(6, 6, 1)]


async def test_a_paused_partition_has_no_records(broker: Broker, topic_id: UUID, member: Reach) -> None:
    one = await member()
    broker.pause_partition("t", 0)
    assert acquired(await one.fetch(topic_id, max_wait_ms=1000)) == []
    broker.resume_partition("t", 0)
    assert acquired(await one.fetch(topic_id)) == [(0, 4, 1)]


@three
async def test_a_group_survives_its_coordinator_s_change(broker: Broker) -> None:
    old = broker.coordinator(GROUP)
    new = next(node for node in broker.node_ids if node != old)
    async with await reach(broker, old) as before, await reach(broker, new) as after:
        one = ShareMember(before, GROUP)
        await one.join("t")
        await anyio.sleep(40)
        broker.move_coordinator(GROUP, new)
        assert (await one.heartbeat()).error_code == ErrorCode.NOT_COORDINATOR
        await anyio.sleep(40)  # the session began anew
        there = ShareMember(after, GROUP, one.member_id, epoch=one.epoch)
        assert (await there.heartbeat()).error_code == ErrorCode.NONE
        await anyio.sleep(46)
        assert (await there.heartbeat()).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_throttled_records_stay_acquired(broker: Broker, topic_id: UUID, member: Reach) -> None:
    one = await member()
    async with await reach(broker, broker.leader("t")) as client:
        for _ in range(3):
            await client.produce("t", batch_of(b"x" * 5000))
        operation = OpData(key="consumer_byte_rate", value=1000.0, remove=False)
        entity = EntityData(entity_type="client-id", entity_name="raw")
        entry = AlterClientQuotasRequestEntryData(entity=[entity], ops=[operation])
        await client.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
    assert acquired(await one.fetch(topic_id, max_records=6)) == [(0, 5, 1)]
    answer = await one.ask(topic_id, (0, 4, ACCEPT), max_records=1, max_bytes=10_000)
    (data,) = answer.responses[0].partitions
    assert (data.acknowledge_error_code, bytes(data.records or b""), acquired(data)) == (ErrorCode.NONE, b"", [])
    assert 0 < answer.throttle_time_ms < 1000
    await anyio.sleep(11)
    assert acquired(await one.fetch(topic_id)) == [(7, 7, 1)]


async def test_a_group_is_full(broker: Broker, member: Reach) -> None:
    one = await member()
    for number in range(200):
        assert not (await one.heartbeat("t", epoch=0, member_id=str(number))).error_code
    assert (await one.heartbeat("t", epoch=0)).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert (await one.leave()).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@three
async def test_wrong_heartbeats_are_refused_by_every_broker(broker: Broker) -> None:
    other = next(node for node in broker.node_ids if node != broker.coordinator(GROUP))
    async with await reach(broker, other) as client:
        one = ShareMember(client, GROUP)
        assert (await one.heartbeat("t")).error_code == ErrorCode.NOT_COORDINATOR
        assert (await one.heartbeat("t", rack_id="")).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("settings", [{"clock": lambda: int(anyio.current_time() * 1000)}])
async def test_empty_groups_stay(broker: Broker, topic_id: UUID, member: Reach) -> None:
    one = await member()
    await one.join("t")
    assert acquired(await one.fetch(topic_id)) == [(0, 4, 1)]
    assert not (await one.leave()).error_code
    await anyio.sleep(30 * 24 * 3600)
    (found,) = (await one.client.ask(ListGroupsRequest(), 5)).groups
    assert (found.group_id, found.group_type, found.group_state) == (GROUP, "share", "Empty")


# --- dead letters (KIP-1191) -----------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"max_versions": "4.4", "nodes": 2}])
async def test_dead_letters_need_the_replicas_of_the_queue(
    broker: Broker, topic_id: UUID, member: Reach, caplog: pytest.LogCaptureFixture
) -> None:
    one = await member()
    await configure(one.client, GROUP, errors_deadletterqueue_topic_name="dlq.t")
    broker.create_topic("dlq.t", configs={"errors.deadletterqueue.group.enable": "true", "min.insync.replicas": "2"})
    assert acquired(await one.fetch(topic_id)) == [(0, 4, 1)]
    other = 3 - broker.leader("t")
    await broker.stop_node(other)
    assert not (await one.acknowledge(topic_id, (0, 0, REJECT))).error_code
    assert "share group g writes no dead letters to topic dlq.t: NOT_ENOUGH_REPLICAS" in caplog.text
    await broker.start_node(other)
    assert not (await one.acknowledge(topic_id, (1, 1, REJECT))).error_code
    async with await reach(broker, broker.leader("dlq.t")) as client:
        letters = records_of(await client.fetch("dlq.t", 0))
    assert [dict(letter.headers)["__dlq.errors.offset"] for letter in letters] == [b"1"]


@pytest.mark.parametrize("settings", [{}, {"max_versions": "4.2"}])
async def test_releases_before_4_4_have_no_dead_letter_queues(broker: Broker, member: Reach) -> None:
    one = await member()
    with pytest.raises(AssertionError, match=r"Unknown group config name: errors\.deadletterqueue\.topic\.name"):
        await configure(one.client, GROUP, errors_deadletterqueue_topic_name="dlq.t")
