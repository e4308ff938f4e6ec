"""Acquired records that the user has not taken yet."""

import math
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from .fetch_size import FetchSize
from .share_record import ShareRecord

__all__ = ("ShareBuffer",)


class ShareBuffer:
    """Acquired records in the order of arrival, until the user takes them. It measures how fast the user is.

    Args:
        size: depends on how soon the user takes all records.
    """

    def __init__(self, size: FetchSize) -> None:
        self._records: deque[ShareRecord[Any, Any]] = deque()
        self._size = size
        self._arrived_at = 0.0
        # No lock ends before this time, as far as ending() has seen; locks are only prolonged.
        self._first_end = math.inf

    def __len__(self) -> int:
        return len(self._records)

    def put(self, records: Collection[ShareRecord[Any, Any]], now: float) -> None:
        """Add records that were acquired just now."""
        if not self._records:
            self._arrived_at = now
        self._size.arrived(len(records))
        self._first_end = min([self._first_end, *(record.lock_end for record in records)])
        self._records.extend(records)

    def take(self, limit: int, now: float, lock_seconds: float) -> list[ShareRecord[Any, Any]]:
        """Remove and return up to ``limit`` records; drop those whose locks have ended."""
        taken: list[ShareRecord[Any, Any]] = []
        records = self._records
        while records and len(taken) < limit:
            first = [records.popleft() for _ in range(min(limit - len(taken), len(records)))]
            taken += [record for record in first if record.lock_end > now]
        if not records and taken:
            self._size.taken(now - self._arrived_at, lock_seconds)
        return taken

    def drop(self, unwanted: Callable[[ShareRecord[Any, Any]], bool]) -> list[ShareRecord[Any, Any]]:
        """Remove and return the records that are unwanted."""
        dropped = [record for record in self._records if unwanted(record)]
        if dropped:
            self._records = deque(record for record in self._records if not unwanted(record))
        return dropped

    def ending(self, before: float) -> list[ShareRecord[Any, Any]]:
        """Return the records whose locks end before this time."""
        if self._first_end >= before:
            return []
        self._first_end = min((record.lock_end for record in self._records), default=math.inf)
        return [record for record in self._records if record.lock_end < before]
