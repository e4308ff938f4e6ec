"""The producer's public API."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Sized
from contextlib import ExitStack
from itertools import repeat
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar
from weakref import ref

import anyio
import anyio.lowlevel

from ..argument_checks import check_seconds
from ..cluster.cluster import Cluster
from ..cluster.live_values import ProducerValues
from ..cluster.metadata import Snapshot, Topic
from ..cluster.metrics_push import MetricsPush
from ..cluster.retry import Deadline
from ..config import ProducerConfig
from ..errors import (
    BufferFull,
    DeliveryFailed,
    ErrorCode,
    KafkaError,
    RequestTimeout,
    TopicNotReady,
    UsageError,
    copy_for_reraise,
)
from ..other_clients_names import PRODUCER, add_hints
from ..records.batch import BatchBuilder, Delivery
from ..records.compression import Codec, check_level
from ..runtime import CLOSE_SECONDS, finish, opened_at, warn_unclosed
from ..types import Header, Headers, ProducerIdentity, RecordMetadata, TopicPartition, check_topic_name
from ._implementation import Appender, OpenBatch, OpenTopic
from .batch import BatchResult
from .many_records import ArrowData, RecordLists, check_column, many_records
from .partitioner import make_partitioner
from .record_checks import YIELD_EVERY, PartitionNotKnown, invalid_partition
from .record_columns import RecordColumns
from .sender import Sender

if TYPE_CHECKING:  # most producers make no transactions
    from .health import ProducerHealth
    from .transaction import Transaction
    from .transaction_manager import TransactionManager

__all__ = ("Producer",)

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)

_ROWS: Final = 65_536
"""The number of rows of Arrow arrays of which ``enqueue_many`` looks up the buffers at a time."""
_COLUMN_STEP: Final = 4 * YIELD_EVERY
"""The number of rows of Arrow arrays after which it yields: each takes a fraction of what a Python object takes."""


class Producer(Appender[K, V], MetricsPush, Generic[K, V]):
    """A client that sends records; made by :meth:`Client.producer`, and used as ``async with``.

    Records of a partition are written once and in the order in which the producer accepted them, even after retries,
    if ``acks`` is "all" and the brokers support idempotence (0.11 and later, see ``enable_idempotence``).

    Leaving the ``async with`` sends the records that still wait. If the body was cancelled, leaving takes at most
    5 seconds, and records that are not acknowledged by then fail.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        lane: str,
        key_serializer: Callable[[K], bytes] | None = None,
        value_serializer: Callable[[V], bytes] | None = None,
        identity: ProducerIdentity | None = None,
    ) -> None:
        check_level(Codec.parse(config.compression_type), config.compression_level)
        self._cluster, self._config = cluster, config
        self._state = "new"
        self._transactions = _transaction_manager(cluster, config, identity)
        # The sender's background task must not keep an unclosed producer alive: its garbage collection warns the user.
        self._forget_topics = _weak_invalidation(self)
        self._sender = Sender(cluster, config, lane, self._forget_topics, self._transactions)
        self._accumulator = self._sender.accumulator
        self._partitioning = make_partitioner(config, cluster.runtime.chance, self._sender)
        self._available: dict[str, tuple[Topic, tuple[int, ...]]] = {}
        self._watching = ExitStack()
        self._has_closed = anyio.Event()
        self._opened_at = ""
        self._has_serializers = not (key_serializer is None and value_serializer is None)
        # The calls that wait for a topic's metadata.
        self._waiting_for = Counter[str]()
        super().__init__(
            self._sender,
            self._accumulator.space,
            self._accumulator.max_record_size,
            self._partitioning,
            cluster.runtime.wall_ms,
            key_serializer,
            value_serializer,
            transactional=self._transactions is not None,
            thread_id=get_ident,
        )

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise UsageError(f"this producer is {self._state}: ask the client for another")
        self._state = "closed"  # a producer that fails to open is not opened again
        self._opened_at = opened_at()
        self._cluster.owner.spawn(self._sender.run)
        if self._transactions is not None:
            self._cluster.owner.spawn(self._transactions.run)
            try:
                await self._transactions.wait_until(self._transactions.is_ready, "requesting the producer id")
            except BaseException:
                await finish(self._stop)
                raise
        self._watching.enter_context(self._cluster.metadata.on_update(self._forget_topics))
        if (tracing := self._cluster.record_tracing) is not None:
            self._trace(tracing)
        self._bind_thread()
        self._state = "open"
        return self

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_cancelled = error is not None and not isinstance(error, Exception)
        try:
            await self._close(CLOSE_SECONDS if is_cancelled else None)
        except DeliveryFailed as failed:
            if error is None:
                raise
            # This must not hide the body's own error.
            error.add_note(f"besides, {failed}")

    async def close(self, timeout: float | None = None) -> None:
        """Send the records that wait, and close the producer, within ``delivery_timeout_ms``. May be called again.

        A commit that is in progress is completed first, and an open transaction is aborted, within ``max_block_ms``.
        If the call is cancelled, closing takes at most 5 seconds more; records that are not acknowledged by then fail.

        Args:
            timeout: how long to wait for acknowledgements, in seconds; records that are not acknowledged by then fail.
                With 0 no record that waits is sent.

        Raises:
            DeliveryFailed: a record that no caller awaited has failed since the last :meth:`flush`.
            UsageError: the running event loop is not the client's, or ``timeout`` is invalid.
        """
        check_seconds("timeout", timeout)
        await self._close(timeout)
        # After the timeout, the flush has not reported the records that were given up.
        failed = self._sender.completion.failures.take() if timeout is not None else None
        if failed is not None:
            raise failed

    def purge(self) -> int:
        """Drop the records that wait to be sent, and return how many there were.

        Their deliveries raise RecordsPurged, which :meth:`flush` and :meth:`close` do not report. Records in flight are
        not dropped: brokers have them already. A transaction that loses records can only be aborted.

        Raises:
            UsageError: the running event loop is not the client's.
        """
        self._cluster.owner.require_own_loop()
        return self._sender.completion.purge()

    async def _close(self, within: float | None) -> None:
        if self._state == "open":
            if self._cluster.owner.has_lost_loop:
                self._refuse_records("closed")
            self._cluster.owner.require_own_loop()
            # The flush would not wait for records that were accepted from now on.
            self._refuse_records("closing")
            await finish(self._flush_and_stop, within=within)
        elif self._state == "closing":
            await finish(self._has_closed.wait)

    async def _flush_and_stop(self) -> None:
        try:
            await self.flush()
        finally:
            try:
                if self._transactions is not None:
                    await self._transactions.end_open(self._sender.wait_until_idle)
            finally:
                await self._stop()

    def _stop_at_failure(self) -> None:
        """Let the first failed batch stop the producer, which then fails records not in flight and refuses new ones."""
        self._sender.stop_at_failure()

    async def _discard(self, error: KafkaError) -> None:
        """Fail the records that are not in flight, because of ``error``; wait for the results of those in flight."""
        self._sender.stop(error)
        await self._sender.wait_until_complete()

    async def _stop(self) -> None:
        self._refuse_records("closed")
        self._watching.close()
        try:
            if self._transactions is not None:
                await self._transactions.stop()
            await self._sender.close()
        finally:
            self._has_closed.set()

    def __del__(self) -> None:
        if getattr(self, "_state", "new") == "open" and not self._cluster.owner.has_closed:
            warn_unclosed(self, "producer", self._opened_at)

    def _refuse_records(self, state: str) -> None:
        self._state = state
        self._invalidate_topics()

    # --- appending: what the base class's methods need ----------------------------------------------------

    def _open_topic(self, topic: str) -> OpenTopic:
        """Return the topic if its partitions are known.

        Raises:
            UsageError: the producer is not open, or the topic's name is not allowed.
            TopicNotReady: the topic's partitions are not known; the client requests the topic's metadata.
            KafkaError: the producer has failed with this error, and can send nothing more.
        """
        self._require_open()
        known = self._cluster.metadata.snapshot.topics.get(topic)
        if known is None or known.error != ErrorCode.NONE or not known.partitions:
            check_topic_name(topic)
            self._cluster.metadata.track_topics((topic,))
            self._cluster.metadata.mark_stale(self._cluster.metadata.snapshot)
            raise self._cluster.metadata.not_ready(topic)
        available = self._with_leader(topic, known)
        sticky = None if self._partitioning.sticky is None else self._partitioning.sticky.get(topic)
        if sticky is not None and (sticky.available is not available or sticky.partition >= len(known.partitions)):
            sticky = None  # its partition may have lost its leader, or the topic was made anew with fewer partitions
        return OpenTopic(topic, len(known.partitions), available, sticky)

    def _require_open(self) -> None:
        """Raise as :meth:`_open_topic` unless the producer can take records."""
        self._cluster.owner.require_own_loop()
        if self._state != "open" or self._sender.has_ended:
            state = "closed" if self._sender.has_ended else self._state
            raise UsageError(f"the producer is {state}: use it inside its 'async with'")
        if self._sender.fatal is not None:
            raise copy_for_reraise(self._sender.fatal)

    def _with_leader(self, topic: str, known: Topic) -> tuple[int, ...]:
        """Return the topic's partitions that have a leader: the same tuple object until they change."""
        before = self._available.get(topic)
        if before is None or before[0] is not known:
            available = tuple(partition.index for partition in known.partitions if partition.leader is not None)
            if before is not None and before[1] == available:
                available = before[1]
            before = self._available[topic] = known, available
        return before[1]

    def _open_batch(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> tuple[OpenBatch, int]:
        if asyncio._get_running_loop() is not self._cluster.owner.loop:
            self._cluster.owner.require_own_loop()
        now = self._cluster.runtime.now()
        batch, index = self._accumulator.append(TopicPartition(topic, partition), timestamp, key, value, headers, now)
        return batch.opened, index

    def _add_to_transaction(self, topic: str, partition: int) -> None:
        assert self._transactions is not None  # the base class calls this for transactional producers only
        self._transactions.add_partition(TopicPartition(topic, partition))

    def _no_partition(self, topic: str, partition: object, count: int) -> KafkaError:
        error = invalid_partition(topic, partition, count)
        if isinstance(error, PartitionNotKnown):
            self._cluster.metadata.mark_stale(self._cluster.metadata.snapshot)
        return error

    async def _look_again(self, seen: Snapshot, missing: PartitionNotKnown, deadline: Deadline) -> None:
        """Wait for metadata that is newer than ``seen``; raise ``missing`` if there is, or if none comes in time."""
        if self._cluster.metadata.snapshot.generation > seen.generation:
            raise missing
        try:
            await self._cluster.metadata.refresh(seen, deadline)
        except RequestTimeout as timeout:
            raise missing from timeout

    def _no_space(self, topic: str, size: int) -> KafkaError:
        return self._accumulator.no_space(topic, size)

    async def _enqueue_batch(
        self, partition: TopicPartition, builder: BatchBuilder, timestamps: Sequence[int]
    ) -> BatchResult:
        """Accept a batch that the caller has filled; wait for its topic and buffer space, and raise as :meth:`send`."""
        self._require_open()
        transaction = self._transaction
        deadline = self._cluster.deadline(self._config.max_block_ms / 1000)
        seen = self._cluster.metadata.snapshot
        while True:
            known = await self._cluster.metadata.topic(partition.topic, deadline)
            if 0 <= partition.partition < len(known.partitions):
                break
            missing = self._no_partition(*partition, len(known.partitions))
            if not isinstance(missing, PartitionNotKnown):
                raise missing
            await self._look_again(seen, missing, deadline)
        space, now = self._accumulator.space, self._cluster.runtime.now
        if builder.size > space.limit:
            raise self._no_space(partition.topic, builder.size)
        with self._sender.flushing():
            while space.used + builder.size > space.limit:
                with anyio.move_on_after(deadline.left(now())):
                    await self._accumulator.wait_for_space()
                if deadline.passed(now()):
                    raise self._no_space(partition.topic, builder.size)
        self._require_open()
        self._require_same(transaction, "waited")
        if self._transactions is not None:
            self._transactions.add_partition(partition)
        batch = self._accumulator.append_batch(partition, builder, timestamps, now())
        self._sender.wake()
        return batch.result

    async def _let_others_run(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def _wait_and_append(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[OpenBatch, int]:
        deadline = self._cluster.deadline(self._config.max_block_ms / 1000)
        now, waits = self._cluster.runtime.now, self._cluster.producer_waits
        transaction, seen = self._transaction, self._cluster.metadata.snapshot
        while True:
            self._require_same(transaction, "waited")
            try:
                return self._append(topic, value, key, partition, timestamp_ms, headers)
            except TopicNotReady:
                if self._transactions is not None and self._transactions.state.error is not None:
                    raise  # a partition had no leader for too long: this is why the transaction can only be aborted
                began = now()
                self._waiting_for[topic] += 1
                try:
                    await self._cluster.metadata.topic(topic, deadline)
                finally:
                    waits.metadata_seconds += now() - began
                    self._waiting_for[topic] -= 1
                    self._waiting_for += Counter()  # drops the topics for which no call waits any more
            except PartitionNotKnown as missing:
                await self._look_again(seen, missing, deadline)
            except BufferFull:
                began = now()
                waits.callers += 1
                try:
                    with self._sender.flushing(), anyio.move_on_after(deadline.left(began)):
                        await self._accumulator.wait_for_space()
                finally:
                    waits.callers -= 1
                    waits.space_seconds += now() - began
                if deadline.passed(now()):
                    waits.exhausted += 1
                    raise

    # --- sending many records -----------------------------------------------------------------------------

    async def send_many(
        self,
        topic: str,
        values: Iterable[V | None],
        *,
        keys: Iterable[K | None] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> list[RecordMetadata]:
        """Send many records, and return their metadata, in the same order, when all are acknowledged.

        Args:
            topic: the topic of all records.
            values: the records' values, each as ``value`` of :meth:`send`.
            keys: one key for each value; None for records without keys.
            partition, timestamp_ms, headers: as for :meth:`send`, the same for all records.

        If the call is cancelled, the records accepted until then are still sent.

        Raises:
            DeliveryFailed: accepted records were not delivered; the exception has their errors.
            ValueError: the numbers of keys and values differ; nothing was sent, unless one of them has no length: then
                the records before the end of the shorter one are still sent.
            KafkaError: a record was not accepted, see :meth:`enqueue`; the records before it are still sent.
        """
        check_column("values", values)
        if keys is not None:
            check_column("keys", keys)
            if isinstance(values, Sized) and isinstance(keys, Sized) and len(values) != len(keys):
                raise ValueError(f"{len(values)} values and {len(keys)} keys: nothing was sent")
        accepted: list[Delivery] = []
        pairs = zip(values, repeat(None)) if keys is None else zip(values, keys, strict=True)
        for value, key in pairs:
            accepted.append(
                await self.enqueue(
                    topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
                )
            )
        found, errors = [], []
        for delivery in accepted:
            try:
                found.append(await delivery)
            except KafkaError as error:
                errors.append(error)
        if errors:
            raise DeliveryFailed(list({str(error): error for error in errors}.values()), len(errors))
        return found

    async def enqueue_many(
        self,
        topic: str,
        values: Sequence[V | None] | ArrowData,
        *,
        keys: Sequence[K | None] | ArrowData | None = None,
        partition: int | ArrowData | None = None,
        timestamp_ms: int | ArrowData | None = None,
        headers: Headers | ArrowData = (),
    ) -> int:
        """Accept many records as columns, the fastest way to send; :meth:`flush` raises the errors of their delivery.

        An Arrow array of bytes or text, chunked or not, is encoded as it is: without a Python object for each record.
        Arrays of Polars, pandas and others are taken by the Arrow PyCapsule interface.

        Args:
            topic: the topic of all records.
            values: the records' values, each as ``value`` of :meth:`send`, in a list or an Arrow array.
            keys: one key for each value; None for records without keys.
            partition: the partition of all records, or an Arrow array with the partition of each, or null.
            timestamp_ms: the timestamp of all records, or an Arrow array of integers or times; null for the present.
            headers: the headers of all records, or an Arrow array of lists of structs of a name and bytes.

        Returns:
            The number of records.

        Raises:
            UsageError: the lengths of two columns differ, or an Arrow array has an unsuitable type.
            KafkaError: a record was not accepted, see :meth:`enqueue`; the records before it are still sent, and
                their number is in the error's note.
        """
        records = many_records(values, keys, partition, timestamp_ms, headers, raw=not self._has_serializers)
        accepted = 0
        while accepted < len(records):
            done = stop = 0
            try:
                part = records.rows(accepted, _ROWS)
                step = _COLUMN_STEP if isinstance(part, RecordColumns) else YIELD_EVERY
                while done < part.count:
                    if done >= stop:
                        # Before the records are accepted: a caller that is cancelled here knows that they were not.
                        await self._let_others_run()
                        stop = min(done + step, part.count)
                    try:
                        if isinstance(part, RecordLists):
                            done = self._append_many(topic, *part.arguments, done, stop)
                        else:
                            done = self._append_columns(topic, part, done, stop)
                    except (BufferFull, TopicNotReady, PartitionNotKnown):
                        await self._wait_and_append(topic, *part.record(done))
                        self._sender.wake()
                        done += 1
            except KafkaError as error:
                error.add_note(f"{accepted + done} records before it were accepted")
                raise
            accepted += done
        return accepted

    async def flush(self) -> None:
        """Wait until every record accepted so far is acknowledged or has failed.

        Raises:
            DeliveryFailed: a record that no caller awaited has failed since the last flush.
        """
        self._cluster.owner.require_own_loop()
        await self._sender.flush()

    @property
    def name(self) -> str:
        """The producer's name, which its connections have as well, such as ``"produce-1"``."""
        return self._sender.lane

    def _live_values(self) -> ProducerValues:
        """Return the present values for metrics. Any thread may call this method."""
        space = self._accumulator.space
        return ProducerValues(self._state, self._config.transactional_id, space.limit, space.used)

    def health(self) -> "ProducerHealth":
        """Return the producer's health at once: the records that are not acknowledged, and what they wait for."""
        from .health_snapshot import producer_health

        return producer_health(
            self._cluster, self._config, self._sender, self._transactions, self._state, self._waiting_for
        )

    async def partitions_for(self, topic: str) -> tuple[int, ...]:
        """Return the indexes of the topic's partitions; wait for the topic's metadata for up to ``max_block_ms``.

        Raises:
            TopicNotReady: the partitions were not known in time.
            BrokerError: the broker refused the metadata of this topic.
        """
        self._cluster.owner.require_own_loop()
        check_topic_name(topic)
        known = await self._cluster.metadata.topic(topic, self._cluster.deadline(self._config.max_block_ms / 1000))
        return tuple(partition.index for partition in known.partitions)

    # --- transactions ----------------------------------------------------------------------------------

    @property
    def _transaction(self) -> object:
        """The open transaction, or the next one; None if the producer has no transactions."""
        return None if self._transactions is None else self._transactions.state.transaction

    def _require_same(self, transaction: object, what: str) -> None:
        """Raise UsageError if this transaction has ended: a record sent in it must be in no later one."""
        if self._transaction is not transaction:
            raise UsageError(f"the transaction ended while a record of it {what}: nothing was sent")

    def transaction(self) -> "Transaction[K, V]":
        """Return a transaction for ``async with``: leaving the body commits it, or aborts it after an exception.

        Raises:
            UsageError: the producer was made without a ``transactional_id``, or is not open.
        """
        if self._transactions is None:
            raise UsageError(
                "a producer needs a transactional_id for transactions: client.producer(transactional_id=...)"
            )
        from .transaction import Transaction

        self._cluster.owner.require_own_loop()
        if self._state != "open":
            raise UsageError(f"the producer is {self._state}: use it inside its 'async with'")
        return Transaction(self, self._sender, self._transactions)

    @property
    def identity(self) -> ProducerIdentity:
        """The producer id and epoch with which another producer writes into this producer's open transaction.

        Pass the identity to ``client.producer(identity=...)``. The other producer's transactions are parts of the open
        one, which only this producer begins and ends. No two producers with one identity may write to the same
        partition, since leaders would take their records for retries of one another.
        With ``transaction.version`` 1, reading this property has a consequence: this producer's next transaction needs
        another epoch. Brokers before Kafka 2.5 do not provide one, so the producer then fails.

        Raises:
            UsageError: no transaction is open.
        """
        if self._transactions is None or not self._transactions.has_open():
            raise UsageError("a producer has an identity only while a transaction is open")
        return self._transactions.state.share()


add_hints(Producer, PRODUCER)


def _weak_invalidation(producer: "Producer[Any, Any]") -> Callable[[], None]:
    reference = ref(producer)

    def invalidate_topics() -> None:
        alive = reference()
        if alive is not None:
            alive._invalidate_topics()

    return invalidate_topics


def _transaction_manager(
    cluster: Cluster, config: ProducerConfig, identity: ProducerIdentity | None
) -> "TransactionManager | None":
    if config.transactional_id is None:
        return None
    from .transaction_manager import TransactionManager

    return TransactionManager(cluster, config, config.transactional_id, identity)
