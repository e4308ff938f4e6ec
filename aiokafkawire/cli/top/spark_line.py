"""Spark lines: the trend of a number, in one line of blocks."""

from collections.abc import Sequence
from typing import Final

__all__ = ("spark_line",)

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_MIN_SPAN: Final = 0.1
"""The smallest span of a line, as a fraction of its greatest value: small changes of a large number look flat."""


def spark_line(values: Sequence[float | None], width: int) -> str:
    """Return the newest ``width`` values as blocks, the newest at the right end; a space for None.

    The lowest block is the least of the values, or lower if they differ little.
    """
    newest = list(values)[-width:]
    known = [value for value in newest if value is not None]
    if not known:
        return " " * width
    top, bottom = max(known), min(known)
    span = max(top - bottom, _MIN_SPAN * abs(top))
    line = "".join(" " if value is None else _block(value - bottom, span) for value in newest)
    return line.rjust(width)


def _block(height: float, span: float) -> str:
    return _BLOCKS[round(height / span * (len(_BLOCKS) - 1))] if span else _BLOCKS[0]
