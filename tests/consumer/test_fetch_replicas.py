"""Reading from the closest replica, and from the leader where that is no good (KIP-392)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from support.clusters import partition
from support.connecting import eventually
from support.fetching import values

from aiokafkawire import Client, Consumer, TopicPartition
from aiokafkawire.cluster.metadata import Node, Snapshot, Topic
from aiokafkawire.consumer.completed_fetch import CompletedFetch, PartitionFetch
from aiokafkawire.consumer.fetch_buffer import FetchBuffer, FetchContext
from aiokafkawire.consumer.fetch_planner import plan
from aiokafkawire.consumer.pending_errors import PendingErrors
from aiokafkawire.consumer.read_replica import select_read_replica
from aiokafkawire.consumer.subscription_state import PartitionState, SubscriptionState
from aiokafkawire.errors import ErrorCode, broker_error
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.fetch import PartitionData
from aiokafkawire.protocol.messages.metadata import MetadataResponsePartition
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address, OffsetSpec

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
T = TopicPartition("t", 0)


# --- which broker --------------------------------------------------------------------------------------------


def snapshot(*, leader: int = 1, replicas: tuple[int, ...] = (1, 2), offline: tuple[int, ...] = ()) -> Snapshot:
    nodes = {number: Node(number, Address("host", 9090 + number)) for number in (1, 2)}
    made = partition(0, leader, 3)
    made.replica_nodes, made.offline_replicas = list(replicas), list(offline)
    parts: tuple[MetadataResponsePartition, ...] = (made,)
    return Snapshot(1, "cluster", 1, nodes, {"t": Topic("t", UUID(int=1), 0, parts)}, {})


@pytest.mark.parametrize(
    ("known", "replica", "until", "expected"),
    [
        (snapshot(), None, 10.0, 1),
        (snapshot(), 2, 10.0, 2),
        (snapshot(), 2, 5.0, 1),  # its time is over
        (snapshot(offline=(2,)), 2, 10.0, 1),
        (snapshot(replicas=(1,)), 2, 10.0, 1),  # it was reassigned
        (snapshot(replicas=(1, 9)), 9, 10.0, 1),  # it is not in the cluster
        (snapshot(leader=-1), 2, 10.0, None),
    ],
)
def test_who_is_asked(known: Snapshot, replica: int | None, until: float, expected: int | None) -> None:
    node = select_read_replica(known, PartitionState(T, 0, None, replica=replica, replica_until=until), 5.0)
    assert (node.node_id if node is not None else None) == expected


def test_a_broker_of_which_something_is_unread_is_not_asked_whatever_it_leads() -> None:
    positions = SubscriptionState(None)
    positions.assign({T: 0})
    place = positions.require(T)
    place.replica, place.replica_until = 2, 10.0
    (asks,) = plan(snapshot(), positions, {}, (), (1,), max_bytes=9, now=5.0)[0].items()
    assert (asks[0], asks[1][0].from_leader, asks[1][0].leader_epoch) == (2, False, 3)
    assert plan(snapshot(), positions, {}, (), (2,), max_bytes=9, now=5.0)[0] == {}


# --- what an answer does -------------------------------------------------------------------------------------


def arrivals(default: OffsetSpec | None = None) -> tuple[FetchBuffer, PartitionState]:
    positions = SubscriptionState(default)
    positions.assign({T: 7})
    made = FetchBuffer(positions, PendingErrors(positions, 10.0), replica_age=100.0, largest=1_000_000)
    return made, positions.require(T)


CAME = FetchContext(snapshot(), 1.0, 2.0, 12)


def preferring(ask: PartitionFetch, replica: int) -> CompletedFetch:
    data = PartitionData(partition_index=0, error_code=0, high_watermark=9, preferred_read_replica=replica, records=b"")
    return CompletedFetch(ask, data, committed_only=False)


def test_the_replica_that_the_leader_names_is_asked_next_at_once_and_for_a_time() -> None:
    made, place = arrivals()
    outcome = made.take(
        PartitionFetch(place, place.epoch, 7), preferring(PartitionFetch(place, place.epoch, 7), 2), CAME
    )
    assert (outcome.moved, outcome.failed, place.replica, place.replica_until) == (True, False, 2, 102.0)


def test_a_replica_that_is_not_known_is_looked_up_and_the_leader_asked_after_a_rest() -> None:
    made, place = arrivals()
    outcome = made.take(
        PartitionFetch(place, place.epoch, 7), preferring(PartitionFetch(place, place.epoch, 7), 9), CAME
    )
    assert (outcome.failed, outcome.outdated) == (True, True)
    assert place.replica is None


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    ],
)
def test_after_an_error_of_a_replica_the_leader_is_asked_from_the_same_offset(code: ErrorCode) -> None:
    made, place = arrivals()
    place.replica, place.replica_until = 2, 100.0
    outcome = made.take(PartitionFetch(place, place.epoch, 7, from_leader=False), broker_error(code), CAME)
    assert outcome.failed
    assert place.replica is None
    assert (place.position, place.lost) == (7, False)


def test_the_leaders_word_on_what_is_out_of_range_counts() -> None:
    made, place = arrivals(OffsetSpec.EARLIEST)
    made.take(PartitionFetch(place, place.epoch, 7), broker_error(ErrorCode.OFFSET_OUT_OF_RANGE), CAME)
    assert (place.position, place.spec) == (None, OffsetSpec.EARLIEST)


@pytest.mark.parametrize(
    ("code", "outdated"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, True),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, True),
        (ErrorCode.OFFSET_NOT_AVAILABLE, False),
    ],
)
def test_errors_about_epochs_ask_for_metadata(code: ErrorCode, outdated: bool) -> None:
    made, place = arrivals()
    outcome = made.take(PartitionFetch(place, place.epoch, 7), broker_error(code), CAME)
    assert (outcome.failed, outcome.outdated) == (True, outdated)


# --- at work -------------------------------------------------------------------------------------------------


@asynccontextmanager
async def near(
    follower: int, *, default_api_timeout_ms: int = 10_000, **options: Any
) -> AsyncIterator[tuple[Broker, Consumer[bytes, bytes], Client]]:
    """A consumer in the rack of a broker that follows; the first leads."""
    async with Broker(3, port=None, racks=("r1", "r2", "r3"), replica_selector_class=RACK_AWARE) as broker:
        broker.create_topic("t")
        broker.move_leader("t", 0, 1)
        settings = {"retry_backoff_ms": 1, "reconnect_backoff_ms": 1, "retry_backoff_max_ms": 5, **options}
        async with (
            Client(
                broker.bootstrap,
                connector=broker.connect,
                default_api_timeout_ms=default_api_timeout_ms,
                **settings,
            ) as client,
            client.consumer(fetch_max_wait_ms=5, client_rack=f"r{follower}") as consumer,
        ):
            consumer.assign({T: 0})
            yield broker, consumer, client


def asked(broker: Broker, node: int) -> int:
    return len(broker.requests.of(ApiKey.FETCH, node=node))


async def write(client: Client, *written: bytes) -> None:
    async with client.producer() as producer:
        for value in written:
            await producer.send("t", value)


@pytest.mark.anyio
async def test_records_come_from_the_replica_in_the_same_rack() -> None:
    async with near(2) as (broker, consumer, client):
        for number in range(4):
            await write(client, b"%d" % number)
            assert await values(consumer, 1) == [b"%d" % number]
        assert (asked(broker, 1), asked(broker, 3)) == (1, 0)
        assert {one.request.rack_id for one in broker.requests.of(ApiKey.FETCH)} == {"r2"}


@pytest.mark.anyio
async def test_when_the_replica_stops_the_leader_is_asked() -> None:
    async with near(3) as (broker, consumer, client):
        await eventually(lambda: asked(broker, 3) > 1)
        await broker.stop_node(3)
        await write(client, b"0")
        assert await values(consumer, 1) == [b"0"]


@pytest.mark.anyio
async def test_the_leader_is_asked_again_when_metadata_is_old() -> None:
    async with near(2, metadata_max_age_ms=30) as (broker, _, _):
        await eventually(lambda: asked(broker, 1) > 3 and asked(broker, 2) > 3)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "code",
    [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
)
async def test_an_error_of_the_replica_loses_nothing(code: ErrorCode) -> None:
    async with near(2) as (broker, consumer, client):
        await write(client, b"0", b"1")
        assert await values(consumer, 1) == [b"0"]
        order = broker.on(ApiKey.FETCH, answer=code, node=2, times=1)
        await write(client, b"2")
        assert await values(consumer, 2) == [b"1", b"2"]
        await order.met()
        assert asked(broker, 1) > 1
