"""The client for code without an event loop: scripts, notebooks, Spark's executors.

with blocking.Client("localhost:9092") as kafka, kafka.producer() as producer:
    producer.send("flights", b"UA 1545")

A client has one thread, with an event loop in it, on which everything asynchronous runs; calls wait for it.

1. Every call may be interrupted by Ctrl-C: what it waits for is cancelled, and the client stays in use.
2. Any thread may call; each consumer has one caller at a time.
3. The thread does not come along into a forked process: calls there raise UsageError, and leaving does nothing.
4. After leaving, the thread is gone. It keeps no process from ending.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

import anyio

from .admin.admin import NewTopic
from .client import Client as AsyncClient
from .config import ClientOptions, ConsumerOptions, ProducerOptions
from .consumer.consumer import Consumer as AsyncConsumer
from .consumer.consumer import ConsumerBatch
from .loop_thread import Loop
from .producer.producer import Producer as AsyncProducer
from .records.batch import ConsumerRecord
from .types import (
    Headers,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    ProducerIdentity,
    RecordMetadata,
    TopicPartition,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from .bounded_reads import BatchReader, BoundedReader, Bounds, RecordReader
    from .producer.transacting import Transaction as AsyncTransaction

__all__ = ("Admin", "Client", "Consumer", "Loop", "Producer", "Transaction")

_AT_ONCE: Final = 500
"""Records that the iteration takes from the loop's thread at once: to change threads costs as much as many records."""


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
        self._loop = Loop()
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
    def loop(self) -> Loop:
        """The thread; for what has no blocking form: ``kafka.loop.call(kafka.asynchronous.transform, ...)``."""
        return self._loop

    @property
    def asynchronous(self) -> AsyncClient:
        """The client that lives on that loop. Call it nowhere else."""
        return self._client

    def producer(self, *, identity: ProducerIdentity | None = None, **options: Unpack[ProducerOptions]) -> "Producer":
        """A producer, to be used as ``with``; arguments and errors are those of :meth:`.Client.producer`."""
        made = self._loop.here(self._made_producer, identity, options)
        return Producer(self._loop, made)

    def consumer(self, *topics: str, **options: Unpack[ConsumerOptions]) -> "Consumer":
        """A consumer, to be used as ``with``; arguments and errors are those of :meth:`.Client.consumer`."""
        return Consumer(self._loop, self._loop.here(self._made_consumer, topics, options))

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

    # ParamSpec knows nothing of unpacked keyword arguments.
    def _made_producer(
        self, identity: ProducerIdentity | None, options: ProducerOptions
    ) -> AsyncProducer[bytes, bytes]:
        return self._client.producer(identity=identity, **options)

    def _made_consumer(self, topics: tuple[str, ...], options: ConsumerOptions) -> AsyncConsumer[bytes, bytes]:
        return self._client.consumer(*topics, **options)


def _records_of(loop: Loop, reader: "RecordReader[bytes, bytes]") -> Iterator[ConsumerRecord[bytes, bytes]]:
    try:
        while records := loop.call(reader.take):
            yield from records
    finally:
        _close_reader(loop, reader)


def _batches_of(loop: Loop, reader: "BatchReader") -> "Iterator[pa.RecordBatch]":
    async def following() -> "pa.RecordBatch | None":
        return await anext(reader, None)

    try:
        while (batch := loop.call(following)) is not None:
            yield batch
    finally:
        _close_reader(loop, reader)


def _close_reader(loop: Loop, reader: "BoundedReader[Any]") -> None:
    # A generator may be left until after the client is closed, and its reader with it.
    if loop.is_running and not loop.is_elsewhere:
        loop.call(reader.aclose)


