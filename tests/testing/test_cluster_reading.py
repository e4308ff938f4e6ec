"""Several brokers: who reads what from whom, and what readers hear of moved leaders and lost records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from support.raw_client import RawClient, batch_of, fetch_request
from support.three_brokers import cluster, error, fetched, to, values

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.fetch import FetchRequest, FetchResponse
from aiokafkawire.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

LONG = 30_000  # ms: a wait that a passing test never sees the end of
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


# --- reading -------------------------------------------------------------------------------------------------------


async def test_consumers_do_not_see_what_is_not_committed() -> None:
    async with cluster() as (broker, client, _, _):
        await client.produce("t", batch_of(b"a"))
        broker.hold_replica("t", 0, 2)
        await client.produce("t", batch_of(b"b"), acks=1)
        data = await client.fetch("t", 0)
        assert (values(data), data.high_watermark) == ([b"a"], 1)
        waiting = await client.send(fetch_request("t", 1, max_wait_ms=LONG), 12)
        await anyio.wait_all_tasks_blocked()
        broker.release_replica("t", 0, 2)
        assert values(await fetched(client, waiting)) == [b"b"]


async def test_an_offset_above_the_high_watermark_is_waited_for_and_above_the_end_refused() -> None:
    async with cluster() as (broker, client, _, _):
        broker.hold_replica("t", 0, 2)
        await client.produce("t", batch_of(b"a", b"b"), acks=1)
        assert error(await client.fetch("t", 2)) == ErrorCode.NONE
        assert error(await client.fetch("t", 3)) == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_brokers_that_follow_may_read_what_is_not_committed() -> None:
    async with cluster() as (broker, client, _, _):
        broker.hold_replica("t", 0, 2)
        await client.produce("t", batch_of(b"a"), acks=1)
        assert values(await client.fetch("t", 0, replica_id=2)) == [b"a"]
        assert error(await client.fetch("t", 0, replica_id=9)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_followers_serve_up_to_what_they_know_to_be_committed() -> None:
    async with cluster() as (broker, client, follower, _):
        await client.produce("t", batch_of(b"a"))
        broker.hold_replica("t", 0, 2)
        await client.produce("t", batch_of(b"b"), acks=1)
        broker.shrink_isr("t", 0, 2)
        data = await follower.fetch("t", 0)
        assert (values(data), data.high_watermark, data.last_stable_offset) == ([b"a"], 1, 1)
        assert error(await follower.fetch("t", 2)) == ErrorCode.OFFSET_OUT_OF_RANGE
        waiting = await follower.send(fetch_request("t", 1, max_wait_ms=LONG), 12)
        await anyio.wait_all_tasks_blocked()
        broker.release_replica("t", 0, 2)
        assert values(await fetched(follower, waiting)) == [b"b"]


async def test_before_v11_leaders_alone_are_read_from() -> None:
    async with cluster() as (_, client, follower, _):
        await client.produce("t", batch_of(b"a"))
        data = await follower.fetch("t", 0, version=10, max_wait_ms=LONG)
        assert error(data) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert values(await follower.fetch("t", 0, version=11)) == [b"a"]


async def test_who_holds_no_replica_serves_nobody() -> None:
    async with Broker(2, port=None, default_replication_factor=1) as broker, await to(broker, 2) as other:
        topic = broker.create_topic("t")
        data = await other.fetch(topic.topic_id, 0, epoch=9, max_wait_ms=LONG)
        assert (error(data), data.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)
        assert error(await look_up(other, -1)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_fetch_is_woken_when_the_leader_moves() -> None:
    async with cluster() as (broker, client, _, _):
        topic = broker.log("t")
        old = await client.send(fetch_request("t", 0, max_wait_ms=LONG), 10)
        await anyio.wait_all_tasks_blocked()
        broker.move_leader("t", 0, 2)
        assert error(await fetched(client, old, 10)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert topic.log_end_offset == 0


async def test_a_reader_of_an_older_epoch_hears_who_leads() -> None:
    async with cluster() as (broker, client, _, _):
        topic_id = broker.create_topic("other").topic_id
        waiting = await client.send(fetch_request(topic_id, 0, epoch=0, max_wait_ms=LONG), 16)
        await anyio.wait_all_tasks_blocked()
        broker.move_leader("other", 0, 3)
        answer = await client.answer(FetchRequest, 16, waiting)
        assert isinstance(answer, FetchResponse)
        data = answer.responses[0].partitions[0]
        assert error(data) == ErrorCode.FENCED_LEADER_EPOCH
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (3, 1)
        assert [(node.node_id, node.host, node.port) for node in answer.node_endpoints] == [(3, "memory-3", 9092)]


async def test_a_reader_without_epoch_goes_on_with_a_follower() -> None:
    async with cluster() as (broker, client, other, _):
        waiting = await client.send(fetch_request("t", 0, max_wait_ms=LONG), 12)
        await anyio.wait_all_tasks_blocked()
        broker.move_leader("t", 0, 2)
        await anyio.wait_all_tasks_blocked()
        await other.produce("t", batch_of(b"a"))
        assert values(await fetched(client, waiting)) == [b"a"]


async def test_a_session_tells_that_the_log_begins_elsewhere() -> None:
    async with cluster() as (broker, client, _, _):
        await client.produce("t", batch_of(b"a"))
        session = (await client.ask(fetch_request("t", 1, session_id=0, session_epoch=0), 12)).session_id
        on = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[], session_id=session, session_epoch=1)
        assert (await client.ask(on, 12)).responses == []
        broker.log("t").delete_before(1)
        on.session_epoch = 2
        assert (await client.ask(on, 12)).responses[0].partitions[0].log_start_offset == 1


async def test_the_number_of_sessions_is_a_setting_and_each_broker_has_its_own() -> None:
    async with cluster(max_incremental_fetch_session_cache_slots=1) as (_, client, other, _):
        asked = fetch_request("t", 0, session_id=0, session_epoch=0)
        first, second, elsewhere = [(await one.ask(asked, 12)).session_id for one in (client, client, other)]
        assert first != 0
        assert second == 0
        assert elsewhere != 0


# --- racks ---------------------------------------------------------------------------------------------------------


async def test_consumers_are_sent_to_a_replica_in_their_rack() -> None:
    racks = ["a", "b", "b"]
    async with cluster(racks=racks, replica_selector_class=RACK_AWARE) as (broker, client, follower, _):
        await client.produce("t", batch_of(b"x"))
        for rack, preferred in (("a", -1), ("b", 3), ("c", -1), ("", -1)):
            data = await client.fetch("t", 0, rack_id=rack, max_wait_ms=LONG)
            assert (error(data), data.preferred_read_replica) == (ErrorCode.NONE, preferred)
            assert (values(data), data.high_watermark) == ([b"x"] if preferred < 0 else [], 1)
        assert values(await follower.fetch("t", 0, rack_id="b")) == [b"x"]
        broker.hold_replica("t", 0, 3)
        await client.produce("t", batch_of(b"y"), acks=1)
        assert (await client.fetch("t", 0, rack_id="b")).preferred_read_replica == 2  # which has come further
        broker.shrink_isr("t", 0, 2)
        assert (await client.fetch("t", 0, rack_id="b")).preferred_read_replica == 3
        assert (await client.fetch("t", 2, rack_id="b")).preferred_read_replica == -1  # it has not come so far
        assert (await client.fetch("t", 0, rack_id="b", version=12)).preferred_read_replica == 3


async def test_nobody_is_sent_elsewhere_unless_that_is_set() -> None:
    async with cluster(racks=["a", "b", "b"]) as (_, client, _, _):
        await client.produce("t", batch_of(b"x"))
        data = await client.fetch("t", 0, rack_id="b")
        assert (data.preferred_read_replica, values(data)) == (-1, [b"x"])


# --- what is lost --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def cut_off(**settings: Any) -> AsyncIterator[tuple[Broker, RawClient]]:
    """The second broker leads, after an unclean election that lost offsets 1 and 2; a client of it."""
    async with cluster(**settings) as (broker, client, other, _):
        await client.produce("t", batch_of(b"a"))
        broker.shrink_isr("t", 0, 2)
        await client.produce("t", batch_of(b"b", b"c"))
        broker.move_leader("t", 0, 2, unclean=True)
        yield broker, other


async def test_a_reader_of_what_was_lost_is_told_where_to_go_on() -> None:
    async with cut_off() as (broker, client):
        assert broker.isr("t") == [2, 1, 3]
        assert values(await client.fetch("t", 0)) == [b"a"]
        assert error(await client.fetch("t", 3)) == ErrorCode.OFFSET_OUT_OF_RANGE
        await client.produce("t", batch_of(b"d", b"e", b"f"))
        request = fetch_request("t", 3, epoch=1, max_wait_ms=LONG)
        request.topics[0].partitions[0].last_fetched_epoch = 0
        data = (await client.ask(request, 12)).responses[0].partitions[0]
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset, values(data)) == (0, 1, [])
        request.topics[0].partitions[0].last_fetched_epoch = 1
        data = (await client.ask(request, 12)).responses[0].partitions[0]
        assert (data.diverging_epoch.epoch, values(data)) == (-1, [b"d", b"e", b"f"])


async def test_epochs_say_what_was_lost() -> None:
    async with cut_off() as (_, client):
        await client.produce("t", batch_of(b"d"))
        for epoch, end in ((0, (0, 1)), (1, (1, 2)), (2, (-1, -1))):
            asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=1, leader_epoch=epoch)
            request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[asked])])
            answer = (await client.ask(request, 4)).topics[0].partitions[0]
            assert (answer.error_code, (answer.leader_epoch, answer.end_offset)) == (0, end)
        asked.current_leader_epoch = 0
        answer = (await client.ask(request, 4)).topics[0].partitions[0]
        assert ErrorCode(answer.error_code) == ErrorCode.FENCED_LEADER_EPOCH


async def test_a_waiting_reader_beyond_the_new_end_is_woken() -> None:
    async with cluster() as (broker, _, client, three):
        broker.move_leader("t", 0, 2)
        await client.produce("t", batch_of(b"a"))
        broker.shrink_isr("t", 0, 3)
        await client.produce("t", batch_of(b"b"))
        waiting = await three.send(fetch_request("t", 1, max_wait_ms=LONG), 12)
        elsewhere = await client.send(fetch_request("t", 2, max_wait_ms=LONG), 12)
        await anyio.wait_all_tasks_blocked()
        broker.move_leader("t", 0, 3, unclean=True)
        assert error(await fetched(client, elsewhere)) == ErrorCode.OFFSET_OUT_OF_RANGE
        async with await to(broker, 3) as producer:
            await producer.produce("t", batch_of(b"c"))
        assert values(await fetched(three, waiting)) == [b"c"]


async def look_up(
    client: RawClient, timestamp: int, *, version: int = 11, replica: int = -1
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=replica, topics=[ListOffsetsTopic(name="t", partitions=[asked])])
    return (await client.ask(request, version)).topics[0].partitions[0]


async def test_a_new_leader_does_not_know_yet_what_is_committed() -> None:
    async with cluster() as (broker, client, other, _):
        await client.produce("t", batch_of(b"a"))
        broker.hold_replica("t", 0, 3)
        await client.produce("t", batch_of(b"b", timestamp=2000), acks=1)
        assert (await look_up(client, -1)).offset == 1
        assert (await look_up(client, -1, replica=3)).offset == 2
        assert (await look_up(client, 2000)).offset == -1  # not committed
        broker.move_leader("t", 0, 2)
        for timestamp in (-1, -3, 2000):
            assert error(await look_up(other, timestamp)) == ErrorCode.OFFSET_NOT_AVAILABLE
            if timestamp != -3:
                assert error(await look_up(other, timestamp, version=4)) == ErrorCode.LEADER_NOT_AVAILABLE
        for timestamp in (-2, 0):
            assert (await look_up(other, timestamp)).offset == 0
        broker.release_replica("t", 0, 3)
        found = await look_up(other, -1)
        assert (error(found), found.offset, found.leader_epoch) == (ErrorCode.NONE, 2, 1)
        assert (await look_up(other, -2)).leader_epoch == 0
        assert error(await look_up(client, -1)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await look_up(client, -1, replica=-2)).offset == 2
