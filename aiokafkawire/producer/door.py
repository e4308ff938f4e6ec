"""What both twins of the appender have in common: whom they ask, and how they refuse."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from ..argument_checks import is_text, shown
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
    "copy_bytes",
    "header_pairs",
    "refuse_partition",
    "refuse_thread",
    "refuse_timestamp",
    "refuse_topic",
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


def refuse_topic(topic: object) -> UsageError:
    """Return the error for a topic's name that is no string."""
    return UsageError(f"a topic's name must be a string, got {shown(topic)}")


def refuse_thread() -> UsageError:
    """Return the error for a call from a thread that is not the event loop's."""
    return UsageError(
        "the producer was called from a thread that does not run its event loop: call it on the loop's thread "
        "(loop.call_soon_threadsafe, anyio.from_thread.run), or use aiokafkawire.blocking, which any thread may call"
    )


def refuse_partition(topic: str, partition: object, count: int) -> UsageError:
    """Why that is no partition of the topic."""
    if isinstance(partition, bool) or not isinstance(partition, int):
        return UsageError(
            f"partition must be an integer from 0 to {count - 1} for topic {topic!r}, got {shown(partition)}"
        )
    return UsageError(f"topic {topic!r} has {count} partitions, no {partition!r:.100}")


def copy_bytes(given: object, what: str, *, made: bool) -> bytes:
    """Return a copy of a bytearray or a memoryview; ``what`` is "key" or "value".

    Args:
        given: what is no bytes object.
        what: which part of the record it is.
        made: whether a serializer made it.

    Raises:
        UsageError: it is something else, or a memoryview that was released.
    """
    if isinstance(given, bytearray | memoryview):
        try:
            return bytes(given)
        except ValueError as released:
            raise UsageError(f"the {what} cannot be read: {released}") from None
    source = f"the {what}_serializer gave" if made else f"the {what} is"
    hint = "" if made else f"; a {what}_serializer of client.producer() makes bytes of other values"
    raise UsageError(f"{source} a {type(given).__name__}, and bytes are needed{hint}")


def header_pairs(headers: Headers) -> Sequence[Header]:
    """Headers as pairs.

    Raises:
        UsageError: one is something else.
    """
    given: Any = headers.items() if isinstance(headers, Mapping) else headers
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise UsageError(f"headers must be {_HEADERS}, got {shown(headers)}")
    pairs = list(given)
    for pair in pairs:
        if type(pair) is not tuple or len(pair) != 2:
            break
        name, content = pair
        if not isinstance(name, str) or not name.isascii() or not (content is None or isinstance(content, bytes)):
            break
    else:
        return pairs
    return [_header(pair) for pair in pairs]


_HEADERS: Final = "pairs of a name and bytes or None, such as [('source', b'web')], or a mapping"


def _header(pair: Any) -> Header:
    """Read one header that is not of the plainest kind."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise UsageError(f"headers must be {_HEADERS}; one is {shown(pair)}")
    name, content = pair
    if not isinstance(name, str) or not (content is None or isinstance(content, bytes | bytearray | memoryview)):
        raise UsageError(f"a header is a string and bytes or None, got {name!r:.200}: {content!r:.200}")
    if not is_text(name):
        raise UsageError(f"a header's name must be text that UTF-8 can encode, got {name!r:.200}")
    return name, content if content is None or isinstance(content, bytes) else bytes(content)
