"""Tables for people: aligned columns of text."""

import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from .safe_text import safe_text

__all__ = ("cell_text", "table")

_GAP = "  "


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as lines of text, with a heading for each column. Columns of numbers are aligned to the right.

    A cell is the text of its value; None is a dash, and a sequence is its items with commas. Partitions by topic are
    texts such as ``orders:0,1;payments:2``.
    """
    cells = [list(row) for row in rows]
    numeric = [_is_numeric(column) for column in zip_longest(*cells)]
    texts = [list(headings), *([cell_text(value) for value in row] for row in cells)]
    widths = [max(map(_width, column)) for column in zip(*texts, strict=True)]
    numeric += [False] * (len(widths) - len(numeric))
    return "".join(_line(row, widths, numeric) for row in texts)


def cell_text(value: object) -> str:
    """Return the text of a cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(cell_text, value)) if value else "-"
    if isinstance(value, Mapping):
        return ";".join(f"{cell_text(name)}:{cell_text(indexes)}" for name, indexes in value.items()) or "-"
    text = f"{value:,.1f}" if isinstance(value, float) else str(value)
    # Names may have characters that a terminal obeys.
    return text if text.isprintable() else safe_text(text, sys.maxsize)


def _line(row: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = []
    for text, width, is_number in zip(row, widths, numeric, strict=True):
        space = " " * (width - _width(text))
        parts.append(space + text if is_number else text + space)
    return _GAP.join(parts).rstrip() + "\n"


def _width(text: str) -> int:
    """Return the number of columns that a terminal needs for the text."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) != 0 for character in text)


def _is_numeric(column: Sequence[object]) -> bool:
    values = [value for value in column if value is not None]
    return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
