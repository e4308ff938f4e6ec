"""The records of one partition that one fetch has acquired."""

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import NamedTuple, TypeAlias, cast
from weakref import WeakSet

import attrs

from ..errors import CorruptBatch, DeserializationError, KafkaError
from ..protocol.messages.share_fetch import AcquiredRecords
from ..records.batch import AnyBatch, ConsumerRecord, split
from ..records.deserialization import FailureHandler, RecordDeserializer
from ..types import TopicPartition
from .acknowledgements import GAP, Acknowledge, AcknowledgedOffsets
from .share_fetch_session import PartitionKey

__all__ = (
    "AcquiredPartition",
    "Acquisitions",
    "Delivered",
    "AcquiredRange",
    "RecordForm",
    "batches_of",
    "delivered_records",
)


class AcquiredRange(NamedTuple):
    """A range of offsets, both inclusive."""

    first: int
    last: int

    def overlaps(self, other: "AcquiredRange") -> bool:
        """Return whether both have an offset."""
        return self.first <= other.last and other.first <= self.last


@attrs.define(eq=False)
class AcquiredPartition:
    """The records of one partition that one fetch has acquired from the broker ``node_id``.

    ``outstanding`` of them were handed out and not acknowledged. ``lost`` are the offsets that this consumer has
    acquired again since then: their locks of this fetch have ended. ``is_over`` means that the broker has probably
    released them all, as after the end of its session.
    """

    key: PartitionKey
    partition: TopicPartition
    node_id: int
    lock_end: float
    """When the last of the locks ends."""
    ranges: Sequence[AcquiredRange] = ()
    outstanding: int = 0
    is_over: bool = False
    lost: list[AcquiredRange] = attrs.field(factory=list)
    first_end: float = attrs.field(init=False)
    """When the first of the locks ends: those that are not renewed."""
    renewed: dict[int, float] = attrs.field(init=False, factory=dict)
    """When the renewed locks end, by offset."""

    def __attrs_post_init__(self) -> None:
        self.first_end = self.lock_end

    def is_sound(self, now: float) -> bool:
        """Return whether all of its locks hold."""
        return self.first_end > now and not (self.is_over or self.lost)

    def has_lost(self, offset: int) -> bool:
        """Return whether this consumer has acquired the record again since then."""
        return any(part.first <= offset <= part.last for part in self.lost)


class Acquisitions:
    """The fetches whose records the user or the consumer still has, by partition."""

    def __init__(self) -> None:
        self._by_partition: dict[PartitionKey, WeakSet[AcquiredPartition]] = {}

    def add(self, new: AcquiredPartition) -> bool:
        """Add a fetch; return whether earlier ones have lost records to it."""
        known = self._by_partition.setdefault(new.key, WeakSet())
        has_any = False
        for earlier in known:
            lost = [part for part in new.ranges if any(part.overlaps(other) for other in earlier.ranges)]
            earlier.lost += lost
            has_any = has_any or bool(lost)
        known.add(new)
        return has_any


@attrs.frozen
class RecordForm:
    """The way in which a consumer reads records: its deserializers, and whether it checks checksums.

    Functions are called while records are read. A ``deserializer`` converts them afterwards.
    """

    key_deserializer: Callable[[bytes], object] | None = None
    value_deserializer: Callable[[bytes], object] | None = None
    check_crcs: bool = True
    deserializer: RecordDeserializer | None = None
    failures: FailureHandler | None = None
    """What takes the records that ``deserializer`` cannot convert; None raises their errors."""


