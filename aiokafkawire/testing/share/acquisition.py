"""The choice of the records that one fetch acquires: limits, batch boundaries, and records that often failed."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import attrs

from .in_flight import Acquired, DeliveryState, InFlightBatch, InFlightRecord, ranges

__all__ = ("Acquisition", "BatchOffsets", "aligned_end", "new_batches")


_FEW: Final = 2
"""A limit of so many deliveries, or so many failed ones, is too small to deliver records apart from others."""


class BatchOffsets(NamedTuple):
    """The offsets of one record batch of the log, both inclusive."""

    first: int
    last: int


@attrs.frozen
class Acquisition:
    """The limits of one fetch: the number of records that a member may acquire, and the end of its locks.

    ``max_records`` is exceeded up to the end of a record batch, unless ``record_limit`` is set (KIP-1206). New records
    are acquired in ranges of at least ``batch_size``, which end where record batches end.
    """

    member_id: str
    max_records: int
    batch_size: int
    deadline: float
    delivery_limit: int
    record_limit: bool = False

    def again(self, batch: InFlightBatch, first: int, last: int, count: int) -> tuple[list[Acquired], int, bool]:
        """Acquire the available records of a batch that was delivered before.

        A record that failed in half of its deliveries, and in two or more, comes with ever fewer others. In its last
        delivery it comes alone, unless there are only two.

        Returns:
            The acquired ranges, their number of records, and whether the fetch ends here because of such a record.
        """
        taken: list[InFlightRecord] = []
        throttle: int | None = None
        for record in batch.within(first, last):
            if record.state is not DeliveryState.AVAILABLE:
                continue
            is_last_delivery = self.delivery_limit > _FEW and record.delivery_count >= self.delivery_limit - 1
            if is_last_delivery and taken:
                break
            if throttle is None:
                throttle = self._throttle(len(batch.records), record.delivery_count)
            record.acquire(self.member_id, self.deadline)
            taken.append(record)
            left = self.max_records - count - len(taken)
            if is_last_delivery or len(taken) == throttle or (self.record_limit and left <= 0):
                break
        batch.by_offset = batch.by_offset or 0 < len(taken) < len(batch.records)
        return ranges(taken), len(taken), throttle is not None and bool(taken)

    def _throttle(self, size: int, delivery_count: int) -> int | None:
        """Return the number of records that may accompany one of so many deliveries; None for no limit."""
        half = max(_FEW, -(-self.delivery_limit // 2))
        return None if delivery_count < half else max(1, size >> (delivery_count - half + 1))


def aligned_end(batches: Sequence[BatchOffsets], offset: int) -> int:
    """Return the end of the record batch that contains ``offset``, or the offset itself if none does."""
    return next((batch.last for batch in batches if batch.first <= offset <= batch.last), offset)


def new_batches(batches: Sequence[BatchOffsets], first: int, last: int, batch_size: int) -> Iterator[BatchOffsets]:
    """Divide new offsets into ranges of at least ``batch_size`` that end with record batches or at ``last``."""
    start = first
    for batch in batches:
        end = min(batch.last, last)
        if end < start:
            continue
        if end - start + 1 >= batch_size or end == last:
            yield BatchOffsets(start, end)
            start = end + 1
        if end == last:
            return
