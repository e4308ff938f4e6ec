"""Producers that are fenced, whose transactions run out of time, or that die: readers see nothing half done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from secrets import token_hex

import pytest
from contract.conftest import BOTH_TRANSACTION_VERSIONS, Where
from support.committed import committed, committed_offset, ended, timed_out

from aiokafkawire import Client, TopicPartition
from aiokafkawire.errors import (
    InvalidProducerEpoch,
    InvalidTransactionTimeout,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
)
from aiokafkawire.producer.transaction import Transaction

# Much of this takes its time, and none of it depends on the loop.
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    BOTH_TRANSACTION_VERSIONS,
]


class TooSlow(Exception):
    """The transaction's timeout was over before the test was where it has to be by then."""


class Undone(Exception):
    """What the body of a transaction raises to have it aborted."""


@pytest.fixture
def name() -> str:
    """A transactional id, and a group."""
    return f"id-{token_hex(6)}"


@pytest.fixture
def where(topic: str) -> TopicPartition:
    return TopicPartition(topic, 0)


async def call(tx: Transaction[bytes, bytes], how: str, where: TopicPartition, group: str) -> None:
    """What a user does next in a transaction that is over, unknown to him."""
    if how == "send":
        await tx.send(where.topic, b"late", partition=where.partition)
    elif how == "enqueue":
        await tx.enqueue(where.topic, b"late", partition=where.partition)
    elif how == "offsets":
        await tx.commit_offsets({where: 1}, group=group)
    elif how == "undo":
        raise Undone


# --- fencing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["send", "enqueue", "offsets", "commit"])
async def test_a_second_producer_fences_the_first(
    cluster: Where, kafka: Client, where: TopicPartition, name: str, how: str
) -> None:
    async with kafka.producer(transactional_id=name) as first:
        with pytest.raises(ProducerFenced, match=f"'{name}': a newer producer has its id") as fenced:
            async with first.transaction() as tx:
                await tx.send(where.topic, b"first", partition=0)
                async with cluster.client() as elsewhere, elsewhere.producer(transactional_id=name) as second:
                    assert await ended(cluster, name) == "Empty"
                    async with second.transaction() as other:
                        await other.send(where.topic, b"second", partition=0)
                await call(tx, how, where, name)
        assert not hasattr(fenced.value, "__notes__")
        for _ in range(2):
            with pytest.raises(ProducerFenced, match=f"'{name}': a newer producer has its id"):
                async with first.transaction():
                    raise AssertionError("it was fenced")
        # Closing it raises nothing.
    assert await committed(kafka, where) == [b"second"]
    assert await committed_offset(cluster, name, where) == -1


async def test_an_exception_of_the_body_goes_on_though_the_producer_was_fenced(
    kafka: Client, where: TopicPartition, name: str
) -> None:
    async with kafka.producer(transactional_id=name) as first:
        with pytest.raises(Undone) as undone:
            async with first.transaction() as tx:
                await tx.send(where.topic, b"first", partition=0)
                async with kafka.producer(transactional_id=name):
                    pass
                raise Undone
        (note,) = undone.value.__notes__
        assert "could not be aborted" in note
        assert "a newer producer has its id" in note
    assert await committed(kafka, where) == []


async def test_a_producer_that_is_fenced_between_transactions(kafka: Client, where: TopicPartition, name: str) -> None:
    async with kafka.producer(transactional_id=name) as first, kafka.producer(transactional_id=name) as second:
        with pytest.raises(ProducerFenced):
            async with first.transaction() as tx:
                await tx.send(where.topic, b"first", partition=0)
        async with second.transaction() as tx:
            await tx.send(where.topic, b"second", partition=0)
    assert await committed(kafka, where) == [b"second"]


# --- time ----------------------------------------------------------------------------------------------------------


@contextmanager
def in_time() -> Iterator[None]:
    """What fails here has come after the timeout."""
    try:
        yield
    except KafkaError as late:
        raise TooSlow from late


