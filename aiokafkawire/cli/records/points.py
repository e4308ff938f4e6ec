"""Points in a topic as users write them: offsets, times, and the two ends."""

import re
from datetime import datetime
from typing import Final, TypeAlias

import attrs

from ...argument_checks import INT64
from ...types import OffsetSpec
from ..exit_status import MISSING, CommandFailed
from ..shell.durations import duration_ms

__all__ = ("POINTS_HELP", "BeforeEnd", "Point", "parse_point", "parse_time")

POINTS_HELP: Final = (
    "'beginning', 'end', an offset such as 42, -10 for the last 10 offsets of each partition, a time such as "
    "2026-11-23T17:30 or @1795000000000 (ms since 1970), or a duration before now such as 90s, 15m, 2h or 7d"
)

_ENDS: Final = {
    "beginning": OffsetSpec.EARLIEST,
    "earliest": OffsetSpec.EARLIEST,
    "end": OffsetSpec.LATEST,
    "latest": OffsetSpec.LATEST,
}


@attrs.frozen
class BeforeEnd:
    """The offset that is this many before the end of a partition."""

    count: int


Point: TypeAlias = int | OffsetSpec | BeforeEnd
"""A point in each partition: an offset, an end or a time, or a number of offsets before the end."""


def parse_point(option: str, text: str, now_ms: int) -> Point:
    """Return the point that the text means.

    Args:
        option: the option's name, for the error.
        text: the point as :data:`POINTS_HELP` describes it.
        now_ms: the current time, in ms since the epoch.

    Raises:
        CommandFailed: the text means no point (exit status 2).
    """
    if text in _ENDS:
        return _ENDS[text]
    if re.fullmatch(r"-\d{1,19}", text):
        return BeforeEnd(int(text[1:]))
    if re.fullmatch(r"\d{1,19}", text) and int(text) <= INT64:
        return int(text)
    milliseconds = _time(text, now_ms)
    if milliseconds is None:
        raise CommandFailed(f"{option}: {text!r} is no point in a topic; write {POINTS_HELP}", MISSING)
    return OffsetSpec.at(milliseconds)


def parse_time(option: str, text: str, now_ms: int) -> int:
    """Return the time that the text means, in ms since the epoch; the arguments are those of :func:`parse_point`.

    Raises:
        CommandFailed: the text is no time (exit status 2).
    """
    milliseconds = _time(text, now_ms)
    if milliseconds is None and re.fullmatch(r"\d{1,18}", text):
        milliseconds = int(text)
    if milliseconds is None:
        known = "2026-11-23T17:30, 1795000000000 (ms since 1970), or 2h for two hours ago"
        raise CommandFailed(f"{option}: {text!r} is no time; write it as {known}", MISSING)
    return milliseconds


def _time(text: str, now_ms: int) -> int | None:
    ago = duration_ms(text)
    if ago is not None:
        return max(0, now_ms - ago)
    if re.fullmatch(r"@\d{1,18}", text):
        return int(text[1:])
    if text.isdecimal() and len(text) != 8:
        return None  # fromisoformat() would read some milliseconds since 1970 as a date and a time
    try:
        moment = datetime.fromisoformat(text)
        # A time without a zone is in the local zone.
        return max(0, round(moment.timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        return None
