"""The fetch of one partition: the request, and the fetched data with its unread batches."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from ..protocol.messages.fetch import AbortedTransaction, PartitionData
from ..records import layout
from ..records.batch import AnyBatch, AnyHeader, AnyReader, split
from ..types import TimestampType
from .subscription_state import PartitionState

__all__ = ("CompletedFetch", "PartitionFetch", "records_in")

_MUCH: Final = 64 * 1024
"""The minimum of a partition's unread bytes for the data after them to be fetched ahead; fewer bytes are soon read."""


@attrs.frozen
class PartitionFetch:
    """The fetch of one partition's data from ``offset`` on.

    ``epoch`` is the epoch of ``state`` when the fetch was planned; ``leader_epoch`` is the leader's, -1 if unknown.
    ``max_bytes`` limits the data in the response.
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
        self.committed_end: int | None = (
            data.last_stable_offset if committed_only and data.last_stable_offset >= 0 else None
        )
        """The first offset that readers of committed records cannot read yet; None for readers of all records."""
        self.log_start: int | None = data.log_start_offset if data.log_start_offset >= 0 else None
        self.preferred_replica: int | None = data.preferred_read_replica if data.preferred_read_replica >= 0 else None
        """The replica that the leader names to fetch from instead."""
        self._aborted_transactions = (data.aborted_transactions or ()) if committed_only else None
        self.begun: AnyBatch | None = None
        """The next batch, if it was taken from the data but has no reader yet, as while a thread decompresses it."""
        self.is_decompressed: bool = False
        """Whether a thread has checked and decompressed ``begun``."""
        self.decompression_error: Exception | None = None
        """The error of the thread that decompresses ``begun``."""
        self.deserialized: object = None
        """The records of ``begun`` that are being deserialized before they are handed out; None if there are none."""
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
        self.begun = self.reader = self.deserialized = None

    @property
    def end(self) -> int | None:
        """The offset after the last batch, to fetch ahead from; None if the data is small, or in an old format."""
        if self._end == -1:
            self._end = _end(self.records) if len(self.records) >= _MUCH else None
        return self._end

    def __iter__(self) -> Iterator[AnyBatch]:
        return self

    def __next__(self) -> AnyBatch:
        """Return the next batch with records for the user; move the position past control or aborted ones before it.

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


def records_in(data: memoryview) -> int | None:
    """Return how many records whole batches hold, without control batches; None if a batch is older than Kafka 0.11."""
    found, position, end, last = 0, 0, len(data), len(data) - layout.HEADER_SIZE
    # Once for each fetched batch: local names take a fraction of the time.
    magic_at, magic, control, overhead = layout.MAGIC_AT, layout.MAGIC, layout.CONTROL, layout.LOG_OVERHEAD
    least, counts = layout.HEADER_SIZE - layout.LOG_OVERHEAD, layout.COUNTS.unpack_from
    while end - position > magic_at:
        if data[position + magic_at] != magic:
            return None
        if position > last:
            break
        length, attributes, count = counts(data, position)
        position += overhead + length
        if length < least:
            return None
        if position > end:
            break
        if not attributes & control:
            found += count
    return found


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
        """End a transaction at its marker ``header``; later records of the producer belong to another transaction."""
        self._reach(header)
        self._producers.pop(header.producer_id, None)
