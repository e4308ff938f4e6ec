"""Streams to frames to readings: requests, responses to them, and what was told beforehand."""

from collections.abc import Callable, Iterable, Iterator

import attrs

from ...protocol.schema import Message
from .api_guesser import candidates
from .frame_decoder import AnyRequest, PendingRequest, Reading, read_request, read_response
from .frames import CapturedFrame, split_frames
from .nested_messages import read_message
from .streams import ByteStream

__all__ = ("Hints", "FrameReport", "read_frames", "read_messages")


@attrs.frozen
class Hints:
    """What the user knows of the frames."""

    prefixed: bool | None = None
    """Whether lengths stand before them; None to find out."""
    response: tuple[AnyRequest, int | None] | None = None
    """What they are responses to."""
    answers: bool = False
    """Whether they are responses to requests that were seen."""
    guess: bool = False
    """Whether to try everything on what cannot be read."""


@attrs.frozen
class FrameReport:
    """A frame and what it is."""

    label: str
    """The stream it is in, if there are several."""
    frame: CapturedFrame
    reading: Reading | None = None
    """None if there is no whole frame."""
    guesses: tuple[Reading, ...] | None = None
    """What it could be, where that was asked for and needed."""

    @property
    def is_read(self) -> bool:
        """Whether it is a whole frame and a whole message."""
        return self.reading is not None and self.reading.message is not None


def read_frames(streams: Iterable[ByteStream], hints: Hints, asked: PendingRequest) -> Iterator[FrameReport]:
    """Read the frames of all streams; ``asked`` keeps the requests for the responses that come later."""
    # In a capture either direction may come first; responses need the requests.
    given = (*streams,)
    for stream in sorted(given, key=_answers) if len(given) > 1 else given:
        for frame in split_frames(stream.data, hints.prefixed, _reader(hints, asked)):
            if frame.problem:
                yield FrameReport(stream.label, frame)
                continue
            reading = _read(frame.data, hints, asked)
            if reading.message is not None or not hints.guess:
                yield FrameReport(stream.label, frame, reading)
                continue
            guesses = candidates(frame.data)
            if len(guesses) == 1:
                reading = attrs.evolve(guesses[0], notes=(*guesses[0].notes, "guessed: nothing else reads it"))
            yield FrameReport(stream.label, frame, reading, guesses)


def read_messages(streams: Iterable[ByteStream], cls: type[Message], version: int | None) -> Iterator[FrameReport]:
    """Read each stream as one message without a header."""
    for stream in streams:
        frame = CapturedFrame(0, None, stream.data)
        yield FrameReport(stream.label, frame, read_message(stream.data, cls, version))


def _answers(stream: ByteStream) -> bool:
    """Whether its first frames are no requests."""

    def is_request(data: bytes) -> bool:
        return read_request(data).message is not None

    return not any(is_request(frame.data) for frame in split_frames(stream.data, None, is_request)[:3])


def _reader(hints: Hints, asked: PendingRequest) -> Callable[[bytes], bool]:
    def reads(data: bytes) -> bool:
        if _peek(data, hints, asked).message is not None:
            return True
        return hints.guess and bool(candidates(data))

    return reads


def _read(data: bytes, hints: Hints, asked: PendingRequest) -> Reading:
    reading = _peek(data, hints, asked)
    if hints.response is None:
        if reading.kind == "request":
            asked.add(reading)
        elif reading.kind == "response" and asked.of(data) is not None:
            asked.answered(data)
    return reading


def _peek(data: bytes, hints: Hints, asked: PendingRequest) -> Reading:
    """What a frame is, without remembering it."""
    if hints.response is not None:
        return read_response(data, *hints.response)
    request = asked.of(data)
    if hints.answers:
        if request is None:
            return Reading("response", problem=f"no request that was seen has {_correlation_id(data)}")
        return read_response(data, *request)
    reading = read_request(data)
    if reading.message is not None:
        return reading
    if request is not None:
        answer = read_response(data, *request)
        if answer.message is not None or reading.header is None:
            return answer
    if asked.bare_sasl:  # no position, so no hexdump: a password may be in it
        told = "after SaslHandshake v0 those travel without a header"
        return Reading("SASL", problem=f"{len(data)} bytes that may be of a SASL mechanism: {told}")
    return reading


def _correlation_id(data: bytes) -> str:
    return f"its correlation id, {int.from_bytes(data[:4], 'big', signed=True)}"
