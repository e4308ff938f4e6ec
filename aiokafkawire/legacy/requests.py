"""The five requests of Kafka 0.6 and 0.7, and their answers. They have no version, correlation id or client id.

The frame of a request has a size, a key and a body; the frame of an answer has a size, an error code and a body.
Produce requests have no answer. An answer does not name its request, so the request is needed to decode the answer.
"""

import re
from enum import IntEnum
from struct import Struct, error
from typing import Final, TypeAlias

import attrs

from ..errors import UsageError
from ..protocol.primitives import Buffer

__all__ = (
    "EARLIEST",
    "LATEST",
    "RANDOM_PARTITION",
    "Answer",
    "Fetch",
    "FetchAnswer",
    "MultiFetch",
    "MultiFetchAnswer",
    "MultiProduce",
    "Offsets",
    "OffsetsAnswer",
    "Produce",
    "Request",
    "RequestKey",
    "check_legacy_topic",
    "describe",
    "encode_answer",
    "encode_request",
    "largest_answer",
)

LATEST: Final = -1
"""The time in an offsets request for the end of the log."""
EARLIEST: Final = -2
"""The time in an offsets request for the beginning of the log."""
RANDOM_PARTITION: Final = -1
"""The partition of a produce request that leaves the choice to the broker."""

_INT16, _INT32, _INT64 = Struct(">h"), Struct(">i"), Struct(">q")
_FETCH, _OFFSETS = Struct(">iqi"), Struct(">iqi")

# The characters that 0.7.2 refuses in topic names: slashes, control characters, and characters beyond 16 bits.
_ILLEGAL: Final = re.compile("[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")
_LONGEST_NAME: Final = 255


class RequestKey(IntEnum):
    """The number of a request's type: the first field after the frame's size."""

    PRODUCE = 0
    FETCH = 1
    MULTI_FETCH = 2
    MULTI_PRODUCE = 3
    OFFSETS = 4


@attrs.frozen
class Produce:
    """A request to append a message set to a partition, which may be RANDOM_PARTITION."""

    topic: str
    partition: int
    messages: Buffer


@attrs.frozen
class Fetch:
    """A request for up to ``max_bytes`` of a partition's log from byte ``offset`` on."""

    topic: str
    partition: int
    offset: int
    max_bytes: int


@attrs.frozen
class Offsets:
    """A request for up to ``max_offsets`` offsets where segments begin; for ``time`` see ``LegacyClient.offsets``."""

    topic: str
    partition: int
    time: int
    max_offsets: int


@attrs.frozen
class MultiFetch:
    """A request with several fetches, which have one answer."""

    parts: tuple[Fetch, ...]


@attrs.frozen
class MultiProduce:
    """A request to append several message sets, one after another."""

    parts: tuple[Produce, ...]


Request: TypeAlias = Produce | Fetch | Offsets | MultiFetch | MultiProduce


@attrs.frozen
class FetchAnswer:
    """The answer to a fetch: at most ``max_bytes`` bytes of the log. They may end inside a message."""

    error_code: int
    messages: Buffer = b""


@attrs.frozen
class MultiFetchAnswer:
    """The answer to a MultiFetch: an answer for each fetch, in the order of the request."""

    error_code: int
    parts: tuple[FetchAnswer, ...] = ()


@attrs.frozen
class OffsetsAnswer:
    """The answer to an Offsets request: offsets in descending order."""

    error_code: int
    offsets: tuple[int, ...] = ()


Answer: TypeAlias = FetchAnswer | MultiFetchAnswer | OffsetsAnswer


def check_legacy_topic(topic: str) -> None:
    """Check a topic's name. Brokers of 0.7 close the connection on a produce request with an illegal name.

    Raises:
        UsageError: the name is illegal.
    """
    if not isinstance(topic, str) or topic in ("", ".", "..") or len(topic) > _LONGEST_NAME or _ILLEGAL.search(topic):
        raise UsageError(
            f"not a topic's name for Kafka 0.7: {topic!r:.300}; 1 to {_LONGEST_NAME} characters, none of them"
            " a slash or a control character, and not '.' or '..'"
        )


def encode_request(request: Request) -> bytes:
    """Return a request's frame, including the size field; raise UsageError if a value does not fit its field."""
    match request:
        case Produce():
            key, parts = RequestKey.PRODUCE, [_produce(request)]
        case Fetch():
            key, parts = RequestKey.FETCH, [_fetch(request)]
        case Offsets():
            key = RequestKey.OFFSETS
            parts = [_string(request.topic), _packed(_OFFSETS, request.partition, request.time, request.max_offsets)]
        case MultiProduce():
            key = RequestKey.MULTI_PRODUCE
            parts = [_packed(_INT16, len(request.parts)), *map(_produce, request.parts)]
        case MultiFetch():
            key = RequestKey.MULTI_FETCH
            parts = [_packed(_INT16, len(request.parts)), *map(_fetch, request.parts)]
    body = b"".join((_INT16.pack(key), *parts))
    return _packed(_INT32, len(body)) + body


def _produce(request: Produce) -> bytes:
    size = _packed(_INT32, len(request.messages))
    return b"".join((_string(request.topic), _packed(_INT32, request.partition), size, request.messages))


def _fetch(request: Fetch) -> bytes:
    return _string(request.topic) + _packed(_FETCH, request.partition, request.offset, request.max_bytes)


def _string(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return _packed(_INT16, len(data)) + data


def _packed(layout: Struct, *values: int) -> bytes:
    try:
        return layout.pack(*values)
    except error as cause:
        raise UsageError(f"{values} does not fit its field in a request of Kafka 0.7: {cause}") from cause


def encode_answer(answer: Answer) -> bytes:
    """Return the frame of an answer, including its size field."""
    match answer:
        case FetchAnswer():
            body = bytes(answer.messages)
        case MultiFetchAnswer():
            body = b"".join(map(encode_answer, answer.parts))
        case OffsetsAnswer():
            body = _INT32.pack(len(answer.offsets)) + b"".join(map(_INT64.pack, answer.offsets))
    return _INT32.pack(_INT16.size + len(body)) + _INT16.pack(answer.error_code) + body


def largest_answer(request: Request) -> int:
    """Return the largest valid size of the answer to a request, without its size field."""
    match request:
        case Fetch():
            return _INT16.size + max(request.max_bytes, 0)
        case MultiFetch():
            return _INT16.size + sum(_INT32.size + largest_answer(part) for part in request.parts)
        case Offsets():
            return _INT16.size + _INT32.size + _INT64.size * max(request.max_offsets, 0)
        case _:
            return 0


def describe(request: Request) -> str:
    """Return a description of a request for errors."""
    match request:
        case Produce() | Fetch() | Offsets():
            return f"{type(request).__name__.lower()} of {request.topic}-{request.partition}"
        case MultiFetch() | MultiProduce():
            return f"{type(request).__name__.lower()} of {len(request.parts)} parts"
