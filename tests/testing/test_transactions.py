"""Transactions on our broker alone: time, epochs that run out, markers held back, coordinators that move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from support.raw_client import RawClient, records_of
from support.transactional import READ_COMMITTED, TransactionalProducer, aborted_of
from support.virtual_time import virtual_time

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from aiokafkawire.protocol.messages.transaction_admin import DescribeTransactionsRequest, ListTransactionsRequest
from aiokafkawire.protocol.messages.transactions import EndTxnRequest, EndTxnResponse
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.transactions.transaction import HIGHEST_EPOCH

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(nodes: int = 1) -> AsyncIterator[tuple[Broker, RawClient, TransactionalProducer]]:
    """A cluster with a topic "t", and a producer at its coordinator and leader, which is broker 1."""
    async with Broker(nodes, port=None) as broker:
        broker.create_topic("t", 1)
        async with await reached(broker) as client:
            producer = TransactionalProducer(client, "id")
            if broker.transaction_coordinator("id") != 1:
                broker.move_transaction_coordinator("id", 1)
            yield broker, client, await producer.initialized()


async def reached(broker: Broker, node_id: int = 1) -> RawClient:
    return RawClient(await broker.connect(f"memory-{node_id}", 9092))


async def state(client: RawClient) -> tuple[int, str, int]:
    """Of the transactional id: error, state and epoch."""
    (found,) = (await client.ask(DescribeTransactionsRequest(transactional_ids=["id"]), 0)).transaction_states
    return found.error_code, found.transaction_state, found.producer_epoch


async def ended(producer: TransactionalProducer, *, commit: bool = True, version: int = 5) -> EndTxnResponse:
    """EndTxn, once."""
    request = EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )
    return await producer.client.ask(request, version)


async def stable(client: RawClient) -> tuple[int, list[tuple[int, int]]]:
    """The last stable offset, and the aborted transactions."""
    data = await client.fetch("t", 0, isolation_level=READ_COMMITTED)
    return data.last_stable_offset, aborted_of(data)


# --- time ----------------------------------------------------------------------------------------------------------


@virtual_time
async def test_a_transaction_open_for_too_long_is_aborted() -> None:
    async with opened() as (_, client, producer):
        producer.timeout_ms = 10_000
        assert (await producer.initialized()).epoch == 1
        await anyio.sleep(5)  # no time passes for what has not begun
        await producer.send("t", b"a")
        await anyio.sleep(9.9)
        assert await state(client) == (0, "Ongoing", 1)
        await anyio.sleep(0.2)
        assert await state(client) == (0, "CompleteAbort", 2)
        assert await stable(client) == (2, [(producer.producer_id, 0)])
        late = await producer.produce("t", producer.batch("t", b"b"))
        assert late.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert (await ended(producer, version=4)).error_code == ErrorCode.PRODUCER_FENCED
        assert (await ended(producer)).error_code == ErrorCode.INVALID_TXN_STATE
        retried = await ended(producer, commit=False)  # an abort is what it got: it may go on with the next epoch
        assert (retried.error_code, retried.producer_epoch) == (0, 2)


@virtual_time
async def test_each_transaction_has_its_own_time() -> None:
    async with opened() as (_, client, producer):
        producer.timeout_ms = 10_000
        await producer.initialized()
        for round_ in range(3):
            await producer.send("t", b"a")
            await anyio.sleep(7)
            await producer.ended(True)
            assert (await state(client))[1:] == ("CompleteCommit", round_ + 2)
        await producer.send("t", b"a")
        await anyio.sleep(9)
        assert (await state(client))[1] == "Ongoing"
        await anyio.sleep(2)
        assert (await state(client))[1] == "CompleteAbort"


@virtual_time
async def test_a_shorter_timeout_counts_from_the_next_transaction_on() -> None:
    async with opened() as (_, client, producer):
        await producer.send("t", b"a")
        await producer.ended(True)
        producer.timeout_ms = 1_000
        await producer.initialized()
        await producer.send("t", b"a")
        await anyio.sleep(1.1)
        assert (await state(client))[1] == "CompleteAbort"


@virtual_time
async def test_nothing_times_out_while_there_is_no_coordinator() -> None:
    async with opened(2) as (broker, _, producer):
        other = broker.transaction_coordinator("id") % 2 + 1
        await producer.send("t", b"a")
        for node in (other, 1):
            await broker.stop_node(node)
        await anyio.sleep(100)
        await broker.start_node(1)
        async with await reached(broker) as client:
            assert (await state(client))[1] == "Ongoing"
            await anyio.sleep(2)
            assert (await state(client))[1] == "CompleteAbort"


async def test_a_broker_that_opens_again_gives_open_transactions_their_time_anew() -> None:
    broker = Broker(port=None)
    async with broker, await reached(broker) as client:
        broker.create_topic("t")
        producer = await TransactionalProducer(client, "id").initialized()
        await producer.send("t", b"a")
    async with broker, await reached(broker) as client:
        assert await state(client) == (0, "Ongoing", 0)
        producer.client = client
        await producer.ended(True)
        assert await stable(client) == (2, [])


# --- epochs that run out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
async def test_the_last_epoch_is_followed_by_another_id(commit: bool) -> None:
    async with opened() as (broker, client, producer):
        first = producer.producer_id
        producer.epoch = broker._cluster.transactions.describe("id").epoch = HIGHEST_EPOCH - 1
        await producer.send("t", b"a")
        answer = await ended(producer, commit=commit)
        assert (answer.error_code, answer.producer_id != first, answer.producer_epoch) == (0, True, 0)
        assert await state(client) == (0, "CompleteCommit" if commit else "CompleteAbort", 0)
        marker = broker.log("t").producers.active()[0]
        assert (marker.producer_id, marker.epoch) == (first, HIGHEST_EPOCH)  # which no producer ever has
        retried = await ended(producer, commit=commit)
        assert (retried.error_code, retried.producer_id, retried.producer_epoch) == (0, answer.producer_id, 0)
        producer.producer_id, producer.epoch = answer.producer_id, 0
        await producer.send("t", b"b")
        await producer.ended(True)


async def test_initializing_with_the_last_epoch_gives_another_id() -> None:
    async with opened() as (broker, _, producer):
        known = broker._cluster.transactions.describe("id")
        known.epoch = HIGHEST_EPOCH - 1
        had = {"producer_id": producer.producer_id, "producer_epoch": HIGHEST_EPOCH - 1}
        wrong = await producer.initialize(producer_id=producer.producer_id, producer_epoch=3)
        assert wrong.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        answer = await producer.initialize(**had)
        assert (answer.error_code, answer.producer_id != producer.producer_id, answer.producer_epoch) == (0, True, 0)
        again = await producer.initialize(**had)  # a retry
        assert (again.error_code, again.producer_id, again.producer_epoch) == (0, answer.producer_id, 0)
        assert (await producer.initialize()).producer_epoch == 1


async def test_fencing_with_the_last_epoch() -> None:
    async with opened() as (broker, client, producer):
        producer.epoch = broker._cluster.transactions.describe("id").epoch = HIGHEST_EPOCH - 1
        await producer.send("t", b"a")
        assert (await producer.initialize()).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert await state(client) == (0, "CompleteAbort", 0)
        answer = await producer.initialize()
        assert (answer.producer_id != producer.producer_id, answer.producer_epoch) == (True, 1)


# --- while a transaction is completed ------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
async def test_held_markers(commit: bool) -> None:
    async with opened() as (broker, client, producer):
        await producer.send("t", b"a")
        await producer.commit_offset("g", "t", 7)
        broker.hold_markers("id")
        answer = await ended(producer, commit=commit)
        assert (answer.error_code, answer.producer_epoch) == (0, 1)
        preparing = "PrepareCommit" if commit else "PrepareAbort"
        assert await state(client) == (0, preparing, 1)
        assert await stable(client) == (0, [])
        assert (await ended(producer, commit=commit)).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert (await ended(producer, commit=not commit)).error_code == ErrorCode.INVALID_TXN_STATE
        assert (await producer.initialize()).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        producer.epoch = 1
        assert (await ended(producer)).error_code == ErrorCode.PRODUCER_FENCED
        batch = producer.batch("t", b"b")
        assert (await producer.produce("t", batch)).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        old = await producer.produce("t", batch, version=11)
        assert old.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert old.error_message is not None
        assert old.error_message.endswith("Underlying error: CONCURRENT_TRANSACTIONS")
        assert await offset(client) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
        with pytest.raises(ValueError, match="id is Prepare"):
            broker.expire_transactional_id("id")
        broker.release_markers("id")
        assert (await state(client))[1] == preparing.replace("Prepare", "Complete")
        assert await stable(client) == (2, [] if commit else [(producer.producer_id, 0)])
        assert await offset(client) == (0, 7 if commit else -1)
        assert (await producer.produce("t", batch)).error_code == 0


async def offset(client: RawClient) -> tuple[int, int]:
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    groups = [OffsetFetchRequestGroup(group_id="g", topics=topics)]
    answer = await client.ask(OffsetFetchRequest(groups=groups, require_stable=True), 9)
    found = answer.groups[0].topics[0].partitions[0]
    return found.error_code, found.committed_offset


async def test_a_partition_without_a_leader_gets_its_marker_later() -> None:
    async with opened(2) as (broker, client, producer):
        broker.create_topic("here", configs={"min.insync.replicas": "2"})
        await producer.send("t", b"a")
        leader = broker.leader("here")
        async with await reached(broker, leader) as at_leader:
            there = TransactionalProducer(at_leader, "id", producer.producer_id, producer.epoch)
            await there.send("here", b"a")
        await broker.stop_node(2)  # too few replicas of "here" are in sync
        assert (await ended(producer)).error_code == 0
        assert (await state(client))[1] == "PrepareCommit"
        (found,) = (await client.ask(DescribeTransactionsRequest(transactional_ids=["id"]), 0)).transaction_states
        assert [topic.topic for topic in found.topics] == ["here"]
        assert broker.log("here").log_end_offset == 1
        assert await stable(client) == (2, [])
        await broker.start_node(2)
        assert (await state(client))[1] == "CompleteCommit"
        assert broker.log("here").last_stable_offset == 2


async def test_a_deleted_topic_needs_no_marker() -> None:
    async with opened() as (broker, client, producer):
        broker.create_topic("gone")
        await producer.send("gone", b"a")
        await producer.send("t", b"a")
        broker.hold_markers("id")
        await ended(producer)
        broker.delete_topic("gone")
        broker.release_markers("id")
        assert (await state(client))[1] == "CompleteCommit"


async def test_a_transaction_is_complete_when_its_markers_are_replicated() -> None:
    async with opened(3) as (broker, client, producer):
        await producer.send("t", b"a")
        broker.hold_replica("t", 0, 3)
        await ended(producer)
        assert (await state(client))[1] == "PrepareCommit"
        assert await stable(client) == (0, [])
        assert broker.log("t").log_end_offset == 2
        broker.shrink_isr("t", 0, 3)
        assert (await state(client))[1] == "CompleteCommit"
        assert await stable(client) == (2, [])


# --- coordinators that move ----------------------------------------------------------------------------------------


@virtual_time
async def test_a_moved_coordinator_knows_what_was_known() -> None:
    async with opened(2) as (broker, client, producer):
        await producer.send("t", b"a")
        broker.move_transaction_coordinator("id", 2, loading=3)
        assert await state(client) == (ErrorCode.NOT_COORDINATOR, "", 0)
        assert (await ended(producer)).error_code == ErrorCode.NOT_COORDINATOR
        async with await reached(broker, 2) as other:
            loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert (await state(other))[0] == loading
            everything = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
            assert (await other.ask(everything, 2)).error_code == loading
            assert (await client.ask(everything, 2)).transaction_states == []
            producer.client = other
            assert (await producer.initialize()).error_code == loading
            assert (await ended(producer)).error_code == loading
            await anyio.sleep(3.1)
            assert await state(other) == (0, "Ongoing", 0)
            assert len((await other.ask(everything, 2)).transaction_states) == 1
            await producer.ended(False)
            # The marker has the epoch of the new coordinator.
            assert broker.log("t").producers.active()[0].coordinator_epoch > 0


@virtual_time
async def test_a_batch_waits_for_its_coordinator() -> None:
    async with opened(2) as (broker, _, producer):
        broker.move_transaction_coordinator("id", 2, loading=3)
        answer = await producer.produce("t", batch := producer.batch("t", b"a"))
        assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert answer.error_message == (
            "Unable to verify the partition has been added to the transaction. "
            "Underlying error: COORDINATOR_LOAD_IN_PROGRESS"
        )
        await anyio.sleep(3.1)
        assert (await producer.produce("t", batch)).error_code == 0


@virtual_time
async def test_markers_wait_for_the_coordinator_to_load() -> None:
    async with opened(2) as (broker, _, producer):
        broker.hold_markers("id")
        await producer.send("t", b"a")
        await ended(producer)
        broker.move_transaction_coordinator("id", 2, loading=3)
        broker.release_markers("id")
        assert broker.log("t").last_stable_offset == 0
        await anyio.sleep(3.1)
        assert broker.log("t").last_stable_offset == 2


async def test_an_expired_id_is_unknown() -> None:
    async with opened() as (broker, client, producer):
        await producer.send("t", b"a")
        with pytest.raises(ValueError, match="id is Ongoing"):
            broker.expire_transactional_id("id")
        await producer.ended(True)
        broker.expire_transactional_id("id")
        assert (await state(client))[0] == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        answer = await producer.produce("t", producer.batch("t", b"b"))
        assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        had = producer.producer_id
        assert ((await producer.initialized()).epoch, producer.producer_id != had) == (0, True)
        assert [record.value for record in records_of(await client.fetch("t", 0))][:1] == [b"a"]
        with pytest.raises(KeyError):
            broker.expire_transactional_id("nobody")
