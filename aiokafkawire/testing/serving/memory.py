"""Byte streams in memory: two ends that behave as those of a TCP connection, without a socket."""

from collections import deque
from typing import Final

import anyio
from anyio.abc import ByteStream
from anyio.lowlevel import cancel_shielded_checkpoint, checkpoint_if_cancelled

__all__ = ("memory_connection",)

_CAPACITY: Final = 1024 * 1024
"""The number of bytes in transit in one direction above which a sender waits, as with a socket's buffers."""


def memory_connection() -> tuple[ByteStream, ByteStream]:
    """Return both ends of a new connection."""
    there, back = _Pipe(), _Pipe()
    return _End(there, back), _End(back, there)


class _Pipe:
    """One direction of a connection: the chunks in transit, and the event on which one side waits."""

    __slots__ = ("changed", "chunks", "receiver_gone", "sender_gone", "size")

    def __init__(self) -> None:
        self.chunks: deque[memoryview] = deque()
        self.size = 0
        self.sender_gone = False
        self.receiver_gone = False
        self.changed: anyio.Event | None = None

    async def wait(self) -> None:
        """Sleep until the other side changes the pipe. At most one side waits at a time."""
        if self.changed is None:
            self.changed = anyio.Event()
        await self.changed.wait()

    def notify(self) -> None:
        if self.changed is not None:
            self.changed.set()
            self.changed = None

    def take(self, max_bytes: int) -> bytes:
        chunk = self.chunks.popleft()
        if len(chunk) > max_bytes:
            self.chunks.appendleft(chunk[max_bytes:])
            chunk = chunk[:max_bytes]
        self.size -= len(chunk)
        self.notify()
        # A chunk that was sent as bytes and is received whole is not copied.
        whole = chunk.obj
        return whole if isinstance(whole, bytes) and len(whole) == len(chunk) else bytes(chunk)


class _End(ByteStream):
    def __init__(self, outgoing: _Pipe, incoming: _Pipe) -> None:
        self._outgoing = outgoing
        self._incoming = incoming
        self._closed = False
        self._sending, self._receiving = anyio.ResourceGuard("sending to"), anyio.ResourceGuard("receiving from")

    async def send(self, item: bytes) -> None:
        await checkpoint_if_cancelled()
        pipe, rest = self._outgoing, memoryview(bytes(item))  # copies mutable buffers only
        with self._sending:
            while True:
                self._raise_if_unable_to_send()
                part = rest[: _CAPACITY - pipe.size]
                if part:
                    pipe.chunks.append(part)
                    pipe.size += len(part)
                    pipe.notify()
                    rest = rest[len(part) :]
                if not rest:
                    break
                await pipe.wait()
        await cancel_shielded_checkpoint()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be positive, got {max_bytes}")
        await checkpoint_if_cancelled()
        pipe = self._incoming
        with self._receiving:
            while not self._closed and not pipe.chunks and not pipe.sender_gone:
                await pipe.wait()
        if self._closed:
            raise anyio.ClosedResourceError
        if not pipe.chunks:
            raise anyio.EndOfStream
        chunk = pipe.take(max_bytes)
        await cancel_shielded_checkpoint()
        return chunk

    async def send_eof(self) -> None:
        await checkpoint_if_cancelled()
        self._outgoing.sender_gone = True
        self._outgoing.notify()

    async def aclose(self) -> None:
        self._closed = True
        self._outgoing.sender_gone = True
        self._incoming.receiver_gone = True
        self._incoming.chunks.clear()
        self._outgoing.notify()
        self._incoming.notify()
        await cancel_shielded_checkpoint()

    def _raise_if_unable_to_send(self) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        if self._outgoing.sender_gone or self._outgoing.receiver_gone:
            raise anyio.BrokenResourceError
