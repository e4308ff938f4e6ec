"""The counters of record iterators, in plain Python; ``_hot.pyx`` has the compiled twin."""

from typing import final

__all__ = ("IteratorState",)


@final
class IteratorState:
    """Counters shared by a consumer and its record iterators."""

    __slots__ = ("changes", "polls")

    def __init__(self) -> None:
        self.changes: int = 0
        """The number of events that may change the next record, such as seeks, pauses and changes of the assignment."""
        self.polls: int = 0
        """The number of the user's polls: calls of ``poll``, and records and batches taken by iterators."""
