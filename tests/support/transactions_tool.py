"""Kafka's kafka-transactions.sh, compared with what our admin returns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import anyio
from support.groups_tool import rows
from support.hanging import hang, unverified
from support.java_tools import java_command
from support.raw_client import RawClient
from support.transactional import settled

from aiokafkawire import (
    Client,
    HangingTransaction,
    OffsetSpec,
    TopicPartition,
    TransactionDescription,
    TransactionListing,
)
from aiokafkawire.network.connector import connect_tcp

__all__ = ("check_the_transactions_tool",)

_TOOL: Final = "org.apache.kafka.tools.TransactionsCommand"


async def check_the_transactions_tool(bootstrap: str, name: str) -> None:
    """Leave an open, an ended and two hanging transactions; the tool and our admin agree on all of them.

    One of the hanging transactions is aborted by the tool, one by our admin; then both find none.
    """
    host, _, port = bootstrap.rpartition(":")
    async with AsyncExitStack() as stack:
        kafka = await stack.enter_async_context(Client(bootstrap))
        client = await stack.enter_async_context(RawClient(await connect_tcp(host, int(port))))
        await kafka.admin.create_topics({name: 3})
        await kafka.admin.list_offsets({TopicPartition(name, index): OffsetSpec.LATEST for index in range(3)})
        async with unverified(kafka):
            await hang(client, name)
            await hang(client, name, partition=1)
        await stack.enter_async_context(_open_transaction(kafka, name))
        await _check_listed(kafka, bootstrap, name)
        await _check_described(kafka, bootstrap, f"{name}-open", "Ongoing")
        await _check_producers(kafka, bootstrap, TopicPartition(name, 2))
        first, second = await _check_hanging(kafka, bootstrap, name)
        abort = ["--topic", name, "--partition", "0", "--start-offset", str(first.start_offset)]
        done = await anyio.run_process(_command(bootstrap, "abort", *abort), check=False)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()
        assert await _check_hanging(kafka, bootstrap, name) == [second]
        await kafka.admin.abort_transaction(second)
        assert await _check_hanging(kafka, bootstrap, name) == []


def _command(bootstrap: str, *arguments: str) -> list[str]:
    return [*java_command(), _TOOL, "--bootstrap-server", bootstrap, *arguments]


@asynccontextmanager
async def _open_transaction(kafka: Client, name: str) -> AsyncIterator[None]:
    """One transactional id whose last transaction is committed, and one whose transaction is open."""
    async with kafka.producer(transactional_id=f"{name}-done") as producer, producer.transaction() as transaction:
        await transaction.send(name, b"committed", partition=2)
    async with kafka.producer(transactional_id=f"{name}-open") as producer:
        try:
            async with producer.transaction() as transaction:
                await transaction.send(name, b"open", partition=2)
                yield
                raise _Over
        except _Over:
            pass


class _Over(Exception):
    """The end of the open transaction, which aborts it."""


async def _check_listed(kafka: Client, bootstrap: str, name: str) -> None:
    async def ours() -> list[TransactionListing]:
        return [one for one in await kafka.admin.list_transactions() if one.transactional_id.startswith(name)]

    # The marker is written a moment after the commit was answered.
    listed = await settled(ours, lambda found: found[0].state == "CompleteCommit")
    assert [one.transactional_id for one in listed] == [f"{name}-done", f"{name}-open"]
    printed = await rows(*_command(bootstrap, "list"))
    found = [row for row in printed if row["TransactionalId"].startswith(name)]
    assert sorted(found, key=lambda row: row["TransactionalId"]) == [
        {
            "TransactionalId": one.transactional_id,
            "Coordinator": str(one.coordinator_id),
            "ProducerId": str(one.producer_id),
            "TransactionState": one.state,
        }
        for one in listed
    ]


async def _check_described(kafka: Client, bootstrap: str, transactional_id: str, state: str) -> None:
    found: TransactionDescription = (await kafka.admin.describe_transactions(transactional_id))[transactional_id]
    (row,) = await rows(*_command(bootstrap, "describe", "--transactional-id", transactional_id))
    assert int(row.pop("TransactionDurationMs")) >= 0
    partitions = ",".join(map(str, found.topic_partitions))
    assert found.state == state
    assert row == {
        "CoordinatorId": str(found.coordinator_id),
        "TransactionalId": found.transactional_id,
        "ProducerId": str(found.producer_id),
        "ProducerEpoch": str(found.producer_epoch),
        "TransactionState": found.state,
        "TransactionTimeoutMs": str(found.transaction_timeout_ms),
        "CurrentTransactionStartTimeMs": str(found.transaction_start_time_ms),
        "TopicPartitions": partitions,
    }


async def _check_producers(kafka: Client, bootstrap: str, partition: TopicPartition) -> None:
    where = ["--topic", partition.topic, "--partition", str(partition.partition)]
    printed = await rows(*_command(bootstrap, "describe-producers", *where))
    found = (await kafka.admin.describe_producers(partition))[partition]
    assert len(found) == 2
    assert sorted(printed, key=lambda row: int(row["ProducerId"])) == [
        {
            "ProducerId": str(one.producer_id),
            "ProducerEpoch": str(one.producer_epoch),
            "LatestCoordinatorEpoch": str(-1 if one.coordinator_epoch is None else one.coordinator_epoch),
            "LastSequence": str(one.last_sequence),
            "LastTimestamp": str(one.last_timestamp),
            "CurrentTransactionStartOffset": _shown(one.current_transaction_start_offset),
        }
        for one in sorted(found, key=lambda one: one.producer_id)
    ]


def _shown(offset: int | None) -> str:
    return "None" if offset is None else str(offset)


async def _check_hanging(kafka: Client, bootstrap: str, topic: str) -> list[HangingTransaction]:
    hanging = await kafka.admin.find_hanging_transactions(topic)
    printed = await rows(*_command(bootstrap, "find-hanging", "--topic", topic))
    for row in printed:
        assert int(row.pop("Duration(min)")) >= 60
    assert sorted(printed, key=lambda row: int(row["Partition"])) == [
        {
            "Topic": one.topic_partition.topic,
            "Partition": str(one.topic_partition.partition),
            "ProducerId": str(one.producer.producer_id),
            "ProducerEpoch": str(one.producer.producer_epoch),
            "CoordinatorEpoch": str(-1 if one.producer.coordinator_epoch is None else one.producer.coordinator_epoch),
            "StartOffset": str(one.start_offset),
            "LastTimestamp": str(one.producer.last_timestamp),
        }
        for one in hanging
    ]
    return hanging
