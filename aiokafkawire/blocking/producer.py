"""The blocking client's producer, and its transactions."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..loop_thread import LoopThread
from ..other_clients_names import BLOCKING_PRODUCER, add_hints
from ..producer.many_records import ArrowData, check_column
from ..producer.producer import Producer as AsyncProducer
from ..records.batch import Delivery as AsyncDelivery
from ..records.delivery_result import DeliveryCallback
from ..types import GroupMetadata, Headers, OffsetAndMetadata, ProducerIdentity, RecordMetadata, TopicPartition
from .closed_on_interruption import ClosedOnInterruption
from .consumer import Consumer
from .metrics_push import MetricsPush

if TYPE_CHECKING:
    from ..producer.health import ProducerHealth
    from ..producer.transaction import Transaction as AsyncTransaction

__all__ = ("Delivery", "Producer", "Transaction")

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


def _listed(name: str, column: Iterable[T]) -> list[T] | tuple[T, ...]:
    check_column(name, column)
    return column if isinstance(column, list | tuple) else list(column)


class _Sending(ClosedOnInterruption, Generic[K, V]):
    """The methods that send records, by a producer or in its transaction."""

    def __init__(self, loop: LoopThread, sending: "AsyncProducer[K, V] | AsyncTransaction[K, V]") -> None:
        self._loop, self._sending = loop, sending

    def _open(self) -> None:
        self._loop.call(self._sending.__aenter__)

    def _end(
        self, exc_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._loop.is_gone:
            self._loop.call(self._sending.__aexit__, exc_type, error, trace)

    async def _leave_open(self, error: BaseException) -> None:
        if self._sending._state == "open":
            await self._sending.__aexit__(type(error), error, None)

    def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> RecordMetadata:
        """Send one record, and wait until it is acknowledged."""
        return self._loop.call(
            self._sending.send,
            topic,
            value,
            key=key,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
        )

    def send_many(
        self,
        topic: str,
        values: Iterable[V | None],
        *,
        keys: Iterable[K | None] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> list[RecordMetadata]:
        """Send many records, wait until all are acknowledged, and return their metadata.

        The values and keys are iterated on the calling thread, before the first record is sent.
        """
        return self._loop.call(
            self._sending.send_many,
            topic,
            _listed("values", values),
            keys=None if keys is None else _listed("keys", keys),
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
        )

    def enqueue(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> "Delivery":
        """Enqueue one record. Wait for the topic's metadata and for buffer space, but not for the acknowledgement."""
        delivery = self._loop.call(
            self._sending.enqueue,
            topic,
            value,
            key=key,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
        )
        return Delivery(self._loop, delivery)


class Producer(_Sending[K, V], MetricsPush):
    """A producer, made by :meth:`Client.producer`. Errors are those of :class:`aiokafkawire.Producer`."""

    def __init__(self, loop: LoopThread, producer: AsyncProducer[K, V]) -> None:
        super().__init__(loop, producer)
        self._producer = self._telemetry = producer

    def close(self, timeout: float | None = None) -> None:
        """Send the waiting records within ``timeout`` seconds, by default ``delivery_timeout_ms``, and stop.

        Raises DeliveryFailed for failed records that no caller awaited.
        """
        if not self._loop.is_gone:
            self._loop.call(self._producer.close, timeout)

    def purge(self) -> int:
        """Drop the records that wait to be sent, as :meth:`aiokafkawire.Producer.purge`; return how many there were."""
        return self._loop.call_sync(self._producer.purge)

    def enqueue_many(
        self,
        topic: str,
        values: Sequence[V | None] | ArrowData,
        *,
        keys: Sequence[K | None] | ArrowData | None = None,
        partition: int | ArrowData | None = None,
        timestamp_ms: int | ArrowData | None = None,
        headers: Headers | ArrowData = (),
    ) -> int:
        """Enqueue whole columns, which is fastest; return the number of records. :meth:`flush` raises failures."""
        return self._loop.call(
            self._producer.enqueue_many,
            topic,
            values,
            keys=keys,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
        )

    def flush(self) -> None:
        """Wait until all records enqueued so far are acknowledged or failed. Raises DeliveryFailed if any failed."""
        self._loop.call(self._producer.flush)

    def health(self) -> "ProducerHealth":
        """Return the producer's health at once: the records that are not acknowledged, and what they wait for."""
        return self._loop.call_sync(self._producer.health)

    @property
    def name(self) -> str:
        """The producer's name, which its connections have as well, such as ``"produce-1"``."""
        return self._producer.name

    def partitions_for(self, topic: str) -> tuple[int, ...]:
        """Return the indexes of the topic's partitions; wait up to ``max_block_ms`` for the metadata."""
        return self._loop.call(self._producer.partitions_for, topic)

    def transaction(self) -> "Transaction[K, V]":
        """Return a transaction for ``with``; it includes all records that the producer sends inside the ``with``."""
        return Transaction(self._loop, self._loop.call_sync(self._producer.transaction))

    @property
    def identity(self) -> ProducerIdentity:
        """The identity of the open transaction, for ``client.producer(identity=...)`` in another process; see
        ``Producer.identity``."""
        return self._loop.call_sync(lambda: self._producer.identity)


add_hints(Producer, BLOCKING_PRODUCER)


class Transaction(_Sending[K, V]):
    """A transaction, made by :meth:`Producer.transaction`. Readers of committed records get all its records, or none.

    The end of the ``with`` block commits the transaction; an exception aborts it. Errors are those of the asynchronous
    transaction.
    """

    def __init__(self, loop: LoopThread, transaction: "AsyncTransaction[K, V]") -> None:
        super().__init__(loop, transaction)
        self._transaction = transaction

    def commit_offsets(
        self,
        consumed: Consumer[Any, Any] | Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        group: GroupMetadata | str | None = None,
    ) -> None:
        """Commit consumed offsets together with the sent records, atomically (KIP-447).

        Args:
            consumed: a consumer, to commit the offsets after its returned records; or the offsets to commit.
            group: required if ``consumed`` are offsets: the group's id, or ``consumer.group_metadata()``.
        """
        offsets = consumed._consumer if isinstance(consumed, Consumer) else consumed
        self._loop.call(self._transaction.commit_offsets, offsets, group=group)


class Delivery:
    """The delivery of a record that was passed to ``enqueue``."""

    def __init__(self, loop: LoopThread, delivery: AsyncDelivery) -> None:
        self._loop, self._delivery = loop, delivery

    @property
    def done(self) -> bool:
        """Whether the record was acknowledged or has failed."""
        return self._delivery.done

    def add_callback(self, callback: DeliveryCallback) -> None:
        """Call a function once when the outcome is known; at once if it is known already.

        It is called in the client's thread, as soon as the broker's response arrives, so it must neither wait nor call
        this client. An exception that it raises is logged. A failure that a callback is given is not reported by
        ``flush()`` again.

        Args:
            callback: takes the record's metadata and the error of its batch, one of which is None.
        """
        self._loop.call_sync(self._delivery.add_callback, callback)

    def result(self) -> RecordMetadata:
        """Wait for the acknowledgement, and return the record's metadata. Raises the error if the delivery failed."""

        async def wait() -> RecordMetadata:
            return await self._delivery

        return self._loop.call(wait)
