"""Many records as columns in Arrow's layout, from which the appender encodes them without an object for each record."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import attrs

from ..errors import UsageError
from ..types import Header, Headers
from .record_checks import header_pairs, invalid_timestamp

__all__ = (
    "BinaryColumn",
    "HeadersColumn",
    "ManyRecords",
    "RecordColumns",
    "RecordParts",
    "RecordRows",
    "VIEW_SIZE",
    "ViewColumn",
    "damaged_column",
)


VIEW_SIZE: Final = 16
"""The size in bytes of a view."""
_INLINE: Final = 12
"""The size in bytes up to which an item is in its view."""


class RecordParts(NamedTuple):
    """One record of a column, as the arguments of ``Appender._append`` after the topic."""

    value: Any
    key: Any
    partition: Any
    timestamp_ms: int | None
    headers: tuple[Header, ...]


class ManyRecords(Protocol):
    """Records that ``Appender._append_columns`` appends."""

    @property
    def count(self) -> int:
        """The number of records."""

    def record(self, index: int, now: int | None = None) -> RecordParts:
        """Return one record; its timestamp is ``now`` if it has no other."""


def _is_null(validity: memoryview | None, bit: int) -> bool:
    return validity is not None and not validity[bit >> 3] >> (bit & 7) & 1


def damaged_column(index: int) -> UsageError:
    """Return the error for an Arrow array whose offsets do not fit its data."""
    return UsageError(f"row {index} of an Arrow array cannot be read: its offsets are outside of its data")


@attrs.frozen(eq=False)
class BinaryColumn:
    """Keys, values, or parts of headers, in the layout of Arrow's ``binary`` or ``large_binary`` type."""

    ends: memoryview
    """int32 or int64 numbers: where the first item begins in ``data``, then the end of each item."""
    data: memoryview
    """The bytes of all items."""
    validity: memoryview | None = None
    """One bit for each item, the lowest bit first: 1 if the item is not null. None if no item is null."""
    first_bit: int = 0
    """The index of the first item's bit in ``validity``."""
    gap: int = 0
    """The number of bytes before each item that do not belong to it, such as the size of a delimiter."""

    def item(self, index: int) -> bytes | None:
        """Return the item, or None if it is null.

        Raises:
            UsageError: the item's offsets are outside of ``data``.
        """
        if self.is_null(index):
            return None
        begin, end = self.ends[index] + self.gap, self.ends[index + 1]
        if not 0 <= begin <= end <= len(self.data):
            raise damaged_column(index)
        return bytes(self.data[begin:end])

    def is_null(self, index: int) -> bool:
        """Return whether the item is null."""
        return _is_null(self.validity, self.first_bit + index)


@attrs.frozen(eq=False)
class ViewColumn:
    """Keys or values in the layout of Arrow's ``binary_view`` type."""

    views: memoryview
    """16 bytes for each item: its size, as int32; then the item itself, if it has at most 12 bytes, or else its first
    4 bytes, and as int32 the index of a buffer and the item's place there."""
    buffers: tuple[memoryview, ...]
    """The buffers in which the longer items lie."""
    validity: memoryview | None = None
    """As :attr:`BinaryColumn.validity`."""
    first_bit: int = 0
    """As :attr:`BinaryColumn.first_bit`."""

    def item(self, index: int) -> bytes | None:
        """Return the item, or None if it is null.

        Raises:
            UsageError: the item is outside of the buffers.
        """
        if self.is_null(index):
            return None
        view = self.views[index * VIEW_SIZE : (index + 1) * VIEW_SIZE]
        size, _, buffer, begin = view.cast("i")
        if 0 <= size <= _INLINE:
            return bytes(view[4 : 4 + size])
        if size < 0 or not 0 <= buffer < len(self.buffers) or not 0 <= begin <= len(self.buffers[buffer]) - size:
            raise damaged_column(index)
        return bytes(self.buffers[buffer][begin : begin + size])

    def is_null(self, index: int) -> bool:
        """Return whether the item is null."""
        return _is_null(self.validity, self.first_bit + index)


@attrs.frozen(eq=False)
class HeadersColumn:
    """The headers of records, in the layout of Arrow's list of structs; ``names`` is UTF-8 and has no nulls."""

    ends: memoryview
    """int32 numbers: the index of the first record's first header, then the end of each record's headers."""
    names: BinaryColumn
    contents: BinaryColumn
    count: int
    """The number of names, and of contents."""
    validity: memoryview | None = None
    """One bit for each record, as :attr:`BinaryColumn.validity`; a null is a record without headers."""
    first_bit: int = 0

    def item(self, index: int) -> tuple[Header, ...]:
        """Return the headers of a record.

        Raises:
            UsageError: offsets are outside of the data.
        """
        if _is_null(self.validity, self.first_bit + index):
            return ()
        begin, end = self.ends[index], self.ends[index + 1]
        if not 0 <= begin <= end <= self.count:
            raise damaged_column(index)
        return tuple(
            ((self.names.item(header) or b"").decode(), self.contents.item(header)) for header in range(begin, end)
        )


def _check_timestamp(_instance: object, _attribute: object, given: int | None) -> None:
    if given is not None and not (type(given) is int and 0 <= given < 2**63):
        raise invalid_timestamp(given)


def _pairs(given: Headers | None) -> tuple[Header, ...]:
    return () if given is None else tuple(header_pairs(given))


@attrs.frozen(eq=False)
class RecordColumns:
    """Records as columns; entry ``i`` of every column belongs to record ``i``."""

    count: int
    values: BinaryColumn | ViewColumn | None = None
    keys: BinaryColumn | ViewColumn | None = None
    partition: Any = None
    """The partition of records without one in ``partitions``; None for the partitioner's choice."""
    partitions: memoryview | None = None
    """int64 numbers; -1 for a record without a partition of its own."""
    timestamp_ms: int | None = attrs.field(default=None, validator=_check_timestamp)
    """The timestamp of records without one in ``timestamps``; None for the time at which they are accepted."""
    timestamps: memoryview | None = None
    """int64 numbers, in ms since the epoch; -1 for a record without a timestamp of its own."""
    headers: tuple[Header, ...] = attrs.field(default=(), converter=_pairs)
    """The headers of all records, unless ``header_lists`` is given."""
    header_lists: HeadersColumn | None = None

    def record(self, index: int, now: int | None = None) -> RecordParts:
        """Return one record; its timestamp is ``now`` if it has no other.

        Raises:
            UsageError: a column's offsets are outside of its data.
        """
        partition = -1 if self.partitions is None else self.partitions[index]
        timestamp = -1 if self.timestamps is None else self.timestamps[index]
        return RecordParts(
            None if self.values is None else self.values.item(index),
            None if self.keys is None else self.keys.item(index),
            self.partition if partition < 0 else partition,
            timestamp if timestamp >= 0 else now if self.timestamp_ms is None else self.timestamp_ms,
            self.headers if self.header_lists is None else self.header_lists.item(index),
        )


@attrs.frozen(eq=False)
class RecordRows:
    """Records whose keys and values are Python objects for serializers, with all other parts as columns."""

    values: Sequence[Any]
    keys: Sequence[Any] | None
    columns: RecordColumns
    """The partitions, timestamps and headers."""

    @property
    def count(self) -> int:
        """The number of records."""
        return len(self.values)

    def record(self, index: int, now: int | None = None) -> RecordParts:
        """Return one record, as :meth:`RecordColumns.record`."""
        key = None if self.keys is None else self.keys[index]
        return self.columns.record(index, now)._replace(value=self.values[index], key=key)
