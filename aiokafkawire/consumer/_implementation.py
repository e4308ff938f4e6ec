"""The choice of the loop over records: the compiled one, where the records' own compiled twin is in use."""

from typing import TYPE_CHECKING

from ..records.batch import load_beside

if TYPE_CHECKING:
    from ._hot import RecordIterator
    from ._pure import IteratorState

__all__ = ("IteratorState", "RecordIterator")

if not TYPE_CHECKING:
    _twin = load_beside(__package__)
    IteratorState = _twin.IteratorState
    # In plain Python nothing would be won by it: the consumer is its own iterator.
    RecordIterator = getattr(_twin, "RecordIterator", None)
