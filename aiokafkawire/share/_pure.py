"""Records of share consumers, and acknowledgements of many in a row, in plain Python; _hot.pyx is compiled."""

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, final

from ..errors import UsageError
from ..records.batch import ConsumerRecord
from ..types import TimestampType
from .acknowledgements import Acknowledge
from .acquired_partition import AcquiredPartition
from .share_record import RecordOwner, Reject, outcome_of

__all__ = ("AcknowledgedRun", "ShareRecord", "mark_accepted", "share_records")

K = TypeVar("K")
V = TypeVar("V")


@final
class ShareRecord(Generic[K, V]):
    """A record that this consumer has acquired: no other member gets it while its lock holds.

    Use it as ``async with record`` (or ``with record``): leaving the body accepts the record, an exception releases it,
    and :class:`Reject` rejects it. The lock is renewed while the body runs, on Kafka 4.2 and later. Or call the
    consumer's ``acknowledge()``.
    """

    __slots__ = ("_record", "acknowledged", "acquisition", "delivery_count", "owner")

    def __init__(
        self,
        record: "ConsumerRecord[K, V]",
        delivery_count: int,
        acquisition: AcquiredPartition,
        owner: RecordOwner,
    ) -> None:
        self._record = record
        self.owner: RecordOwner = owner
        """The consumer that has acquired the record."""
        self.acquisition: AcquiredPartition = acquisition
        """The fetch that has acquired the record."""
        self.acknowledged: Acknowledge | None = None
        """The acknowledgement of this record, sent or not; None if there is none yet."""
        self.delivery_count: int = delivery_count
        """How often members have got the record, this time included."""

    @property
    def lock_end(self) -> float:
        """When the lock ends at the earliest, in seconds of the event loop's clock."""
        return self.acquisition.renewed.get(self.offset, self.acquisition.first_end)

    @property
    def topic(self) -> str:
        """The record's topic."""
        return self.acquisition.partition.topic

    @property
    def partition(self) -> int:
        """The record's partition."""
        return self.acquisition.partition.partition

    @property
    def offset(self) -> int:
        """The record's offset in the partition."""
        return self._record.offset

    @property
    def key(self) -> K | None:
        """The key, deserialized if the consumer has a deserializer."""
        return self._record.key

    @property
    def value(self) -> V | None:
        """The value, deserialized if the consumer has a deserializer."""
        return self._record.value

    @property
    def raw_key(self) -> bytes | None:
        """The key's bytes, or None for a null key."""
        return self._record.raw_key

    @property
    def raw_value(self) -> bytes | None:
        """The value's bytes, or None for a null value."""
        return self._record.raw_value

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """The headers, in order."""
        return self._record.headers

    @property
    def timestamp_ms(self) -> int:
        """The timestamp in ms since the epoch; -1 if the record has none."""
        return self._record.timestamp

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the producer or the broker set the timestamp."""
        return self._record.timestamp_type

    def __enter__(self) -> Self:
        if self.acknowledged is not None:
            raise UsageError(f"{self} was acknowledged already ({self.acknowledged.name})")
        self.owner.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self.acknowledged is None:
            try:
                self.owner.acknowledge(self, outcome_of(error))
            except UsageError:
                if error is None:  # closed meanwhile; otherwise the error of the body matters more
                    raise
        return isinstance(error, Reject)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<ShareRecord {self.topic}-{self.partition} at offset {self.offset}, delivery {self.delivery_count}>"


def share_records(
    records: Iterable[ConsumerRecord[Any, Any]],
    counts: Iterable[int],
    acquisition: AcquiredPartition,
    owner: RecordOwner,
) -> list[ShareRecord[Any, Any]]:
    """Return the records of one acquisition as share records; ``counts`` are their delivery counts."""
    return [ShareRecord(record, count, acquisition, owner) for record, count in zip(records, counts, strict=True)]


def mark_accepted(records: Iterable[ShareRecord[Any, Any]]) -> None:
    """Set the acknowledgement of each record to ACCEPT."""
    for record in records:
        record.acknowledged = Acknowledge.ACCEPT


@final
class AcknowledgedRun:
    """The user's last acknowledgements: of consecutive records of one acquisition, of one kind, in one event loop.

    Users acknowledge most records in order, and :meth:`extend` costs little for each of them.

    Args:
        place: returns what identifies the running event loop.
    """

    __slots__ = ("_acquisition", "_first", "_kind", "_last", "_place", "_where")

    def __init__(self, place: Callable[[], object]) -> None:
        self._place = place
        self._acquisition: AcquiredPartition | None = None
        self._kind: Acknowledge | None = None
        self._first = self._last = 0
        self._where: object = None

    def begin(self, record: ShareRecord[Any, Any], kind: Acknowledge) -> None:
        """Start the run after this record, which is not part of it."""
        self._acquisition, self._kind = record.acquisition, kind
        self._first, self._last = record.offset + 1, record.offset
        self._where = self._place()

    def extend(self, record: object, kind: object) -> bool:
        """Acknowledge a record if it continues the run; return whether it does."""
        if (
            kind is not self._kind
            or not isinstance(record, ShareRecord)
            or record.acquisition is not self._acquisition
            or record.offset != self._last + 1
            or record.acknowledged is not None
            or self._where != self._place()
        ):
            return False
        self._last = record.offset
        record.acknowledged = self._kind
        return True

    def end(self) -> tuple[AcquiredPartition, int, int, Acknowledge] | None:
        """End the run; return its acquisition, its first and last offset, and its kind. Return None if it is empty."""
        acquisition, kind = self._acquisition, self._kind
        self._acquisition = self._kind = self._where = None
        if acquisition is None or kind is None or self._last < self._first:
            return None
        return acquisition, self._first, self._last, kind
