"""The blocking client's producer, and its transactions."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar

from ..loop_thread import LoopThread
from ..other_clients_names import BLOCKING_PRODUCER, add_hints
from ..producer.producer import Producer as AsyncProducer
from ..records.batch import Delivery as AsyncDelivery
from ..types import GroupMetadata, Headers, OffsetAndMetadata, ProducerIdentity, RecordMetadata, TopicPartition
from .consumer import Consumer

if TYPE_CHECKING:
    import pyarrow as pa

    from ..producer.user_transaction import Transaction as AsyncTransaction

__all__ = ("Delivery", "Producer", "Transaction")

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")


class Producer(Generic[K, V]):
    """Sends records; made by :meth:`Client.producer`. Errors are those of :class:`aiokafkawire.Producer`."""

    def __init__(self, loop: LoopThread, producer: AsyncProducer[K, V]) -> None:
        self._loop, self._producer = loop, producer

    def __enter__(self) -> Self:
        self._loop.call(self._producer.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._loop.is_elsewhere:
            self._loop.call(self._producer.__aexit__, kind, error, trace)

    def close(self) -> None:
        """Send what is waiting, and stop; raises DeliveryFailed for records that nobody awaited."""
        if not self._loop.is_elsewhere:
            self._loop.call(self._producer.close)

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
            self._producer.send,
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
        """Send many records, and wait until all are acknowledged: where each of them is."""
        return self._loop.call(
            self._producer.send_many,
            topic,
            values,
            keys=keys,
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
        """Hand one record over: wait for the topic's metadata and for room, not for its acknowledgement."""
        return _enqueued(
            self._loop,
            self._producer.enqueue,
            topic,
            value,
            key=key,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
        )

    def enqueue_many(
        self,
        topic: str,
        values: "Sequence[V | None] | pa.Array | pa.ChunkedArray",
        *,
        keys: "Sequence[K | None] | pa.Array | pa.ChunkedArray | None" = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> int:
        """Hand whole columns over, the fastest way; :meth:`flush` tells what fails. Returns how many records."""
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
        """Wait until everything handed over so far is acknowledged or has failed; raises DeliveryFailed."""
        self._loop.call(self._producer.flush)

    def partitions_for(self, topic: str) -> tuple[int, ...]:
        """The topic's partitions, waiting for them up to ``max_block_ms``."""
        return self._loop.call(self._producer.partitions_for, topic)

    def transaction(self) -> "Transaction[K, V]":
        """A transaction, to be used as ``with``: what the producer sends meanwhile is in it."""
        return Transaction(self._loop, self._loop.here(self._producer.transaction))

    @property
    def identity(self) -> ProducerIdentity:
        """The open transaction's, for ``client.producer(identity=...)`` elsewhere; see ``Producer.identity``."""
        return self._loop.here(lambda: self._producer.identity)


add_hints(Producer, BLOCKING_PRODUCER)


class Transaction(Generic[K, V]):
    """What readers of committed records see all or none of; made by :meth:`Producer.transaction`.

    It is committed at the end of its ``with``, and aborted on an exception. Errors are those of the asynchronous one.
    """

    def __init__(self, loop: LoopThread, transaction: "AsyncTransaction[K, V]") -> None:
        self._loop, self._transaction = loop, transaction

    def __enter__(self) -> Self:
        try:
            self._loop.call(self._transaction.__aenter__)
        except BaseException as error:
            if not isinstance(error, Exception):  # interrupted, it may have begun all the same
                self._loop.call(self._abort_begun, error)
            raise
        return self

    async def _abort_begun(self, error: BaseException) -> None:
        if self._transaction._state == "open":
            await self._transaction.__aexit__(type(error), error, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._loop.is_elsewhere:
            self._loop.call(self._transaction.__aexit__, kind, error, trace)

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
        """As :meth:`Producer.send`. It is in the log then, and readers of committed records wait for the commit."""
        return self._loop.call(
            self._transaction.send,
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
        """As :meth:`Producer.send_many`."""
        return self._loop.call(
            self._transaction.send_many,
            topic,
            values,
            keys=keys,
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
        """As :meth:`Producer.enqueue`. The commit waits for it, and fails if it does."""
        return _enqueued(
            self._loop,
            self._transaction.enqueue,
            topic,
            value,
            key=key,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
        )

    def commit_offsets(
        self,
        consumed: Consumer[Any, Any] | Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        group: GroupMetadata | str | None = None,
    ) -> None:
        """Commit what was consumed together with what is sent: all of it counts, or none (KIP-447).

        Args:
            consumed: a consumer, which is as far as the records it has returned; or the offsets to read on from.
            group: with offsets, whose they are: a group's id, or ``consumer.group_metadata()``.
        """
        what = consumed._consumer if isinstance(consumed, Consumer) else consumed
        self._loop.call(self._transaction.commit_offsets, what, group=group)


class Delivery:
    """What becomes of a record that was handed over by ``enqueue``."""

    def __init__(self, loop: LoopThread, delivery: AsyncDelivery) -> None:
        self._loop, self._delivery = loop, delivery

    @property
    def done(self) -> bool:
        """Whether it was acknowledged or has failed."""
        return self._delivery.done

    def result(self) -> RecordMetadata:
        """Wait until it is acknowledged, and return where it is; raises why it was not delivered."""

        async def wait() -> RecordMetadata:
            return await self._delivery

        return self._loop.call(wait)


def _enqueued(
    loop: LoopThread, enqueue: Callable[P, Awaitable[AsyncDelivery]], *args: P.args, **kwargs: P.kwargs
) -> Delivery:
    return Delivery(loop, loop.call(enqueue, *args, **kwargs))
