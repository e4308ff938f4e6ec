"""The study of a simulation from outside: which of its random faults happen, and its cluster at the end."""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..broker import Broker

__all__ = ("Study", "current_study", "studying")


class Study:
    """The study of one simulation.

    Args:
        kept: the names of the faults that happen, such as "chaos 3"; None for all. A fault that does not happen takes
            the same random numbers, so that the faults after it stay the same.
    """

    def __init__(self, kept: Collection[str] | None = None) -> None:
        self.kept: frozenset[str] | None = None if kept is None else frozenset(kept)
        self.happened: list[str] = []
        """The names of the faults that have happened, in order."""
        self.broker: Broker | None = None
        """The cluster of the simulation, once there is one."""
        self._counts: Counter[str] = Counter()

    def admits(self, source: str) -> bool:
        """Return whether the next fault from this source happens. Each call counts one fault of the source."""
        self._counts[source] += 1
        name = f"{source} {self._counts[source]}"
        if self.kept is not None and name not in self.kept:
            return False
        self.happened.append(name)
        return True


_STUDY: ContextVar[Study | None] = ContextVar("_STUDY", default=None)


def current_study() -> Study:
    """Return the study of the running simulation, or a new one in which all faults happen."""
    return _STUDY.get() or Study()


@contextmanager
def studying(study: Study) -> Iterator[Study]:
    """Let ``study`` be the study of the simulation that runs while the context is open."""
    token = _STUDY.set(study)
    try:
        yield study
    finally:
        _STUDY.reset(token)
