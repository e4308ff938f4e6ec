"""Acquired records that the user has not taken yet."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

from ._implementation import ShareRecord
from .fetch_size import FetchSize

__all__ = ("ShareBuffer",)


class ShareBuffer:
    """Acquired records in the order of arrival, until the user takes them. It measures how fast the user is.

    Args:
        size: depends on how soon the user takes all records.
    """

    def __init__(self, size: FetchSize) -> None:
        # Each list has the records of one acquisition; the first ones of the first list were taken.
        self._parts: deque[list[ShareRecord[Any, Any]]] = deque()
        self._taken = 0
        self._count = 0
        self._size = size
        self._arrived_at = 0.0
        # No lock ends before this time, as far as ending() has seen; locks are only prolonged.
        self._first_end = math.inf

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ShareRecord[Any, Any]]:
        return islice(chain.from_iterable(self._parts), self._taken, None)

    def put(self, records: list[ShareRecord[Any, Any]], now: float) -> None:
        """Add the records of one acquisition that were acquired just now."""
        self._size.arrived(len(records))
        if not self._count:
            self._arrived_at = now
        if records:
            self._first_end = min(self._first_end, records[0].acquisition.first_end)
            self._parts.append(records)
            self._count += len(records)

    def take(self, limit: int, now: float, lock_seconds: float) -> list[list[ShareRecord[Any, Any]]]:
        """Remove and return up to ``limit`` records, in parts of one acquisition each; drop those with ended locks."""
        taken: list[list[ShareRecord[Any, Any]]] = []
        while self._parts and limit:
            part = self._parts[0][self._taken : self._taken + limit]
            self._taken += len(part)
            self._count -= len(part)
            if self._taken == len(self._parts[0]):
                self._parts.popleft()
                self._taken = 0
            if part[0].acquisition.first_end <= now:
                part = [record for record in part if record.lock_end > now]
            if part:
                taken.append(part)
                limit -= len(part)
        if not self._parts and taken:
            self._size.taken(now - self._arrived_at, lock_seconds)
        return taken

    def drop(self, unwanted: Callable[[ShareRecord[Any, Any]], bool]) -> list[ShareRecord[Any, Any]]:
        """Remove and return the records that are unwanted."""
        dropped = [record for record in self if unwanted(record)]
        if dropped:
            self._parts[0] = self._parts[0][self._taken :]
            kept = ([record for record in part if not unwanted(record)] for part in self._parts)
            self._parts, self._taken = deque(part for part in kept if part), 0
            self._count -= len(dropped)
        return dropped

    def ending(self, before: float) -> list[ShareRecord[Any, Any]]:
        """Return the records whose locks end before this time."""
        if self._first_end >= before:
            return []
        self._first_end = min((record.lock_end for record in self), default=math.inf)
        return [record for record in self if record.lock_end < before]
