"""aiokafkawire as an instance under fault: ``process``, ``process(share=True)`` or ``transform``, until SIGTERM."""

import logging
import signal
from collections.abc import Sequence
from typing import Any

import anyio

from aiokafkawire import Client, ConsumerRecord, OutgoingRecord
from aiokafkawire.observe import Observer, PartitionsLost, RebalanceEnded
from benchmarks.process_faults.task import SESSION_TIMEOUT_MS, Log, Task, read_task


class _Losses(Observer):
    """Notes that partitions went to other instances, whose records in hand may be repeated."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def partitions_lost(self, event: PartitionsLost) -> None:
        self._log.write("lost")

    def rebalance_ended(self, event: RebalanceEnded) -> None:
        if event.revoked:
            self._log.write("revoked")


async def process(task: Task, log: Log) -> None:
    """Handle the records of a group or a share group."""

    async def handle(record: ConsumerRecord[bytes, bytes]) -> None:
        log.write("began", record.partition, record.offset, record.raw_key)
        await anyio.sleep(task.handler_ms / 1000)
        log.write("done", record.partition, record.offset, record.raw_key)

    async with Client(task.bootstrap, observers=[_Losses(log)]) as kafka:
        if task.way == "share":
            # Else brokers acquire whole batches, also those that exceed max_in_hand.
            await kafka.process(
                task.source,
                handle,
                share=True,
                group_id=task.group,
                concurrency=task.concurrency,
                max_in_hand=task.max_in_hand,
                handle_signals=True,
                share_acquire_mode="record_limit",  # type: ignore[call-arg]
            )
            return
        await kafka.process(
            task.source,
            handle,
            group_id=task.group,
            concurrency=task.concurrency,
            max_in_hand=task.max_in_hand,
            handle_signals=True,
            **_membership(task),
        )


def _membership(task: Task) -> dict[str, Any]:
    """Return the settings of a member, whose times are the coordinator's in the consumer protocol."""
    if task.group_protocol == "consumer":
        return {"group_protocol": "consumer"}
    return {"session_timeout_ms": SESSION_TIMEOUT_MS, "heartbeat_interval_ms": 1_000}


async def transform(task: Task, log: Log) -> None:
    """Copy each record to the partition of the same number of the sink."""

    def copy(records: Sequence[ConsumerRecord[bytes, bytes]]) -> list[OutgoingRecord]:
        for record in records:
            log.write("done", record.partition, record.offset, record.raw_key)
        return [
            OutgoingRecord(task.sink, record.value, key=record.key, partition=record.partition) for record in records
        ]

    stop = anyio.Event()
    async with Client(task.bootstrap) as kafka, anyio.create_task_group() as tasks:

        async def wait_for_signal() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM) as signals:
                async for _ in signals:
                    stop.set()

        tasks.start_soon(wait_for_signal)
        await kafka.transform(
            task.source,
            copy,
            group_id=task.group,
            transactional_id=task.group,
            max_records=task.max_in_hand,
            stop=stop,
            consumer_options=_membership(task),  # type: ignore[arg-type]
        )
        tasks.cancel_scope.cancel()


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    task = read_task()
    anyio.run(transform if task.way == "transform" else process, task, Log(task.log))


if __name__ == "__main__":
    main()
