"""Lines of the log, and tasks that wait for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

from .patience import PATIENCE

__all__ = ("LogWatch", "watched_log")


class LogWatch(logging.Handler):
    """The lines of one logger and those below it, but not of the in-process broker."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.records: list[logging.LogRecord] = []
        self._news = anyio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("aiokafkawire.testing"):
            self.records.append(record)
            news, self._news = self._news, anyio.Event()
            news.set()

    @property
    def lines(self) -> list[str]:
        """Level, area and message of each."""
        return [f"{one.levelname} {one.name.removeprefix('aiokafkawire.')}: {one.getMessage()}" for one in self.records]

    def of(self, area: str) -> list[str]:
        """The lines of one area."""
        return [line for line in self.lines if line.split()[1] == f"{area}:"]

    async def until(self, reached: Callable[[list[str]], object], patience: float = PATIENCE) -> None:
        """Wait until the lines are such."""
        with anyio.fail_after(patience):
            while not reached(self.lines):
                await self._news.wait()


@contextmanager
def watched_log(level: int = logging.INFO, name: str = "aiokafkawire") -> Iterator[LogWatch]:
    """Meanwhile, gather the lines of this logger from this level on."""
    logger, watch = logging.getLogger(name), LogWatch()
    before = logger.level
    logger.addHandler(watch)
    logger.setLevel(level)
    try:
        yield watch
    finally:
        logger.setLevel(before)
        logger.removeHandler(watch)
