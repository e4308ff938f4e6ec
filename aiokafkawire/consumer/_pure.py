"""The record iterator's state, in plain Python; _hot.pyx has the compiled one."""

from typing import final

__all__ = ("IteratorState",)


@final
class IteratorState:
    """Counters that a record iterator checks before each record."""

    __slots__ = ("changes", "polls")

    def __init__(self) -> None:
        self.changes: int = 0
        """The number of events that may change the next record: seeks, pauses, and changes of the assignment."""
        self.polls: int = 0
        """The number of the user's polls."""