async def given_time(trial: Callable[[int], Awaitable[None]]) -> None:
    """Try with a timeout, in ms, that is over soon; and with longer ones where the machine stood still meanwhile."""
    for timeout_ms in (400, 4_000):
        try:
            return await trial(timeout_ms)
        except TooSlow:
            continue
    return await trial(40_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", ["send", pytest.param("enqueue", marks=pytest.mark.thorough), "undo", "commit", "offsets"]
)
async def test_a_transaction_that_is_open_for_too_long(
    request: pytest.FixtureRequest, cluster: Where, kafka: Client, where: TopicPartition, name: str, how: str
) -> None:
    v1 = "v1" in request.node.callspec.params["cluster"]
    # With version 2 the abort is done, and its answer brings the next epoch, if it is the abort that is asked for.
    goes_on = not v1 and how in ("send", "enqueue", "undo")
    error: type[Exception] = ProducerFenced if v1 or how == "offsets" else InvalidProducerEpoch
    if how == "commit" and not v1:
        error = InvalidTxnState

    async def open_for_too_long(timeout_ms: int) -> None:
        async with kafka.producer(transactional_id=name, transaction_timeout_ms=timeout_ms) as producer:
            with pytest.raises(Undone if how == "undo" else error):
                async with producer.transaction() as tx:
                    with in_time():
                        await tx.send(where.topic, b"late", partition=0)
                    await timed_out(cluster, name)
                    await call(tx, how, where, name)
            if goes_on:
                with in_time():
                    async with producer.transaction() as tx:
                        await tx.send(where.topic, b"next", partition=0)
            else:
                with pytest.raises(error, match=f"transactional_id '{name}'.*make another producer"):
                    async with producer.transaction():
                        raise AssertionError("it has failed")

    await given_time(open_for_too_long)
    assert await committed(kafka, where) == ([b"next"] if goes_on else [])
    assert await committed_offset(cluster, name, where) == -1


async def test_a_timeout_that_the_brokers_do_not_allow(kafka: Client, name: str) -> None:
    producer = kafka.producer(transactional_id=name, transaction_timeout_ms=2**31 - 1)
    with pytest.raises(InvalidTransactionTimeout, match=f"'{name}': lower transaction_timeout_ms"):
        await producer.__aenter__()


# --- death ---------------------------------------------------------------------------------------------------------


async def left_open(cluster: Where, where: TopicPartition, name: str, timeout_ms: int = 60_000) -> None:
    """A process begins a transaction, and is killed."""
    async with cluster.client() as client:  # whose end knows nothing of transactions
        producer = await client.producer(transactional_id=name, transaction_timeout_ms=timeout_ms).__aenter__()
        tx = await producer.transaction().__aenter__()
        with in_time():
            await tx.send(where.topic, b"half done", partition=0)
            await tx.enqueue(where.topic, b"half sent", partition=0)
            await tx.commit_offsets({where: 1}, group=name)


async def test_a_successor_aborts_what_a_dead_producer_has_left(
    cluster: Where, kafka: Client, where: TopicPartition, name: str
) -> None:
    await left_open(cluster, where, name)
    assert await ended(cluster, name) == "Ongoing"
    async with kafka.producer(transactional_id=name) as successor:
        assert await ended(cluster, name) == "Empty"
        async with successor.transaction() as tx:
            await tx.send(where.topic, b"done", partition=0)
    assert await committed(kafka, where) == [b"done"]
    assert await committed_offset(cluster, name, where) == -1


async def test_without_a_successor_the_timeout_does(
    cluster: Where, kafka: Client, where: TopicPartition, name: str
) -> None:
    await given_time(partial(left_open, cluster, where, name))
    await timed_out(cluster, name)
    assert await committed(kafka, where) == []
    assert await committed_offset(cluster, name, where) == -1
