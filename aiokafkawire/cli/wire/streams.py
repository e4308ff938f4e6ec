"""The common form of all inputs: streams of bytes, each of one direction."""

from typing import NamedTuple

__all__ = ("CapturedInput", "ByteStream")


class ByteStream(NamedTuple):
    """Consecutive bytes; ``label`` names their source, if there is more than one stream."""

    data: bytes
    label: str = ""


class CapturedInput(NamedTuple):
    """The user's input; ``form`` describes the detected notation."""

    form: str
    streams: tuple[ByteStream, ...]
