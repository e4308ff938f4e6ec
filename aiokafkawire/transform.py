"""Consume, process and produce each record exactly once, also after failures (KIP-98, KIP-447).

1. ``process`` receives up to ``max_records`` records, gathered for ``commit_interval_ms``. The records that
   ``process`` returns, and the offsets after the records that it received, are written in one transaction.
2. ``process`` is called before the transaction begins: no transaction is open while ``process`` runs.
3. After an abort, a new transaction writes the same records again, without calling ``process`` again.
4. The next records are read after the commit, so the committed offsets are always those after the processed records.
5. The instances of a group share the partitions. The offsets are committed with the membership under which the records
   were read, so the group coordinator refuses the transaction of an instance that has lost their partitions.
6. A rebalance waits for the transaction of the records in hand. An instance that loses their partitions all the same
   drops the records, and reads what it still has from the committed offsets.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext, suppress
from enum import Enum
from types import TracebackType
from typing import Final, Self, TypeAlias, TypeVar

import anyio
import attrs

from .argument_checks import INT32, check_text, is_integer, shown
from .cluster.cluster import Cluster
from .cluster.retry import Deadline
from .config import ConsumerOptions, ProducerOptions
from .consumer.consumer import Consumer
from .consumer.records_in_hand import RecordsInHand
from .errors import (
    CommitFailed,
    ConfigError,
    DeliveryFailed,
    FencedInstanceId,
    KafkaError,
    RebalanceInProgress,
    RequestTimeout,
    UsageError,
)
from .event_log import EventLog
from .producer.producer import Producer
from .producer.transaction import Transaction
from .records.batch import ConsumerRecord
from .runtime import stray_cancellation, was_cancelled
from .transform_ends import TransformEnds
from .transform_recovery import Recovery, recovery_after, transactional_id_of
from .types import Headers, OffsetAndMetadata, OffsetSpec, TopicPartition

__all__ = ("OutgoingRecord", "Process", "TransformLoop", "TransformProducer", "joined", "producer_options_of")

_log = EventLog("aiokafkawire.producer")

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

_TRANSACTION_TIMEOUT_MS: Final = 10_000
"""How long the open transaction of a dead instance may delay the others, as with Kafka Streams."""
_LOOKUP_INTERVAL: Final = 0.5
"""The seconds between two lookups of the offsets that other instances have committed."""
_LOOKUP_TIMEOUT: Final = 1.0
"""The seconds of one lookup, which waits for open transactions."""


class _Outcome(Enum):
    """The outcome of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted, since the group has revoked partitions of its records"
    UNKNOWN = "either committed or aborted, when the producer was fenced"


class TransformProducer:
    """The producer of a transform; :meth:`replace` makes another with the same transactional id.

    Args:
        make: returns a new producer.
        is_own_id: whether no other process can have the transactional id.
    """

    def __init__(self, make: Callable[[], Producer[bytes, bytes]], *, is_own_id: bool) -> None:
        self.is_own_id: bool = is_own_id
        self._make = make
        self._producer = make()

    async def __aenter__(self) -> Self:
        await self._producer.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._producer.__aexit__(kind, error, trace)

    def transaction(self) -> Transaction[bytes, bytes]:
        """Return the next transaction."""
        return self._producer.transaction()

    async def replace(self) -> None:
        """Open another producer, which ends the transaction that the current one left open."""
        with suppress(DeliveryFailed):  # the cause of the replacement
            await self._producer.close()
        self._producer = self._make()
        await self._producer.__aenter__()


