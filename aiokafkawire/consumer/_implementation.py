"""Selects the compiled or the pure record iterator, whichever kind the ``records`` package uses."""

from typing import TYPE_CHECKING

from ..records.batch import load_beside

if TYPE_CHECKING:
    from ._pure import IteratorState, RecordIterator

__all__ = ("IteratorState", "RecordIterator")

if not TYPE_CHECKING:
    _twin = load_beside(__package__)
    IteratorState = _twin.IteratorState
    RecordIterator = _twin.RecordIterator
