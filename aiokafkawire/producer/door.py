"""What both twins of the appender have in common: whom they ask, and how they refuse."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from ..errors import KafkaError, UsageError
from ..types import Header, Headers

if TYPE_CHECKING:
    from .appending import OpenBatch, OpenTopic, Turn

__all__ = (
    "SPARE",
    "YIELD_EVERY",
    "Choose",
    "Door",
    "Loop",
    "Partitioning",
    "header_pairs",
    "refuse_partition",
    "refuse_timestamp",
)

SPARE: Final = 24
"""What ``record_size_bound`` allows for, and nearly no record takes: the longest lengths and deltas."""


YIELD_EVERY: Final = 1000
"""Records after which a caller who never has to wait lets other tasks run."""


class Choose(Protocol):
    """Chooses a record's partition, by index. To be called once for each record, when there is room for it."""

    def __call__(self, topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        """``available`` are the partitions with a leader, of ``count`` in all; ``size`` is ``record_size_bound``'s.

        A topic's ``available`` is the same object until one of them comes or goes, and another one afterwards.
        """


@attrs.frozen
class Partitioning:
    """How records are spread.

    ``choose`` is always right. What it would say can be known without the call: that keys go by murmur2, and what it
    says by ``turns`` as long as one's ``limit`` is not reached, or its ``most`` while the open batch has room, for
    records without a key, or for all if it ``ignores_keys``.
    """

    choose: Choose
    hashes_keys: bool = False
    ignores_keys: bool = False
    turns: "Mapping[str, Turn] | None" = None


class Door(Protocol):
    """Where records come in, and what opens topics and batches for them."""

    def open_topic(self, topic: str, /) -> "OpenTopic":
        """The topic, as soon as something is known of it. Raises where nothing can be sent, or not to it."""

    def open_batch(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        /,
    ) -> "tuple[OpenBatch, int]":
        """Put a record into the partition's open batch, or a new one: the batch, and its index there."""

    def ask(self, topic: str, partition: int, /) -> None:
        """Raise if no record may be sent there now."""

    def refuse(self, topic: str, size: int, /) -> KafkaError:
        """Why there is no room for a record of up to so many bytes."""

    def wake(self) -> None:
        """A batch was begun, or is full."""

    def go_now(self) -> "Coroutine[Any, Any, None] | None":
        """A batch was begun, and its caller has nothing better to do than to send it, if nothing is on its way.

        What is given is to be awaited at once; None where all is done.
        """

    async def let_others_run(self) -> None:
        """Whoever calls never had to wait for a long time."""

    async def accept(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
        /,
    ) -> "tuple[OpenBatch, int]":
        """Put a record into a batch as soon as there is room and its topic is known: the batch, and its index there.

        Raises where that takes too long.
        """


class Loop(Protocol):
    """As much of asyncio's event loop as it takes to have tasks wait."""

    def create_future(self) -> Any:
        """A future of it."""

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> object:
        """Have it called in the next turn."""


def refuse_timestamp(timestamp_ms: object) -> UsageError:
    """Why that is no time of a record."""
    return UsageError(f"timestamp_ms is ms since the epoch, a whole number from 0 on, got {timestamp_ms!r}")


def refuse_partition(topic: str, partition: object, count: int) -> UsageError:
    """Why that is no partition of the topic."""
    return UsageError(f"topic {topic!r} has {count} partitions, no {partition!r}")


def header_pairs(headers: Headers) -> Sequence[Header]:
    """Headers as pairs.

    Raises:
        UsageError: one is something else.
    """
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    for name, content in pairs:
        if not isinstance(name, str) or not (content is None or isinstance(content, bytes)):
            raise UsageError(f"a header is a string and bytes or None, got {name!r}: {content!r}")
    return pairs
