"""The offsets of aborted transactions, which share groups with read_committed do not deliver."""

from collections.abc import Iterable, Sequence

from ...records.batch import RecordBatch
from ..logs.end_marker import EndMarker
from .in_flight import Acquired

__all__ = ("aborted_offsets", "without")


def aborted_offsets(batches: Iterable[RecordBatch], aborted: Iterable[tuple[int, int]]) -> set[int]:
    """Return the offsets of all records in ``batches`` that belong to aborted transactions.

    ``aborted`` has the producer id and first offset of each transaction, ordered by marker.
    """
    waiting, found = list(aborted), set[int]()
    active: set[int] = set()
    for batch in batches:
        header = batch.header
        begun = [entry for entry in waiting if entry[1] <= header.base_offset]
        active |= {producer_id for producer_id, _ in begun}
        waiting = [entry for entry in waiting if entry not in begun]
        if header.is_control:
            if header.count and not EndMarker(batch).commit:
                active.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in active:
            found.update(range(header.base_offset, header.next_offset))
    return found


def without(acquired: Sequence[Acquired], offsets: set[int]) -> list[Acquired]:
    """Return the acquired ranges without some offsets."""
    found: list[Acquired] = []
    for part in acquired:
        first = part.first
        for offset in sorted(offset for offset in offsets if part.first <= offset <= part.last):
            if first < offset:
                found.append(Acquired(first, offset - 1, part.delivery_count))
            first = offset + 1
        if first <= part.last:
            found.append(Acquired(first, part.last, part.delivery_count))
    return found
