"""The form of offsets in options and checkpoints: ``{"topic": {"0": 1}}``; -2 means earliest, -1 latest."""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import attrs

from ..errors import ConfigError, UsageError
from ..types import TopicPartition, check_partition

__all__ = (
    "EARLIEST",
    "LATEST",
    "OffsetRange",
    "Offsets",
    "SparkOffsets",
    "parse_assign",
    "parse_offsets",
    "parse_times",
    "read_offsets",
    "write_offsets",
)

Offsets: TypeAlias = dict[TopicPartition, int]
SparkOffsets: TypeAlias = dict[str, dict[str, int]]
"""Offsets by topic and partition number, as in the JVM source's checkpoints."""

EARLIEST: Final = -2
LATEST: Final = -1


@attrs.frozen
class OffsetRange:
    """A range of one partition's offsets, from ``start`` up to but not including ``end``.

    Raises:
        UsageError: the topic's name or the partition is not valid, or the end is before the start.
    """

    topic: str
    partition: int
    start: int
    end: int

    def __attrs_post_init__(self) -> None:
        check_partition((self.topic, self.partition))
        if not 0 <= self.start <= self.end:
            raise UsageError(f"{self.where} cannot be read from {self.start} to {self.end}: 0 <= start <= end")

    @property
    def where(self) -> TopicPartition:
        """The range's partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """The number of offsets; there may be fewer records, since compaction and transactions leave gaps."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.where}[{self.start}:{self.end}]"


def read_offsets(given: object, what: str) -> Offsets:
    """Read the offsets of a dict ``{"topic": {"0": 1}}``; ``what`` names the source of the dict in errors.

    Raises:
        ConfigError: the dict has another form.
    """
    if not isinstance(given, Mapping):
        raise _no_offsets(what, given)
    found: Offsets = {}
    for topic, partitions in given.items():
        if not isinstance(partitions, Mapping):
            raise _no_offsets(what, given)
        for index, offset in partitions.items():
            if isinstance(offset, bool) or not isinstance(offset, int) or not str(index).isdecimal():
                raise _no_offsets(what, given)
            found[_partition(topic, int(index), what)] = offset
    return found


def write_offsets(offsets: Mapping[TopicPartition, int]) -> SparkOffsets:
    """Convert offsets to the form of the JVM source's checkpoints, sorted by topic and partition."""
    written: SparkOffsets = {}
    for partition, offset in sorted(offsets.items()):
        written.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return written


def parse_offsets(text: str, option: str) -> Offsets:
    """Read the JSON of ``startingOffsets`` or ``endingOffsets``; raise ConfigError for other JSON or offsets < -2."""
    found = read_offsets(_json(text, option), option)
    for partition, offset in found.items():
        if offset < EARLIEST:
            raise ConfigError(f"{option}: {partition} cannot be at {offset}: -2 is the earliest, -1 the latest offset")
    return found


def parse_times(text: str, option: str) -> Offsets:
    """Read the JSON of ``...OffsetsByTimestamp``: ms since the epoch for each partition.

    Raises:
        ConfigError: the JSON has another form, or a time is negative.
    """
    found = read_offsets(_json(text, option), option)
    for partition, time in found.items():
        if time < 0:
            raise ConfigError(f"{option}: {partition} needs ms since the epoch, got {time}")
    return found


def parse_assign(text: str) -> tuple[TopicPartition, ...]:
    """Read the JSON of ``assign``: ``{"topic": [0, 1]}``; raise ConfigError if the JSON has another form."""
    given = _json(text, "assign")
    if not isinstance(given, dict) or not given or not all(isinstance(indexes, list) for indexes in given.values()):
        raise ConfigError(f'assign must be JSON like {{"topic": [0, 1]}}, got {text!r}')
    return tuple(sorted({_partition(topic, index, "assign") for topic, indexes in given.items() for index in indexes}))


def _partition(topic: object, index: object, what: str) -> TopicPartition:
    try:
        return check_partition((topic, index))  # type: ignore[arg-type]
    except UsageError as error:
        raise ConfigError(f"{what}: {error}") from error


def _json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{option} must be JSON, got {text[:200]!r} ({error})") from error


def _no_offsets(what: str, given: object) -> ConfigError:
    return ConfigError(f'{what} must be like {{"topic": {{"0": 23}}}}, got {str(given)[:200]}')
