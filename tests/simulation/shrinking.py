"""The shortest list of faults with which a run still fails, by delta debugging."""

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ("shrink",)

T = TypeVar("T")


def shrink(events: Sequence[T], fails: Callable[[Sequence[T]], bool], *, tries: int = 200) -> list[T]:
    """Return a part of ``events`` with which ``fails`` is still True; without any one of them it would be False.

    It leaves out halves, then quarters, and so on down to single events. ``events`` as a whole must fail. After
    ``tries`` calls of ``fails`` it returns the shortest part so far.
    """
    left, size = list(events), (len(events) + 1) // 2
    while size and left and tries > 0:
        removed = False
        at = len(left) - size  # the last events first: most come after the failure
        while tries > 0 and at > -size:
            shorter = left[: max(0, at)] + left[max(0, at) + size :]
            tries -= 1
            if fails(shorter):
                left, removed = shorter, True
            at -= size
        if size == 1 and not removed:
            break
        size = size if removed and size == 1 else max(1, size // 2)
    return left
