"""Decodes requests and answers of Kafka 0.6 and 0.7 from untrusted frames."""

from struct import Struct
from typing import Final

from ..errors import WireError
from ..protocol.primitives import Buffer
from .requests import (
    Answer,
    Fetch,
    FetchAnswer,
    MultiFetch,
    MultiFetchAnswer,
    MultiProduce,
    Offsets,
    OffsetsAnswer,
    Produce,
    Request,
    RequestKey,
)

__all__ = ("decode_answer", "decode_request")

_INT16, _INT32, _INT64 = Struct(">h"), Struct(">i"), Struct(">q")
_FETCH, _OFFSETS = Struct(">iqi"), Struct(">iqi")
_SMALLEST_PRODUCE: Final = 10  # an empty name, a partition, no messages
_SMALLEST_FETCH: Final = 18


class _Fields:
    """A reader of the fields of a frame, one after another."""

    __slots__ = ("position", "view", "what")

    def __init__(self, data: Buffer, what: str) -> None:
        self.view, self.position, self.what = memoryview(data), 0, what

    def take(self, size: int, field: str) -> memoryview:
        left = len(self.view) - self.position
        if not 0 <= size <= left:
            raise WireError(f"{self.what}: {field} of {size} bytes at byte {self.position}, with {left} left")
        self.position += size
        return self.view[self.position - size : self.position]

    def number(self, layout: Struct, field: str) -> int:
        (value,) = layout.unpack(self.take(layout.size, field))
        return int(value)

    def string(self, field: str) -> str:
        data = self.take(self.number(_INT16, f"the length of {field}"), field)
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError as cause:
            raise WireError(f"{self.what}: {field} at byte {self.position - len(data)} is not UTF-8") from cause

    def count(self, layout: Struct, smallest: int, field: str) -> int:
        """Read an element count; check that the rest of the frame can hold as many elements of ``smallest`` bytes."""
        count, left = self.number(layout, field), len(self.view) - self.position
        if not 0 <= count <= left // smallest:
            raise WireError(f"{self.what}: {count} {field}, with {left} bytes left")
        return count

    def end(self) -> None:
        if self.position != len(self.view):
            raise WireError(f"{self.what}: {len(self.view) - self.position} bytes behind its end")


def decode_request(frame: Buffer, *, whole: bool = True) -> Request:
    """Decode a request from a frame without its size.

    If ``whole`` is false, bytes after the request are ignored, as by brokers of 0.7.

    Raises:
        WireError: the frame contains no valid request.
    """
    fields = _Fields(frame, "request")
    number = fields.number(_INT16, "the key")
    try:
        key = RequestKey(number)
    except ValueError:
        raise WireError(f"request key {number}, where Kafka 0.7 knows 0 to {max(RequestKey)}") from None
    fields.what = f"{key.name.lower()} request"
    request: Request
    match key:
        case RequestKey.PRODUCE:
            request = _read_produce(fields)
        case RequestKey.FETCH:
            request = _read_fetch(fields)
        case RequestKey.OFFSETS:
            request = Offsets(fields.string("the topic"), *_OFFSETS.unpack(fields.take(_OFFSETS.size, "the rest")))
        case RequestKey.MULTI_PRODUCE:
            request = MultiProduce(
                tuple(_read_produce(fields) for _ in range(fields.count(_INT16, _SMALLEST_PRODUCE, "parts")))
            )
        case RequestKey.MULTI_FETCH:
            request = MultiFetch(
                tuple(_read_fetch(fields) for _ in range(fields.count(_INT16, _SMALLEST_FETCH, "parts")))
            )
    if whole:
        fields.end()
    return request


def _read_produce(fields: _Fields) -> Produce:
    topic, partition = fields.string("the topic"), fields.number(_INT32, "the partition")
    return Produce(topic, partition, fields.take(fields.number(_INT32, "the set's size"), "the set"))


def _read_fetch(fields: _Fields) -> Fetch:
    return Fetch(fields.string("the topic"), *_FETCH.unpack(fields.take(_FETCH.size, "the rest")))


def decode_answer(request: Request, frame: Buffer) -> Answer:
    """Decode the answer to a request from a frame without its size.

    Raises:
        WireError: the answer is invalid, or this type of request has no answer.
    """
    fields = _Fields(frame, f"answer to {type(request).__name__.lower()}")
    code = fields.number(_INT16, "the error code")
    match request:
        case Fetch():
            return FetchAnswer(code, fields.take(len(fields.view) - fields.position, "the set"))
        case Offsets():
            if code and fields.position == len(fields.view):
                return OffsetsAnswer(code)
            count = fields.count(_INT32, _INT64.size, "offsets")
            answer: Answer = OffsetsAnswer(code, tuple(fields.number(_INT64, "an offset") for _ in range(count)))
        case MultiFetch():
            # An answer with an error for the whole request may have no parts.
            count = 0 if code and fields.position == len(fields.view) else len(request.parts)
            answer = MultiFetchAnswer(code, tuple(_read_part(fields) for _ in range(count)))
        case _:
            raise WireError(f"{fields.what}: {len(fields.view)} bytes, where nothing is answered")
    fields.end()
    return answer


def _read_part(fields: _Fields) -> FetchAnswer:
    size = fields.number(_INT32, "a part's size")
    code = fields.number(_INT16, "a part's error code")
    return FetchAnswer(code, fields.take(size - _INT16.size, "a part's set"))
