"""What a loop over records looks at, in plain Python: the readable twin of the compiled one."""

from typing import final

__all__ = ("IteratorState",)


@final
class IteratorState:
    """Counts what a loop over records has to know between two of them."""

    __slots__ = ("asked", "changes")

    def __init__(self) -> None:
        self.changes: int = 0
        """What may make the record that comes next another one: seeks, pauses, partitions that come and go."""
        self.asked: int = 0
        """How often the user has come for more."""
