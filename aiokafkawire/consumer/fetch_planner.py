"""Plans the fetches from each broker, and reads the fetched batches.

The rules:

1. One fetch per broker is in flight at a time. A partition is fetched from one broker: its leader, or a closer replica.
2. The next fetch skips a partition that is paused, has no position or an unvalidated one, or has reached its end. Of a
   partition with much unread data, the fetch requests the data after that, so that brokers work while the user reads; a
   partition with little unread data, or with two unread fetches, is skipped. A broker with a partition that is skipped
   for its unread data gets no fetch: a fetch of other partitions might wait for data, and delay the skipped partition.
3. Brokers fill a limited response in the order of the request, so the partition that returned data last comes last. In
   a fetch session brokers rotate the partitions themselves.
4. The unread data of all partitions stays below ``fetch_max_bytes``, which the fetches in flight share; a response may
   exceed its share by one batch per partition, as brokers always return a first batch whole (KIP-74). Data of paused
   partitions does not count, since it could keep all other partitions from being fetched.
5. A response counts only for partitions whose epoch has not changed since the request.
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
from .preferred_replica import select_read_replica
from .subscription_state import PartitionState

__all__ = ("AT_LEAST_ONE_SINCE", "PartitionFetch", "CompletedFetch", "plan", "fetch_budgets", "limit_bytes")

_MUCH: Final = 64 * 1024
"""The minimum of a partition's unread bytes for the data after them to be fetched ahead; fewer bytes are soon read."""
AT_LEAST_ONE_SINCE: Final = 3
"""The first version of Fetch that returns a first batch whole, however large, and has a limit for all partitions
(KIP-74)."""


@attrs.frozen
class PartitionFetch:
    """The fetch of one partition's data from ``offset`` on, planned when the epoch of ``state`` was ``epoch``.

    ``leader_epoch`` is the leader's, -1 if unknown; ``max_bytes`` limits the data in the response.
    """

    state: PartitionState
    epoch: int
    offset: int
    leader_epoch: int = -1
    max_bytes: int = 1
    from_leader: bool = True

    @property
    def is_current(self) -> bool:
        """Whether the partition had no seek since the fetch was planned."""
        return self.state.epoch == self.epoch


class CompletedFetch:
    """The fetched data of one partition, and an iterator of its unread batches."""

    def __init__(self, ask: PartitionFetch, data: PartitionData, *, committed_only: bool) -> None:
        self.ask: PartitionFetch = ask
        self.records: memoryview = memoryview(data.records or b"")
        self._end: int | None = -1  # not computed yet
        self.high_watermark: int = data.high_watermark
        self.preferred_replica: int | None = data.preferred_read_replica if data.preferred_read_replica >= 0 else None
        """The replica that the leader names to fetch from instead."""
        self._aborted_transactions = (data.aborted_transactions or ()) if committed_only else None
        self.begun: AnyBatch | None = None
        """The next batch, if it was taken from the data but has no reader yet, as while a thread decompresses it."""
        self.is_decompressed: bool = False
        """Whether a thread has checked and decompressed ``begun``."""
        self.decompression_error: Exception | None = None
        """The error of the thread that decompresses ``begun``."""
        self.reader: AnyReader[Any, Any] | None = None
        """The reader of the current batch, if there is one."""
        self.batch_end: int = ask.offset
        """The offset after the current batch."""
        self.timestamp_type: TimestampType = TimestampType.CREATE_TIME
        """Whether the producer or the broker set the timestamps of the current batch."""
        self.leader_epoch: int | None = None
        """The leader epoch of the current batch; None in formats before Kafka 0.11, which have none."""
        self._aborted: _Aborted | None = None
        self.rewind()

    def rewind(self) -> None:
        """Return to the first batch; the iterator skips batches before the position."""
        self._batches = split(self.records, str(self.ask.state.partition))
        if self._aborted_transactions is not None:
            self._aborted = _Aborted(self._aborted_transactions)
        self.begun = self.reader = None

    @property
    def end(self) -> int | None:
        """The offset after the last batch; None if there is too little data for more to be fetched ahead."""
        if self._end == -1:
            self._end = _end(self.records) if len(self.records) >= _MUCH else None
        return self._end

    def __iter__(self) -> Iterator[AnyBatch]:
        return self

    def __next__(self) -> AnyBatch:
        """Return the next batch with records for the user; move the position past control or aborted batches before.

        Raises:
            CorruptBatch: the bytes are not a batch.
        """
        state = self.ask.state
        for batch in self._batches:
            header = batch.header
            if state.position is not None and header.next_offset <= state.position:
                if self._aborted is not None and header.is_control:
                    self._aborted.ended(header)
                continue
            if header.is_control or (self._aborted is not None and self._aborted.hides(header)):
                if self._aborted is not None and header.is_control:
                    self._aborted.ended(header)
                state.position, state.leader_epoch = header.next_offset, _epoch(header)
                continue
            self.batch_end, self.leader_epoch = header.next_offset, _epoch(header)
            return batch
        raise StopIteration


