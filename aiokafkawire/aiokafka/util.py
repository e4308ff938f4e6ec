"""The functions that users import from aiokafka's module of helpers."""

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from typing import Any, TypeVar

from ..argument_checks import shown
from .structs import OffsetAndMetadata, TopicPartition

__all__ = (
    "INTEGER_MAX_VALUE",
    "INTEGER_MIN_VALUE",
    "NO_EXTENSIONS",
    "commit_structure_validate",
    "create_future",
    "create_task",
    "get_running_loop",
    "parse_kafka_version",
    "wait_for",
)

T = TypeVar("T")

INTEGER_MAX_VALUE = 2**31 - 1
INTEGER_MIN_VALUE = -(2**31)
NO_EXTENSIONS = False
"""Whether aiokafka's compiled code is switched off, which has no meaning here."""


def get_running_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop."""
    return asyncio.get_running_loop()


def create_task(coro: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Return a task of the running event loop."""
    return asyncio.get_running_loop().create_task(coro)


def create_future(loop: asyncio.AbstractEventLoop | None = None) -> "asyncio.Future[Any]":
    """Return a future of the event loop, by default the running one."""
    return (loop or asyncio.get_running_loop()).create_future()


async def wait_for(fut: Awaitable[T], timeout: float | None = None) -> T:
    """Return the result of an awaitable.

    Raises:
        TimeoutError: the time in seconds has passed before.
    """
    async with asyncio.timeout(timeout):
        return await fut


def parse_kafka_version(api_version: str) -> tuple[int, int, int]:
    """Return the three parts of a release of Kafka, such as "2.8": aiokafka knows 0.9 to 2.

    Raises:
        ValueError: it is another one, or no release.
    """
    parts = (*map(int, api_version.split(".")), 0)
    if len(parts) not in (3, 4) or not (0, 9) <= parts < (3, 0):
        raise ValueError(f"api_version must be a release such as 2.8, from 0.9 up to 2, got {api_version!r:.200}")
    return parts[0], parts[1], parts[2]


def commit_structure_validate(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets to commit, each with its text.

    Raises:
        ValueError: the offsets are empty, or a value is not an offset.
        TypeError: a key is no TopicPartition, or a text is no string.
    """
    if not offsets or not isinstance(offsets, Mapping):
        raise ValueError(f"offsets must be a dict of partitions and offsets, got {shown(offsets)}")
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, given in offsets.items():
        if not isinstance(partition, TopicPartition):
            raise TypeError(f"Key should be TopicPartition instance, got {shown(partition)}")
        offset, metadata = (given, "") if isinstance(given, int) else _pair(partition, given)
        if not isinstance(metadata, str):
            raise TypeError(f"Metadata should be a string, got {shown(metadata)}")
        if not isinstance(offset, int) or offset < 0:
            raise ValueError(f"the offset of {partition} must be an integer, 0 or above, got {shown(offset)}")
        found[partition] = OffsetAndMetadata(offset, metadata)
    return found


def _pair(partition: TopicPartition, given: object) -> tuple[object, object]:
    if isinstance(given, tuple | list) and len(given) == 2:
        return given[0], given[1]
    raise ValueError(f"the offset of {partition} must be an integer, or an integer and a text, got {shown(given)}")
