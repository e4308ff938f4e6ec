"""What to ask each broker for, and what its answers mean.

The rules:

1. One fetch to each broker at a time. A partition is asked of one broker: its leader, or a closer replica.
2. A partition with a pause, no position, one that is not validated, or nothing more that is wanted stays out of the
   next fetch. One with much unread is asked for what comes after that, so that brokers are at work while the user
   reads; with little it stays out, and so does what has unread data twice. A broker of which a partition stays out for
   that is not asked at all: asked for its idle partitions alone, it would wait, and the busy one with it.
3. Brokers fill a limited answer in the order of the request: who was served last is asked for last. In a session they
   see to that themselves.
4. Unread data of all partitions together stays below ``fetch_max_bytes``, which the fetches in flight share; what
   one brings may exceed it by one batch a partition, as brokers always give a first batch whole (KIP-74). What a
   paused partition keeps does not count, or it could keep all others from being read.
5. An answer counts only for partitions whose epoch is still the one it was asked under.
"""

from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from ..cluster.metadata import Node, Partition, Snapshot
from ..protocol.messages.fetch import AbortedTransaction, PartitionData
from ..records import layout
from ..records.batch import AnyBatch, AnyHeader, AnyReader, split
from ..types import TimestampType, TopicPartition
from .preferred_replica import source
from .subscription_state import PartitionState

__all__ = ("AT_LEAST_ONE_SINCE", "PartitionFetch", "CompletedFetch", "plan", "rooms", "within")

_MUCH: Final = 64 * 1024
"""Bytes of a partition from which on the next ones are asked for: with fewer its end is near."""
AT_LEAST_ONE_SINCE: Final = 3
"""The first version of Fetch that brings a first batch whole, however large, and that has a limit for all (KIP-74)."""


@attrs.frozen
class PartitionFetch:
    """One partition of a fetch: whose place, from which offset, under which epoch.

    ``leader_epoch`` is the leader's, -1 where that is not known; ``max_bytes`` how much may come.
    """

    place: PartitionState
    epoch: int
    offset: int
    leader_epoch: int = -1
    max_bytes: int = 1
    from_leader: bool = True

    @property
    def is_current(self) -> bool:
        """Whether nobody sought elsewhere since."""
        return self.place.epoch == self.epoch


class CompletedFetch:
    """The unread batches of one partition, split off one by one as they are reached."""

    def __init__(self, ask: PartitionFetch, data: PartitionData, *, committed_only: bool) -> None:
        self.ask: PartitionFetch = ask
        self.records: memoryview = memoryview(data.records or b"")
        self._end: int | None = -1  # nobody has asked
        self.high_watermark: int = data.high_watermark
        self.preferred_replica: int | None = data.preferred_read_replica if data.preferred_read_replica >= 0 else None
        """The broker that should be asked instead."""
        self._aborted_transactions = (data.aborted_transactions or ()) if committed_only else None
        self.begun: AnyBatch | None = None
        """The batch that is being checked and inflated; whoever does it may be cancelled."""
        self.is_decompressed: bool = False
        """Whether a thread has checked and decompressed the batch that is begun."""
        self.decompression_error: Exception | None = None
        """Why a thread could not."""
        self.reader: AnyReader[Any, Any] | None = None
        """The batch that is being read, if one was begun."""
        self.batch_end: int = ask.offset
        """The offset after that batch."""
        self.timestamp_type: TimestampType = TimestampType.CREATE_TIME
        """Who set the timestamps of that batch."""
        self.leader_epoch: int | None = None
        """Under which leader that batch was written; None if it is older than such epochs (Kafka 0.11)."""
        self._aborted: _Aborted | None = None
        self.rewind()

    def rewind(self) -> None:
        """Begin again with the first batch; iterating skips those before the position."""
        self._batches = split(self.records, str(self.ask.place.where))
        if self._aborted_transactions is not None:
            self._aborted = _Aborted(self._aborted_transactions)
        self.begun = self.reader = None

    @property
    def end(self) -> int | None:
        """The offset after the last batch, if there is so much before it that it is worth to ask for what follows."""
        if self._end == -1:
            self._end = _end(self.records) if len(self.records) >= _MUCH else None
        return self._end

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
                if self._aborted is not None and header.is_control:
                    self._aborted.ended(header)
                continue
            if header.is_control or (self._aborted is not None and self._aborted.hides(header)):
                if self._aborted is not None and header.is_control:
                    self._aborted.ended(header)
                place.position, place.leader_epoch = header.next_offset, _epoch(header)
                continue
            self.batch_end, self.leader_epoch = header.next_offset, _epoch(header)
            return batch
        raise StopIteration


