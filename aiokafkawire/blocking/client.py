"""The blocking client and its admin; see :mod:`aiokafkawire.blocking`."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from ..admin.admin import NewTopic
from ..client import Client as AsyncClient
from ..config import AutoOffsetReset, ClientOptions, ConsumerOptions, ProducerOptions
from ..loop_thread import LoopThread
from ..other_clients_names import ADMIN, add_hints
from ..records.batch import ConsumerRecord
from ..types import OffsetAndMetadata, OffsetAndTimestamp, OffsetSpec, ProducerIdentity, TopicPartition
from .consumer import Consumer
from .producer import Producer
from .transform import Process, run_transform

if TYPE_CHECKING:
    import pyarrow as pa

    from ..bounded_reads import BoundedBatches, BoundedReader, BoundedRecords, Bounds
    from ..group.assignors import Assignor

__all__ = ("Admin", "Client")

K = TypeVar("K")
V = TypeVar("V")


class Client:
    """A Kafka cluster, as seen from code without an event loop; use it as ``with``, or ``open`` and ``close`` it.

    Args:
        bootstrap_servers: ``"host:port,host:port"`` or a sequence of such; one that answers is enough.
        options: see :class:`~aiokafkawire.config.ClientConfig`.

    Raises:
        ConfigError: an address or a setting is wrong.
        NoBrokerReachable: opening found no broker within ``bootstrap_timeout_ms``.
        WireError: what answers at the address is not Kafka.
    """

    def __init__(self, bootstrap_servers: str | Sequence[str], **options: Unpack[ClientOptions]) -> None:
        self._loop = LoopThread()
        self._client = AsyncClient(bootstrap_servers, **options)
        self._admin = Admin(self._loop, self._client)

    def open(self) -> Self:
        """Start the thread, and find a broker; what ``with`` does on entering."""
        self._loop.start()
        try:
            self._loop.call(self._client.open)
        except BaseException:
            self._loop.stop()
            raise
        return self

    def close(self) -> None:
        """Close all connections, and end the thread. May be called again; in a forked process it does nothing."""
        if self._loop.is_elsewhere or not self._loop.is_running:
            return
        try:
            self._loop.call(self._client.close)
        finally:
            self._loop.stop()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def admin(self) -> "Admin":
        """Topics, groups and offsets."""
        return self._admin

    @property
    def loop(self) -> LoopThread:
        """The thread; for what has no blocking form: ``kafka.loop.call(kafka.asynchronous.transform, ...)``."""
        return self._loop

    @property
    def asynchronous(self) -> AsyncClient:
        """The client that lives on that loop. Call it nowhere else."""
        return self._client

    @overload
    def producer(
        self, *, identity: ProducerIdentity | None = None, **options: Unpack[ProducerOptions]
    ) -> Producer[bytes, bytes]: ...
    @overload
    def producer(
        self,
        *,
        key_serializer: Callable[[K], bytes],
        identity: ProducerIdentity | None = None,
        **options: Unpack[ProducerOptions],
    ) -> Producer[K, bytes]: ...
    @overload
    def producer(
        self,
        *,
        value_serializer: Callable[[V], bytes],
        identity: ProducerIdentity | None = None,
        **options: Unpack[ProducerOptions],
    ) -> Producer[bytes, V]: ...
    @overload
    def producer(
        self,
        *,
        key_serializer: Callable[[K], bytes],
        value_serializer: Callable[[V], bytes],
        identity: ProducerIdentity | None = None,
        **options: Unpack[ProducerOptions],
    ) -> Producer[K, V]: ...
    def producer(self, **options: Any) -> Producer[Any, Any]:
        """Return a producer, to be used as ``with``; arguments and errors are those of :meth:`.Client.producer`.

        The serializers are called on the client's thread.
        """
        return Producer(self._loop, self._loop.here(partial(self._client.producer, **options)))

    @overload
    def consumer(
        self, *topics: str, assignors: "Sequence[Assignor]" = (), **options: Unpack[ConsumerOptions]
    ) -> Consumer[bytes, bytes]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Callable[[bytes], K],
        assignors: "Sequence[Assignor]" = (),
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[K, bytes]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        value_deserializer: Callable[[bytes], V],
        assignors: "Sequence[Assignor]" = (),
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[bytes, V]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Callable[[bytes], K],
        value_deserializer: Callable[[bytes], V],
        assignors: "Sequence[Assignor]" = (),
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[K, V]: ...
    def consumer(self, *topics: str, **options: Any) -> Consumer[Any, Any]:
        """Return a consumer, to be used as ``with``; arguments and errors are those of :meth:`.Client.consumer`.

        The deserializers are called on the client's thread, a few hundred records ahead of the iteration.
        """
        return Consumer(self._loop, self._loop.here(partial(self._client.consumer, *topics, **options)))

    def read_records(
        self,
        topic: str,
        *,
        start: "Bounds" = OffsetSpec.EARLIEST,
        end: "Bounds | None" = None,
        **options: Unpack[ConsumerOptions],
    ) -> Iterator[ConsumerRecord[bytes, bytes]]:
        """Read a topic from a start to an end, record by record; see :meth:`.Client.read_records`."""
        reader = self._loop.here(lambda: self._client.read_records(topic, start=start, end=end, **options))
        return _records_of(self._loop, reader)

    def read_batches(
        self,
        topic: str,
        *,
        start: "Bounds" = OffsetSpec.EARLIEST,
        end: "Bounds | None" = None,
        columns: Sequence[str] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> "Iterator[pa.RecordBatch]":
        """Read a topic from a start to an end as ``pyarrow.RecordBatch``; see :meth:`.Client.read_batches`."""
        made = self._loop.here(
            lambda: self._client.read_batches(topic, start=start, end=end, columns=columns, **options)
        )
        return _batches_of(self._loop, made)

    def transform(
        self,
        source: str | Sequence[str],
        process: Process,
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
        """Consume, process, produce, each record exactly once, in transactions; see :meth:`.Client.transform`.

        ``process`` is a plain function, which this thread calls. It goes on until ``stop`` is set, by another thread or
        a signal handler, until it is interrupted, or fails. Interrupted, it aborts the open transaction.
        """
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


def _records_of(loop: LoopThread, reader: "BoundedRecords[bytes, bytes]") -> Iterator[ConsumerRecord[bytes, bytes]]:
    try:
        while records := loop.call(reader.take):
            yield from records
    finally:
        _close_reader(loop, reader)


def _batches_of(loop: LoopThread, reader: "BoundedBatches") -> "Iterator[pa.RecordBatch]":
    async def following() -> "pa.RecordBatch | None":
        return await anext(reader, None)

    try:
        while (batch := loop.call(following)) is not None:
            yield batch
    finally:
        _close_reader(loop, reader)


def _close_reader(loop: LoopThread, reader: "BoundedReader[Any]") -> None:
    # A generator may be left until after the client is closed, and its reader with it.
    if loop.is_running and not loop.is_elsewhere:
        loop.call(reader.aclose)


class Admin:
    """Changes and describes the cluster; it is at :attr:`Client.admin`. Errors are those of the asynchronous one.

    Every ``timeout`` is in seconds, ``default_api_timeout_ms`` if not given. What is not here goes through
    ``kafka.loop.call(kafka.asynchronous.admin.describe_groups, ...)``.
    """

    def __init__(self, loop: LoopThread, client: AsyncClient) -> None:
        self._loop, self._admin = loop, client.admin

    def create_topics(self, topics: Mapping[str, int | NewTopic], *, timeout: float | None = None) -> None:
        """Create topics: by name, with a number of partitions or a NewTopic."""
        self._loop.call(self._admin.create_topics, topics, timeout=timeout)

    def delete_topics(self, topics: Iterable[str], *, timeout: float | None = None) -> None:
        """Delete topics with all their records."""
        self._loop.call(self._admin.delete_topics, topics, timeout=timeout)

    def list_topics(self, *, internal: bool = False, timeout: float | None = None) -> tuple[str, ...]:
        """The names of all topics that this client may see, sorted."""
        return self._loop.call(self._admin.list_topics, internal=internal, timeout=timeout)

    def partitions_of(self, topic: str, *, timeout: float | None = None) -> tuple[int, ...]:
        """The topic's partitions, as a broker knows them now; raises UnknownTopicOrPartition."""
        found = self._loop.call(self._admin.describe_topic, topic, timeout=timeout)
        return tuple(partition.index for partition in found.partitions)

    def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look offsets up: the beginning, the end, or by time; None where no record is that late."""
        return self._loop.call(self._admin.list_offsets, specs, timeout=timeout)

    def list_consumer_group_offsets(
        self, group_id: str, *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed."""
        return self._loop.call(self._admin.list_consumer_group_offsets, group_id, timeout=timeout)

    def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets for a group without members."""
        self._loop.call(self._admin.alter_consumer_group_offsets, group_id, offsets, timeout=timeout)

    def consumer_group_lag(self, group_id: str, *, timeout: float | None = None) -> dict[TopicPartition, int]:
        """From what the group has committed to the end, in offsets."""
        return self._loop.call(self._admin.consumer_group_lag, group_id, timeout=timeout)


add_hints(Admin, ADMIN)
