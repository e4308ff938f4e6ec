"""The checks of a record's arguments, with their errors; the compiled and the pure appender share them."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Final

from ..argument_checks import is_text, shown
from ..errors import UsageError
from ..serialization import discard_awaitable
from ..types import Header, Headers

__all__ = (
    "PartitionNotKnown",
    "RECORD_OVERHEAD",
    "YIELD_EVERY",
    "bytes_needed",
    "copy_bytes",
    "header_pairs",
    "invalid_partition",
    "invalid_timestamp",
    "invalid_topic",
    "wrong_thread",
)

RECORD_OVERHEAD: Final = 24
"""The part of ``record_size_bound``, in bytes, that most records do not need: their lengths and deltas are short."""

YIELD_EVERY: Final = 1000
"""The number of accepted records after which a method yields to other tasks, even if it never has to wait."""

_HEADERS: Final = "pairs of a name and bytes or None, such as [('source', b'web')], or a mapping"


def invalid_timestamp(timestamp_ms: object) -> UsageError:
    """Return the error for an invalid timestamp."""
    return UsageError(f"timestamp_ms must be a non-negative integer (ms since the epoch), got {timestamp_ms!r}")


def invalid_topic(topic: object) -> UsageError:
    """Return the error for a topic's name that is no string."""
    return UsageError(f"a topic's name must be a string, got {shown(topic)}")


def wrong_thread() -> UsageError:
    """Return the error for a call from a thread that is not the event loop's."""
    return UsageError(
        "the producer was called from a thread that does not run its event loop: call it on the loop's thread "
        "(loop.call_soon_threadsafe, anyio.from_thread.run), or use aiokafkawire.blocking, which any thread may call"
    )


class PartitionNotKnown(UsageError):
    """The topic does not have the partition, by metadata that may be older than the partition."""


def invalid_partition(topic: str, partition: object, count: int) -> UsageError:
    """Return the error for a partition that the topic does not have; PartitionNotKnown if it may have been added."""
    if isinstance(partition, bool) or not isinstance(partition, int):
        return UsageError(
            f"partition must be an integer from 0 to {count - 1} for topic {topic!r}, got {shown(partition)}"
        )
    found = UsageError if partition < 0 else PartitionNotKnown
    return found(f"topic {topic!r} has {count} partitions, no {partition!r:.100}")


def copy_bytes(given: object, part: str, *, serialized: bool) -> bytes:
    """Convert a record's key or value, given as a bytearray or a memoryview, to bytes.

    Args:
        given: the key or value.
        part: "key" or "value", for the error.
        serialized: whether ``given`` is the result of a serializer.

    Raises:
        UsageError: ``given`` is of another type, or a memoryview that was released.
    """
    if isinstance(given, bytearray | memoryview):
        try:
            return bytes(given)
        except ValueError as released:
            raise UsageError(f"the {part} cannot be read: {released}") from None
    hint = "" if serialized else f"; pass a {part}_serializer to client.producer() to convert other values"
    if serialized and isinstance(given, Awaitable):
        discard_awaitable(given)
        hint = "; an asynchronous serializer is an object with a method 'async def serialize(value, context)'"
    raise UsageError(f"{bytes_needed(given, part, serialized=serialized)}{hint}")


def bytes_needed(given: object, part: str, *, serialized: bool) -> str:
    """Return the text of the error for a key or a value that is not bytes; the arguments are those of copy_bytes."""
    source = f"the {part}_serializer returned" if serialized else f"the {part} is"
    return f"{source} a {type(given).__name__}, and bytes are needed"


def header_pairs(headers: Headers) -> Sequence[Header]:
    """Return the headers as pairs.

    Raises:
        UsageError: a header is invalid.
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


def _header(pair: Any) -> Header:
    """Check one header thoroughly and convert its content to bytes."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise UsageError(f"headers must be {_HEADERS}; one is {shown(pair)}")
    name, content = pair
    if not isinstance(name, str) or not (content is None or isinstance(content, bytes | bytearray | memoryview)):
        raise UsageError(f"a header must be a string and bytes or None, got {name!r:.200}: {content!r:.200}")
    if not is_text(name):
        raise UsageError(f"a header's name must be text that UTF-8 can encode, got {name!r:.200}")
    return name, content if content is None or isinstance(content, bytes) else bytes(content)
