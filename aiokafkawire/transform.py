"""Consume, process, produce, so that each record counts once, whatever fails meanwhile (KIP-98, KIP-447).

1. Up to ``max_records`` records, or those of ``commit_interval_ms``, are given to ``process`` together. What it makes
   of them and the offsets after them are one transaction.
2. ``process`` is called before the transaction begins: however long it takes, no transaction is open meanwhile.
3. A transaction that had to be aborted is made anew, of the same records, without calling ``process`` again.
4. Nothing is read on before the transaction is committed, so its offsets are always those after its records.
"""

from collections.abc import Awaitable, Callable, Iterable
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
from .producer.user_transaction import Transaction
from .records.batch import ConsumerRecord
from .types import Headers, OffsetAndMetadata, OffsetSpec, TopicPartition

__all__ = ("TransformLoop", "OutgoingRecord", "Process", "joined")

Options = TypeVar("Options", ConsumerOptions, ProducerOptions)

_Records: TypeAlias = list[ConsumerRecord[bytes, bytes]]


@attrs.frozen
class OutgoingRecord:
    """A record to send: its topic, and what ``Producer.send`` takes. ``timestamp_ms`` is ms since the epoch."""

    topic: str
    value: bytes | None = None
    key: bytes | None = attrs.field(default=None, kw_only=True)
    partition: int | None = attrs.field(default=None, kw_only=True)
    headers: Headers = attrs.field(default=(), kw_only=True)
    timestamp_ms: int | None = attrs.field(default=None, kw_only=True)


Process: TypeAlias = Callable[[_Records], Iterable[OutgoingRecord] | Awaitable[Iterable[OutgoingRecord]]]
"""Makes of records what is to be sent, if anything; a function or a coroutine function."""

# After these a transaction has to be aborted, and the next one may well succeed.
_PASSING: Final = (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionAbortable,
    TransactionAborted,
    UnknownProducerId,
)


class TransformLoop:
    """The loop of ``Client.transform``.

    Raises:
        ConfigError: a number is none, or too small.
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
                raise ConfigError(f"{name} must be a whole number from 1 on, got {shown(number)}")
        self._cluster, self._consumer, self._producer, self._process = cluster, consumer, producer, process
        self._max_records, self._interval = max_records, commit_interval_ms / 1000
        self._ends: dict[TopicPartition, int] | None = None
        self._stop = anyio.Event()
        self._gathering: anyio.CancelScope | None = None
        self._count = 0

    async def run(self, stop: anyio.Event | None, *, until_end: bool) -> int:
        """Go on until ``stop`` is set, or the ends as they are now are reached; the number of records that counted.

        The consumer and the producer are open, and are left to whoever opened them.
        """
        if until_end:
            found = await self._consumer.offsets(dict.fromkeys(self._consumer.assignment, OffsetSpec.LATEST))
            self._ends = {where: end.offset for where, end in found.items() if end is not None}
        if stop is not None:
            self._stop = stop
        failed: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._heed_stop)
            # The group would wrap it.
            try:
                await self._loop()
            except Exception as error:
                failed = error
            tasks.cancel_scope.cancel()
        if failed is not None:
            raise failed
        return self._count

    async def _heed_stop(self) -> None:
        await self._stop.wait()
        if self._gathering is not None:
            self._gathering.cancel()

    async def _loop(self) -> None:
        while not (self._stop.is_set() or self._is_at_end()):
            records = await self._gather()
            # Those at hand are left to the next run.
            if records and not self._stop.is_set():
                offsets = self._offsets_after(records)
                await self._write(await self._processed(records), offsets)
                self._count += len(records)

    def _is_at_end(self) -> bool:
        return self._ends is not None and all(map(self._has_reached, self._ends))

    def _has_reached(self, where: TopicPartition) -> bool:
        assert self._ends is not None
        position = self._consumer.position(where)
        return position is not None and position >= self._ends[where]

    # --- the parts of one transaction ------------------------------------------------------------------

    async def _gather(self) -> _Records:
        """The next records: all that come in time, once there is one."""
        records: _Records = []
        with anyio.CancelScope() as self._gathering:
            # The last offset of a log may be no record's, so whoever goes to the end has to look now and then.
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
        # Where the position is known, it is beyond markers of transactions as well.
        positions = self._consumer.positions()
        return {where: positions.get(where, offset) for where, offset in after.items()}

    async def _processed(self, records: _Records) -> list[OutgoingRecord]:
        made = self._process(records)
        if isinstance(made, Awaitable):
            made = await made
        outgoing = list(made) if isinstance(made, Iterable) else None
        if outgoing is None or not all(isinstance(one, OutgoingRecord) for one in outgoing):
            raise UsageError(f"process has to return what to send, such as a list of OutgoingRecord; got {made!r:.200}")
        return outgoing

    async def _write(self, outgoing: list[OutgoingRecord], offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Make it one transaction, again and again while that may help, as long as a call may take."""
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
                # If none can begin, the producer can do nothing any more: so the error says.
                if not begun or not (retry_action(error).retry or isinstance(error, _PASSING)):
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
        for one in outgoing:
            await transaction.enqueue(
                one.topic,
                one.value,
                key=one.key,
                partition=one.partition,
                timestamp_ms=one.timestamp_ms,
                headers=one.headers,
            )
        await transaction.commit_offsets(offsets, group=self._consumer.group_metadata())


def joined(given: Options | None, fixed: Options) -> Options:
    """Options of a user, and those that are set already.

    Raises:
        ConfigError: one is in both.
    """
    for name in fixed:
        if given is not None and name in given:
            raise ConfigError(f"{name} is an argument of transform(), or set by it: leave it out of the options")
    return {**given, **fixed} if given is not None else fixed
