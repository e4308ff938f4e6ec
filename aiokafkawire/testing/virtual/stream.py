"""A connection in virtual time: bytes arrive later than they were sent, are held when nothing gets through, or lost."""

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
"""How many bytes may be under way in each direction before a sender waits, as in a socket's buffers."""
_REQUEST: Final = Struct(">ihhi")
_SIZE: Final = 4
_API_NAMES: Final = {int(key): key.name for key in ApiKey}


class VirtualConnection:
    """Both ends of one connection: ``client`` is the side that dialled.

    Args:
        name: for the journal.
        way: what lies between its ends.
        now: the virtual time, in seconds.
        chance: decides how long bytes take, and where a cut goes through them.
        tell: hears what is sent and closed: which end, and what.
    """

    def __init__(
        self, name: str, way: Link, now: Callable[[], float], chance: Random, tell: Callable[[str], None]
    ) -> None:
        self.name: str = name
        self.way: Link = way
        self._now, self._tell = now, tell
        there, back = Direction(way, chance), Direction(way, chance)
        self._directions = there, back
        self.client: End = End(there, back, now, lambda what: tell(f"{name} > {what}"), _asked)
        self.server: End = End(back, there, now, lambda what: tell(f"{name} < {what}"), _answered)

    @property
    def is_open(self) -> bool:
        """Whether neither end is closed, and it was not cut."""
        return not any(one.broken or one.receiver_gone for one in self._directions)

    @property
    def is_over(self) -> bool:
        """Whether nothing will be received any more, at either end."""
        return all(one.broken or one.receiver_gone for one in self._directions)

    def cut(self) -> None:
        """Reset it: either side gets some of the bytes that were under way, perhaps half a frame, then an error."""
        self._tell(f"{self.name} is cut")
        for one in self._directions:
            one.cut(self._now())

    def reopened(self, blocked_since: float) -> None:
        """The way was blocked, and is no more."""
        for one in self._directions:
            one.reopened(blocked_since, self._now())


class End(ByteStream):
    """One end of a connection."""

    def __init__(
        self,
        outgoing: Direction,
        incoming: Direction,
        now: Callable[[], float],
        tell: Callable[[str], None],
        summary: Callable[[bytes], str],
    ) -> None:
        self._outgoing, self._incoming = outgoing, incoming
        self._now, self._tell, self._summary = now, tell, summary
        self._closed = False
        self._ended = False
        self._sending, self._receiving = anyio.ResourceGuard("sending to"), anyio.ResourceGuard("receiving from")

    async def send(self, item: bytes) -> None:
        """Send bytes, waiting while too many are under way."""
        await checkpoint_if_cancelled()
        direction, data, sent = self._outgoing, bytes(item), 0
        with self._sending:
            self._tell(f"{self._summary(data)} {crc32(data):08x}")
            while True:
                self._raise_if_unable_to_send()
                part = data[sent : sent + max(0, _WINDOW - direction.size)]
                if part:
                    direction.put(part, self._now())
                    sent += len(part)
                if sent == len(data):
                    break
                await direction.room()
        await cancel_shielded_checkpoint()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """The next bytes, as soon as they are there."""
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
        """Send nothing more."""
        await checkpoint_if_cancelled()
        self._end()

    async def aclose(self) -> None:
        """Close this end; the other hears of it when all that was sent has arrived."""
        if not self._closed:
            self._closed = True
            self._end()
            self._incoming.leave()
            self._outgoing.notify()
        await cancel_shielded_checkpoint()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._tell("ends")
            self._outgoing.put(b"", self._now())

    def _raise_if_unable_to_send(self) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        if self._ended or self._outgoing.broken:
            raise anyio.BrokenResourceError


def _asked(data: bytes) -> str:
    """What a client sends, as far as it is requests."""
    told, position = list[str](), 0
    while position + _REQUEST.size <= len(data):
        size, key, version, correlation_id = _REQUEST.unpack_from(data, position)
        if key not in _API_NAMES or size < _REQUEST.size - _SIZE:
            break
        told.append(f"{_API_NAMES[key]} v{version} #{correlation_id}")
        position += _SIZE + size
    return f"{', '.join(told) or 'bytes'} ({len(data)} bytes)"


def _answered(data: bytes) -> str:
    """What a broker sends: one answer at a time."""
    correlation_id = int.from_bytes(data[_SIZE : _SIZE + 4], "big", signed=True)
    return f"#{correlation_id} ({len(data)} bytes)"
