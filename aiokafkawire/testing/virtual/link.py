"""What lies between two places of a simulated network, and bytes on their way. Needs trio."""

from collections import deque
from math import inf
from random import Random

import anyio
import attrs
import trio

__all__ = ("Direction", "Link")


@attrs.define(eq=False)
class Link:
    """What lies between two places: all connections between them are as quick and as blocked as it is.

    ``latency`` is the least and the most time that bytes take in one direction, in seconds; ``bandwidth`` is bytes
    per second for each direction of each connection, None for no limit.
    """

    latency: tuple[float, float]
    bandwidth: float | None = None
    blocked_since: float | None = None
    opened: anyio.Event | None = None
    """Set when it is blocked no more."""

    def delay(self, chance: Random) -> float:
        """How long the next bytes take, in seconds."""
        return chance.uniform(*self.latency)

    @property
    def blocked(self) -> bool:
        """Whether nothing gets through."""
        return self.blocked_since is not None

    async def wait_until_open(self) -> None:
        """Return when something gets through again."""
        while self.blocked_since is not None:
            if self.opened is None:
                self.opened = anyio.Event()
            await self.opened.wait()


class Direction:
    """The bytes on their way to one end: chunks with the moment at which each is there; b"" is the end of the stream.

    While the way is blocked, what should have arrived since has not; when it opens, all comes at once.
    """

    __slots__ = (
        "_chance",
        "_free_at",
        "_last_at",
        "_room",
        "_sleep",
        "_way",
        "broken",
        "chunks",
        "receiver_gone",
        "size",
    )

    def __init__(self, way: Link, chance: Random) -> None:
        self._way, self._chance = way, chance
        self._free_at = self._last_at = 0.0
        self.chunks: deque[tuple[float, bytes]] = deque()
        self.size: int = 0
        self.broken: bool = False
        self.receiver_gone: bool = False
        self._sleep: trio.CancelScope | None = None
        self._room: anyio.Event | None = None

    def put(self, data: bytes, now: float) -> None:
        """Send; what nobody will receive is lost."""
        if self.receiver_gone or self.broken:
            return
        way = self._way
        begins = max(now, self._free_at)
        self._free_at = begins + (len(data) / way.bandwidth if way.bandwidth else 0.0)
        # One connection's bytes never overtake one another.
        self._last_at = max(self._last_at, self._free_at + way.delay(self._chance))
        self.chunks.append((self._last_at, data))
        self.size += len(data)
        if self._sleep is not None and len(self.chunks) == 1:
            # Whoever sleeps for want of bytes is woken once, when they are there.
            self._sleep.deadline = self._due_at()

    def _due_at(self) -> float:
        """When the next chunk is there; infinity while nobody can tell."""
        if not self.chunks:
            return inf
        at = self.chunks[0][0]
        blocked_since = self._way.blocked_since
        return at if blocked_since is None or at < blocked_since else inf

    def is_due(self, now: float) -> bool:
        """Whether a chunk is there."""
        return self._due_at() <= now

    async def arrival(self) -> None:
        """Sleep until a chunk is there, or something else has happened."""
        try:
            with trio.CancelScope(deadline=self._due_at()) as self._sleep:
                await trio.lowlevel.wait_task_rescheduled(_woken)
        finally:
            self._sleep = None

    async def room(self) -> None:
        """Sleep until the receiver has taken something, or something else has happened."""
        if self._room is None:
            self._room = anyio.Event()
        await self._room.wait()

    def take(self, max_bytes: int) -> bytes:
        """The next bytes, which must be there; b"" is the end, however often it is taken."""
        at, chunk = self.chunks.popleft()
        if not chunk:
            self.chunks.append((at, chunk))  # the end stays the end
        elif len(chunk) > max_bytes:
            self.chunks.appendleft((at, chunk[max_bytes:]))
            chunk = chunk[:max_bytes]
        self.size -= len(chunk)
        self._made_room()
        return chunk

    def reopened(self, blocked_since: float, now: float) -> None:
        """What was held is sent again."""
        again = now + self._way.delay(self._chance)
        self.chunks = deque((max(at, again) if at >= blocked_since else at, chunk) for at, chunk in self.chunks)
        self._last_at = max(self._last_at, again)
        self.notify()

    def cut(self, now: float) -> None:
        """Lose the bytes that are under way from some byte on, and the connection with them."""
        if self.broken:
            return
        left, kept = self._chance.randrange(self.size + 1), deque[tuple[float, bytes]]()
        for _, chunk in self.chunks:
            if chunk and left:
                kept.append((now, chunk[:left]))
                left -= min(left, len(chunk))
        self.chunks, self.broken = kept, True
        self.size = sum(len(chunk) for _, chunk in kept)
        self.notify()

    def leave(self) -> None:
        """Nobody receives any more."""
        self.receiver_gone = True
        self.chunks.clear()
        self.size = 0
        self.notify()

    def notify(self) -> None:
        """Let both sides look again."""
        if self._sleep is not None:
            self._sleep.cancel()
        self._made_room()

    def _made_room(self) -> None:
        if self._room is not None:
            self._room.set()
            self._room = None


def _woken(raise_cancel: object) -> trio.lowlevel.Abort:
    """Nothing is to be cleaned up when a sleeper is woken by the end of its scope."""
    return trio.lowlevel.Abort.SUCCEEDED
