"""Reads durations as users write them, such as 90s or 7d."""

import re
from typing import Final

from ..exit_status import MISSING, CommandFailed

__all__ = ("duration_ms", "parse_duration")

_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION: Final = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,3}})?)({'|'.join(_UNITS)})")


def duration_ms(text: str) -> int | None:
    """Return the duration that the text means, in ms; None if it means none."""
    found = _DURATION.fullmatch(text)
    return None if found is None else round(float(found[1]) * _UNITS[found[2]])


def parse_duration(option: str, text: str) -> int:
    """Return the duration that the text means, in ms; ``option`` is the option's name, for the error.

    Raises:
        CommandFailed: the text means no duration (exit status 2).
    """
    milliseconds = duration_ms(text)
    if milliseconds is None:
        raise CommandFailed(f"{option}: {text!r} is no duration; write it as 500ms, 90s, 15m, 2h, 7d or 2w", MISSING)
    return milliseconds