class Producer:
    """Sends records; made by :meth:`Client.producer`. Errors are those of :class:`aiokafkawire.Producer`."""

    def __init__(self, loop: Loop, producer: AsyncProducer[bytes, bytes]) -> None:
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
        value: bytes | None = None,
        *,
        key: bytes | None = None,
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
        values: Iterable[bytes | None],
        *,
        keys: Iterable[bytes | None] | None = None,
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

    def enqueue_many(
        self,
        topic: str,
        values: "Sequence[bytes | None] | pa.Array | pa.ChunkedArray",
        *,
        keys: "Sequence[bytes | None] | pa.Array | pa.ChunkedArray | None" = None,
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

    def transaction(self) -> "Transaction":
        """A transaction, to be used as ``with``: what the producer sends meanwhile is in it."""
        return Transaction(self._loop, self._loop.here(self._producer.transaction))

    @property
    def identity(self) -> ProducerIdentity:
        """The open transaction's, for ``client.producer(identity=...)`` elsewhere; see ``Producer.identity``."""
        return self._loop.here(lambda: self._producer.identity)


class Transaction:
    """What readers of committed records see all or none of; made by :meth:`Producer.transaction`.

    It is committed at the end of its ``with``, and aborted on an exception. Errors are those of the asynchronous one.
    """

    def __init__(self, loop: Loop, transaction: "AsyncTransaction[bytes, bytes]") -> None:
        self._loop, self._transaction = loop, transaction

    def __enter__(self) -> Self:
        self._loop.call(self._transaction.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._loop.is_elsewhere:
            self._loop.call(self._transaction.__aexit__, kind, error, trace)

    def commit_offsets(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], *, group: str) -> None:
        """Commit a group's offsets together with what is sent: all of it counts, or none (KIP-447)."""
        self._loop.call(self._transaction.commit_offsets, offsets, group=group)


class Consumer:
    """Reads records; made by :meth:`Client.consumer`. Errors are those of :class:`aiokafkawire.Consumer`.

    Iterating hands out what :meth:`poll` has brought: up to 500 records count as in hand together.
    """

    def __init__(self, loop: Loop, consumer: AsyncConsumer[bytes, bytes]) -> None:
        self._loop, self._consumer = loop, consumer

    def __enter__(self) -> Self:
        self._loop.call(self._consumer.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, timeout: float = 5.0) -> None:
        """Commit what is finished (``enable_auto_commit``), leave the group, and stop, within ``timeout`` seconds."""
        if not self._loop.is_elsewhere:
            self._loop.call(self._consumer.close, timeout)

    def __iter__(self) -> Iterator[ConsumerRecord[bytes, bytes]]:
        """Iterate the records, waiting for more; it never ends by itself."""
        while True:
            yield from self.poll(_AT_ONCE)

    def poll(self, max_records: int = 500, timeout: float | None = None) -> list[ConsumerRecord[bytes, bytes]]:
        """Up to ``max_records`` records; after ``timeout`` seconds without any, an empty list."""
        return self._loop.call(self._consumer.poll, max_records, timeout)

    def batches(self, timeout: float | None = None) -> Iterator[ConsumerBatch[bytes, bytes]]:
        """Iterate whole batches, the fastest way; it ends after ``timeout`` seconds without one."""
        while (batch := self._loop.call(self._next_batch, timeout)) is not None:
            yield batch

    async def _next_batch(self, timeout: float | None) -> ConsumerBatch[bytes, bytes] | None:
        with anyio.move_on_after(timeout):
            return await anext(self._consumer.batches(), None)
        return None

    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int | OffsetSpec]) -> None:
        """Read these partitions and no others; a mapping says where each begins."""
        self._loop.here(self._consumer.assign, partitions)

    def subscribe(self, *topics: str) -> None:
        """Share the partitions of these topics with the other members of the group."""
        self._loop.here(self._consumer.subscribe, *topics)

    def seek(self, partition: TopicPartition, to: int | OffsetSpec) -> None:
        """Go on from an offset, or from where an OffsetSpec leads."""
        self._loop.here(self._consumer.seek, partition, to)

    def position(self, partition: TopicPartition) -> int | None:
        """The offset after the last record handed out; None while the first is being looked up."""
        return self._loop.here(self._consumer.position, partition)

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """The partitions that are read."""
        return self._consumer.assignment

    def offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look offsets up: the beginning, the end, or by time; None where no record is that late."""
        return self._loop.call(self._consumer.offsets, specs, timeout=timeout)

    def commit(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None, *, timeout: float | None = None
    ) -> None:
        """Commit offsets for the group; without any, those after what was handed out."""
        self._loop.call(self._consumer.commit, offsets, timeout=timeout)

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for these partitions; None where that is nothing."""
        return self._loop.call(self._consumer.committed, partitions, timeout=timeout)


class Admin:
    """Changes and describes the cluster; it is at :attr:`Client.admin`. Errors are those of the asynchronous one.

    Every ``timeout`` is in seconds, ``default_api_timeout_ms`` if not given. What is not here goes through
    ``kafka.loop.call(kafka.asynchronous.admin.describe_groups, ...)``.
    """

    def __init__(self, loop: Loop, client: AsyncClient) -> None:
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
