"""The records of a batch as columns in Arrow's layout, and their values as one text, in plain Python."""

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from .._lazy_classes import frozen
from ..types import Header

if TYPE_CHECKING:
    from ._pure import ConsumerRecord

__all__ = ("LEFT_OUT", "BytesColumn", "Columns", "columns_of", "join_values")


@frozen
class BytesColumn:
    """The keys or the values of records, in the layout of Arrow's ``binary`` type, in the machine's byte order."""

    nulls: int
    """The number of nulls."""
    validity: bytes | None
    """One bit for each item, the lowest bit first: 1 if the item is not null. None if no item is null."""
    ends: bytes
    """int32 numbers: 0, then the end of each item in ``data``."""
    data: bytes
    """All items, concatenated."""


@frozen
class Columns:
    """The records of a batch as columns; entry ``i`` of every column belongs to record ``i``."""

    count: int
    offsets: bytes
    """The offsets as int64 numbers."""
    timestamps: bytes
    """The timestamps as int64 numbers, in ms since the epoch."""
    keys: BytesColumn
    """The keys; without a buffer's content if they were left out."""
    values: BytesColumn
    """The values; without a buffer's content if they were left out."""
    headers: list[tuple[Header, ...]] | None
    """The headers of each record; None if no record has headers."""


LEFT_OUT: Final = BytesColumn(0, None, b"", b"")
"""A column of keys or values that were not asked for."""


def columns_of(
    records: "Iterable[ConsumerRecord[Any, Any]]", *, with_keys: bool = True, with_values: bool = True
) -> Columns:
    """Convert records to columns in plain Python, with raw keys and values."""
    offsets, timestamps = array("q"), array("q")
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    headers: list[tuple[Header, ...]] = []
    for record in records:
        offsets.append(record.offset)
        timestamps.append(record.timestamp)
        if with_keys:
            keys.append(record.raw_key)
        if with_values:
            values.append(record.raw_value)
        headers.append(record.headers)
    return Columns(
        count=len(offsets),
        offsets=offsets.tobytes(),
        timestamps=timestamps.tobytes(),
        keys=_column(keys) if with_keys else LEFT_OUT,
        values=_column(values) if with_values else LEFT_OUT,
        headers=headers if any(headers) else None,
    )


def join_values(records: "Iterable[ConsumerRecord[Any, Any]]", delimiter: bytes, null: bytes) -> tuple[int, bytes]:
    """Return the number of records and their raw values, each with the delimiter after it, in plain Python."""
    values = [record.raw_value for record in records]
    count = len(values)
    if not count:
        return 0, b""
    return count, delimiter.join([null if value is None else value for value in values]) + delimiter


def _column(parts: list[bytes | None]) -> BytesColumn:
    ends, end = array("i", [0]), 0
    bits = bytearray((len(parts) + 7) // 8)
    for index, part in enumerate(parts):
        if part is not None:
            end += len(part)
            bits[index // 8] |= 1 << index % 8
        ends.append(end)
    nulls = parts.count(None)
    return BytesColumn(nulls, bytes(bits) if nulls else None, ends.tobytes(), b"".join(filter(None, parts)))
