"""Prints the errors of the package's log, for commands that serve until they are stopped."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ("errors_on_stderr",)

_PACKAGE: Final = __name__.partition(".")[0]


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
