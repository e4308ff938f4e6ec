"""Consume, process and produce each record exactly once, also after failures (KIP-98, KIP-447).

1. ``process`` receives up to ``max_records`` records, gathered for ``commit_interval_ms``. The records that
   ``process`` returns, and the offsets after the records that it received, are written in one transaction.
2. ``process`` is called before the transaction begins: no transaction is open while ``process`` runs.
3. After an abort, a new transaction writes the same records again, without calling ``process`` again.
4. The next records are read after the commit, so the committed offsets are always those after the processed records.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from typing import Final, TypeAlias, TypeVar

import anyio
import attrs

from .argument_checks import INT32, is_integer, shown
from .cluster.cluster import Cluster
from .cluster.retry import Deadline, retry_action
from .config import ConsumerOptions, ProducerOptions
from .consumer.consumer import Consumer
from .errors import (
    ConfigError,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    OutOfOrderSequenceNumber,
    TransactionAbortable,
    TransactionAborted,
    UnknownProducerId,
    UsageError,
)
from .producer.producer import Producer
from .producer.transaction import Transaction
from .records.batch import ConsumerRecord
from .types import Headers, OffsetAndMetadata, OffsetSpec, TopicPartition

__all__ = ("TransformLoop", "OutgoingRecord", "Process", "joined")

Options = TypeVar("Options", ConsumerOptions, ProducerOptions)

_Records: TypeAlias = list[ConsumerRecord[bytes, bytes]]


@attrs.frozen
class OutgoingRecord:
    """A record to send, with the arguments of ``Producer.send``. ``timestamp_ms`` is in ms since the epoch."""

    topic: str
    value: bytes | None = None
    key: bytes | None = attrs.field(default=None, kw_only=True)
    partition: int | None = attrs.field(default=None, kw_only=True)
    headers: Headers = attrs.field(default=(), kw_only=True)
    timestamp_ms: int | None = attrs.field(default=None, kw_only=True)


Process: TypeAlias = Callable[[_Records], Iterable[OutgoingRecord] | Awaitable[Iterable[OutgoingRecord]]]
"""A function or coroutine function that takes records and returns the records to send, if any."""

# Errors after which the transaction must be aborted, and the next transaction may succeed.
_RETRIED: Final = (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionAbortable,
    TransactionAborted,
    UnknownProducerId,
)


class TransformLoop:
    """The loop that reads, processes and writes records for ``Client.transform``.

    Raises:
        ConfigError: ``max_records`` or ``commit_interval_ms`` is not a positive integer.
    """

    def __init__(
        self,
        cluster: Cluster,
        consumer: Consumer[bytes, bytes],
        producer: Producer[bytes, bytes],
        process: Process,
        *,
        max_records: int,
        commit_interval_ms: int,
    ) -> None:
        for name, number in (("max_records", max_records), ("commit_interval_ms", commit_interval_ms)):
            if not is_integer(number, 1, INT32):
                raise ConfigError(f"{name} must be an integer of at least 1, got {shown(number)}")
        self._cluster, self._consumer, self._producer, self._process = cluster, consumer, producer, process
        # The records of one transaction have one span, not one each.
        consumer._iteration.tracing, self._group = None, consumer._config.group_id
        self._max_records, self._interval = max_records, commit_interval_ms / 1000
        self._ends: dict[TopicPartition, int] | None = None
        self._stop = anyio.Event()
        self._gathering: anyio.CancelScope | None = None
        self._count = 0

    async def run(self, stop: anyio.Event | None, *, until_end: bool) -> int:
        """Run until ``stop`` is set or, if ``until_end`` is true, up to the ends at the time of the call.

        Return the number of committed records. The consumer and the producer must be open; the caller closes them.
        """
        if until_end:
            found = await self._consumer.offsets(dict.fromkeys(self._consumer.assignment, OffsetSpec.LATEST))
            self._ends = {partition: end.offset for partition, end in found.items() if end is not None}
        if stop is not None:
            self._stop = stop
        failed: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._wait_for_stop)
            # Catch the error here: the task group would wrap it in an ExceptionGroup.
            try:
                await self._loop()
            except Exception as error:
                failed = error
            tasks.cancel_scope.cancel()
        if failed is not None:
            raise failed
        return self._count

    async def _wait_for_stop(self) -> None:
        await self._stop.wait()
        if self._gathering is not None:
            self._gathering.cancel()

    async def _loop(self) -> None:
        while not (self._stop.is_set() or self._is_at_end()):
            records = await self._gather()
            # After a stop, the gathered records are not processed; the next run reads them again.
            if records and not self._stop.is_set():
                offsets = self._offsets_after(records)
                await self._write(await self._processed(records), offsets)
                self._count += len(records)

    def _is_at_end(self) -> bool:
        return self._ends is not None and all(map(self._has_reached, self._ends))

    def _has_reached(self, partition: TopicPartition) -> bool:
        assert self._ends is not None
        position = self._consumer.position(partition)
        return position is not None and position >= self._ends[partition]

    # --- the parts of one transaction ------------------------------------------------------------------

    async def _gather(self) -> _Records:
        """Return the next record and those in the commit interval after it; perhaps none after a stop or at the end."""
        records: _Records = []
        with anyio.CancelScope() as self._gathering:
            # The last offset of a log may have no record, so with until_end gathering ends regularly to check the
            # positions.
            if self._ends is not None:
                self._gathering.deadline = anyio.current_time() + self._interval
            while len(records) < self._max_records:
                records.append(await anext(self._consumer))
                if len(records) == 1:
                    self._gathering.deadline = anyio.current_time() + self._interval
        self._gathering = None
        return records

    def _offsets_after(self, records: _Records) -> dict[TopicPartition, OffsetAndMetadata]:
        after = {
            TopicPartition(record.topic, record.partition): OffsetAndMetadata(
                record.offset + 1, leader_epoch=record.leader_epoch
            )
            for record in records
        }
        # The consumer's position, if known, is also after the control records of transactions.
        positions = self._consumer.positions()
        return {partition: positions.get(partition, offset) for partition, offset in after.items()}

    async def _processed(self, records: _Records) -> list[OutgoingRecord]:
        tracing = self._cluster.tracing
        with nullcontext() if tracing is None else tracing.processing(records, self._group):
            result = self._process(records)
            if isinstance(result, Awaitable):
                result = await result
        outgoing = list(result) if isinstance(result, Iterable) else None
        if outgoing is None or not all(isinstance(record, OutgoingRecord) for record in outgoing):
            raise UsageError(f"process must return an iterable of OutgoingRecord, such as a list; got {result!r:.200}")
        return outgoing

    async def _write(self, outgoing: list[OutgoingRecord], offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Write the records and offsets in one transaction; retry retriable errors for ``default_api_timeout_ms``."""
        now, backoff = self._cluster.runtime.now, self._cluster.backoff()
        deadline: Deadline | None = None
        while True:
            begun = False
            try:
                async with self._producer.transaction() as transaction:
                    begun = True
                    await self._fill(transaction, outgoing, offsets)
                return
            except KafkaError as error:
                # If no transaction can begin, the producer has failed permanently, and the error says why.
                if not begun or not (retry_action(error).retry or isinstance(error, _RETRIED)):
                    raise
                deadline = deadline or self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)
                if deadline.passed(now()):
                    raise
            await anyio.sleep(backoff.next())

    async def _fill(
        self,
        transaction: Transaction[bytes, bytes],
        outgoing: list[OutgoingRecord],
        offsets: dict[TopicPartition, OffsetAndMetadata],
    ) -> None:
        for record in outgoing:
            await transaction.enqueue(
                record.topic,
                record.value,
                key=record.key,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
                headers=record.headers,
            )
        await transaction.commit_offsets(offsets, group=self._consumer.group_metadata())


def joined(given: Options | None, fixed: Options) -> Options:
    """Join the options ``given`` by the user with the options ``fixed`` by :meth:`Client.transform`.

    Raises:
        ConfigError: an option is in both.
    """
    for name in fixed:
        if given is not None and name in given:
            raise ConfigError(f"{name} is an argument of transform(), or set by it: leave it out of the options")
    return {**given, **fixed} if given is not None else fixed
