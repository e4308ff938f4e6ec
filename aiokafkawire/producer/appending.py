"""The choice of the twin by which records come into their batches: the one that the records' own twin goes with."""

from typing import TYPE_CHECKING

from ..records.batch import load_beside

if TYPE_CHECKING:
    from ._pure import Appender, Budget, OpenBatch, OpenTopic, Turn, Waiters

__all__ = ("Appender", "Budget", "OpenBatch", "OpenTopic", "Turn", "Waiters")

if not TYPE_CHECKING:
    _twin = load_beside(__package__)
    Appender = _twin.Appender
    Budget = _twin.Budget
    OpenBatch = _twin.OpenBatch
    OpenTopic = _twin.OpenTopic
    Turn = _twin.Turn
    Waiters = _twin.Waiters
