"""Takes a topic of Kafka 0.7 over into a cluster of today, message by message, and can go on where it ended.

How far it is, is kept in the target cluster: for each partition of the source a group of its own has one committed
offset, the byte from which to read on. So it is written in the same transaction as the records that it counts (KIP-98,
KIP-447), which no file beside the cluster could be, and every process that is given the same name finds it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import anyio
import attrs

from ..client import Client
from ..errors import OffsetOutOfRange
from ..producer.producer import Producer
from ..producer.user_transaction import Transaction
from ..types import OffsetAndMetadata, TopicPartition, check_topic_name
from .client import LegacyClient
from .cluster import BrokerClients, Registry
from .errors import MisalignedOffset
from .reading import PartitionReader
from .registry import BrokerPartition, check_segment
from .zookeeper import ZooKeeper

__all__ = ("MigrationProgress", "Sources", "migrate", "sources_from_zookeeper")

_INTO: Final = re.compile("partition=([0-9]{1,10})")
"""What is committed along with a position: which partition of the target it is copied to."""

Sources: TypeAlias = Mapping[BrokerPartition, LegacyClient]
"""The partitions to copy, each with an open client of its broker."""


@attrs.frozen
class MigrationProgress:
    """How far one partition is.

    Attributes:
        source: which.
        position: up to which byte it is copied, and committed.
        end: where its log ended when the migration began.
        messages: how many messages this run has copied of it.
    """

    source: BrokerPartition
    position: int
    end: int
    messages: int


async def sources_from_zookeeper(
    servers: str, topic: str, clients: BrokerClients
) -> dict[BrokerPartition, LegacyClient]:
    """All partitions of a topic on all brokers that are up, as ZooKeeper has them; ``clients`` is open and stays so.

    Raises:
        ConnectionLost: no ZooKeeper server was found.
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
    """Copy what the partitions hold now; how many messages of each, in this run.

    Messages of one source partition go to one partition of the target, in order: those of partition ``p`` of broker
    ``b`` to ``(b + p) % n``, where ``n`` is how many the target has when the first of them are copied. Later runs go on
    there, whichever sources they are given. Messages have no key, and the time of the copy for a timestamp. With
    ``exactly_once``, each message is in the target once for readers of committed records, however often the migration
    is interrupted and called again. Two that run under one name fence one another, and the last one counts. Without it
    nothing is lost, and what was copied last may be doubled. A transaction holds what one fetch gave: ``fetch_size`` of
    the sources' clients says how much that is.

    Args:
        sources: what to copy; :func:`sources_from_zookeeper` finds all.
        topic: its name in the source.
        target: an open client.
        name: of this migration: the transactional id, and how the groups that keep the positions begin.
        target_topic: the name in the target, where it has to exist; the same if not given.
        exactly_once: whether to use transactions.
        on_progress: is called after each transaction.
        stop: set it to end after the transaction at hand.

    Raises:
        UsageError: an argument cannot be.
        OffsetOutOfRange: a partition was cleaned up (log.retention) beyond where the last run ended: messages are lost.
        UnknownTopicOrPartition: the target has no such topic, or a source no such partition.
        ConnectionLost, RequestTimeout, CorruptBatch: a source could not be read; what was copied counts.
        KafkaError: what the target says; call it again to go on.
    """
    check_segment("the migration's name", name)
    check_topic_name(topic if target_topic is None else target_topic)
    places = sorted(sources)
    # The producer is opened before positions are asked for: it fences whoever might still change them.
    producer = target.producer(transactional_id=name) if exactly_once else target.producer()
    copied: dict[BrokerPartition, int] = {}
    async with producer:
        into = topic if target_topic is None else target_topic
        partitions = len((await target.admin.describe_topic(into)).partitions)
        for place in places:
            one = _Copy(sources[place], topic, place, target, producer, name, into, partitions)
            copied[place] = await one.run(on_progress, stop or anyio.Event(), exactly_once=exactly_once)
    return copied


class _Copy:
    """The migration of one partition."""

    def __init__(
        self,
        source: LegacyClient,
        topic: str,
        place: BrokerPartition,
        target: Client,
        producer: Producer[bytes, bytes],
        name: str,
        into: str,
        partitions: int,
    ) -> None:
        self._source, self._topic, self._place = source, topic, place
        self._target, self._producer, self._into, self._partitions = target, producer, into, partitions
        # Which other sources there are does not count: a broker that is down must not send this one elsewhere.
        self._partition = (place.broker + place.partition) % partitions
        self._group = f"{name}.{topic}.{place}"
        # Not the partition that the records go to: which that is changes with the number of partitions.
        self._kept_at = TopicPartition(into, 0)
        self._count = 0

    async def run(
        self, on_progress: Callable[[MigrationProgress], None] | None, stop: anyio.Event, *, exactly_once: bool
    ) -> int:
        if stop.is_set():
            return 0
        begin = await self._begin(require_stable=exactly_once)
        end = await self._source.latest(self._topic, self._place.partition)
        reader = self._source.read(self._topic, self._place.partition, begin)
        # An answer ends with whole messages, so the position is never inside of a compressed one.
        while reader.position < end and not stop.is_set() and await self._fill(reader):
            await (self._in_transaction if exactly_once else self._at_least_once)(reader)
            if on_progress is not None:
                on_progress(MigrationProgress(self._place, reader.position, end, self._count))
        return self._count

    async def _begin(self, *, require_stable: bool) -> int:
        # A transaction of a run before is over by now, for the producer is open; but coordinators of groups may show
        # what it has committed a moment later, and say so only if asked (KIP-447).
        found = await self._target.admin.list_consumer_group_offsets(
            self._group, [self._kept_at], require_stable=require_stable
        )
        kept = found.get(self._kept_at)
        if kept is None:
            return await self._source.earliest(self._topic, self._place.partition)
        chosen = _INTO.fullmatch(kept.metadata)  # also where the target topic has got more partitions since
        if chosen is not None and int(chosen[1]) < self._partitions:
            self._partition = int(chosen[1])
        return kept.offset

    def _progress(self, position: int) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what to commit: the position, and the target's partition, in which the rest belongs, too."""
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
