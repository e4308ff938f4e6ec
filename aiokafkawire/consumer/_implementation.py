"""Selects the compiled record iterator if the compiled implementation of records is in use."""

from typing import TYPE_CHECKING

from ..records.batch import load_beside

if TYPE_CHECKING:
    from ._hot import RecordIterator
    from ._pure import IteratorState

__all__ = ("IteratorState", "RecordIterator")

if not TYPE_CHECKING:
    _twin = load_beside(__package__)
    IteratorState = _twin.IteratorState
    # None in plain Python, where an iterator that reads batches itself would not be faster.
    RecordIterator = getattr(_twin, "RecordIterator", None)