def _end(records: memoryview) -> int | None:
    """Return the offset after the last whole batch; None for formats before record batches, and for broken batches."""
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
    """The aborted transactions in one partition's fetched data; the methods are called with its batches in order."""

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        ordered = sorted(transactions, key=lambda transaction: transaction.first_offset)
        self._later = deque((transaction.first_offset, transaction.producer_id) for transaction in ordered)
        self._producers: dict[int, None] = {}

    def _reach(self, header: AnyHeader) -> None:
        while self._later and self._later[0][0] <= header.last_offset:
            self._producers[self._later.popleft()[1]] = None

    def hides(self, header: AnyHeader) -> bool:
        """Return whether the batch belongs to an aborted transaction (KIP-98)."""
        self._reach(header)
        return header.is_transactional and header.producer_id in self._producers

    def ended(self, header: AnyHeader) -> None:
        """End the transaction of a marker's producer; later records of the producer belong to another transaction."""
        self._reach(header)
        self._producers.pop(header.producer_id, None)


def plan(
    snapshot: Snapshot,
    states: Iterable[PartitionState],
    unread: Mapping[TopicPartition, CompletedFetch],
    ahead: Container[TopicPartition],
    busy: Container[int],
    *,
    max_bytes: int,
    now: float,
) -> tuple[dict[int, list[PartitionFetch]], TopicPartition | None]:
    """Return the partitions to fetch from each broker now, and a partition without a known leader, if there is any.

    ``states`` has all partitions of each broker to fetch from; ``ahead`` has the partitions whose data after ``unread``
    is fetched already; ``busy`` has the ids of brokers with a fetch in flight. ``max_bytes`` limits the data of each
    partition; ``now`` is in seconds.
    """
    occupied: set[int] = set()
    free: list[tuple[PartitionState, Node | None, int | None]] = []
    for state in sorted(states, key=lambda state: state.served):
        if state.is_suspended:
            continue
        node = select_read_replica(snapshot, state, now)
        fetched = unread.get(state.partition)
        if fetched is None:
            free.append((state, node, state.position))
        elif state.partition not in ahead and fetched.end is not None:
            free.append((state, node, fetched.end))
        elif node is not None:
            occupied.add(node.node_id)
    asks: dict[int, list[PartitionFetch]] = {}
    unled: TopicPartition | None = None
    for state, node, offset in free:
        if offset is None or state.lost or (state.until is not None and offset >= state.until):
            continue
        known = snapshot.partition(state.partition)
        if known is None or node is None:
            unled = state.partition
        elif node.node_id not in busy and node.node_id not in occupied and _continues(state, known, unread):
            limit = max(max_bytes, state.fetch_bytes or 0)
            from_leader = node.node_id == known.leader
            ask = PartitionFetch(state, state.epoch, offset, known.leader_epoch, limit, from_leader)
            asks.setdefault(node.node_id, []).append(ask)
    return asks, unled


def _continues(state: PartitionState, known: Partition, unread: Mapping[TopicPartition, CompletedFetch]) -> bool:
    """Return whether the partition's position, and the leader epoch of its unread data, are valid for its leader."""
    fetched = unread.get(state.partition)
    if fetched is not None and fetched.ask.leader_epoch != known.leader_epoch:
        return False
    return not state.needs_validation(known.leader_epoch)


def fetch_budgets(
    asked: Iterable[int], brokers: int, unread: Iterable[CompletedFetch], promised: Iterable[int], limit: int
) -> dict[int, int]:
    """Return how many bytes the next fetch of each broker may return, shared so that no broker has to wait for another.

    Brokers without a budget are left out. ``asked`` has the ids of the brokers to fetch from now; ``brokers`` is the
    number of all brokers that are read from; ``promised`` has the budgets of the fetches in flight; ``limit`` is the
    limit for all budgets and all unread data.
    """
    kept = sum(len(fetched.records) for fetched in unread if not fetched.ask.state.is_suspended)
    left, share, found = limit - kept - sum(promised), max(1, limit // max(1, brokers)), {}
    for node_id in asked:
        if left <= 0:
            break
        found[node_id] = min(left, share)
        left -= found[node_id]
    return found


def limit_bytes(asks: list[PartitionFetch], version: int, budget: int) -> list[PartitionFetch]:
    """Return the partitions to fetch, limited to ``budget`` bytes in all for versions of Fetch before v3.

    These versions have no limit for all partitions, so each partition gets a share of the budget. A partition whose
    next message exceeds its share is fetched alone.
    """
    if version >= AT_LEAST_ONE_SINCE:
        return asks
    grown = next((ask for ask in asks if ask.state.fetch_bytes is not None), None)
    if grown is not None:
        return [grown]
    share = max(1, budget // len(asks))
    return [attrs.evolve(ask, max_bytes=min(ask.max_bytes, share)) for ask in asks]