class TransformLoop:
    """The loop that reads, processes and writes records for ``Client.transform``.

    Raises:
        ConfigError: ``max_records`` or ``commit_interval_ms`` is not a positive integer.
    """

    def __init__(
        self,
        cluster: Cluster,
        consumer: Consumer[bytes, bytes],
        producer: TransformProducer,
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
        self._in_hand = RecordsInHand(consumer)
        self._commits_beginnings = consumer._config.auto_offset_reset != "earliest"
        # The partitions whose beginning is committed, by the seek or assignment that it belongs to.
        self._begun: dict[TopicPartition, int] = {}
        self._max_records, self._interval = max_records, commit_interval_ms / 1000
        self._ends: TransformEnds | None = None
        self._next_lookup = 0.0
        self._stop = anyio.Event()
        self._gathering: anyio.CancelScope | None = None
        self._fenced_until: Deadline | None = None
        self._count = 0

    async def run(self, topics: Iterable[str], stop: anyio.Event | None, *, until_end: bool) -> int:
        """Run until ``stop`` is set or, if ``until_end`` is true, up to the ends at the time of the call.

        Return the number of committed records. The consumer and the producer must be open; the caller closes them.
        """
        partitions = [
            TopicPartition(name, index) for name in topics for index in await self._consumer.partitions_for(name)
        ]
        if until_end:
            found = await self._consumer.offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
            self._ends = TransformEnds({partition: end.offset for partition, end in found.items() if end is not None})
        if stop is not None:
            self._stop = stop
        failed: BaseException | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._wait_for_stop)
            tasks.start_soon(self._make_way_for_rebalances)
            # Catch the error here: the task group would wrap it in an ExceptionGroup.
            try:
                await self._loop()
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                failed = error
            tasks.cancel_scope.cancel()
        if failed is not None:
            raise failed
        return self._count

    async def _wait_for_stop(self) -> None:
        await self._stop.wait()
        self._end_gathering()

    async def _make_way_for_rebalances(self) -> None:
        """Gather no more records while a rebalance waits for those in hand."""
        while self._in_hand.has_member:
            await self._in_hand.wait_until_blocking(blocking=True)
            self._end_gathering()
            await self._in_hand.wait_until_blocking(blocking=False)

    def _end_gathering(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()

    async def _loop(self) -> None:
        while not (self._stop.is_set() or await self._is_at_end()):
            if self._commits_beginnings:
                await self._commit_beginnings()
            records = await self._gather()
            if not records:
                # Batches may have no records, as after compaction: a rebalance must not wait for their partitions.
                self._in_hand.release()
            # After a stop, the gathered records are not processed; the next run reads them again.
            elif not self._stop.is_set():
                await self._transform(records)

    async def _transform(self, records: _Records) -> None:
        """Process the records, and write the result; if that cannot be committed, let the records be read again."""
        outcome = _Outcome.ABORTED
        if self._in_hand.are_owned:
            offsets = self._offsets_after(records)
            outcome = await self._write(await self._processed(records), offsets)
        if outcome is _Outcome.COMMITTED:
            self._count += len(records)
            self._in_hand.release()
        else:
            await self._go_back(records, outcome)

    async def _go_back(self, records: _Records, outcome: _Outcome) -> None:
        """Read the records again that are not committed, in partitions that this instance still has."""
        first: dict[TopicPartition, int] = {}
        for record in records:
            first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        if outcome is _Outcome.UNKNOWN and (kept := self._in_hand.kept):
            for partition, at in (await self._consumer.committed(kept)).items():
                if at is not None:  # perhaps of a partition whose last batch had no records for users
                    first[partition] = max(first.get(partition, at.offset), at.offset)
            self._count += sum(
                record.offset < first[TopicPartition(record.topic, record.partition)] for record in records
            )
        self._in_hand.go_back(first)

    async def _commit_beginnings(self) -> None:
        """Commit where partitions begin that have no commit, or one that is out of range.

        Without it, the next owner would begin as ``auto_offset_reset`` says: with "latest" after records that were
        written meanwhile.
        """
        epochs = {at: epoch for at, epoch in self._in_hand.placed.items() if self._begun.get(at) != epoch}
        if not epochs:
            return
        try:
            committed = await self._consumer.committed(epochs, timeout=_LOOKUP_TIMEOUT)
        except RequestTimeout:  # the next call tries again
            return
        positions, placed = self._consumer.positions(), self._in_hand.placed
        found = {at: positions[at] for at, epoch in epochs.items() if placed.get(at) == epoch}
        beginnings = {
            partition: position
            for partition, position in found.items()
            if (at := committed[partition]) is None or at.offset != position.offset
        }
        self._begun.update((at, epochs[at]) for at in found if at not in beginnings)
        if not beginnings:
            return
        self._in_hand.keep(beginnings)
        if await self._write([], beginnings) is _Outcome.COMMITTED:
            self._begun.update((at, epochs[at]) for at in beginnings)
        self._in_hand.release()

    # --- the end -----------------------------------------------------------------------------------------

    async def _is_at_end(self) -> bool:
        """Return whether this instance and the others have committed all partitions up to their ends."""
        ends = self._ends
        if ends is None:
            return False
        assigned = self._consumer.assignment
        positions = self._consumer.positions()
        reached = ends.to_commit({partition: positions[partition] for partition in assigned if partition in positions})
        if reached:
            self._in_hand.keep(reached)
            if await self._write([], reached) is not _Outcome.COMMITTED:
                self._in_hand.release()
                return False
            self._in_hand.release()
        others = ends.of_others(assigned)
        if others and self._cluster.runtime.now() >= self._next_lookup:
            with suppress(RequestTimeout):  # a transaction is still open
                ends.committed(await self._consumer.committed(others, timeout=_LOOKUP_TIMEOUT))
            self._next_lookup = self._cluster.runtime.now() + _LOOKUP_INTERVAL
        return ends.are_reached

    # --- the parts of one transaction ------------------------------------------------------------------

    async def _gather(self) -> _Records:
        """Return the next records and those in the commit interval after them; perhaps none after a stop or at the end.

        A rebalance ends the interval.
        """
        records: _Records = []
        with anyio.CancelScope() as self._gathering:
            # The last offset of a log may have no record, so with until_end gathering ends regularly to check the
            # positions.
            if self._ends is not None:
                self._gathering.deadline = anyio.current_time() + self._interval
            elif self._commits_beginnings:  # of partitions that are assigned meanwhile
                self._gathering.deadline = anyio.current_time() + _LOOKUP_INTERVAL
            while len(records) < self._max_records:
                is_first = not records
                records += await self._in_hand.poll(self._max_records - len(records))
                if is_first:
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
            try:
                # A list of its own: if it is used up, the records are still counted, and read again after an abort.
                result = self._process(records.copy())
                if isinstance(result, Awaitable):
                    result = await result
            except anyio.get_cancelled_exc_class() as cancelled:
                if was_cancelled():
                    raise
                # Such as of a task that it has cancelled and awaits: it would end the call as if it were cancelled.
                raise stray_cancellation("process", cancelled) from cancelled
        outgoing = list(result) if isinstance(result, Iterable) else None
        if outgoing is None or not all(isinstance(record, OutgoingRecord) for record in outgoing):
            raise UsageError(f"process must return an iterable of OutgoingRecord, such as a list; got {result!r:.200}")
        return outgoing

    async def _write(
        self, outgoing: list[OutgoingRecord], offsets: dict[TopicPartition, OffsetAndMetadata]
    ) -> _Outcome:
        """Write the records and offsets in one transaction; retry retriable errors for ``default_api_timeout_ms``."""
        now, backoff = self._cluster.runtime.now, self._cluster.backoff()
        deadline: Deadline | None = None
        while True:
            begun = False
            try:
                async with self._producer.transaction() as transaction:
                    begun = True
                    await self._fill(transaction, outgoing, offsets)
                break
            except KafkaError as error:
                recovery = recovery_after(error, begun=begun, is_own_id=self._producer.is_own_id)
                if recovery is Recovery.RAISE:
                    raise
                if recovery is Recovery.REPLACE_PRODUCER:
                    await self._replace_producer(error)
                    return _Outcome.UNKNOWN
                deadline = deadline or self._deadline()
                if deadline.passed(now()):
                    raise
            await anyio.sleep(backoff.next())
            if not self._in_hand.are_owned:
                return _Outcome.ABORTED
        self._fenced_until = None
        if self._ends is not None:
            self._ends.committed(offsets)
        return _Outcome.COMMITTED

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
        group = self._consumer.group_metadata()
        try:
            await transaction._commit_offsets(offsets, group, self._consumer._topic_ids(offsets))
            # The partitions may have been lost, assigned again and looked up while the request was retried. A
            # coordinator that forgot a generation may use its number again, and then accepts the offsets.
            self._consumer.check_ownership()
        except (CommitFailed, RebalanceInProgress) as error:
            self._in_hand.on_refusal(group, error)
            raise
        except FencedInstanceId as error:
            if self._in_hand.explained(group, error) is error:
                raise
            raise CommitFailed(f"{error} This member itself has rejoined group {self._group!r} meanwhile.") from error

    async def _replace_producer(self, error: KafkaError) -> None:
        """Replace the fenced producer, unless all have been fenced for ``default_api_timeout_ms``.

        Raises:
            KafkaError: the error.
        """
        self._fenced_until = self._fenced_until or self._deadline()
        if self._fenced_until.passed(self._cluster.runtime.now()):
            raise error
        _log.warning(
            "group %(group)r: replacing the producer of transform(): %(error)s", group=self._group, error=error
        )
        await self._producer.replace()

    def _deadline(self) -> Deadline:
        return self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)


def joined(given: Options | None, fixed: Options) -> Options:
    """Join the options ``given`` by the user with the options ``fixed`` by :meth:`Client.transform`.

    Raises:
        ConfigError: an option is in both.
    """
    for name in fixed:
        if given is not None and name in given:
            raise ConfigError(f"{name} is an argument of transform(), or set by it: leave it out of the options")
    return {**given, **fixed} if given is not None else fixed


def producer_options_of(
    given: ProducerOptions | None, transactional_id: str, group_instance_id: str | None, random_part: str
) -> ProducerOptions:
    """Return the options of the producer of one instance; ``transactional_id`` is the first part of its own.

    Raises:
        ConfigError: the options ``given`` by the user have a ``transactional_id``.
        UsageError: ``transactional_id`` is not a string.
    """
    check_text("transactional_id", transactional_id)
    instance = transactional_id_of(transactional_id, group_instance_id, random_part)
    options = joined(given, ProducerOptions(transactional_id=instance))
    if group_instance_id is None:
        options.setdefault("transaction_timeout_ms", _TRANSACTION_TIMEOUT_MS)
    return options
