"""Copies a topic of Kafka 0.7 into a current cluster, message by message. Each run continues where the last run ended.

The target cluster stores the progress: for each partition of the source, a group commits the offset of the next message
to copy. The transaction that writes the copied records also commits this offset (KIP-98, KIP-447), so both always
match. Any process with the same migration name can continue.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import anyio
import attrs

from ..client import Client
from ..errors import OffsetOutOfRange
from ..producer.producer import Producer
from ..producer.transaction import Transaction
from ..types import OffsetAndMetadata, TopicPartition, check_topic_name
from .client import LegacyClient
from .cluster import BrokerClients, Registry
from .errors import MisalignedOffset
from .partition_reader import PartitionReader
from .registry import BrokerPartition, check_segment
from .zookeeper import ZooKeeper

__all__ = ("MigrationProgress", "Sources", "migrate", "sources_from_zookeeper")

_INTO: Final = re.compile("partition=([0-9]{1,10})")
"""The metadata of a committed offset: the partition in the target topic."""

Sources: TypeAlias = Mapping[BrokerPartition, LegacyClient]
"""The partitions to copy, with an open client of each partition's broker."""


@attrs.frozen
class MigrationProgress:
    """The progress of the migration of one partition.

    Attributes:
        source: the partition in the source.
        position: the offset up to which the partition is copied and committed.
        end: the end offset of the partition's log when this run began to copy it.
        messages: the number of the partition's messages that this run has copied.
    """

    source: BrokerPartition
    position: int
    end: int
    messages: int


async def sources_from_zookeeper(
    servers: str, topic: str, clients: BrokerClients
) -> dict[BrokerPartition, LegacyClient]:
    """Return a topic's partitions that are registered in ZooKeeper, each with the client of its broker.

    ``clients`` must be open; it makes the brokers' clients.

    Raises:
        ConfigError: kazoo is not installed.
        ConnectionLost: no ZooKeeper server could be reached.
    """
    async with ZooKeeper(servers) as zookeeper:
        registry = Registry(zookeeper)
        clients.know(await registry.brokers())
        counts = await registry.partitions(topic)
    return {
        BrokerPartition(broker, number): await clients.of(broker)
        for broker, count in sorted(counts.items())
        for number in range(count)
    }


async def migrate(
    sources: Sources,
    topic: str,
    target: Client,
    *,
    name: str,
    target_topic: str | None = None,
    exactly_once: bool = True,
    on_progress: Callable[[MigrationProgress], None] | None = None,
    stop: anyio.Event | None = None,
) -> dict[BrokerPartition, int]:
    """Copy the messages that the partitions have now; return the number of messages copied from each partition.

    All messages of a source partition are copied to one partition of the target, in order: from partition ``p`` of
    broker ``b`` to ``(b + p) % n``, where ``n`` is the number of partitions of the target topic when the first message
    is copied. Later runs use the same partition. Messages have no key; their timestamp is the time of the copy. With
    ``exactly_once``, readers of committed records get each message once, even if the migration is interrupted and
    called again. If two runs have the same name, the later run fences the earlier one. Without ``exactly_once`` no
    message is lost, but the last messages may be duplicated. Each transaction has the messages of one fetch
    (``fetch_size`` of the sources' clients).

    Args:
        sources: the partitions to copy; :func:`sources_from_zookeeper` returns all partitions of a topic.
        topic: the topic's name in the source.
        target: an open client of the target cluster.
        name: the name of the migration. It is the transactional id, and the prefix of the groups that commit the
            progress.
        target_topic: the name of an existing topic in the target; ``topic`` by default.
        exactly_once: whether to use transactions.
        on_progress: called after each transaction.
        stop: an event; once it is set, the migration ends after the current transaction.

    Raises:
        UsageError: an argument is invalid.
        OffsetOutOfRange: a source has deleted messages (log.retention) before they were copied.
        UnknownTopicOrPartition: the target has no such topic, or a source no such partition.
        ConnectionLost, RequestTimeout, CorruptBatch: a source could not be read; the messages copied before are
            committed.
        KafkaError: an error of the target; call this function again to continue.
    """
    check_segment("the migration's name", name)
    check_topic_name(topic if target_topic is None else target_topic)
    source_partitions = sorted(sources)
    # Open the producer before reading the committed offsets: it fences other runs, which might still change them.
    producer = target.producer(transactional_id=name) if exactly_once else target.producer()
    copied: dict[BrokerPartition, int] = {}
    async with producer:
        into = topic if target_topic is None else target_topic
        partitions = len((await target.admin.describe_topic(into)).partitions)
        for source_partition in source_partitions:
            copy = _Copy(sources[source_partition], topic, source_partition, target, producer, name, into, partitions)
            copied[source_partition] = await copy.run(on_progress, stop or anyio.Event(), exactly_once=exactly_once)
    return copied


