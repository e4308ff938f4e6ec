"""The blocking client; see :mod:`aiokafkawire.blocking`."""

import threading
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

import anyio

from ..argument_checks import check_flag
from ..client import Client as AsyncClient
from ..config import AutoOffsetReset, ClientOptions, ConsumerOptions, ProducerOptions, ShareConsumerOptions
from ..errors import UsageError
from ..loop_thread import LoopThread
from ..protocol.schema import Request, Response
from ..records.batch import ConsumerRecord
from ..serialization import AnyDeserializer, AnySerializer
from ..types import OffsetSpec, ProducerIdentity, SubscriptionPattern, TopicPartition
from .metrics_push import MetricsPush

if TYPE_CHECKING:
    import pyarrow as pa

    from ..bounded_reads import BoundedBatches, BoundedReader, BoundedRecords, Bounds
    from ..client_health import ClientHealth
    from ..group.assignors import Assignor
    from ..interceptors import ConsumerInterceptor, ProducerInterceptor
    from ..metrics.metric import Metric
    from ..processing.lanes import Ordering
    from ..processing.processing_run import OnProgress
    from ..processing.retry import Retry
    from ..processing.retry_topics import RetryTopic
    from ..processing.summary import ProcessSummary
    from ..producer.many_records import ArrowData
    from .admin import Admin
    from .consumer import Consumer
    from .producer import Producer
    from .share_consumer import ShareConsumer
    from .transform import Process

__all__ = ("Client",)

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=Response)


