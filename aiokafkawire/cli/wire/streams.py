"""The common form of all inputs: byte streams, each of one direction of a connection."""

from typing import NamedTuple

__all__ = ("CapturedInput", "ByteStream")


class ByteStream(NamedTuple):
    """The consecutive bytes of one stream.

    ``label`` names their source, and may be empty for a single stream. ``connection`` is the same for both directions
    of a connection, and ``source`` the sender's address; both are empty if the input does not show connections.
    """

    data: bytes
    label: str = ""
    connection: str = ""
    source: str = ""


class CapturedInput(NamedTuple):
    """The user's input; ``form`` describes the detected notation."""

    form: str
    streams: tuple[ByteStream, ...]
