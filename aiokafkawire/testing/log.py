"""The log of one partition: batches in memory, found by offset and by time."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate

from ..errors import ErrorCode
from ..records.batch import BatchHeader, RecordBatch, RecordReader, set_base_offset
from ..types import OffsetAndTimestamp
from .producers import ProducerStates
from .refused import Refused

__all__ = ("PartitionLog",)


class PartitionLog:
    """The batches of one partition, in the order of their offsets.

    1. Batches are kept as the producer sent them, but for base offset and leader epoch; they are never merged or cut.
    2. Offsets begin at ``log_start_offset``, which only grows; the next batch gets ``log_end_offset``.
    3. ``high_watermark`` is up to where all in-sync replicas have it; the partition's replicas say how far that is.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.log_start_offset: int = 0
        self.log_end_offset: int = 0
        self.high_watermark: int = 0
        """Up to where consumers may read."""
        self.producers: ProducerStates = ProducerStates()
        self._batches: list[bytes] = []
        self._headers: list[BatchHeader] = []
        self._base_offsets: list[int] = []
        # The highest timestamp up to each batch: it never falls, so that a search by time can bisect.
        self._newest: list[int] = []

    @property
    def last_stable_offset(self) -> int:
        """Up to where read_committed consumers may read; no transaction is ever open yet."""
        return self.high_watermark

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(map(len, self._batches))

    def append(self, batch: RecordBatch, leader_epoch: int = 0) -> tuple[int, int]:
        """Put a validated batch at the end; its base offset there, and the timestamp to report, -1 for none.

        A batch that an idempotent producer sends again is not appended again: its offset is the one it has. Apache
        Kafka reports the batch's timestamp then, although the topic keeps the producer's; so do we.

        Raises:
            Refused: the producer's epoch or sequence is not the one that is due.
        """
        first = batch.header
        duplicate = self.producers.admit(first)
        if duplicate is not None:
            return duplicate.base_offset, duplicate.max_timestamp
        base_offset = self.log_end_offset
        stored = set_base_offset(batch.view, base_offset, leader_epoch)
        header = RecordBatch.parse(memoryview(stored)).header
        self.producers.appended(header)
        self._batches.append(stored)
        self._headers.append(header)
        self._base_offsets.append(base_offset)
        self._newest.append(max(header.max_timestamp, self._newest[-1] if self._newest else -1))
        self.log_end_offset = header.next_offset
        return base_offset, -1

    def read(self, offset: int, max_bytes: int, *, up_to: int | None = None, at_least_one: bool = True) -> bytes:
        """Whole batches up to ``max_bytes``, from the one on that holds ``offset``.

        None reaches beyond ``up_to``, the high watermark unless given. ``at_least_one`` gives the first even if it is
        larger than ``max_bytes``, so that a reader always gets on (KIP-74).

        Raises:
            Refused: OFFSET_OUT_OF_RANGE, the offset is before the start or after the end.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE)
        first = end = max(0, bisect_right(self._base_offsets, offset) - 1)
        bound = bisect_left(self._base_offsets, self.high_watermark if up_to is None else up_to)
        if offset == self.log_end_offset or first >= bound:
            return b""
        room = max_bytes
        while end < bound and len(self._batches[end]) <= room:
            room -= len(self._batches[end])
            end += 1
        if end == first and at_least_one:
            end = first + 1
        return self._batches[first] if end == first + 1 else b"".join(self._batches[first:end])

    def truncate(self, offset: int) -> None:
        """Forget the batches from the one on that holds ``offset``: a new leader never had them."""
        keep = bisect_left(self._base_offsets, offset)
        if keep and self._headers[keep - 1].next_offset > offset:
            keep -= 1
        del self._batches[keep:], self._headers[keep:], self._base_offsets[keep:], self._newest[keep:]
        end = self._headers[-1].next_offset if self._headers else self.log_start_offset
        self.log_end_offset = min(self.log_end_offset, max(end, self.log_start_offset))
        self.high_watermark = min(self.high_watermark, self.log_end_offset)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The newest epoch up to ``epoch`` that has batches, and the offset after its last; -1 and -1 if none has.

        What OffsetForLeaderEpoch answers for epochs before the leader's own (KIP-101, KIP-279).
        """
        found = (-1, -1)
        for header in self._headers:
            if header.leader_epoch > epoch:
                break
            found = (header.leader_epoch, header.next_offset)
        return found

    def batches(self) -> Iterator[RecordBatch]:
        """Every batch that is kept, the oldest first."""
        for stored in list(self._batches):
            yield RecordBatch.parse(memoryview(stored), where=f"{self.topic}-{self.partition}")

    def delete_before(self, offset: int) -> None:
        """Move the start to ``offset`` and drop the batches that end before it, as retention and DeleteRecords do.

        Raises:
            Refused: OFFSET_OUT_OF_RANGE, the offset is after the high watermark.
        """
        if offset > self.high_watermark:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log_start_offset = max(self.log_start_offset, offset)
        keep = bisect_right(self._base_offsets, self.log_start_offset) - 1
        if self.log_start_offset == self.log_end_offset:
            keep = len(self._batches)
        if keep > 0:
            del self._batches[:keep], self._headers[:keep], self._base_offsets[:keep]
            self._newest = list(accumulate((header.max_timestamp for header in self._headers), max))

    def find_timestamp(self, timestamp: int) -> OffsetAndTimestamp | None:
        """The first record whose timestamp is ``timestamp`` or later; None if there is none."""
        for index in range(bisect_left(self._newest, timestamp), len(self._batches)):
            # A batch after the first candidate matters only where the start lies behind the records that match.
            if self._headers[index].max_timestamp >= timestamp:
                found = self._find_in(index, timestamp)
                if found is not None:
                    return found
        return None

    def find_max_timestamp(self) -> OffsetAndTimestamp | None:
        """The first record that has the highest timestamp of the log; None if it is empty (KIP-734)."""
        if not self._newest:
            return None
        highest = self._newest[-1]
        return self._find_in(bisect_left(self._newest, highest), highest)

    def _find_in(self, index: int, timestamp: int) -> OffsetAndTimestamp | None:
        batch = RecordBatch.parse(memoryview(self._batches[index]))
        records: RecordReader[bytes, bytes] = batch.records(
            self.topic, self.partition, from_offset=self.log_start_offset, check_crcs=False
        )
        for record in records:
            if record.timestamp >= timestamp:
                return OffsetAndTimestamp(record.offset, record.timestamp, batch.header.leader_epoch)
        return None
