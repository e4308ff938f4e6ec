"""Prints of the package's log what a command should print: nothing, or errors if it serves until it is stopped."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ("errors_on_stderr", "print_no_warnings")

_PACKAGE: Final = __name__.partition(".")[0]


def print_no_warnings() -> None:
    """Keep Python from printing the log's warnings, since a command prints its failures itself."""
    log = logging.getLogger(_PACKAGE)
    if not log.handlers:
        log.addHandler(logging.NullHandler())


@contextmanager
def errors_on_stderr() -> Iterator[None]:
    """Print the errors of the package's log to standard error, with tracebacks, which otherwise are not printed."""
    handler, log = logging.StreamHandler(), logging.getLogger(_PACKAGE)
    handler.setLevel(logging.ERROR)
    handler.setFormatter(logging.Formatter("aiokafkawire: %(message)s"))
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
