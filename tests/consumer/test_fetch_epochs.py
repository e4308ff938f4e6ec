"""After another leader took over, a position is checked before it is read on from (KIP-320)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import anyio
import pytest
from support.clusters import partition
from support.fetching import values
from support.patience import SOON
from support.raw_client import RawClient, batch_of

from aiokafkawire import Client, Consumer, TopicPartition
from aiokafkawire.cluster.metadata import Node, Snapshot, Topic
from aiokafkawire.consumer.fetch_planner import plan
from aiokafkawire.consumer.subscription_state import PartitionState, SubscriptionState
from aiokafkawire.consumer.truncation_detection import EpochCheck, due, request, settle
from aiokafkawire.errors import ErrorCode, FencedLeaderEpoch, LogTruncated, TopicAuthorizationFailed
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.offsets import EpochEndOffset
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address, OffsetSpec

T = TopicPartition("t", 0)


def snapshot(epoch: int = 3, leader: int = 1) -> Snapshot:
    nodes = {1: Node(1, Address("host", 9091))}
    return Snapshot(1, "cluster", 1, nodes, {"t": Topic("t", UUID(int=1), 0, (partition(0, leader, epoch),))}, {})


def read(default: OffsetSpec | None = None, **known: Any) -> tuple[SubscriptionState, PartitionState]:
    """Positions with one place at offset 7, after a record of leader epoch 2."""
    positions = SubscriptionState(default)
    positions.assign({T: 7})
    place = positions.require(T)
    for name, value in {"leader_epoch": 2, **known}.items():
        setattr(place, name, value)
    return positions, place


# --- when ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "told", "expected"),
    [
        (snapshot(), {}, True),
        (snapshot(), {"validated": 2}, True),
        (snapshot(), {"validated": 3}, False),
        (snapshot(), {"leader_epoch": None}, False),  # nobody can tell where such a position is
        (snapshot(epoch=-1), {}, False),  # the brokers are too old to say
    ],
)
def test_a_position_is_checked_once_for_each_leader(known: Snapshot, told: dict[str, Any], expected: bool) -> None:
    positions, place = read(**told)
    found = due(known, positions, ())
    assert (1 in found) is expected
    assert (plan(known, positions, {}, (), (), max_bytes=1, now=0.0)[0] == {}) is expected
    if expected:
        assert found == {1: [EpochCheck(place, place.epoch, 7, 2, 3)]}


@pytest.mark.parametrize(
    ("known", "told", "unread"),
    [
        (snapshot(), {"paused": True}, ()),
        (snapshot(), {"withheld": True}, ()),
        (snapshot(), {"lost": True}, ()),
        (snapshot(), {"validating": True}, ()),
        (snapshot(), {"position": None}, ()),
        (snapshot(), {}, (T,)),  # what was fetched is read first
        (snapshot(leader=-1), {}, ()),
        (snapshot(leader=9), {}, ()),
    ],
)
def test_nothing_is_checked_that_would_not_be_fetched(
    known: Snapshot, told: dict[str, Any], unread: tuple[TopicPartition, ...]
) -> None:
    positions, _ = read(**told)
    assert due(known, positions, unread) == {}


def test_a_seek_leaves_nothing_to_check() -> None:
    positions, place = read(validated=2, validating=True)
    positions.seek(T, 5)
    assert (place.leader_epoch, place.validated, place.validating) == (None, None, False)


def test_the_question_names_both_epochs() -> None:
    _, place = read()
    (topic,) = request([EpochCheck(place, place.epoch, 7, 2, 3)]).topics
    (asked,) = topic.partitions
    assert (topic.topic, asked.partition, asked.current_leader_epoch, asked.leader_epoch) == ("t", 0, 3, 2)


# --- what the answer does ------------------------------------------------------------------------------------


def end(epoch: int, offset: int, error: int = 0) -> EpochEndOffset:
    return EpochEndOffset(error_code=error, partition=0, leader_epoch=epoch, end_offset=offset)


@pytest.mark.parametrize("offset", [7, 8])
@pytest.mark.parametrize("default", [None, OffsetSpec.EARLIEST])
def test_an_epoch_that_reaches_the_position_is_well(offset: int, default: OffsetSpec | None) -> None:
    positions, place = read(default)
    assert settle(positions, EpochCheck(place, place.epoch, 7, 2, 3), end(2, offset)) is None
    assert (place.position, place.validated, place.leader_epoch) == (7, 3, 2)
    assert due(snapshot(), positions, ()) == {}


def test_a_log_that_was_cut_off_is_read_on_from_there() -> None:
    positions, place = read(OffsetSpec.LATEST)
    before = place.epoch
    assert settle(positions, EpochCheck(place, before, 7, 2, 3), end(1, 4)) is None
    assert (place.position, place.validated, place.leader_epoch) == (4, 3, 1)
    assert place.epoch != before  # what was fetched before counts no more


@pytest.mark.parametrize("answer", [end(-1, -1), end(2, -1), end(-1, 5)])
def test_an_epoch_that_the_leader_does_not_know_leads_to_the_default(answer: EpochEndOffset) -> None:
    positions, place = read(OffsetSpec.EARLIEST)
    assert settle(positions, EpochCheck(place, place.epoch, 7, 2, 3), answer) is None
    assert (place.position, place.spec) == (None, OffsetSpec.EARLIEST)


@pytest.mark.parametrize(
    ("answer", "diverging", "told"),
    [
        (end(1, 4), 4, "its log was truncated at offset 4"),
        (end(-1, -1), None, "its new leader does not know that epoch"),
    ],
)
def test_without_a_default_it_is_told(answer: EpochEndOffset, diverging: int | None, told: str) -> None:
    positions, place = read()
    error = settle(positions, EpochCheck(place, place.epoch, 7, 2, 3), answer)
    assert isinstance(error, LogTruncated)
    assert (error.partition, error.position, error.diverging_offset) == (T, 7, diverging)
    assert told in str(error)
    assert "t-0 was read up to offset 7 under leader epoch 2" in str(error)
    assert place.lost
    positions.seek(T, 4)
    assert not place.lost


def test_an_error_is_one_of_the_partition() -> None:
    positions, place = read()
    error = settle(positions, EpochCheck(place, place.epoch, 7, 2, 3), end(-1, -1, ErrorCode.FENCED_LEADER_EPOCH))
    assert isinstance(error, FencedLeaderEpoch)
    assert "OffsetForLeaderEpoch of t-0 at offset 7" in str(error)
    assert (place.position, place.validated, place.lost) == (7, None, False)


# --- at work -------------------------------------------------------------------------------------------------


@asynccontextmanager
async def reading(
    policy: str, *, max_versions: str | None = None, **options: Any
) -> AsyncIterator[tuple[Broker, Consumer[bytes, bytes], Client]]:
    """A consumer that has read three records, the last two of which only the leader has."""
    async with Broker(3, port=None, max_versions=max_versions) as broker:
        broker.create_topic("t")
        broker.move_leader("t", 0, 1)
        settings = {"retry_backoff_ms": 1, "reconnect_backoff_ms": 1, "retry_backoff_max_ms": 5, **options}
        async with (
            Client(broker.bootstrap, connector=broker.connect, **settings) as client,
            client.consumer(fetch_max_wait_ms=5, auto_offset_reset=policy) as consumer,
        ):
            await write(client, b"0")
            for follower in (2, 3):
                broker.shrink_isr("t", 0, follower)
            await write(client, b"1", b"2")
            consumer.assign({T: 0})
            assert await values(consumer, 3) == [b"0", b"1", b"2"]
            yield broker, consumer, client


async def write(client: Client, *written: bytes) -> None:
    async with client.producer(enable_idempotence=False) as producer:
        for value in written:
            await producer.send("t", value)


async def lose(broker: Broker, client: Client) -> None:
    """Another leads, which lacks the last two records; there are others in their place soon."""
    broker.move_leader("t", 0, 2, unclean=True)
    await write(client, b"new 1", b"new 2", b"new 3")


@pytest.mark.anyio
@pytest.mark.parametrize("policy", ["earliest", "latest"])
async def test_after_an_unclean_election_what_is_new_is_read(policy: str) -> None:
    async with reading(policy) as (broker, consumer, client):
        await lose(broker, client)
        assert await values(consumer, 3) == [b"new 1", b"new 2", b"new 3"]
        assert consumer.position(T) == 4


@pytest.mark.anyio
async def test_without_a_policy_the_user_hears_of_it_and_seeks() -> None:
    async with reading("none") as (broker, consumer, client):
        await lose(broker, client)
        with anyio.fail_after(SOON), pytest.raises(LogTruncated) as told:
            await anext(consumer)
        assert (told.value.partition, told.value.position, told.value.diverging_offset) == (T, 3, 1)
        assert told.value.diverging_offset is not None
        consumer.seek(T, told.value.diverging_offset)
        assert await values(consumer, 3) == [b"new 1", b"new 2", b"new 3"]


@pytest.mark.anyio
async def test_a_clean_election_costs_one_question() -> None:
    async with reading("none") as (broker, consumer, client):
        broker.release_replica("t", 0, 2)
        broker.move_leader("t", 0, 2)
        for number in range(3):
            await write(client, b"%d" % number)
            assert await values(consumer, 1) == [b"%d" % number]
        (asked,) = broker.requests.of(ApiKey.OFFSET_FOR_LEADER_EPOCH)
        assert (asked.node, asked.request.replica_id) == (2, -1)


@pytest.mark.anyio
async def test_under_one_leader_nothing_is_asked() -> None:
    async with reading("none") as (broker, consumer, client):
        for number in range(3):
            await write(client, b"%d" % number)
            assert await values(consumer, 1) == [b"%d" % number]
        assert not broker.requests.of(ApiKey.OFFSET_FOR_LEADER_EPOCH)


@pytest.mark.anyio
async def test_brokers_that_cannot_be_asked_by_consumers_are_not() -> None:
    async with reading("none", max_versions="2.2") as (broker, consumer, client):
        broker.release_replica("t", 0, 2)
        broker.move_leader("t", 0, 2)
        await write(client, b"3")
        assert await values(consumer, 1) == [b"3"]
        assert not broker.requests.of(ApiKey.OFFSET_FOR_LEADER_EPOCH)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "code",
    [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER],
)
async def test_a_check_that_is_refused_is_made_again(code: ErrorCode) -> None:
    async with reading("none") as (broker, consumer, client):
        order = broker.on(ApiKey.OFFSET_FOR_LEADER_EPOCH, answer=code, times=2)
        broker.release_replica("t", 0, 2)
        broker.move_leader("t", 0, 2)
        await write(client, b"3")
        assert await values(consumer, 1) == [b"3"]
        assert order.count == 2


@pytest.mark.anyio
async def test_what_no_retry_mends_is_told() -> None:
    async with reading("none") as (broker, consumer, client):
        broker.on(ApiKey.OFFSET_FOR_LEADER_EPOCH, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        broker.release_replica("t", 0, 2)
        broker.move_leader("t", 0, 2)
        await write(client, b"3")
        with anyio.fail_after(SOON), pytest.raises(TopicAuthorizationFailed, match="OffsetForLeaderEpoch of t-0"):
            await anext(consumer)
        assert await values(consumer, 1) == [b"3"]


@pytest.mark.anyio
async def test_a_leader_that_knows_another_epoch_is_found_without_loss() -> None:
    async with reading("none") as (broker, consumer, client):
        for code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE):
            order = broker.on(ApiKey.FETCH, answer=code, topic="t")
            await write(client, code.name.encode())
            assert await values(consumer, 1) == [code.name.encode()]
            await order.met()


@pytest.mark.anyio
async def test_the_leader_that_a_refusal_names_is_asked_without_metadata() -> None:
    async with reading("none") as (broker, consumer, _):
        broker.release_replica("t", 0, 2)
        async with RawClient(await broker.connect("memory-2", 9092)) as raw, broker.hold(ApiKey.METADATA):
            broker.move_leader("t", 0, 2)
            await raw.produce("t", batch_of(b"3"))
            assert await values(consumer, 1) == [b"3"]
