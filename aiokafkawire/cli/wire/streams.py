"""What every form of input becomes: streams of bytes, each of one direction."""

from typing import NamedTuple

__all__ = ("CapturedInput", "ByteStream")


class ByteStream(NamedTuple):
    """Bytes that follow one another; ``label`` says where they are from, if there is more than one stream."""

    data: bytes
    label: str = ""


class CapturedInput(NamedTuple):
    """What was read: ``form`` names the notation that it was taken for, in words for the user."""

    form: str
    streams: tuple[ByteStream, ...]
