"""Values that stand in one text, with a delimiter after each: the lines of a file."""

from collections.abc import Sequence
from typing import Any, overload

import attrs

from ._implementation import item_ends
from .record_columns import BinaryColumn, RecordColumns

__all__ = ("DelimitedRecords", "DelimitedValues")


class DelimitedValues(Sequence[bytes]):
    """The values of a text. ``Producer.enqueue_many`` encodes them without an object for each.

    Args:
        text: the values, each with the delimiter after it, and perhaps the beginning of another.
        delimiter: one or more bytes.
    """

    def __init__(self, text: bytes, delimiter: bytes) -> None:
        self._text = text
        self._column = BinaryColumn(
            memoryview(item_ends(text, delimiter)).cast("q"), memoryview(text), gap=len(delimiter)
        )

    @property
    def rest(self) -> bytes:
        """The bytes after the last delimiter."""
        return self._text[self._column.ends[-1] + self._column.gap :]

    def __len__(self) -> int:
        return len(self._column.ends) - 1

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        found = range(len(self))[index]
        return self._value(found) if isinstance(found, int) else [self._value(each) for each in found]

    def _value(self, index: int) -> bytes:
        return self._column.item(index) or b""  # no value is null

    def column(self, first: int, count: int) -> BinaryColumn:
        """Return ``count`` values from ``first`` on, as a column."""
        return attrs.evolve(self._column, ends=self._column.ends[first : first + count + 1])


class DelimitedRecords:
    """Records with such values, and all other parts in common, for ``Producer.enqueue_many``."""

    def __init__(self, values: DelimitedValues, partition: Any, timestamp_ms: Any, headers: Any) -> None:
        self._values = values
        self._common = {"partition": partition, "timestamp_ms": timestamp_ms, "headers": headers}

    def __len__(self) -> int:
        return len(self._values)

    def rows(self, first: int, count: int) -> RecordColumns:
        """Return up to ``count`` records from ``first`` on."""
        count = min(count, len(self._values) - first)
        return RecordColumns(count, self._values.column(first, count), **self._common)
