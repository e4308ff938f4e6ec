"""Makes the rows and the text about dead letters."""

from collections.abc import Iterable
from typing import Any, Final

import attrs

from ...processing.failures import PREFIX, Failure, failure_of
from ...types import Header
from ..records.formats import Record, json_bytes
from ..shell.safe_text import safe_bytes, safe_text
from ..shell.times import iso_time

__all__ = ("LISTED", "REPLAYED", "FailureCounts", "letter_row", "letter_text", "replay_rows")

LISTED: Final = ("origin_topic", "group_id", "error", "dead_letters", "first_failed_timestamp", "last_failed_timestamp")
REPLAYED: Final = ("origin_topic", "dead_letters", "outcome")
_TEXT_LIMIT: Final = 64 * 1024
"""The most characters of a key, a header or a value in the text for people; JSON has all of it."""

_Kind = tuple[str | None, str | None, str | None]


@attrs.define
class _Count:
    records: int
    first_ms: int
    last_ms: int


class FailureCounts:
    """Counts dead letters by origin topic, group and error; records without a failure are counted together."""

    def __init__(self) -> None:
        self._counts: dict[_Kind, _Count] = {}

    def add(self, failure: Failure | None, timestamp_ms: int) -> None:
        """Count a dead letter with this failure and this timestamp of its own."""
        kind = (None, None, None) if failure is None else (failure.topic, failure.group, failure.error)
        count = self._counts.get(kind)
        if count is None:
            self._counts[kind] = _Count(1, timestamp_ms, timestamp_ms)
            return
        count.records += 1
        count.first_ms, count.last_ms = min(count.first_ms, timestamp_ms), max(count.last_ms, timestamp_ms)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each origin topic, group and error, sorted by these."""
        return [
            {
                "origin_topic": topic,
                "group_id": group,
                "error": error,
                "dead_letters": count.records,
                "first_failed_timestamp": count.first_ms,
                "last_failed_timestamp": count.last_ms,
            }
            for (topic, group, error), count in sorted(
                self._counts.items(), key=lambda item: tuple(part or "" for part in item[0])
            )
        ]


def replay_rows(replayed: dict[str, int], outcome: str) -> list[dict[str, Any]]:
    """Return a row for each origin topic, with the number of its dead letters that are replayed."""
    return [
        {"origin_topic": topic, "dead_letters": count, "outcome": outcome} for topic, count in sorted(replayed.items())
    ]


def letter_row(record: Record) -> dict[str, Any]:
    """Return the row of one dead letter; fields that its headers lack are null."""
    failure = failure_of(record.headers)
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": None if record.timestamp < 0 else record.timestamp,
        "origin_topic": failure and failure.topic,
        "origin_partition": failure and failure.partition,
        "origin_offset": failure and failure.offset,
        "origin_timestamp": None if failure is None or failure.timestamp_ms < 0 else failure.timestamp_ms,
        "group_id": failure and failure.group,
        "attempts": failure and failure.attempts,
        "error": failure and failure.error,
        "message": failure and failure.message,
        "stack": failure and failure.stack,
        "key": json_bytes(record.raw_key),
        "value": json_bytes(record.raw_value),
        "headers": [[name, json_bytes(value)] for name, value in _own(record.headers, failure)],
    }


def letter_text(record: Record) -> str:
    """Return one dead letter as text for people."""
    failure = failure_of(record.headers)
    lines = [("dead letter", _place(record.topic, record.partition, record.offset, record.timestamp))]
    if failure is None:
        lines.append(("failure", "its headers describe none"))
    else:
        lines += [
            ("read from", _place(failure.topic, failure.partition, failure.offset, failure.timestamp_ms)),
            ("group", safe_text(failure.group)),
            ("attempts", str(failure.attempts)),
            ("error", safe_text(f"{failure.error}: {failure.message}", _TEXT_LIMIT)),
        ]
    lines.append(("key", safe_bytes(record.raw_key, _TEXT_LIMIT)))
    lines += [
        ("header", f"{safe_text(name)}={safe_bytes(value, _TEXT_LIMIT)}")
        for name, value in _own(record.headers, failure)
    ]
    lines.append(("value", safe_bytes(record.raw_value, _TEXT_LIMIT)))
    text = "".join(f"{name:<13}{value}\n" for name, value in lines)
    if failure is None or not failure.stack:
        return text
    return f"{text}\n" + "".join(f"{safe_text(line, _TEXT_LIMIT)}\n" for line in failure.stack.splitlines())


def _own(headers: Iterable[Header], failure: Failure | None) -> list[Header]:
    """Return the headers of the record itself; all of them if they do not describe a failure."""
    return [(name, value) for name, value in headers if failure is None or not name.startswith(PREFIX)]


def _place(topic: str, partition: int, offset: int, timestamp_ms: int) -> str:
    return f"{safe_text(topic)}:{partition}, offset {offset}, {iso_time(timestamp_ms)}"
