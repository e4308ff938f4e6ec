"""Standard streams: those that were closed before the command began, and output whose reader does not read."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TextIO

__all__ = ("SignalWhileBlocked", "discard_output", "limited_by_signals", "open_closed_streams", "watch_signals")

_GRACE: Final = 1.0
"""Seconds that a write may go on after a signal."""

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_closed_streams() -> frozenset[str]:
    """Open closed standard streams at the null device, and return their names.

    Python sets closed streams to None, so that every use fails. The descriptors are opened too, since otherwise a
    socket could get the descriptor of a standard stream, and receive its output.
    """
    closed = {name for name, _ in _STREAMS if getattr(sys, name) is None}
    for number, (name, mode) in enumerate(_STREAMS):
        if name in closed:
            _open_descriptor(number)
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # open until the process ends
    return frozenset(closed)


def _open_descriptor(number: int) -> None:
    """Open the descriptor with this number at the null device; do nothing if it is open already."""
    try:
        os.fstat(number)
    except OSError:
        null = os.open(os.devnull, os.O_RDWR)
        if null != number:
            os.dup2(null, number)
            os.close(null)


class SignalWhileBlocked(Exception):
    """A write to standard output did not end for a while after a signal, whose number is the attribute."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Signals:
    """The signal that the event loop is to handle, which it cannot do while a write blocks."""

    def __init__(self) -> None:
        self.received = 0
        self.is_writing = False

    def limit(self) -> None:
        """Let the write end soon, if there is one."""
        if self.is_writing and hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._give_up)
            signal.setitimer(signal.ITIMER_REAL, _GRACE)

    def _give_up(self, *_: Any) -> None:
        if self.is_writing:
            raise SignalWhileBlocked(self.received)


_signals: Final = _Signals()


def watch_signals(*numbers: int) -> None:
    """Let these signals limit writes, too, until their handlers change; the event loop has set these handlers."""
    _signals.received = 0
    for number in numbers:
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, _limiting(handler))


def _limiting(handler: Any) -> Any:
    def handle(number: int, frame: FrameType | None) -> None:
        _signals.received = number
        handler(number, frame)
        _signals.limit()

    return handle


@contextmanager
def limited_by_signals() -> Iterator[None]:
    """Let the body write, but not for long after a signal: the reader of a pipe may neither read nor end.

    Raises:
        SignalWhileBlocked: the body did not end within a second after a signal.
    """
    _signals.is_writing = True
    try:
        if _signals.received:
            _signals.limit()
        yield
    finally:
        _signals.is_writing = False
        if _signals.received and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)


def discard_output(stream: TextIO | None = None) -> None:
    """Let a stream, by default standard output, go to the null device from now on.

    Its reader is gone, and Python flushes it at exit.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, (sys.stdout if stream is None else stream).fileno())
    os.close(null)
