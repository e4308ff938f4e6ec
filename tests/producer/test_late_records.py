"""Calls that wait for buffer space or for metadata when their transaction ends."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest
from support.patience import SOON

from aiokafkawire import Client, TopicNotReady, UsageError
from aiokafkawire.producer.transaction import Transaction
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.faults.rules import Hold

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("release", ["4.3", "3.9"])]  # versions 2 and 1


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until the condition is met."""
    with anyio.fail_after(SOON):
        while not condition():
            await anyio.lowlevel.checkpoint()


async def refused(transaction: Transaction[bytes, bytes], topic: str, value: bytes) -> None:
    """A call that waits, and is refused in the end."""
    with pytest.raises(UsageError):
        await transaction.send(topic, value)


async def test_a_commit_takes_no_more_records(release: str) -> None:
    async with (
        Broker(max_versions=release) as broker,
        Client(broker.bootstrap) as kafka,
        kafka.producer(transactional_id="x", buffer_memory=1000) as producer,
        anyio.create_task_group() as tasks,
    ):
        broker.create_topic("t")

        leaving = anyio.Event()

        async def let_go(written: Hold) -> None:
            await leaving.wait()
            await written.arrived()
            written.release()

        async with broker.hold(ApiKey.PRODUCE) as written:
            tasks.start_soon(let_go, written)
            async with producer.transaction() as transaction:
                await transaction.enqueue("t", b"first" * 150)
                tasks.start_soon(refused, transaction, "t", b"late" * 100)
                await until(lambda: producer._accumulator.blocked > 0)
                leaving.set()
            async with producer.transaction() as transaction:
                await transaction.send("t", b"second")
        async with kafka.consumer("t", auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
            assert [(await anext(consumer)).value for _ in range(2)] == [b"first" * 150, b"second"]


async def test_a_record_of_an_aborted_transaction_is_in_no_other(release: str) -> None:
    async with (
        Broker(max_versions=release) as broker,
        Client(broker.bootstrap, topic_metadata_propagation_max_ms=60_000) as kafka,
        kafka.producer(transactional_id="x") as producer,
        anyio.create_task_group() as tasks,
    ):
        broker.create_topic("t")
        with pytest.raises(RuntimeError, match="the body has failed"):
            async with producer.transaction() as transaction:
                await transaction.send("t", b"aborted")
                tasks.start_soon(refused, transaction, "new", b"late")
                await until(lambda: producer._waiting_for["new"] > 0)
                raise RuntimeError("the body has failed")
        async with producer.transaction() as transaction:
            broker.create_topic("new")
            await transaction.send("new", b"committed")
        async with kafka.consumer("new", auto_offset_reset="earliest") as consumer:
            assert (await anext(consumer)).value == b"committed"


@pytest.mark.parametrize("how", ["send", "enqueue", "send_many", "send_nowait"])
async def test_a_transaction_that_failed_since_a_partition_had_no_leader_takes_no_records(
    release: str, how: str
) -> None:
    async with (
        Broker(max_versions=release) as broker,
        Client(broker.bootstrap) as kafka,
        kafka.producer(transactional_id="x") as producer,
    ):
        broker.create_topic("t")
        with pytest.raises(TopicNotReady, match="no leader"):
            async with producer.transaction() as transaction:
                await transaction.send("t", b"first")
                assert producer._transactions is not None
                producer._transactions.state.must_abort(TopicNotReady("t-0 has no leader"))
                with pytest.raises(TopicNotReady, match="no leader"):
                    called = getattr(transaction, how)("t", [b"late"] if how == "send_many" else b"late")
                    await called
        async with producer.transaction() as transaction:
            await transaction.send("t", b"second")
