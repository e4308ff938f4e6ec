"""The producer: what users call."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import repeat
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

import anyio

from ..argument_checks import refuse_list
from ..cluster.cluster import Cluster
from ..config import ProducerConfig
from ..errors import BufferFull, DeliveryFailed, KafkaError, TopicNotReady, UsageError
from ..other_clients_names import PRODUCER, add_hints
from ..records.batch import Delivery
from ..records.compression import Codec, check_level
from ..runtime import CLOSE_SECONDS, finish, opened_at, warn_unclosed
from ..types import Headers, ProducerIdentity, RecordMetadata, check_topic_name
from .appending import Appender
from .door import YIELD_EVERY
from .entrance import Entrance, Room
from .partitioner import make_partitioner
from .sender import Sender

if TYPE_CHECKING:  # many a producer makes none
    import pyarrow as pa

    from .transacting import Transaction
    from .transactor import Transactor

__all__ = ("Producer",)

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)


class Producer(Generic[K, V]):
    """Sends records; made by :meth:`Client.producer`, and used as ``async with``.

    Records of a partition are written once and in the order in which they were handed over, whatever is tried again,
    if ``acks`` is "all" and the brokers know how (0.11 and later, see ``enable_idempotence``).

    Leaving it sends what is still waiting. When its body was cancelled, that takes 5 seconds at most, and what is not
    acknowledged by then fails.
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
        self._transactor = _transactor(cluster, config, identity)
        room = Room()
        self._sender = Sender(cluster, config, lane, room.made, self._transactor)
        self._accumulator = self._sender.accumulator
        partitioning = make_partitioner(config, cluster.runtime.chance, self._sender)
        self._entrance = Entrance(
            cluster, self._sender, partitioning, self._transactor, room, config.max_block_ms / 1000
        )
        self._appender: Appender[K, V] = Appender(
            self._entrance,
            self._accumulator.budget,
            self._accumulator.most,
            partitioning,
            cluster.runtime.wall_ms,
            key_serializer,
            value_serializer,
            asks_first=self._transactor is not None,
            thread_id=get_ident,
        )
        self._entrance.append = self._appender.append
        # The methods themselves: one that calls them would double what a record costs.
        self.send_nowait = self._appender.send_nowait  # type: ignore[method-assign]
        self.enqueue = self._appender.enqueue  # type: ignore[method-assign]
        self.send = self._appender.send  # type: ignore[method-assign]
        self._sender.on_end = self._appender.forget
        self._watching = ExitStack()
        self._has_closed = anyio.Event()
        self._opened_at = ""

    async def __aenter__(self) -> Self:
        if self._entrance.state != "new":
            raise UsageError(f"this producer is {self._entrance.state}: ask the client for another")
        self._entrance.state = "closed"  # whatever comes of it, it is not to be opened twice
        self._opened_at = opened_at()
        self._cluster.owner.spawn(self._sender.run)
        if self._transactor is not None:
            self._cluster.owner.spawn(self._transactor.run)
            try:
                await self._transactor.until(self._transactor.is_ready, "asking for the producer id")
            except BaseException:
                await finish(self._stop)
                raise
        self._watching.enter_context(self._cluster.on_update(self._appender.forget))
        self._appender.bind()
        self._entrance.state = "open"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_cancelled = error is not None and not isinstance(error, Exception)
        try:
            await self._close(CLOSE_SECONDS if is_cancelled else None)
        except DeliveryFailed as failed:
            if error is None:
                raise
            # The body's own error is the news; this must not hide it.
            error.add_note(f"besides, {failed}")

    async def close(self) -> None:
        """Send what is waiting, and stop. May be called again. It ends within ``delivery_timeout_ms``.

        Once it is cancelled, it goes on for 5 seconds at most, and what is not acknowledged by then fails.

        Raises:
            DeliveryFailed: records failed that nobody awaited.
            UsageError: this is another event loop than the client's.
        """
        await self._close(None)

    async def _close(self, within: float | None) -> None:
        if self._entrance.state == "open":
            if self._cluster.owner.has_lost_loop:
                self._leave("closed")
            self._cluster.owner.require_own_loop()
            # What would be accepted from now on, the flush would not wait for.
            self._leave("closing")
            await finish(self._flush_and_stop, within=within)
        elif self._entrance.state == "closing":
            await finish(self._has_closed.wait)

    async def _flush_and_stop(self) -> None:
        try:
            await self.flush()
        finally:
            await self._stop()

    def _stop_at_failure(self) -> None:
        """Once a batch has failed, fail what is not in flight, and refuse records with the same error."""
        self._sender.stop_at_failure()

    async def _discard(self, error: KafkaError) -> None:
        """Fail what is not in flight with this error, and wait until what is in flight has an outcome."""
        self._sender.stop(error)
        await self._sender.settled()

    async def _stop(self) -> None:
        self._leave("closed")
        self._watching.close()
        try:
            if self._transactor is not None:
                await self._transactor.stop()
            await self._sender.close()
        finally:
            self._has_closed.set()

    def __del__(self) -> None:
        entrance = getattr(self, "_entrance", None)
        if entrance is not None and entrance.state == "open" and not self._cluster.owner.has_closed:
            warn_unclosed(self, "producer", self._opened_at)

    def _leave(self, state: str) -> None:
        """Take no more records."""
        self._entrance.state = state
        self._appender.forget()

    # --- sending ---------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> RecordMetadata:
        """Send one record, and wait until it is acknowledged.

        Args:
            topic: its topic.
            value: bytes, or what the ``value_serializer`` takes; None is a tombstone.
            key: as ``value``; records with equal keys go to the same partition, as with Kafka's Java client.
            partition: overrides the choice by key.
            timestamp_ms: ms since the epoch; now if not given.
            headers: names and bytes.

        Cancelled before the record was accepted, nothing is sent; afterwards it goes on.

        Raises:
            BufferFull, TopicNotReady: no room, or no such topic, within ``max_block_ms``.
            RecordTooLarge: it exceeds ``max_request_size``.
            RequestTimeout: no acknowledgement within ``delivery_timeout_ms``; it may have been written.
            BrokerError: the broker refuses it.
            UsageError: the topic's name is not allowed, or it has no such partition.
        """
        return await self._appender.send(
            topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )

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
        """Send many records, and wait until all are acknowledged: where each of them is.

        Args:
            topic: the topic of all.
            values: as ``value`` of :meth:`send`.
            keys: one for each value; without any the records have no keys.
            partition, timestamp_ms, headers: the same for all, as for :meth:`send`.

        Cancelled, those that were accepted go on.

        Raises:
            DeliveryFailed: some were accepted and not delivered; it has their errors.
            ValueError: there are more keys than values, or fewer.
            KafkaError: as :meth:`enqueue`; those before it go on.
        """
        _check_column("values", values)
        if keys is not None:
            _check_column("keys", keys)
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
        values: "Sequence[V | None] | pa.Array | pa.ChunkedArray",
        *,
        keys: "Sequence[K | None] | pa.Array | pa.ChunkedArray | None" = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> int:
        """Hand whole columns over, the fastest way to send what is there already. What fails later, flush tells.

        Args:
            topic: the topic of all.
            values: as ``value`` of :meth:`send`, in a list or an Arrow array.
            keys: one for each value; without any the records have no keys.
            partition, timestamp_ms, headers: the same for all, as for :meth:`send`.

        Returns:
            How many records these were.

        Raises:
            UsageError: there are more keys than values, or fewer.
            KafkaError: as :meth:`enqueue`, with a note of how many records before it were accepted; these go on.
        """
        count = _length("values", values)
        if keys is not None and _length("keys", keys) != count:
            raise UsageError(f"{count} values and {len(keys)} keys: there must be one key for each value")
        for first in range(0, count, YIELD_EVERY):
            # Before its records are accepted: whoever is cancelled in here knows that they were not.
            await self._entrance.let_others_run()
            some = _listed(values[first : first + YIELD_EVERY])
            theirs = None if keys is None else _listed(keys[first : first + YIELD_EVERY])
            done = 0
            try:
                while done < len(some):
                    try:
                        done = self._appender.append_many(
                            topic, some, theirs, partition, timestamp_ms, headers, done, len(some)
                        )
                    except (BufferFull, TopicNotReady):
                        key = None if theirs is None else theirs[done]
                        await self.enqueue(
                            topic, some[done], key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
                        )
                        done += 1
            except KafkaError as error:
                error.add_note(f"{first + done} records before it were accepted")
                raise
        return count

    async def enqueue(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Hand one record over: wait for the topic's metadata and for room, not for its acknowledgement.

        Arguments and errors are those of :meth:`send`; what becomes of the record, awaiting the delivery tells.
        """
        return await self._appender.enqueue(
            topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )

    def send_nowait(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Hand one record over without waiting for anything. Arguments are those of :meth:`send`.

        Raises:
            BufferFull: ``buffer_memory`` is used up.
            TopicNotReady: the topic's partitions are not known yet; its metadata is asked for.
            RecordTooLarge, UsageError: as :meth:`send`.
        """
        return self._appender.send_nowait(
            topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )

    async def flush(self) -> None:
        """Wait until everything handed over so far is acknowledged or has failed.

        Raises:
            DeliveryFailed: records failed since the last flush that nobody awaited.
        """
        self._cluster.owner.require_own_loop()
        await self._sender.flush()

    async def partitions_for(self, topic: str) -> tuple[int, ...]:
        """The topic's partitions, waiting for them up to ``max_block_ms``.

        Raises:
            TopicNotReady: they are not known in time.
            BrokerError: the broker refuses.
        """
        self._cluster.owner.require_own_loop()
        check_topic_name(topic)
        known = await self._cluster.topic(topic, self._cluster.deadline(self._config.max_block_ms / 1000))
        return tuple(partition.index for partition in known.partitions)

    # --- transactions ----------------------------------------------------------------------------------

    def transaction(self) -> "Transaction[K, V]":
        """A transaction, to be used as ``async with``: it is committed at the end, and aborted on an exception.

        Raises:
            UsageError: the producer was made without a ``transactional_id``, or is not open.
        """
        if self._transactor is None:
            raise UsageError(
                "a producer needs a transactional_id for transactions: client.producer(transactional_id=...)"
            )
        from .transacting import Transaction

        self._cluster.owner.require_own_loop()
        if self._entrance.state != "open":
            raise UsageError(f"the producer is {self._entrance.state}: use it inside its 'async with'")
        return Transaction(self, self._sender, self._transactor)

    @property
    def identity(self) -> ProducerIdentity:
        """Its id and epoch, with which ``client.producer(identity=...)`` writes into the transaction that is open here.

        That producer neither begins nor ends transactions: its own are parts of this one. No two producers with one
        identity may write to the same partition, since leaders would take their records for retries of one another.
        To ask for it is to share it: with transactions of version 1 the next one needs another epoch then, which
        brokers before 2.5 do not give.

        Raises:
            UsageError: no transaction is open.
        """
        if self._transactor is None or not self._transactor.has_open():
            raise UsageError("there is an identity to share while a transaction is open")
        return self._transactor.machine.share()


add_hints(Producer, PRODUCER)


def _check_column(name: str, column: object) -> None:
    """Raise UsageError unless these are several values: text and bytes are one."""
    if isinstance(column, str | bytes | bytearray | memoryview | Mapping) or not isinstance(column, Iterable):
        raise refuse_list(name, column, "[b'one', b'two']")


def _length(name: str, column: Any) -> int:
    _check_column(name, column)
    if not hasattr(column, "__len__") or not hasattr(column, "__getitem__"):
        raise refuse_list(name, column, "[b'one', b'two'], with a length (send_many() takes any iterable)")
    return len(column)


def _listed(part: Any) -> Sequence[Any]:
    """A part of a column as a sequence; Arrow's arrays are that, of scalars of their own."""
    return cast("Sequence[Any]", part.to_pylist()) if hasattr(part, "to_pylist") else cast("Sequence[Any]", part)


def _transactor(cluster: Cluster, config: ProducerConfig, identity: ProducerIdentity | None) -> "Transactor | None":
    if config.transactional_id is None:
        return None
    from .transactor import Transactor

    return Transactor(cluster, config, config.transactional_id, identity)
