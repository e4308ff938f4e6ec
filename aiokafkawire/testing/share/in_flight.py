"""Records of a share partition that are in flight: their states, owners, locks and delivery counts."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

import attrs

__all__ = ("AcknowledgeType", "Acquired", "DeliveryState", "InFlightBatch", "InFlightRecord", "ranges")


class DeliveryState(IntEnum):
    """The state of one offset; the values are those of Kafka's stored state."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    """The outcome of an acquired offset, as its member reports it."""

    GAP = 0
    """There is no record at this offset."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """The member still works on the record: its lock begins anew (KIP-1222)."""


class Acquired(NamedTuple):
    """A range of offsets that a member has acquired, both inclusive, with their delivery count."""

    first: int
    last: int
    delivery_count: int


_FINAL: Final = (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)


@attrs.define(eq=False)
class InFlightRecord:
    """One offset: its state, and while it is acquired its owner and the time at which its lock ends."""

    offset: int
    state: DeliveryState = DeliveryState.AVAILABLE
    delivery_count: int = 0
    stored_count: int = 0
    """The delivery count that a new leader knows: acquisitions are not stored before the records are released."""
    member_id: str | None = None
    deadline: float = 0.0

    @property
    def is_done(self) -> bool:
        """Whether the record is never delivered again."""
        return self.state in _FINAL

    def acquire(self, member_id: str, deadline: float) -> None:
        """Deliver the record to a member, who owns it until ``deadline``."""
        self.state = DeliveryState.ACQUIRED
        self.member_id = member_id
        self.deadline = deadline
        self.delivery_count += 1

    def finish(self, state: DeliveryState) -> None:
        """End the acquisition and store the new state."""
        self.state = state
        self.member_id = None
        self.stored_count = self.delivery_count

    def release(self, limit: int) -> None:
        """Make the record available again, or archive it after ``limit`` deliveries."""
        self.finish(DeliveryState.ARCHIVED if self.delivery_count >= limit else DeliveryState.AVAILABLE)

    def forget_acquisition(self) -> None:
        """Go back to the stored state, as at a new leader."""
        if self.state is DeliveryState.ACQUIRED:
            self.state, self.member_id, self.delivery_count = DeliveryState.AVAILABLE, None, self.stored_count


@attrs.define(eq=False)
class InFlightBatch:
    """The offsets that were acquired together for the first time.

    Kafka keeps one state for the batch until its offsets differ (``by_offset``). Here every record has its own state,
    and ``by_offset`` only selects the message of an error.
    """

    records: list[InFlightRecord]
    by_offset: bool = False

    @property
    def first(self) -> int:
        """The first offset."""
        return self.records[0].offset

    @property
    def last(self) -> int:
        """The last offset."""
        return self.records[-1].offset

    def within(self, first: int, last: int) -> Iterator[InFlightRecord]:
        """Yield the records of a range of offsets, both inclusive."""
        start = max(0, first - self.first)
        yield from self.records[start : max(start, last - self.first + 1)]


def ranges(records: Iterable[InFlightRecord]) -> list[Acquired]:
    """Return the ranges of neighbouring offsets with equal delivery counts."""
    found: list[Acquired] = []
    for record in records:
        last = found[-1] if found else None
        if last is not None and (last.last + 1, last.delivery_count) == (record.offset, record.delivery_count):
            found[-1] = last._replace(last=record.offset)
        else:
            found.append(Acquired(record.offset, record.offset, record.delivery_count))
    return found
