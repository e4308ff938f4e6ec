"""Decodes streams: splits them into frames, and matches responses with their requests or the user's hints."""

from collections.abc import Callable, Iterable, Iterator

import attrs

from ...protocol.schema import Message
from .api_guesser import candidates
from .frame_decoder import AnyRequest, PendingRequests, Reading, read_request, read_response
from .frames import CapturedFrame, split_frames
from .nested_messages import read_message
from .streams import ByteStream

__all__ = ("Hints", "FrameReport", "read_frames", "read_messages")


@attrs.frozen
class Hints:
    """The user's command-line options that say how to split and decode streams."""

    prefixed: bool | None = None
    """Whether every frame has a length prefix; None to detect this."""
    response: tuple[AnyRequest, int | None] | None = None
    """The request class, and its version if known, that all frames answer; None if frames may be requests, too."""
    answers: bool = False
    """Whether all frames are responses to the pending requests."""
    guess: bool = False
    """Whether to try all APIs on a frame that cannot be decoded."""


@attrs.frozen
class FrameReport:
    """A frame of a stream with the result of decoding it."""

    label: str
    """The label of the frame's stream; may be empty if there is only one stream."""
    frame: CapturedFrame
    reading: Reading | None = None
    """The result of decoding; None if the frame is not whole."""
    guesses: tuple[Reading, ...] | None = None
    """The readings that guessing has found; None if no guess was requested or needed."""

    @property
    def is_read(self) -> bool:
        """Whether the frame was decoded to a message."""
        return self.reading is not None and self.reading.message is not None


@attrs.frozen
class _Context:
    """The requests before a frame, and the stream that has the frame."""

    pending: PendingRequests
    connection: str
    answers: bool
    """Whether the stream is the second direction of a connection, which has the responses."""


def read_frames(streams: Iterable[ByteStream], hints: Hints, pending: PendingRequests) -> Iterator[FrameReport]:
    """Decode the frames of all streams; ``pending`` collects requests, to match later responses with them."""
    # Requests first, since responses need their requests; in a capture either direction may be first.
    given = (*streams,)
    clients: dict[str, str] = {}  # by connection, the sender of the first direction, which has the requests
    for stream in sorted(given, key=_answers) if len(given) > 1 else given:
        context = _Context(
            pending, stream.connection, clients.setdefault(stream.connection, stream.source) != stream.source
        )
        for frame in split_frames(stream.data, hints.prefixed, _reader(hints, context)):
            if frame.problem:
                yield FrameReport(stream.label, frame)
                continue
            reading = _read(frame.data, hints, context)
            if reading.message is not None or not hints.guess:
                yield FrameReport(stream.label, frame, reading)
                continue
            guesses = candidates(frame.data)
            if len(guesses) == 1:
                reading = attrs.evolve(guesses[0], notes=(*guesses[0].notes, "guessed: no other API decodes it"))
            yield FrameReport(stream.label, frame, reading, guesses)


def read_messages(streams: Iterable[ByteStream], cls: type[Message], version: int | None) -> Iterator[FrameReport]:
    """Decode each stream as one message without a header."""
    for stream in streams:
        frame = CapturedFrame(0, None, stream.data)
        yield FrameReport(stream.label, frame, read_message(stream.data, cls, version))


def _answers(stream: ByteStream) -> bool:
    """Return whether the stream seems to have responses, because none of its first three frames is a request."""

    def is_request(data: bytes) -> bool:
        return read_request(data).message is not None

    return not any(is_request(frame.data) for frame in split_frames(stream.data, None, is_request)[:3])


def _reader(hints: Hints, context: _Context) -> Callable[[bytes], bool]:
    def reads(data: bytes) -> bool:
        if _peek(data, hints, context).message is not None:
            return True
        return hints.guess and bool(candidates(data))

    return reads


def _read(data: bytes, hints: Hints, context: _Context) -> Reading:
    reading = _peek(data, hints, context)
    if hints.response is None:
        if reading.kind == "request":
            context.pending.add(reading, context.connection)
        elif reading.kind == "response" and context.pending.of(data, context.connection) is not None:
            context.pending.answered(data, context.connection)
    return reading


def _peek(data: bytes, hints: Hints, context: _Context) -> Reading:
    """Decode a frame without changing the pending requests."""
    if hints.response is not None:
        return read_response(data, *hints.response)
    request = context.pending.of(data, context.connection)
    if hints.answers:
        if request is None:
            return Reading("response", problem=f"no pending request has {_correlation_id(data)}")
        return read_response(data, *request)
    if context.answers and request is not None:  # a response may have the bytes of a request, too
        answer = read_response(data, *request)
        if answer.message is not None:
            return answer
    reading = read_request(data)
    if reading.message is not None:
        return reading
    if request is not None:
        answer = read_response(data, *request)
        if answer.message is not None or reading.header is None:
            return answer
    if context.pending.bare_sasl:  # no position, so no hexdump: the bytes may contain a password
        why = "after SaslHandshake v0 they have no header"
        return Reading("SASL", problem=f"{len(data)} bytes that may be of a SASL mechanism: {why}")
    return reading


def _correlation_id(data: bytes) -> str:
    return f"its correlation id, {int.from_bytes(data[:4], 'big', signed=True)}"
