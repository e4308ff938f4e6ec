"""The conditions of a query that narrow what a batch reads, so that Spark need not read records to drop them."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import attrs

from ..types import TopicPartition
from .offsets import Offsets

__all__ = ("Operator", "PushedFilters")

Operator: TypeAlias = str
"""How a column is compared: ``=``, ``in``, ``>``, ``>=``, ``<`` or ``<=``."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


@attrs.define
class PushedFilters:
    """Conditions that all records must meet; without any, every record does."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first: int = 0
    """The smallest offset to read in each partition."""
    end: int | None = None
    """The offset before which each partition ends."""
    since: int | None = None
    """A time in ms since the epoch; records before the first one that is not older are left out."""

    def push(self, column: str, operator: Operator, value: Any) -> bool:
        """Limit what is read by one condition; return whether no record needs to be checked for it any more."""
        match column, operator:
            case "topic", "=" | "in":
                self.topics = _both(self.topics, [value] if operator == "=" else value)
            case "partition", "=" | "in":
                self.partitions = _both(self.partitions, [value] if operator == "=" else value)
            case "offset", "=" | ">" | ">=" | "<" | "<=" if type(value) is int:
                self._push_offset(operator, value)
            case "timestamp", "=" | ">" | ">=" if isinstance(value, datetime) and value.tzinfo is not None:
                self._push_time((value - _EPOCH) // _MS)
                return False  # later records may be older
            case _:
                return False
        return True

    def _push_offset(self, operator: Operator, value: int) -> None:
        if operator in ("=", ">", ">="):
            self.first = max(self.first, value + (operator == ">"))
        if operator in ("=", "<", "<="):
            end = value + (operator != "<")
            self.end = end if self.end is None else min(self.end, end)

    def _push_time(self, ms: int) -> None:
        if ms >= 0:  # records without a timestamp have -1, and brokers look up no time before 0
            self.since = ms if self.since is None else max(self.since, ms)

    def admits(self, partition: TopicPartition) -> bool:
        """Return whether the conditions on topics and partitions admit this one."""
        return (self.topics is None or partition.topic in self.topics) and (
            self.partitions is None or partition.partition in self.partitions
        )

    def narrow(
        self, start: Offsets, end: Offsets, since: Mapping[TopicPartition, int | None]
    ) -> tuple[Offsets, Offsets]:
        """Return the starts and ends of what the conditions leave.

        Args:
            start: the first offset of each partition.
            end: the end of each partition.
            since: the offset of the first record at or after :attr:`since`, where one was looked up; None if all
                records are older.
        """
        ends = {each: at if self.end is None else min(at, self.end) for each, at in end.items()}
        starts = {}
        for partition, at in start.items():
            found = since.get(partition, 0)
            starts[partition] = max(at, self.first, ends.get(partition, at) if found is None else found)
        return starts, ends


def _both(before: frozenset[Any] | None, values: Collection[Any]) -> frozenset[Any]:
    return frozenset(values) if before is None else before & frozenset(values)
