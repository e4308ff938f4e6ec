"""Gives the client's log to a logger of the program, as confluent-kafka does with its ``logger``."""

import logging
from collections.abc import Iterator
from typing import Final

__all__ = ("forward_log",)


class _ForwardingHandler(logging.Handler):
    """Gives the lines of this client's log to the handlers of another logger that do not get them already."""

    def __init__(self, target: logging.Logger) -> None:
        super().__init__()
        self.target: Final = target

    def emit(self, record: logging.LogRecord) -> None:
        if not self.target.isEnabledFor(record.levelno):
            return
        reached = list(_handlers_of(logging.getLogger(record.name)))
        for handler in _handlers_of(self.target):
            if handler not in reached and record.levelno >= handler.level:
                handler.handle(record)


def _handlers_of(logger: logging.Logger) -> Iterator[logging.Handler]:
    """Yield the handlers that get the lines of a logger: its own, and those above it."""
    above: logging.Logger | None = logger
    while above is not None:
        yield from above.handlers
        above = above.parent if above.propagate else None


def forward_log(target: logging.Logger) -> None:
    """Give the lines of this client's log to the handlers of a logger, once however often this is called."""
    own = logging.getLogger("aiokafkawire")
    if not any(isinstance(one, _ForwardingHandler) and one.target is target for one in own.handlers):
        own.addHandler(_ForwardingHandler(target))
