"""The choice of the twin by which records come into their batches: the one that the records' own twin goes with."""

from typing import TYPE_CHECKING

from ..records import batch
from ..twins import load_twin

if TYPE_CHECKING:
    from ._pure import Appender, Budget, OpenBatch, OpenTopic, Turn

__all__ = ("Appender", "Budget", "OpenBatch", "OpenTopic", "Turn")

if not TYPE_CHECKING:
    _twins = {"pure": "_pure"} if batch.IMPLEMENTATION == "pure" else {"cython": "_hot", "pure": "_pure"}
    _, _twin = load_twin(__package__, _twins, "AIOKAFKAWIRE_RECORDS")
    Appender = _twin.Appender
    Budget = _twin.Budget
    OpenBatch = _twin.OpenBatch
    OpenTopic = _twin.OpenTopic
    Turn = _twin.Turn
