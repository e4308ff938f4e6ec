"""A record that a share consumer has acquired."""

from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from ..errors import UsageError
from ..records.batch import ConsumerRecord
from ..types import TimestampType
from .acknowledgements import Acknowledge
from .acquired_partition import AcquiredPartition

__all__ = ("RecordOwner", "Reject", "ShareRecord")

K = TypeVar("K")
V = TypeVar("V")


class Reject(Exception):
    """Raise this in the body of ``async with record`` to reject the record: no member gets it again."""


class RecordOwner(Protocol):
    """The consumer that has acquired a record, and acknowledges it."""

    def begin(self, record: "ShareRecord[Any, Any]") -> None:
        """Renew the record's lock from now on."""

    def acknowledge(self, record: "ShareRecord[Any, Any]", kind: Acknowledge) -> None:
        """Acknowledge the record; unless that renews the lock, renew it no more."""


class ShareRecord(Generic[K, V]):
    """A record that this consumer has acquired: no other member gets it while its lock holds.

    Use it as ``async with record`` (or ``with record``): leaving the body accepts the record, an exception releases it,
    and :class:`Reject` rejects it. The lock is renewed while the body runs, on Kafka 4.2 and later. Or call the
    consumer's ``acknowledge()``.
    """

    __slots__ = ("_record", "acknowledged", "acquisition", "delivery_count", "lock_end", "owner")

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
        self.lock_end: float = acquisition.lock_end
        """When the lock ends at the earliest, in seconds of the event loop's clock."""

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
        rejected = isinstance(error, Reject)
        if self.acknowledged is None:
            try:
                self.owner.acknowledge(self, _outcome(error))
            except UsageError:
                if error is None:  # closed meanwhile; otherwise the error of the body matters more
                    raise
        return rejected

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<ShareRecord {self.topic}-{self.partition} at offset {self.offset}, delivery {self.delivery_count}>"


def _outcome(error: BaseException | None) -> Acknowledge:
    if error is None:
        return Acknowledge.ACCEPT
    return Acknowledge.REJECT if isinstance(error, Reject) else Acknowledge.RELEASE