class _Copy:
    """The migration of one partition."""

    def __init__(
        self,
        source: LegacyClient,
        topic: str,
        source_partition: BrokerPartition,
        target: Client,
        producer: Producer[bytes, bytes],
        name: str,
        into: str,
        partitions: int,
    ) -> None:
        self._source, self._topic, self._source_partition = source, topic, source_partition
        self._target, self._producer, self._into, self._partitions = target, producer, into, partitions
        # Computed from this source alone: other brokers, which may be down, must not change the target partition.
        self._partition = (source_partition.broker + source_partition.partition) % partitions
        self._group = f"{name}.{topic}.{source_partition}"
        # Progress is not committed for the records' partition, which depends on the target's number of partitions.
        self._kept_at = TopicPartition(into, 0)
        self._count = 0

    async def run(
        self, on_progress: Callable[[MigrationProgress], None] | None, stop: anyio.Event, *, exactly_once: bool
    ) -> int:
        if stop.is_set():
            return 0
        begin = await self._begin(require_stable=exactly_once)
        end = await self._source.latest(self._topic, self._source_partition.partition)
        reader = self._source.read(self._topic, self._source_partition.partition, begin)
        # A fetch returns complete messages, so the position is never inside a compressed message.
        while reader.position < end and not stop.is_set() and await self._fill(reader):
            await (self._in_transaction if exactly_once else self._at_least_once)(reader)
            if on_progress is not None:
                on_progress(MigrationProgress(self._source_partition, reader.position, end, self._count))
        return self._count

    async def _begin(self, *, require_stable: bool) -> int:
        # Opening the producer has ended the transaction of an earlier run, but its offsets may become visible later;
        # require_stable makes coordinators report that (KIP-447).
        found = await self._target.admin.list_consumer_group_offsets(
            self._group, [self._kept_at], require_stable=require_stable
        )
        kept = found.get(self._kept_at)
        if kept is None:
            return await self._source.earliest(self._topic, self._source_partition.partition)
        chosen = _INTO.fullmatch(kept.metadata)  # even if the target topic has more partitions now
        if chosen is not None and int(chosen[1]) < self._partitions:
            self._partition = int(chosen[1])
        return kept.offset

    def _progress(self, position: int) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offset to commit: the position in the source, with the target's partition as metadata."""
        return {self._kept_at: OffsetAndMetadata(position, f"partition={self._partition}")}

    async def _fill(self, reader: PartitionReader) -> bool:
        try:
            return await reader.fill()
        except (OffsetOutOfRange, MisalignedOffset) as error:
            error.add_note(f"group {self._group!r} in the target says that it is copied up to {reader.position}")
            raise

    async def _in_transaction(self, reader: PartitionReader) -> None:
        async with self._producer.transaction() as transaction:
            await self._send(transaction, reader)
            await transaction.commit_offsets(self._progress(reader.position), group=self._group)

    async def _at_least_once(self, reader: PartitionReader) -> None:
        await self._send(self._producer, reader)
        await self._producer.flush()
        await self._target.admin.alter_consumer_group_offsets(self._group, self._progress(reader.position))

    async def _send(self, through: Producer[bytes, bytes] | Transaction[bytes, bytes], reader: PartitionReader) -> None:
        while (message := reader.take()) is not None:
            await through.enqueue(self._into, message.value, partition=self._partition)
            self._count += 1
