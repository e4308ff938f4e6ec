"""What is in logs as events of a history, and a check that hears of failed background tasks."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from histories.anomalies import require_none
from histories.checking import History
from histories.events import LogFound

from aiokafkawire import TopicPartition

__all__ = ("Logs", "check_in_the_end", "logs_found", "no_task_fails_unheard", "reading_state")

Logs: TypeAlias = Mapping[TopicPartition, Sequence[tuple[int, bytes | None]]]
"""The offsets and values of each partition's records."""


def logs_found(logs: Logs, *, is_committed: bool = False) -> Iterable[LogFound]:
    """Return the logs as events; ``is_committed`` says that they have committed records alone."""
    return (LogFound(where, tuple(log), is_committed=is_committed) for where, log in logs.items())


def reading_state(logs: Logs, read: Collection[bytes | None]) -> str:
    """Return "settled" if these values have all records of the logs, or else how many are missing."""
    unread = [(where, offset) for where, log in logs.items() for offset, value in log if value not in read]
    return f"{len(unread)} records are not read, such as {min(unread)}" if unread else "settled"


def check_in_the_end(history: History) -> None:
    """Raise AnomaliesFound if the history, which has the logs, has anomalies."""
    require_none(history.check())


@contextmanager
def no_task_fails_unheard() -> Iterator[None]:
    """A background task of the client that fails says so in the log only."""
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(f"{record.getMessage()}: {record.exc_info and record.exc_info[1]!r}")

    log, ear = logging.getLogger("aiokafkawire"), Ear(logging.ERROR)
    log.addHandler(ear)
    try:
        yield
    finally:
        log.removeHandler(ear)
    assert not heard, heard
