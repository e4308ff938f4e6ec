"""A connection in virtual time: bytes arrive after their latency, are held by a blocked link, or are lost."""

from collections.abc import Callable
from random import Random
from struct import Struct
from typing import Final
from zlib import crc32

import anyio
from anyio.abc import ByteStream
from trio.lowlevel import cancel_shielded_checkpoint, checkpoint_if_cancelled

from ...protocol.api import ApiKey
from .link import Direction, Link

__all__ = ("VirtualConnection", "End")

_WINDOW: Final = 256 * 1024
"""The number of bytes in transit in one direction above which a sender waits, as with a socket's buffers."""
_REQUEST: Final = Struct(">ihhi")
_SIZE: Final = 4
_API_NAMES: Final = {int(key): key.name for key in ApiKey}


class VirtualConnection:
    """Both ends of one connection: ``client`` is the side that connected.

    Args:
        name: the name in the trace.
        link: the link between the ends.
        now: returns the virtual time, in seconds.
        chance: the source of random latencies and cuts.
        on_event: called with a text, which names the end and its action, when bytes are sent or an end is closed.
    """

    def __init__(
        self, name: str, link: Link, now: Callable[[], float], chance: Random, on_event: Callable[[str], None]
    ) -> None:
        self.name: str = name
        self.link: Link = link
        self._now, self._on_event = now, on_event
        there, back = Direction(link, chance), Direction(link, chance)
        self._directions = there, back
        self.client: End = End(there, back, now, lambda event: on_event(f"{name} > {event}"), _asked)
        # A broker's own order of events matters to no client, since its bytes take a random time.
        self.server: End = End(back, there, now, lambda event: on_event(f"{name} < {event}"), _answered, yields=False)

    @property
    def is_open(self) -> bool:
        """Whether neither end is closed and the connection was not cut."""
        return not any(direction.broken or direction.receiver_gone for direction in self._directions)

    @property
    def is_over(self) -> bool:
        """Whether neither end will receive anything more."""
        return all(direction.broken or direction.receiver_gone for direction in self._directions)

    def cut(self) -> None:
        """Reset the connection: each side gets a part of the bytes in transit, perhaps half a frame, then an error."""
        self._on_event(f"{self.name} is cut")
        for direction in self._directions:
            direction.cut(self._now())

    def reopened(self, blocked_since: float) -> None:
        """Let held bytes arrive after one more latency: the link, blocked since ``blocked_since``, is open again."""
        for direction in self._directions:
            direction.reopened(blocked_since, self._now())


class End(ByteStream):
    """One end of a connection in virtual time; ``yields`` says whether other tasks run after each :meth:`send`."""

    def __init__(
        self,
        outgoing: Direction,
        incoming: Direction,
        now: Callable[[], float],
        on_event: Callable[[str], None],
        summary: Callable[[bytes], str],
        *,
        yields: bool = True,
    ) -> None:
        self._outgoing, self._incoming = outgoing, incoming
        self._now, self._on_event, self._summary = now, on_event, summary
        self._yields = yields
        self._closed = False
        self._ended = False
        self._sending, self._receiving = anyio.ResourceGuard("sending to"), anyio.ResourceGuard("receiving from")

    async def send(self, item: bytes) -> None:
        """Send bytes; wait while too many sent bytes are in transit."""
        await checkpoint_if_cancelled()
        direction, data, sent = self._outgoing, bytes(item), 0
        with self._sending:
            self._on_event(f"{self._summary(data)} {crc32(data):08x}")
            while True:
                self._raise_if_unable_to_send()
                part = data[sent : sent + max(0, _WINDOW - direction.size)]
                if part:
                    direction.put(part, self._now())
                    sent += len(part)
                if sent == len(data):
                    break
                await direction.wait_until_taken()
        if self._yields:
            await cancel_shielded_checkpoint()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Wait for the next bytes and return them; raise EndOfStream at the end of the stream."""
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be positive, got {max_bytes}")
        await checkpoint_if_cancelled()
        direction, slept = self._incoming, False
        with self._receiving:
            while not self._closed and not direction.is_due(self._now()):
                if direction.broken:
                    raise anyio.BrokenResourceError from ConnectionResetError("the connection was reset")
                await direction.arrival()
                slept = True
        if self._closed:
            raise anyio.ClosedResourceError
        chunk = direction.take(max_bytes)
        if not chunk:
            raise anyio.EndOfStream
        if not slept:
            await cancel_shielded_checkpoint()
        return chunk

    async def send_eof(self) -> None:
        """End the outgoing stream; this end can still receive."""
        await checkpoint_if_cancelled()
        self._end()

    async def aclose(self) -> None:
        """Close this end; the other end receives all sent bytes before it notices the end."""
        if not self._closed:
            self._closed = True
            self._end()
            self._incoming.leave()
            self._outgoing.notify()
        await cancel_shielded_checkpoint()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._on_event("ends")
            self._outgoing.put(b"", self._now())

    def _raise_if_unable_to_send(self) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        if self._ended or self._outgoing.broken:
            raise anyio.BrokenResourceError


def _asked(data: bytes) -> str:
    """Return a text for the trace about bytes that a client sends: the requests in them, and their number."""
    requests, position = list[str](), 0
    while position + _REQUEST.size <= len(data):
        size, key, version, correlation_id = _REQUEST.unpack_from(data, position)
        if key not in _API_NAMES or size < _REQUEST.size - _SIZE:
            break
        requests.append(f"{_API_NAMES[key]} v{version} #{correlation_id}")
        position += _SIZE + size
    return f"{', '.join(requests) or 'bytes'} ({len(data)} bytes)"


def _answered(data: bytes) -> str:
    """Return a text for the trace about bytes that a broker sends: one response, and the number of bytes."""
    correlation_id = int.from_bytes(data[_SIZE : _SIZE + 4], "big", signed=True)
    return f"#{correlation_id} ({len(data)} bytes)"
