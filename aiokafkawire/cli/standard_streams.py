"""Handling of standard streams that were closed before the command began, as for some daemons."""

import os
import sys

__all__ = ("discard_output", "open_closed_streams")

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


def discard_output() -> None:
    """Let standard output go to the null device from now on: its reader is gone, and Python flushes it at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
