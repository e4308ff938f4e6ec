"""The choice of the loop over records: the compiled one, where the records' own compiled twin is in use."""

from typing import TYPE_CHECKING

from ..records import batch
from ..twins import load_twin

if TYPE_CHECKING:
    from ._hot import RecordIterator
    from ._pure import Marks

__all__ = ("Marks", "RecordIterator")

if not TYPE_CHECKING:
    _twins = {"pure": "_pure"} if batch.IMPLEMENTATION == "pure" else {"cython": "_hot", "pure": "_pure"}
    _, _twin = load_twin(__package__, _twins, "AIOKAFKAWIRE_RECORDS")
    Marks = _twin.Marks
    # In plain Python nothing would be won by it: the consumer is its own iterator.
    RecordIterator = getattr(_twin, "RecordIterator", None)
