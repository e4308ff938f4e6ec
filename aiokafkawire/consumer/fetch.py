"""What to ask each leader for, and what its answers mean.

The rules:

1. One fetch to each leader at a time.
2. A partition with unread data, a pause, or no position stays out of the next fetch. And so does a leader of which
   something is unread: asked for its idle partitions alone, it would wait, and the busy one with it.
3. Brokers fill a limited answer in the order of the request: who was served last is asked for last.
4. Unread data of all partitions together stays below ``fetch_max_bytes``, which the fetches in flight share; what
   one brings may exceed it by one batch a partition, as brokers always give a first batch whole (KIP-74). What a
   paused partition keeps does not count, or it could keep all others from being read.
5. An answer counts only for partitions whose epoch is still the one it was asked under.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

import attrs

from ..cluster.metadata import Snapshot
from ..config import ConsumerConfig
from ..errors import BrokerError, ErrorCode, KafkaError, WireError, broker_error
from ..protocol.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ..records.batch import AnyBatch, AnyHeader, AnyReader, split
from ..types import TopicPartition
from .positions import Place, Positions

__all__ = ("Ask", "Fetched", "answers", "plan", "request")


@attrs.frozen
class Ask:
    """One partition of a fetch: whose place, from which offset, under which epoch."""

    place: Place
    epoch: int
    offset: int

    @property
    def is_current(self) -> bool:
        """Whether nobody sought elsewhere since."""
        return self.place.epoch == self.epoch


class Fetched:
    """The unread batches of one partition, split off one by one as they are reached."""

    def __init__(self, ask: Ask, data: PartitionData, *, committed_only: bool) -> None:
        self.ask: Ask = ask
        self.records: memoryview = memoryview(data.records or b"")
        self.high_watermark: int = data.high_watermark
        self._aborted = _Aborted(data.aborted_transactions or ()) if committed_only else None
        self._batches = split(self.records, str(ask.place.where))
        self.begun: AnyBatch | None = None
        """The batch that is being checked and inflated; whoever does it may be cancelled."""
        self.reader: AnyReader[Any, Any] | None = None
        """The batch that is being read, if one was begun."""
        self.batch_end: int = ask.offset
        """The offset after that batch."""
        self.leader_epoch: int | None = None
        """Under which leader that batch was written; None if it is older than such epochs (Kafka 0.11)."""

    def __iter__(self) -> Iterator[AnyBatch]:
        return self

    def __next__(self) -> AnyBatch:
        """The next batch with records for the user. Those without move the position past themselves.

        Raises:
            CorruptBatch: what stands there is no batch.
        """
        place = self.ask.place
        for batch in self._batches:
            header = batch.header
            if place.position is not None and header.next_offset <= place.position:
                continue
            if header.is_control or (self._aborted is not None and self._aborted.hides(header)):
                if self._aborted is not None and header.is_control:
                    self._aborted.ended(header)
                place.position, place.leader_epoch = header.next_offset, _epoch(header)
                continue
            self.batch_end, self.leader_epoch = header.next_offset, _epoch(header)
            return batch
        raise StopIteration


def _epoch(header: AnyHeader) -> int | None:
    return header.leader_epoch if header.leader_epoch >= 0 else None


class _Aborted:
    """Which producers' records are of aborted transactions, from here on (KIP-98)."""

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        ordered = sorted(transactions, key=lambda one: one.first_offset)
        self._later = deque((one.first_offset, one.producer_id) for one in ordered)
        self._producers: dict[int, None] = {}

    def _reach(self, header: AnyHeader) -> None:
        while self._later and self._later[0][0] <= header.last_offset:
            self._producers[self._later.popleft()[1]] = None

    def hides(self, header: AnyHeader) -> bool:
        """Whether the batch belongs to an aborted transaction."""
        self._reach(header)
        return header.is_transactional and header.producer_id in self._producers

    def ended(self, header: AnyHeader) -> None:
        """A marker ends its producer's transaction; what the producer writes afterwards is another."""
        self._reach(header)
        self._producers.pop(header.producer_id, None)


def plan(
    snapshot: Snapshot, positions: Positions, unread: Iterable[TopicPartition], busy: Iterable[int]
) -> tuple[dict[int, list[Ask]], TopicPartition | None]:
    """The partitions to ask each leader for now, and one that is wanted and has no known leader, if there is any."""
    skip, occupied = set(unread), set(busy)
    for where in skip:
        place, leader = positions.get(where), snapshot.leader(where)
        if place is not None and not place.paused and leader is not None:
            occupied.add(leader.node_id)
    asks: dict[int, list[Ask]] = {}
    unled: TopicPartition | None = None
    for place in sorted(positions, key=lambda place: place.served):
        if place.position is None or place.paused or place.lost or place.where in skip:
            continue
        leader = snapshot.leader(place.where)
        if leader is None:
            unled = place.where
        elif leader.node_id not in occupied:
            asks.setdefault(leader.node_id, []).append(Ask(place, place.epoch, place.position))
    return asks, unled


def request(snapshot: Snapshot, asks: list[Ask], config: ConsumerConfig, room: int) -> FetchRequest:
    """The fetch for one leader. ``room`` is how many bytes it may bring."""
    topics: dict[str, FetchTopic] = {}
    for ask in asks:
        name, partition = ask.place.where
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = FetchTopic(topic=name, topic_id=snapshot.topic_id(name), partitions=[])
        known = snapshot.partition(ask.place.where)
        topic.partitions.append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=known.leader_epoch if known is not None else -1,
                fetch_offset=ask.offset,
                partition_max_bytes=config.max_partition_fetch_bytes,
            )
        )
    return FetchRequest(
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=room,
        isolation_level=config.isolation,
        topics=list(topics.values()),
    )


def answers(
    asks: list[Ask], names: dict[UUID, str], response: FetchResponse, *, committed_only: bool, where: str
) -> Iterator[tuple[Ask, Fetched | KafkaError]]:
    """What each partition's answer brings: data, or an error.

    Raises:
        BrokerError: the whole fetch was refused.
    """
    if response.error_code != ErrorCode.NONE:
        raise broker_error(response.error_code, f"{where} to Fetch")
    found: dict[TopicPartition, PartitionData] = {}
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id, "")
        for data in topic.partitions:
            found[TopicPartition(name, data.partition_index)] = data
    for ask in asks:
        answer = found.get(ask.place.where)
        if answer is None:
            yield ask, WireError(f"{where} answered Fetch without {ask.place.where}, which was asked")
        elif answer.error_code != ErrorCode.NONE:
            yield ask, _refused(ask, answer)
        else:
            yield ask, Fetched(ask, answer, committed_only=committed_only)


def _refused(ask: Ask, answer: PartitionData) -> BrokerError:
    return broker_error(answer.error_code, f"Fetch of {ask.place.where} at offset {ask.offset}")