@attrs.define
class Delivered:
    """The result of the fetch of one partition, and the acknowledgements that follow without the user.

    Each of the ``records`` has its delivery count in ``counts``; the user gets ``errors`` for the released ones.
    """

    records: list["ConsumerRecord[object, object]"]
    counts: list[int]
    acknowledged: list[AcknowledgedOffsets]
    errors: list[KafkaError]

    def take(self, entry: "_Entry", delivery_count: int) -> None:
        """Take an acquired record, or release one that could not be read."""
        if not isinstance(entry, _Unreadable):
            self.records.append(entry)
            self.counts.append(delivery_count)
            return
        self.add(entry.offset, entry.offset, Acknowledge.RELEASE)
        if not self.errors or self.errors[-1] is not entry.error:
            self.errors.append(entry.error)

    def add(self, first: int, last: int, kind: int) -> None:
        """Acknowledge a range, unless it is empty."""
        if first <= last:
            self.acknowledged.append(AcknowledgedOffsets(first, last, kind))


def batches_of(records: bytes | bytearray | memoryview | None, partition: TopicPartition) -> list[AnyBatch]:
    """Return the batches of a response; an incomplete last one is ignored.

    Raises:
        CorruptBatch: the bytes are not batches.
    """
    return list(split(memoryview(records or b""), str(partition)))


def delivered_records(
    batches: Sequence[AnyBatch], acquired: Sequence[AcquiredRecords], partition: TopicPartition, form: RecordForm
) -> Delivered:
    """Find the acquired records in the batches.

    Acquired offsets without a record are gaps, such as those of control records. Records that cannot be deserialized,
    and those of damaged or missing batches, are released, since another member may succeed; the group's delivery limit
    ends that.
    """
    found = Delivered([], [], [], [])
    entries = _entries(batches, partition, form)
    index = 0
    end = batches[-1].header.next_offset if batches else 0
    for part in sorted(acquired, key=lambda part: part.first_offset):
        position = part.first_offset
        whole = _whole(entries, index, part)
        if whole:
            found.records += whole
            found.counts += repeat(part.delivery_count, len(whole))
            index += len(whole)
            continue
        while index < len(entries) and (entry := entries[index]).offset <= part.last_offset:
            if entry.offset >= position:
                found.add(position, entry.offset - 1, GAP)
                found.take(entry, part.delivery_count)
                position = entry.offset + 1
            index += 1
        found.add(position, min(part.last_offset, end - 1), GAP)
        found.add(max(position, end), part.last_offset, Acknowledge.RELEASE)
    return found


@attrs.frozen
class _Unreadable:
    """An offset whose record could not be read."""

    offset: int
    error: KafkaError


_Entry: TypeAlias = "ConsumerRecord[object, object] | _Unreadable"


def _whole(entries: Sequence[_Entry], index: int, part: AcquiredRecords) -> "Sequence[ConsumerRecord[object, object]]":
    """Return the records of an acquired range, which begin at ``index``; none if any offset has no readable record."""
    count = part.last_offset - part.first_offset + 1
    whole = entries[index : index + count]
    if len(whole) < count or whole[0].offset != part.first_offset or whole[-1].offset != part.last_offset:
        return ()
    if _Unreadable in set(map(type, whole)):
        return ()
    return cast("Sequence[ConsumerRecord[object, object]]", whole)


def _entries(batches: Iterable[AnyBatch], partition: TopicPartition, form: RecordForm) -> list[_Entry]:
    """Return the records of all batches in the order of offsets."""
    entries: list[_Entry] = []
    for batch in batches:
        if not batch.header.is_control:
            _read(batch, partition, form, entries)
    return entries


def _read(batch: AnyBatch, partition: TopicPartition, form: RecordForm, entries: list[_Entry]) -> None:
    """Append the records of a batch."""
    start = len(entries)
    try:
        reader = batch.records(
            *partition,
            key_deserializer=form.key_deserializer,
            value_deserializer=form.value_deserializer,
            check_crcs=form.check_crcs,
        )
        while True:
            try:
                for record in reader:
                    entries.append(record)  # noqa: PERF402  what was read before an error counts
            except DeserializationError as error:
                entries.append(_Unreadable(error.offset, error))
                continue
            return
    except CorruptBatch as error:
        position = entries[-1].offset + 1 if len(entries) > start else batch.header.base_offset
        entries += [_Unreadable(offset, error) for offset in range(position, batch.header.next_offset)]