def _end(records: memoryview) -> int | None:
    """None where that is not known: of formats before record batches, and where there is none, or a broken one."""
    last, position = None, 0
    while len(records) - position > layout.MAGIC_AT:
        (length,) = layout.INT32.unpack_from(records, position + layout.LENGTH_AT)
        size = layout.LOG_OVERHEAD + length
        if records[position + layout.MAGIC_AT] != layout.MAGIC or size < layout.HEADER_SIZE:
            return None
        if size > len(records) - position:
            break
        last, position = position, position + size
    return None if last is None else next(split(records[last:])).header.next_offset


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
    snapshot: Snapshot,
    places: Iterable[PartitionState],
    unread: Mapping[TopicPartition, CompletedFetch],
    ahead: Container[TopicPartition],
    busy: Container[int],
    *,
    max_bytes: int,
    now: float,
) -> tuple[dict[int, list[PartitionFetch]], TopicPartition | None]:
    """The partitions to ask each broker for now, and one that is wanted and has no known leader, if there is any.

    ``places`` are all of each broker that is to be asked. What is ``ahead`` comes after what is ``unread`` of the same
    partition. ``max_bytes`` is how much may come of one partition; ``now`` is in seconds.
    """
    occupied: set[int] = set()
    free: list[tuple[PartitionState, Node | None, int | None]] = []
    for place in sorted(places, key=lambda place: place.served):
        if place.rests:
            continue
        node = source(snapshot, place, now)
        fetched = unread.get(place.where)
        if fetched is None:
            free.append((place, node, place.position))
        elif place.where not in ahead and fetched.end is not None:
            free.append((place, node, fetched.end))
        elif node is not None:
            occupied.add(node.node_id)
    asks: dict[int, list[PartitionFetch]] = {}
    unled: TopicPartition | None = None
    for place, node, offset in free:
        if offset is None or place.lost or (place.until is not None and offset >= place.until):
            continue
        known = snapshot.partition(place.where)
        if known is None or node is None:
            unled = place.where
        elif node.node_id not in busy and node.node_id not in occupied and _goes_on(place, known, unread):
            limit = max(max_bytes, place.fetch_bytes or 0)
            from_leader = node.node_id == known.leader
            ask = PartitionFetch(place, place.epoch, offset, known.leader_epoch, limit, from_leader)
            asks.setdefault(node.node_id, []).append(ask)
    return asks, unled


def _goes_on(place: PartitionState, known: Partition, unread: Mapping[TopicPartition, CompletedFetch]) -> bool:
    """Whether the log that its leader has now is known to go with what is before."""
    fetched = unread.get(place.where)
    if fetched is not None and fetched.ask.leader_epoch != known.leader_epoch:
        return False
    return not place.needs_validation(known.leader_epoch)


def rooms(
    asked: Iterable[int], brokers: int, unread: Iterable[CompletedFetch], promised: Iterable[int], limit: int
) -> dict[int, int]:
    """How many bytes the next fetch of each broker may bring: none gets so much that another has to wait for it.

    Those that there is no room for are left out. So many ``brokers`` are read from; ``promised`` is what the fetches in
    flight may bring, ``limit`` what all together may hold.
    """
    kept = sum(len(one.records) for one in unread if not one.ask.place.rests)
    left, share, found = limit - kept - sum(promised), max(1, limit // max(1, brokers)), {}
    for node_id in asked:
        if left <= 0:
            break
        found[node_id] = min(left, share)
        left -= found[node_id]
    return found


def within(asks: list[PartitionFetch], version: int, room: int) -> list[PartitionFetch]:
    """What to ask for in a version of Fetch. Where that has no limit for all partitions, they share it.

    Then a partition whose next message is larger than its share is asked for alone.
    """
    if version >= AT_LEAST_ONE_SINCE:
        return asks
    grown = next((ask for ask in asks if ask.place.fetch_bytes is not None), None)
    if grown is not None:
        return [grown]
    share = max(1, room // len(asks))
    return [attrs.evolve(ask, max_bytes=min(ask.max_bytes, share)) for ask in asks]
