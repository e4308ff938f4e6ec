"""What must be true after a run, of logs, of what was handed over and of what was read."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import attrs

from aiokafkawire import TopicPartition

__all__ = (
    "Journal",
    "Logs",
    "Seen",
    "Sent",
    "check_once_and_in_order",
    "check_origin",
    "check_reading",
    "check_writing",
    "no_task_fails_unheard",
)

Logs: TypeAlias = Mapping[TopicPartition, Sequence[tuple[int, bytes | None]]]
"""The offsets and values of each partition's records."""
Seen: TypeAlias = dict[TopicPartition, list[tuple[int, bytes | None]]]
"""What one consumer was given, in its order: offsets and values."""


@attrs.define
class Sent:
    """One record that was handed over, and where its acknowledgement says that it is."""

    value: bytes
    where: TopicPartition | None = None
    offset: int = -1
    """-1 with a partition: acknowledged, and no broker said where."""

    def __str__(self) -> str:
        return f"{self.value[:12]!r} at {self.where}:{self.offset}"


@attrs.define
class Journal:
    """What one producer was given, in that order, and what it has to keep.

    ``once``: it is idempotent. ``durable``: what it acknowledges stays. ``in_turn``: what it acknowledges of a
    partition is in order, whatever else is in the log.
    """

    once: bool = True
    durable: bool = True
    in_turn: bool = True
    sent: list[Sent] = attrs.field(factory=list)


def check_reading(seen: Seen, logs: Logs) -> None:
    """A consumer sees every record of each partition once, in the order of their offsets."""
    for where, log in logs.items():
        got, due = seen.get(where, []), list(log)
        wrong = next((at for at, (one, other) in enumerate(zip(got, due, strict=False)) if one != other), None)
        assert got == due, f"of {where} {len(got)} of {len(due)} records were seen; the first wrong one is {wrong}"


def check_writing(journal: Journal, logs: Logs) -> None:
    """What was acknowledged is where it was said to be, and in the order in which it was handed over."""
    last: dict[TopicPartition, int] = {}
    for sent in journal.sent:
        if sent.where is None or not journal.durable:
            continue
        log = logs[sent.where]
        if sent.offset < 0:
            assert any(value == sent.value for _, value in log), f"{sent} was acknowledged, and is not there"
            continue
        found = next((value for offset, value in log if offset == sent.offset), b"nothing") or b""
        assert found == sent.value, f"{sent} was acknowledged, and there is {found[:12]!r}"
        if journal.in_turn:
            assert sent.offset > last.get(sent.where, -1), f"{sent} is before what was sent before it"
        last[sent.where] = sent.offset


def check_once_and_in_order(journal: Journal, logs: Logs) -> None:
    """Of an idempotent producer nothing is in a log twice, acknowledged or not, and all is in its order."""
    if not journal.once:
        return
    numbers: dict[bytes | None, int] = {sent.value: number for number, sent in enumerate(journal.sent)}
    for where, log in logs.items():
        last, at = -1, -1
        for offset, value in log:
            number = numbers.get(value)
            if number is None:
                continue
            sent = journal.sent[number]
            assert number != last, f"{sent} is in {where} at {at} and at {offset}: twice"
            assert number > last, f"{sent} is in {where} at {offset}, behind what was sent later: {journal.sent[last]}"
            last, at = number, offset


def check_origin(journals: Sequence[Journal], logs: Logs) -> None:
    """Nothing is in a log that was not sent, and nothing is in two."""
    sent = {one.value for journal in journals for one in journal.sent}
    found: dict[bytes | None, TopicPartition] = {}
    for where, log in logs.items():
        for _, value in log:
            assert value in sent, f"{value!r} in {where} was never sent"
            assert found.setdefault(value, where) == where, f"{value!r} is in {where} and in {found[value]}"


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
