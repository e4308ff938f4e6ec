"""The records of one partition that a share group has in flight, and the offset before which all are done (KIP-932)."""

from collections.abc import Collection, Iterator, Sequence
from itertools import dropwhile

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from .acknowledgements import AcknowledgedRange, checked_types
from .acquisition import Acquisition, BatchOffsets, aligned_end, new_batches
from .dead_letters import DELIVERED_TOO_OFTEN, REJECTED, DeadLetter
from .in_flight import AcknowledgeType, Acquired, DeliveryState, InFlightBatch, InFlightRecord, ranges

__all__ = ("SharePartition",)


class SharePartition:
    """The records of a partition that a share group has begun and not finished.

    1. All offsets before ``start_offset`` are done: acknowledged or archived. New records are acquired from
       ``end_offset`` on.
    2. An acquired record belongs to one member until its lock ends. It is delivered at most ``delivery_limit`` times.
    3. The state has no clock: times are arguments, in seconds.
    """

    def __init__(self, start_offset: int) -> None:
        self.start_offset: int = start_offset
        self.end_offset: int = start_offset
        self.stored_start: int | None = None
        """The start offset as last stored; None until the first acknowledgement or release."""
        self.stored_done: int = 0
        """The number of offsets from ``stored_start`` on that were done when the state was stored."""
        self._batches: list[InFlightBatch] = []
        self._dead: list[DeadLetter] = []

    def __iter__(self) -> Iterator[InFlightRecord]:
        for batch in self._batches:
            yield from batch.records

    @property
    def next_offset(self) -> int:
        """The offset from which the next fetch reads: the first available record, or the first new one."""
        return next((record.offset for record in self if record.state is DeliveryState.AVAILABLE), self.end_offset)

    @property
    def next_deadline(self) -> float | None:
        """The time at which the next lock ends; None if no record is acquired."""
        deadlines = (record.deadline for record in self if record.state is DeliveryState.ACQUIRED)
        return min(deadlines, default=None)

    # --- acquisition -------------------------------------------------------------------------------------------

    def acquire(
        self, acquisition: Acquisition, batches: Sequence[BatchOffsets], max_in_flight: int = 2000
    ) -> list[Acquired]:
        """Acquire records for a member and return their ranges.

        Args:
            acquisition: the member, its limits and the end of its locks.
            batches: the record batches that were read from ``next_offset`` on, in order.
            max_in_flight: the limit of offsets in flight (``share.partition.max.record.locks``).
        """
        if acquisition.max_records <= 0 or not batches:
            return []
        self._archive_compacted(batches[0].first)
        first, last = max(batches[0].first, self.start_offset), batches[-1].last
        found, count = list[Acquired](), 0
        for batch in self._batches:
            if batch.last < first or batch.first > last:
                continue
            if count >= acquisition.max_records:
                return found
            acquired, number, is_throttled = acquisition.again(batch, first, last, count)
            found, count = found + acquired, count + number
            if is_throttled:
                return found
        room = min(acquisition.max_records - count, max_in_flight - (self.end_offset - self.start_offset))
        first = max(first, self.end_offset)
        if room > 0 and first <= last:
            found += self._acquire_new(acquisition, batches, first, last, room)
        return found

    def _acquire_new(
        self, acquisition: Acquisition, batches: Sequence[BatchOffsets], first: int, last: int, room: int
    ) -> list[Acquired]:
        if room < last - first + 1:
            last = aligned_end(batches, first + room - 1)
        if not self._batches:
            self.start_offset = first
        # With a strict limit the rest of the last record batch is in flight as well, and available.
        end = min(last, first + room - 1) if acquisition.record_limit else last
        found = []
        for part in new_batches(batches, first, last, acquisition.batch_size):
            batch = InFlightBatch([InFlightRecord(offset) for offset in range(part.first, part.last + 1)])
            taken = list(batch.within(part.first, end))
            for record in taken:
                record.acquire(acquisition.member_id, acquisition.deadline)
            batch.by_offset = len(taken) < len(batch.records)
            self._batches.append(batch)
            found += ranges(taken)
        self.end_offset = last + 1
        return found

    def _archive_compacted(self, first: int) -> None:
        """Archive the available records before ``first``, where a read began: compaction has removed them."""
        gone = [record for record in self if record.offset < first and record.state is DeliveryState.AVAILABLE]
        for record in gone:
            record.finish(DeliveryState.ARCHIVED)
        if gone:
            self._store()

    def archive(self, offsets: Collection[int]) -> None:
        """Archive offsets that no member shall get, such as those of aborted transactions.

        As in Kafka, the start offset moves behind them with the next acknowledgement.
        """
        for batch in self._batches:
            for record in batch.records:
                if record.offset in offsets and not record.is_done:
                    record.finish(DeliveryState.ARCHIVED)
            batch.by_offset = batch.by_offset or len({record.state for record in batch.records}) > 1

    # --- the end of acquisitions -------------------------------------------------------------------------------

    def acknowledge(
        self, member_id: str, acknowledged: Sequence[AcknowledgedRange], delivery_limit: int, deadline: float
    ) -> None:
        """Apply a member's acknowledgements, all or none; ``deadline`` is the end of renewed locks.

        Raises:
            ApiError: INVALID_REQUEST, an offset was never acquired or a type is unknown; INVALID_RECORD_STATE, the
                member does not own an offset.
        """
        changes: dict[InFlightRecord, AcknowledgeType] = {}
        for part in acknowledged:
            types = checked_types(part)
            if part.last < self.start_offset:
                continue
            for batch in self._overlapping(part):
                for record in self._owned(batch, part, member_id):
                    if record in changes:
                        raise ApiError(ErrorCode.INVALID_RECORD_STATE, _NOT_ACQUIRED_OFFSET)
                    changes[record] = types[0] if len(types) == 1 else types[record.offset - part.first]
        for record, kind in changes.items():
            match kind:
                case AcknowledgeType.ACCEPT:
                    record.finish(DeliveryState.ACKNOWLEDGED)
                case AcknowledgeType.RELEASE:
                    self._release_record(record, delivery_limit)
                case AcknowledgeType.RENEW:
                    record.deadline = deadline
                case AcknowledgeType.REJECT:
                    record.finish(DeliveryState.ARCHIVED)
                    self._dead.append(DeadLetter(record.offset, record.delivery_count, REJECTED))
                case AcknowledgeType.GAP:
                    record.finish(DeliveryState.ARCHIVED)
        if any(kind is not AcknowledgeType.RENEW for kind in changes.values()):
            self._store()

    def _overlapping(self, part: AcknowledgedRange) -> list[InFlightBatch]:
        floor = [batch for batch in self._batches if batch.first <= max(part.first, self.start_offset)][-1:]
        if not floor:
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, _NOT_FOUND)
        found = [batch for batch in self._batches if floor[0].first <= batch.first <= part.last]
        if not found or found[-1].last < part.first:
            raise ApiError(ErrorCode.INVALID_REQUEST, _FIRST_IS_PAST)
        if part.last > found[-1].last:
            raise ApiError(ErrorCode.INVALID_REQUEST, _LAST_IS_PAST)
        return [batch for batch in found if batch.last >= max(part.first, self.start_offset)]

    def _owned(self, batch: InFlightBatch, part: AcknowledgedRange, member_id: str) -> Iterator[InFlightRecord]:
        """Yield the records of a batch in the range. Raises ApiError if the member does not own one of them."""
        if not batch.by_offset:
            owner = batch.records[-1].member_id
            if owner is None:
                raise ApiError(ErrorCode.INVALID_RECORD_STATE, _NOT_ACQUIRED_BATCH)
            if owner != member_id:
                raise ApiError(ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of batch record")
            whole = part.first <= batch.first and batch.last <= part.last
            batch.by_offset = not whole or len(part.types) > 1 or batch.first < self.start_offset
        for record in batch.within(max(part.first, self.start_offset), part.last):
            if record.state is not DeliveryState.ACQUIRED:
                raise ApiError(ErrorCode.INVALID_RECORD_STATE, _NOT_ACQUIRED_OFFSET)
            if record.member_id != member_id:
                raise ApiError(ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of offset")
            yield record

    def release_member(self, member_id: str, delivery_limit: int) -> None:
        """Release all records of a member whose session has ended."""
        self._release([record for record in self if record.member_id == member_id], delivery_limit)

    def expire(self, now: float, delivery_limit: int) -> bool:
        """Release the records whose locks have ended; return whether there were any."""
        ended = [record for record in self if record.state is DeliveryState.ACQUIRED and record.deadline <= now]
        return self._release(ended, delivery_limit)

    def _release(self, records: Sequence[InFlightRecord], delivery_limit: int) -> bool:
        for record in records:
            if record.offset < self.start_offset:
                record.finish(DeliveryState.ARCHIVED)
            else:
                self._release_record(record, delivery_limit)
        if records:
            self._store()
        return bool(records)

    def _release_record(self, record: InFlightRecord, delivery_limit: int) -> None:
        record.release(delivery_limit)
        if record.is_done:
            self._dead.append(DeadLetter(record.offset, record.delivery_count, DELIVERED_TOO_OFTEN))

    def take_dead_letters(self) -> list[DeadLetter]:
        """Return the records that were rejected or delivered too often since the last call."""
        dead, self._dead = self._dead, []
        return dead

    # --- the start offset --------------------------------------------------------------------------------------

    def log_started_at(self, log_start_offset: int) -> None:
        """Move the start offset to the log's, before which there are no records any more.

        Members may still acknowledge the records that they have acquired before it; such records are archived.
        """
        if log_start_offset <= self.start_offset:
            return
        for batch in self._batches:
            batch.by_offset = batch.by_offset or batch.first < log_start_offset <= batch.last
            for record in batch.within(batch.first, log_start_offset - 1):
                if record.state is DeliveryState.AVAILABLE:
                    record.state = DeliveryState.ARCHIVED
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)
        self._move_start()

    def led_anew(self, log_end_offset: int) -> None:
        """Go back to the stored state, as a new leader reads it; the log ends at ``log_end_offset`` there."""
        for batch in self._batches:
            batch.by_offset = True
            for record in batch.records:
                record.forget_acquisition()
            batch.records = [record for record in batch.records if self.start_offset <= record.offset < log_end_offset]
        self._batches = [batch for batch in self._batches if batch.records]
        while self._batches and all(not record.stored_count for record in self._batches[-1].records):
            self._batches.pop()
        self.end_offset = self._batches[-1].last + 1 if self._batches else min(self.start_offset, log_end_offset)
        self.start_offset = min(self.start_offset, self.end_offset)

    def _store(self) -> None:
        """Store the state, and then move the start offset: the stored one stays behind by one change, as in Kafka."""
        self.stored_start = self.start_offset
        self.stored_done = sum(record.is_done and record.offset >= self.start_offset for record in self)
        self._move_start()

    def _move_start(self) -> None:
        """Move the start offset behind the records that are done, and drop the batches before it."""
        pending = dropwhile(lambda record: record.is_done or record.offset < self.start_offset, self)
        self.start_offset = next((record.offset for record in pending), self.end_offset)
        self._batches = [
            batch
            for batch in self._batches
            if batch.last >= self.start_offset or any(record.member_id is not None for record in batch.records)
        ]


_NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
_FIRST_IS_PAST = "Batch record not found. The first offset in request is past acquired records."
_LAST_IS_PAST = "Batch record not found. The last offset in request is past acquired records."
_NOT_ACQUIRED_BATCH = "The batch cannot be acknowledged. The batch is not in the acquired state."
_NOT_ACQUIRED_OFFSET = "The offset cannot be acknowledged. The offset is not acquired."
