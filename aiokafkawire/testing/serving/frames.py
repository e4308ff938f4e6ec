"""Frames at the broker's end of a stream: reading requests, with size limits, and encoding responses."""

from struct import Struct
from typing import Final

import anyio
from anyio.abc import ByteReceiveStream

from ...protocol.api import ResponseHeader
from ...protocol.compiler import encode_into
from ...protocol.primitives import Buffer
from ...protocol.schema import Message
from ..cluster.api_error import Disconnect

__all__ = ("Frames", "frame_of")

_CHUNK: Final = 256 * 1024
_SMALL: Final = 4096
_SIZE: Final = Struct(">i")


class Frames:
    """A reader of the frames in a stream; it buffers at most one frame, and less than a chunk of the next frame.

    Only received bytes take memory: the size that a frame announces is not allocated in advance.
    """

    def __init__(self, stream: ByteReceiveStream, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._chunk = b""
        self._position = 0

    async def next(self, max_bytes: int | None = None) -> bytes | None:
        """Return the next frame without its size field; None at the end of the stream.

        ``max_bytes`` is the largest allowed size if it is below the limit of this reader.

        Raises:
            Disconnect: the size is invalid, or the stream ends inside a frame.
        """
        prefix = await self.exactly(_SIZE.size)
        if prefix is None:
            return None
        (size,) = _SIZE.unpack(prefix)
        most = self._max_bytes if max_bytes is None else min(max_bytes, self._max_bytes)
        if not 0 <= size <= most:
            raise Disconnect(f"invalid frame size {size}; the maximum is {most} bytes")
        frame = await self.exactly(size)
        if frame is None:
            raise Disconnect(f"the connection ended before a frame of {size} bytes")
        return frame

    async def drain(self) -> None:
        """Read and discard the rest of the stream."""
        self._chunk = b""
        while True:
            try:
                await self._stream.receive(_CHUNK)
            except anyio.EndOfStream:
                return

    async def chunk(self) -> bytes:
        """Return bytes as they arrive, whatever they are; nothing at the end of the stream."""
        if self._position < len(self._chunk):
            taken, self._chunk, self._position = self._chunk[self._position :], b"", 0
            return taken
        try:
            return await self._stream.receive(_CHUNK)
        except anyio.EndOfStream:
            return b""

    async def exactly(self, size: int) -> bytes | None:
        """Return the next bytes; None if the stream ends before them. Raise Disconnect if it ends within them."""
        end = self._position + size
        if end <= len(self._chunk):
            taken = self._chunk[self._position : end]
            self._position = end
            return taken
        parts: list[bytes | bytearray] = [self._chunk[self._position :]]
        missing = size - len(parts[0])
        self._chunk, self._position = b"", 0
        while missing > 0:
            try:
                chunk = await self._stream.receive(_CHUNK)
            except anyio.EndOfStream:
                if missing == size:
                    return None
                raise Disconnect(f"the connection ended with {missing} of {size} bytes missing") from None
            if missing == size <= len(chunk):  # nearly always
                self._chunk, self._position = chunk, size
                return chunk[:size]
            if len(chunk) > missing:
                self._chunk, self._position = chunk, missing
                chunk = chunk[:missing]
            _keep(parts, chunk)
            missing -= len(chunk)
        return b"".join(parts)


def _keep(parts: list[bytes | bytearray], chunk: bytes) -> None:
    """Add a chunk to ``parts``. Small chunks are merged: an object per byte would take 50 times the frame's memory."""
    last = parts[-1]
    if len(chunk) >= _SMALL:
        parts.append(chunk)
    elif isinstance(last, bytearray):
        last += chunk
    else:
        parts.append(bytearray(chunk))


def frame_of(correlation_id: int, header_version: int, response: Message, version: int) -> bytes:
    """Return the frame of a response, its size included."""
    parts: list[Buffer] = [b""]
    encode_into(ResponseHeader(correlation_id=correlation_id), header_version, parts)
    encode_into(response, version, parts)
    parts[0] = _SIZE.pack(sum(map(len, parts)))
    return b"".join(parts)