class Client(MetricsPush):
    """A Kafka client for code without an event loop. Use it as ``with``, or call ``open`` and ``close``.

    Args:
        bootstrap_servers: ``"host:port,host:port"`` or a sequence of ``"host:port"``; one server that answers is
            enough. Leave it out to speak to controllers (``bootstrap_controllers``).
        observers: objects to notify of connections, requests, batches, fetches, commits, rebalances and
            transactions, on the client's thread; see :class:`~aiokafkawire.observe.Observer`.
        options: see :class:`~aiokafkawire.config.ClientConfig`.

    Raises:
        ConfigError: an address or a setting is wrong.
        NoBrokerReachable: opening found no broker within ``bootstrap_timeout_ms``.
        WireError: the answering server is not Kafka.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        observers: Iterable[object] = (),
        **options: Unpack[ClientOptions],
    ) -> None:
        self._loop = LoopThread()
        self._client = AsyncClient(bootstrap_servers, observers=observers, **options)
        self._telemetry = self._client
        self._admin: Admin | None = None

    def open(self) -> Self:
        """Start the thread, and connect to a broker; entering ``with`` calls this."""
        self._loop.start()
        try:
            self._loop.call(self._client.open)
        except BaseException:
            self._loop.stop()
            raise
        return self

    def close(self) -> None:
        """Close all connections, and end the thread. Calling it again, or in a forked process, has no effect.

        Raises:
            UsageError: it was called on the client's own thread, as by a callback.
        """
        if self._loop.is_gone or not self._loop.is_running:
            self._loop.stop()  # again, if Ctrl-C has interrupted it
            return
        self._loop.require_other_thread()
        try:
            self._loop.call_while_running(self._client.close)
        finally:
            self._loop.stop()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except BaseException as interruption:
            # It may have come before the closing has begun. At the first instruction of this method nothing catches it.
            if not isinstance(interruption, Exception):
                self.close()
            raise

    @property
    def admin(self) -> "Admin":
        """The admin client, for topics, groups and offsets."""
        if self._admin is None:
            from .admin import Admin

            self._admin = Admin(self._loop, self._client)
        return self._admin

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, as :attr:`.Client.cluster_id`."""
        return self._client.cluster_id

    @property
    def loop(self) -> LoopThread:
        """The client's thread; ``loop.call(kafka.asynchronous.method)`` calls methods that lack a blocking form."""
        return self._loop

    @property
    def asynchronous(self) -> AsyncClient:
        """The asynchronous client, whose methods must be called on :attr:`loop`."""
        return self._client

    def health(self) -> "ClientHealth":
        """Return at once whether the client is ready and live, and why, as :meth:`.Client.health`. Any thread may call
        this method."""
        if self._loop.in_forked_process:
            self._loop.require()  # raises: what this process knows is what its parent knew
        return self._look(self._client.health)

    def metrics(self) -> "tuple[Metric, ...]":
        """Return what the client measures, as :meth:`.Client.metrics`; it counts from the first call on. Any thread may
        call this method, also before the client is opened and after it is closed."""
        return self._look(self._client.metrics)

    def _look(self, function: Callable[[], T]) -> T:
        """Call a function on the client's thread, or here if that does not run."""

        async def look() -> T:
            return function()

        found = None if self._loop.is_current else self._loop.call_while_running(look)
        return function() if found is None else found

    def request(
        self,
        message: Request[R],
        *,
        broker: int | Literal["controller"] | TopicPartition | None = None,
        version: int | None = None,
        timeout: float | None = None,
    ) -> R:
        """Send any request of Kafka's protocol to a broker, and return the response, as :meth:`.Client.request`."""
        return self._loop.call(self._client.request, message, broker=broker, version=version, timeout=timeout)

    @overload
    def producer(
        self,
        *,
        identity: ProducerIdentity | None = None,
        interceptors: "Sequence[ProducerInterceptor]" = (),
        **options: Unpack[ProducerOptions],
    ) -> "Producer[bytes, bytes]": ...
    @overload
    def producer(
        self,
        *,
        key_serializer: AnySerializer[K],
        identity: ProducerIdentity | None = None,
        interceptors: "Sequence[ProducerInterceptor]" = (),
        **options: Unpack[ProducerOptions],
    ) -> "Producer[K, bytes]": ...
    @overload
    def producer(
        self,
        *,
        value_serializer: AnySerializer[V],
        identity: ProducerIdentity | None = None,
        interceptors: "Sequence[ProducerInterceptor]" = (),
        **options: Unpack[ProducerOptions],
    ) -> "Producer[bytes, V]": ...
    @overload
    def producer(
        self,
        *,
        key_serializer: AnySerializer[K],
        value_serializer: AnySerializer[V],
        identity: ProducerIdentity | None = None,
        interceptors: "Sequence[ProducerInterceptor]" = (),
        **options: Unpack[ProducerOptions],
    ) -> "Producer[K, V]": ...
    def producer(self, **options: Any) -> "Producer[Any, Any]":
        """Return a producer; use it as ``with``. Arguments and errors are those of :meth:`.Client.producer`.

        The client's thread calls the serializers and the interceptors.
        """
        from .producer import Producer

        return Producer(self._loop, self._loop.call_sync(partial(self._client.producer, **options)))

    @overload
    def consumer(
        self,
        *topics: str,
        assignors: "Sequence[Assignor]" = (),
        interceptors: "Sequence[ConsumerInterceptor]" = (),
        **options: Unpack[ConsumerOptions],
    ) -> "Consumer[bytes, bytes]": ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: AnyDeserializer[K],
        assignors: "Sequence[Assignor]" = (),
        interceptors: "Sequence[ConsumerInterceptor]" = (),
        **options: Unpack[ConsumerOptions],
    ) -> "Consumer[K, bytes]": ...
    @overload
    def consumer(
        self,
        *topics: str,
        value_deserializer: AnyDeserializer[V],
        assignors: "Sequence[Assignor]" = (),
        interceptors: "Sequence[ConsumerInterceptor]" = (),
        **options: Unpack[ConsumerOptions],
    ) -> "Consumer[bytes, V]": ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: AnyDeserializer[K],
        value_deserializer: AnyDeserializer[V],
        assignors: "Sequence[Assignor]" = (),
        interceptors: "Sequence[ConsumerInterceptor]" = (),
        **options: Unpack[ConsumerOptions],
    ) -> "Consumer[K, V]": ...
    def consumer(self, *topics: str, **options: Any) -> "Consumer[Any, Any]":
        """Return a consumer; use it as ``with``. Arguments and errors are those of :meth:`.Client.consumer`.

        The client's thread calls the deserializers and the interceptors, a few hundred records ahead of the iteration.
        """
        from .consumer import Consumer

        return Consumer(self._loop, self._loop.call_sync(partial(self._client.consumer, *topics, **options)))

    @overload
    def share_consumer(
        self, *topics: str | Collection[str], **options: Unpack[ShareConsumerOptions]
    ) -> "ShareConsumer[bytes, bytes]": ...
    @overload
    def share_consumer(
        self,
        *topics: str | Collection[str],
        key_deserializer: AnyDeserializer[K],
        **options: Unpack[ShareConsumerOptions],
    ) -> "ShareConsumer[K, bytes]": ...
    @overload
    def share_consumer(
        self,
        *topics: str | Collection[str],
        value_deserializer: AnyDeserializer[V],
        **options: Unpack[ShareConsumerOptions],
    ) -> "ShareConsumer[bytes, V]": ...
    @overload
    def share_consumer(
        self,
        *topics: str | Collection[str],
        key_deserializer: AnyDeserializer[K],
        value_deserializer: AnyDeserializer[V],
        **options: Unpack[ShareConsumerOptions],
    ) -> "ShareConsumer[K, V]": ...
    def share_consumer(self, *topics: str | Collection[str], **arguments: Any) -> "ShareConsumer[Any, Any]":
        """Make a member of a share group; the arguments are those of :meth:`aiokafkawire.Client.share_consumer`."""
        from .share_consumer import ShareConsumer

        return ShareConsumer(
            self._loop, self._loop.call_sync(partial(self._client.share_consumer, *topics, **arguments))
        )

    def read_records(
        self,
        topic: str,
        *,
        start: "Bounds" = OffsetSpec.EARLIEST,
        end: "Bounds | None" = None,
        **options: Unpack[ConsumerOptions],
    ) -> Iterator[ConsumerRecord[bytes, bytes]]:
        """Read a topic from a start to an end, record by record; see :meth:`.Client.read_records`."""
        reader = self._loop.call_sync(lambda: self._client.read_records(topic, start=start, end=end, **options))
        return _records_of(self._loop, reader)

    def read_batches(
        self,
        topic: str,
        *,
        start: "Bounds" = OffsetSpec.EARLIEST,
        end: "Bounds | None" = None,
        columns: Sequence[str] | None = None,
        value_format: Literal["json"] | None = None,
        value_type: "pa.Schema | pa.DataType | None" = None,
        value_deserializer: AnyDeserializer[Any] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> "Iterator[pa.RecordBatch]":
        """Read a topic from a start to an end as ``pyarrow.RecordBatch``; see :meth:`.Client.read_batches`."""
        made = self._loop.call_sync(
            lambda: self._client.read_batches(
                topic,
                start=start,
                end=end,
                columns=columns,
                value_format=value_format,
                value_type=value_type,
                value_deserializer=value_deserializer,
                **options,
            )
        )
        return _batches_of(self._loop, made)

    def read_table(
        self,
        topic: str,
        *,
        start: "Bounds" = OffsetSpec.EARLIEST,
        end: "Bounds | None" = None,
        columns: Sequence[str] | None = None,
        value_format: Literal["json"] | None = None,
        value_type: "pa.Schema | pa.DataType | None" = None,
        value_deserializer: AnyDeserializer[Any] | None = None,
        progress: bool = False,
        **options: Unpack[ConsumerOptions],
    ) -> "pa.Table":
        """Read a topic from a start to an end into one ``pyarrow.Table``; see :meth:`.Client.read_table`."""
        return self._loop.call(
            lambda: self._client.read_table(
                topic,
                start=start,
                end=end,
                columns=columns,
                value_format=value_format,
                value_type=value_type,
                value_deserializer=value_deserializer,
                progress=progress,
                **options,
            )
        )

    def write_table(
        self,
        topic: str,
        table: "ArrowData",
        *,
        key: str | None = None,
        value: str | None = None,
        value_format: Literal["json"] | None = None,
        partition: str | None = None,
        timestamp: str | None = None,
        headers: str | None = None,
        progress: bool = False,
        **options: Unpack[ProducerOptions],
    ) -> int:
        """Write each row of a table as a record; return their number; see :meth:`.Client.write_table`."""
        return self._loop.call(
            lambda: self._client.write_table(
                topic,
                table,
                key=key,
                value=value,
                value_format=value_format,
                partition=partition,
                timestamp=timestamp,
                headers=headers,
                progress=progress,
                **options,
            )
        )

    def transform(
        self,
        source: str | Sequence[str],
        process: "Process",
        *,
        group_id: str,
        transactional_id: str,
        max_records: int = 500,
        commit_interval_ms: int = 100,
        auto_offset_reset: AutoOffsetReset = "earliest",
        stop: threading.Event | None = None,
        until_end: bool = False,
        consumer_options: ConsumerOptions | None = None,
        producer_options: ProducerOptions | None = None,
    ) -> int:
        """Consume, process and produce each record exactly once, in transactions; see :meth:`.Client.transform`.

        The calling thread runs ``process``, a plain function. Once another thread or a signal handler has set ``stop``,
        the call ends after the current transaction. An interruption or an error aborts the open transaction.
        """
        from .transform import run_transform

        run = partial(
            self._client.transform,
            source,
            group_id=group_id,
            transactional_id=transactional_id,
            max_records=max_records,
            commit_interval_ms=commit_interval_ms,
            auto_offset_reset=auto_offset_reset,
            until_end=until_end,
            consumer_options=consumer_options,
            producer_options=producer_options,
        )
        return run_transform(self._loop, run, process, stop)

    def process(
        self,
        topics: str | Sequence[str] | SubscriptionPattern,
        handle: Callable[[Any], object],
        *,
        concurrency: int = 64,
        ordering: "Ordering" = "key",
        max_batch: int | None = None,
        retry: "Retry | None" = None,
        retry_topics: "Sequence[RetryTopic]" = (),
        share: bool = False,
        handler_timeout: float | None = None,
        max_in_hand: int | None = None,
        commit_interval_ms: int = 100,
        stop: threading.Event | None = None,
        drain_timeout: float = 30.0,
        handle_signals: bool = False,
        on_progress: "OnProgress | None" = None,
        key_deserializer: AnyDeserializer[Any] | None = None,
        value_deserializer: AnyDeserializer[Any] | None = None,
        producer_options: ProducerOptions | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> "ProcessSummary":
        """Let a function handle each record of topics at least once, on worker threads; see :meth:`.Client.process`.

        ``handle`` is a plain function. ``on_progress`` and the deserializers run on the client's thread. Once another
        thread has set ``stop``, the call ends after the running calls of ``handle``.
        """
        from .process import run_process

        run = partial(
            self._client.process,
            topics,
            handle,
            concurrency=concurrency,
            ordering=ordering,
            max_batch=max_batch,
            retry=retry,
            retry_topics=retry_topics,
            share=share,
            handler_timeout=handler_timeout,
            max_in_hand=max_in_hand,
            commit_interval_ms=commit_interval_ms,
            drain_timeout=drain_timeout,
            on_progress=on_progress,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            producer_options=producer_options,
            **options,
        )
        check_flag("handle_signals", handle_signals)
        return run_process(self._loop, run, handle, stop, handle_signals=handle_signals)


class _Reading(Iterator[T]):
    """An iterator over a reader's items, which can be continued after an error, as the reader can."""

    def __init__(
        self, loop: LoopThread, reader: "BoundedReader[Any]", take: Callable[[], Coroutine[Any, Any, Sequence[T]]]
    ) -> None:
        self._loop, self._reader, self._take = loop, reader, take
        self._items: Iterator[T] = iter(())
        # The items after these, if Ctrl-C came before they were taken.
        self._read: Sequence[T] = ()
        self._reading = anyio.Lock()
        # Held by the thread that reads more: threads may share the iterator, and each item is for one of them.
        self._refilling = threading.Lock()

    def __next__(self) -> T:
        while True:
            used_up = self._items
            for item in used_up:
                return item
            with self._refilling:
                if self._items is not used_up:
                    continue  # another thread has read more
                self._loop.call(self._read_more)
                if not self._read:
                    break
                items = iter(self._read)
                # Ctrl-C comes after a call, so not here: it loses no item that was read.
                self._items, self._read = items, ()
        self.close()
        raise StopIteration

    async def _read_more(self) -> None:
        """Read, unless items are left of a call that Ctrl-C has interrupted; such a call may still be ending."""
        async with self._reading:
            if not self._read:
                self._read = await self._take()

    def close(self) -> None:
        """Stop reading."""
        # It may be closed after the client, which has closed the reader already.
        self._loop.call_while_running(self._reader.aclose)

    def __del__(self) -> None:
        with suppress(UsageError):  # on the loop's own thread, where the reader closes itself
            self.close()


def _records_of(loop: LoopThread, reader: "BoundedRecords[bytes, bytes]") -> Iterator[ConsumerRecord[bytes, bytes]]:
    return _Reading(loop, reader, reader.take)


def _batches_of(loop: LoopThread, reader: "BoundedBatches") -> "Iterator[pa.RecordBatch]":
    async def take() -> "list[pa.RecordBatch]":
        batch = await anext(reader, None)
        return [] if batch is None else [batch]

    return _Reading(loop, reader, take)
