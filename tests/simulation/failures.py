"""The names of failures, by which two runs fail in the same way, and a limit of the processor's time of a run."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from trio import TrioInternalError

__all__ = ("TakesTooLong", "causes", "limited", "name_of")

_WORDS = 60
_NUMBERS = re.compile(r"[0-9]+|b?'[^']*'")


class TakesTooLong(BaseException):
    """A run does not end in time."""


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of a group or, of trio's internal errors, their causes; those of the checks first."""
    if isinstance(error, BaseExceptionGroup):
        found = [leaf for one in error.exceptions for leaf in causes(one)]
        yield from sorted(found, key=lambda leaf: not isinstance(leaf, AssertionError))
    elif isinstance(error, TrioInternalError) and error.__cause__ is not None:
        yield from causes(error.__cause__)
    else:
        yield error


def name_of(error: BaseException) -> str:
    """Return the name of the first anomaly; of another check its words without numbers and names; or a type."""
    cause = next(causes(error))
    names = getattr(cause, "names", None)
    if names:
        return str(names[0])
    if isinstance(cause, AssertionError):
        return _NUMBERS.sub("#", " ".join(str(cause).split()))[:_WORDS].strip() or "AssertionError"
    return type(cause).__name__


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TakesTooLong in a run that takes more of the processor's seconds than this."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TakesTooLong(f"a run takes longer than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again and again: Python drops what is raised in a destructor
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
