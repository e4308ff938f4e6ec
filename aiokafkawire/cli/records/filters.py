"""Filters of records by key, value, header and timestamp."""

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..exit_status import MISSING, CommandFailed
from .formats import Record

__all__ = ("Filter", "make_filter")

Filter: TypeAlias = Callable[[Record], bool]
"""Returns whether a record is to be printed."""


def make_filter(
    *,
    key: str | None = None,
    value: str | None = None,
    headers: Sequence[str] = (),
    after_ms: int | None = None,
    before_ms: int | None = None,
    ignore_case: bool = False,
    invert: bool = False,
) -> Filter | None:
    """Return a filter that keeps the records that pass all conditions; None if there is no condition.

    Args:
        key, value: regular expressions that are searched for in the bytes of the key and the value; null never matches.
        headers: ``NAME``, a header that a record must have, or ``NAME=REGEX``, which its value must match.
        after_ms: the earliest timestamp, in ms since the epoch.
        before_ms: the timestamp before which records must be.
        ignore_case: whether the regular expressions ignore case.
        invert: whether to keep the records that do not pass instead.

    Raises:
        CommandFailed: a regular expression is wrong (exit status 2).
    """
    conditions: list[Filter] = []
    if after_ms is not None:
        conditions.append(_is_after(after_ms))
    if before_ms is not None:
        conditions.append(_is_before(before_ms))
    if key is not None:
        conditions.append(_matches_key(_pattern("--key", key, ignore_case)))
    if value is not None:
        conditions.append(_matches_value(_pattern("--grep", value, ignore_case)))
    conditions += [_matches_header(header, ignore_case) for header in headers]
    if not conditions:
        return None
    if len(conditions) == 1 and not invert:
        return conditions[0]
    return lambda record: all(condition(record) for condition in conditions) is not invert


def _pattern(option: str, text: str, ignore_case: bool) -> re.Pattern[bytes]:
    try:
        return re.compile(text.encode("utf-8", "surrogateescape"), re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise CommandFailed(f"{option}: {text!r} is no regular expression: {error}", MISSING) from None


def _is_after(milliseconds: int) -> Filter:
    return lambda record: record.timestamp >= milliseconds


def _is_before(milliseconds: int) -> Filter:
    return lambda record: 0 <= record.timestamp < milliseconds


def _matches_key(pattern: re.Pattern[bytes]) -> Filter:
    search = pattern.search

    def matches(record: Record) -> bool:
        key = record.raw_key
        return key is not None and search(key) is not None

    return matches


def _matches_value(pattern: re.Pattern[bytes]) -> Filter:
    search = pattern.search

    def matches(record: Record) -> bool:
        value = record.raw_value
        return value is not None and search(value) is not None

    return matches


def _matches_header(header: str, ignore_case: bool) -> Filter:
    name, equals, text = header.partition("=")
    if not equals:
        return lambda record: any(given == name for given, _ in record.headers)
    search = _pattern("--header", text, ignore_case).search
    return lambda record: any(
        given == name and value is not None and search(value) is not None for given, value in record.headers
    )
