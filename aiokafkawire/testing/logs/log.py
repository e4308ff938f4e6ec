"""The log of one partition: batches in memory, searchable by offset and by time."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from ...errors import ErrorCode
from ...records.batch import BatchHeader, RecordBatch, RecordReader, set_base_offset
from ...types import OffsetAndTimestamp
from ..cluster.api_error import ApiError
from .end_marker import EndMarker, end_marker
from .producer_state import Completed, ProducerStates

__all__ = ("Aborted", "PartitionLog")


class Aborted(NamedTuple):
    """An entry of the index of aborted transactions; ``last_offset`` is the offset of the abort marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    """The log's last stable offset when the marker was written."""


class PartitionLog:
    """The batches of one partition, ordered by offset.

    1. Batches are stored as appended, except for base offset and leader epoch; they are never merged or split.
    2. Offsets begin at ``log_start_offset``, which never decreases; the next batch gets ``log_end_offset``.
    3. ``high_watermark`` is the end of the records that all in-sync replicas have; :class:`HostedPartition` sets it.
    4. The state of producers and transactions is derived from the batches; truncation rebuilds it.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.log_start_offset: int = 0
        self.log_end_offset: int = 0
        self.high_watermark: int = 0
        """The offset up to which consumers may read."""
        self.producers: ProducerStates = ProducerStates()
        self._batches: list[bytes] = []
        self._headers: list[BatchHeader] = []
        self._base_offsets: list[int] = []
        # The highest timestamp up to each batch: the list is ascending, so that a search by time can bisect.
        self._newest: list[int] = []
        self._aborted: list[Aborted] = []
        # Transactions whose markers may be above the high watermark, oldest first.
        self._unreplicated: list[Completed] = []

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which read_committed consumers may read.

        It is the start of the oldest transaction that is open or whose marker is not below the high watermark. Without
        such a transaction, it is the high watermark itself.
        """
        first_open = self.producers.first_open()
        offsets = [done.first_offset for done in self._unreplicated if done.last_offset >= self.high_watermark]
        if first_open is not None:
            offsets.append(first_open)
        first_unstable = max(min(offsets, default=self.high_watermark), self.log_start_offset)
        return min(first_unstable, self.high_watermark)

    @property
    def size(self) -> int:
        """The size of all batches, in bytes."""
        return sum(map(len, self._batches))

    def append(self, batch: RecordBatch, leader_epoch: int = 0) -> tuple[int, int]:
        """Append a validated batch; return its base offset and the timestamp for the response, -1 for none.

        A retry by an idempotent producer is not appended: the result is the base offset and the highest timestamp of
        the first attempt. In all other cases the timestamp is -1.

        A transactional batch begins a transaction if none is open; the caller checks that this is allowed. Raises
        ApiError as :meth:`ProducerStates.admit`.
        """
        first = batch.header
        duplicate = self.producers.admit(first)
        if duplicate is not None:
            return duplicate.base_offset, duplicate.max_timestamp
        header = self._store(batch, leader_epoch)
        self.producers.appended(header)
        return header.base_offset, -1

    def append_marker(
        self,
        producer_id: int,
        epoch: int,
        commit: bool,
        coordinator_epoch: int,
        *,
        timestamp: int,
        leader_epoch: int = 0,
        version: int = 2,
    ) -> int:
        """Append a marker, which ends the producer's open transaction, if any; return the marker's offset.

        ``version`` is the producer's transaction.version. Raises ApiError as :meth:`ProducerStates.admit_marker`.
        """
        self.producers.admit_marker(producer_id, epoch, coordinator_epoch, version)
        marker = end_marker(producer_id, epoch, commit=commit, coordinator_epoch=coordinator_epoch, timestamp=timestamp)
        header = self._store(marker, leader_epoch)
        self._complete(header, commit, coordinator_epoch)
        return header.base_offset

    def has_marker(self, producer_id: int, offset: int) -> bool:
        """Return whether a marker of this producer is at ``offset``; truncation may have removed it."""
        at = bisect_left(self._base_offsets, offset)
        header = self._headers[at] if at < len(self._headers) else None
        return (
            header is not None
            and (header.base_offset, header.producer_id) == (offset, producer_id)
            and header.is_control
        )

    def _store(self, batch: RecordBatch, leader_epoch: int) -> BatchHeader:
        stored = set_base_offset(batch.view, self.log_end_offset, leader_epoch)
        header = RecordBatch.parse(memoryview(stored)).header
        self._batches.append(stored)
        self._headers.append(header)
        self._base_offsets.append(header.base_offset)
        self._newest.append(max(header.max_timestamp, self._newest[-1] if self._newest else -1))
        self.log_end_offset = header.next_offset
        return header

    def _complete(self, header: BatchHeader, commit: bool, coordinator_epoch: int) -> None:
        """Update the state of transactions after a marker was stored."""
        completed = self.producers.marked(header, coordinator_epoch)
        if completed is None:
            return
        self._unreplicated = [done for done in self._unreplicated if done.last_offset >= self.high_watermark]
        self._unreplicated.append(completed)
        if not commit:
            first_open = self.producers.first_open(but=completed.producer_id)
            stable = completed.last_offset + 1 if first_open is None else first_open
            self._aborted.append(Aborted(*completed, stable))

    def aborted_in(self, from_offset: int, to_offset: int) -> list[tuple[int, int]]:
        """Return producer id and first offset of each aborted transaction that overlaps the range, ordered by marker.

        As in Kafka, the search ends at the first entry whose last stable offset is ``to_offset`` or higher, since the
        transactions of all later entries begin at that offset or later.
        """
        found = []
        for entry in self._aborted:
            if entry.last_offset >= from_offset and entry.first_offset < to_offset:
                found.append((entry.producer_id, entry.first_offset))
            if entry.last_stable_offset >= to_offset:
                break
        return found

    def read(self, offset: int, max_bytes: int, *, up_to: int | None = None, at_least_one: bool = True) -> bytes:
        """Return complete batches of up to ``max_bytes`` in total, beginning with the one that contains ``offset``.

        The batches end before ``up_to``, by default the high watermark. With ``at_least_one`` the first batch may
        exceed ``max_bytes``, so that a reader always makes progress (KIP-74).

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, the offset is before the start or after the end of the log.
        """
        return b"".join(self._batches[self._readable(offset, max_bytes, up_to, at_least_one)])

    def read_cut(self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool) -> bytes:
        """Return what :meth:`read` returns and as much of the next batch as there is room for, as Kafka does.

        Raises as :meth:`read`.
        """
        whole = self._readable(offset, max_bytes, up_to, at_least_one)
        batches = self._batches[whole]
        room = max_bytes - sum(map(len, batches))
        if batches and room > 0 and whole.stop < bisect_left(self._base_offsets, up_to):
            batches.append(self._batches[whole.stop][:room])
        return b"".join(batches)

    def read_batches(self, offset: int, max_bytes: int, *, up_to: int) -> list[RecordBatch]:
        """Return the batches that :meth:`read` returns. Raises as that."""
        readable = self._readable(offset, max_bytes, up_to, at_least_one=True)
        stored = zip(self._headers[readable], self._batches[readable], strict=True)
        return [RecordBatch(header, memoryview(batch)) for header, batch in stored]

    def _readable(self, offset: int, max_bytes: int, up_to: int | None, at_least_one: bool) -> slice:
        """Return the indices of the batches to read. Raises as :meth:`read`."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        first = max(0, bisect_right(self._base_offsets, offset) - 1)
        if first < len(self._headers) and self._headers[first].next_offset <= offset:
            first += 1  # compaction has left a gap there
        end = first
        bound = bisect_left(self._base_offsets, self.high_watermark if up_to is None else up_to)
        if offset == self.log_end_offset or first >= bound:
            return slice(0, 0)
        left = max_bytes
        while end < bound and len(self._batches[end]) <= left:
            left -= len(self._batches[end])
            end += 1
        if end == first and at_least_one:
            end = first + 1
        return slice(first, end)

    def rewrite(self, batches: Iterable[bytes | memoryview]) -> None:
        """Replace all batches by those that compaction has left, whose offsets are unchanged."""
        self._batches = [bytes(batch) for batch in batches]
        self._headers = [RecordBatch.parse(memoryview(stored)).header for stored in self._batches]
        self._base_offsets = [header.base_offset for header in self._headers]
        self._newest = list(accumulate((header.max_timestamp for header in self._headers), max))

    def truncate(self, offset: int) -> None:
        """Remove the batch that contains ``offset`` and all later batches, which a new leader does not have."""
        keep = bisect_left(self._base_offsets, offset)
        if keep and self._headers[keep - 1].next_offset > offset:
            keep -= 1
            offset = self._base_offsets[keep]
        del self._batches[keep:], self._headers[keep:], self._base_offsets[keep:], self._newest[keep:]
        # The last batch left may end before ``offset``: compaction may have removed batches after it.
        self.log_end_offset = min(self.log_end_offset, max(offset, self.log_start_offset))
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self._read_producers()

    def _read_producers(self) -> None:
        self.producers.clear()
        self._aborted.clear()
        self._unreplicated.clear()
        for batch in self.batches():
            header = batch.header
            if header.is_control and header.count:
                marker = EndMarker(batch)
                self._complete(header, marker.commit, marker.coordinator_epoch)
            elif not header.is_control:
                self.producers.appended(header)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield all batches, oldest first."""
        for stored in list(self._batches):
            yield RecordBatch.parse(memoryview(stored), where=f"{self.topic}-{self.partition}")

    def delete_before(self, offset: int) -> None:
        """Move the log start to ``offset`` and remove the batches before it, as retention and DeleteRecords do.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, the offset is after the high watermark.
        """
        if offset > self.high_watermark:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log_start_offset = max(self.log_start_offset, offset)
        keep = bisect_right(self._base_offsets, self.log_start_offset) - 1
        if self.log_start_offset == self.log_end_offset:
            keep = len(self._batches)
        if keep > 0:
            del self._batches[:keep], self._headers[:keep], self._base_offsets[:keep]
            self._newest = list(accumulate((header.max_timestamp for header in self._headers), max))
        self._aborted = [entry for entry in self._aborted if entry.last_offset >= self.log_start_offset]

    def find_timestamp(self, timestamp: int) -> OffsetAndTimestamp | None:
        """Return offset and time of the first record with this timestamp or a later one; None if there is none."""
        for index in range(bisect_left(self._newest, timestamp), len(self._batches)):
            # Later batches matter only if the matching records in this one are before the log start.
            if self._headers[index].max_timestamp >= timestamp:
                found = self._find_in(index, timestamp)
                if found is not None:
                    return found
        return None

    def find_max_timestamp(self) -> OffsetAndTimestamp | None:
        """Return offset and time of the first record with the highest timestamp; None without records (KIP-734)."""
        filled = [index for index, header in enumerate(self._headers) if header.count]
        if not filled:
            return None
        index = max(filled, key=lambda index: self._headers[index].max_timestamp)
        return self._find_in(index, self._headers[index].max_timestamp)

    def _find_in(self, index: int, timestamp: int) -> OffsetAndTimestamp | None:
        batch = RecordBatch.parse(memoryview(self._batches[index]))
        records: RecordReader[bytes, bytes] = batch.records(
            self.topic, self.partition, from_offset=self.log_start_offset, check_crcs=False
        )
        for record in records:
            if record.timestamp >= timestamp:
                return OffsetAndTimestamp(record.offset, record.timestamp, batch.header.leader_epoch)
        return None
