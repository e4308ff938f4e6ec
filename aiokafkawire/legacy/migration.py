"""Copies a topic of Kafka 0.7 into a cluster of today, message by message, and resumes where the last run ended.

The target cluster keeps the progress: for each partition of the source a group has one committed offset, the byte from
which to read on. The transaction of the copied records commits it (KIP-98, KIP-447), so it matches them exactly, and
every process with the same migration name finds it.
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
"""The metadata of a committed position: the partition of the target."""

Sources: TypeAlias = Mapping[BrokerPartition, LegacyClient]
"""The partitions to copy, each with an open client of its broker."""


@attrs.frozen
class MigrationProgress:
    """The progress of one partition.

    Attributes:
        source: the partition.
        position: up to which byte it is copied and committed.
        end: where its log ended when the migration began.
        messages: how many of its messages this run has copied.
    """

    source: BrokerPartition
    position: int
    end: int
    messages: int


async def sources_from_zookeeper(
    servers: str, topic: str, clients: BrokerClients
) -> dict[BrokerPartition, LegacyClient]:
    """Return all partitions of a topic on all brokers that are registered in ZooKeeper; ``clients`` has to be open.

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
    """Copy the messages that the partitions have now; return the number of messages of each, in this run.

    Messages of one source partition go to one partition of the target, in order: those of partition ``p`` of broker
    ``b`` to ``(b + p) % n``, where ``n`` is the number of the target's partitions when the first of them are copied.
    Later runs keep that partition, whichever sources they are given. Messages have no key; their timestamp is the time
    of the copy. With ``exactly_once``, readers of committed records find each message once, however often the migration
    is interrupted and called again. Of two runs with one name the later one fences the earlier one. Without
    ``exactly_once`` no message is lost, and the last ones may be duplicated. A transaction has the messages of one
    fetch, whose size is ``fetch_size`` of the sources' clients.

    Args:
        sources: the partitions to copy; :func:`sources_from_zookeeper` finds all.
        topic: the topic's name in the source.
        target: an open client.
        name: the migration's name: the transactional id, and the prefix of the groups that keep the positions.
        target_topic: the name of an existing topic in the target; ``topic`` by default.
        exactly_once: whether to use transactions.
        on_progress: is called after each transaction.
        stop: an event; once it is set, the migration ends after the current transaction.

    Raises:
        UsageError: an argument is invalid.
        OffsetOutOfRange: a source has deleted messages (log.retention) that were not copied: they are lost.
        UnknownTopicOrPartition: the target has no such topic, or a source no such partition.
        ConnectionLost, RequestTimeout, CorruptBatch: a source could not be read; copied messages are committed.
        KafkaError: an error of the target; call it again to go on.
    """
    check_segment("the migration's name", name)
    check_topic_name(topic if target_topic is None else target_topic)
    source_partitions = sorted(sources)
    # Open the producer before reading positions: it fences other runs, which might still change them.
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
        # Other sources do not matter: a broker that is down must not change this one's partition.
        self._partition = (source_partition.broker + source_partition.partition) % partitions
        self._group = f"{name}.{topic}.{source_partition}"
        # Not the partition of the records, which depends on the number of partitions.
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
        # An answer ends with whole messages, so the position is never inside a compressed one.
        while reader.position < end and not stop.is_set() and await self._fill(reader):
            await (self._in_transaction if exactly_once else self._at_least_once)(reader)
            if on_progress is not None:
                on_progress(MigrationProgress(self._source_partition, reader.position, end, self._count))
        return self._count

    async def _begin(self, *, require_stable: bool) -> int:
        # Opening the producer has ended a transaction of an earlier run; but coordinators may show its offsets a moment
        # later, and report that only on request (KIP-447).
        found = await self._target.admin.list_consumer_group_offsets(
            self._group, [self._kept_at], require_stable=require_stable
        )
        kept = found.get(self._kept_at)
        if kept is None:
            return await self._source.earliest(self._topic, self._source_partition.partition)
        chosen = _INTO.fullmatch(kept.metadata)  # also if the target topic has more partitions now
        if chosen is not None and int(chosen[1]) < self._partitions:
            self._partition = int(chosen[1])
        return kept.offset

    def _progress(self, position: int) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offset to commit: the position, with the target's partition as metadata."""
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
