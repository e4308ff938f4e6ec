"""The functions that users import from aiokafka's module of helpers."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from .. import types
from .structs import OffsetAndMetadata, TopicPartition

__all__ = (
    "INTEGER_MAX_VALUE",
    "INTEGER_MIN_VALUE",
    "commit_structure_validate",
    "create_future",
    "create_task",
    "get_running_loop",
)

T = TypeVar("T")

INTEGER_MAX_VALUE = 2**31 - 1
INTEGER_MIN_VALUE = -(2**31)


def get_running_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop."""
    return asyncio.get_running_loop()


def create_task(coro: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Return a task of the running event loop."""
    return asyncio.get_running_loop().create_task(coro)


def create_future(loop: asyncio.AbstractEventLoop | None = None) -> "asyncio.Future[Any]":
    """Return a future of the event loop, by default the running one."""
    return (loop or asyncio.get_running_loop()).create_future()


def commit_structure_validate(
    offsets: Mapping[TopicPartition, int | tuple[int, str] | OffsetAndMetadata],
) -> dict[TopicPartition, types.OffsetAndMetadata]:
    """Return the offsets of a commit, in any of aiokafka's forms, in this client's.

    Raises:
        ValueError: there is no offset, or one is of another form.
        TypeError: a key is no TopicPartition, or the metadata is no text.
    """
    if not offsets or not isinstance(offsets, Mapping):
        raise ValueError(f"offsets must be a mapping such as {{TopicPartition('orders', 0): 42}}, got {offsets!r:.200}")
    return {_partition(partition): _offset(given) for partition, given in offsets.items()}


def _partition(given: object) -> TopicPartition:
    if not isinstance(given, TopicPartition):
        raise TypeError(f"a key of offsets must be a TopicPartition, got {given!r:.200}")
    return given


def _offset(given: Any) -> types.OffsetAndMetadata:
    if isinstance(given, types.OffsetAndMetadata):
        return given
    if isinstance(given, int):
        return types.OffsetAndMetadata(given)
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(f"an offset must be a number, or a number and a text, got {given!r:.200}")
    offset, metadata = given
    if not isinstance(metadata, str):
        raise TypeError(f"the metadata of an offset must be text, got {metadata!r:.200}")
    return types.OffsetAndMetadata(offset, metadata)
