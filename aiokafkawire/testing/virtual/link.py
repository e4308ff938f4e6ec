"""The links of a simulated network, and the bytes in transit. Needs trio."""

from collections import deque
from math import inf
from random import Random

import anyio
import attrs
import trio

from .clock import Alarm, VirtualClock

__all__ = ("Direction", "Link")


@attrs.define(eq=False)
class Link:
    """The link between two endpoints; its speed, and whether it is blocked, apply to all connections between the two.

    ``latency`` is the shortest and the longest time that bytes take in one direction, in seconds; ``bandwidth`` is in
    bytes per second for each direction of each connection, None for no limit.
    """

    latency: tuple[float, float]
    bandwidth: float | None = None
    blocked_since: float | None = None
    opened: anyio.Event | None = None
    """An event that is set when the link is unblocked; None while no task waits for it."""

    def delay(self, chance: Random) -> float:
        """Return a random latency for the next bytes, in seconds."""
        least, most = self.latency
        return least + (most - least) * chance.random()

    @property
    def blocked(self) -> bool:
        """Whether the link is blocked."""
        return self.blocked_since is not None

    async def wait_until_open(self) -> None:
        """Wait until the link is not blocked."""
        while self.blocked_since is not None:
            if self.opened is None:
                self.opened = anyio.Event()
            await self.opened.wait()


class Direction:
    """The bytes in transit to one end of a connection: chunks with their times of arrival. A chunk b"" ends the stream.

    Chunks that are due while the link is blocked are held; they arrive together after the link is unblocked.
    """

    __slots__ = (
        "_alarm",
        "_chance",
        "_clock",
        "_free_at",
        "_last_at",
        "_link",
        "_taken",
        "broken",
        "chunks",
        "receiver_gone",
        "size",
    )

    def __init__(self, link: Link, chance: Random) -> None:
        self._link, self._chance = link, chance
        self._free_at = self._last_at = 0.0
        self.chunks: deque[tuple[float, bytes]] = deque()
        self.size: int = 0
        self.broken: bool = False
        self.receiver_gone: bool = False
        self._alarm: Alarm | None = None
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, VirtualClock)
        self._clock = clock
        self._taken: anyio.Event | None = None

    def put(self, data: bytes, now: float) -> None:
        """Send bytes at the time ``now``; they are lost if the receiver is gone or the connection was cut."""
        if self.receiver_gone or self.broken:
            return
        link = self._link
        free_at = now if now > self._free_at else self._free_at
        if link.bandwidth:
            free_at += len(data) / link.bandwidth
        self._free_at = free_at
        arrives_at = free_at + link.delay(self._chance)
        if arrives_at > self._last_at:  # the bytes of one connection stay in order
            self._last_at = arrives_at
        self.chunks.append((self._last_at, data))
        self.size += len(data)
        if self._alarm is not None and len(self.chunks) == 1:
            # A receiver that waits for bytes is woken once, at their arrival.
            self._alarm.at = self._due_at()
            self._clock.set_alarm(self._alarm)

    def _due_at(self) -> float:
        """Return the time at which the next chunk arrives; infinity if there is none, or a blocked link holds it."""
        if not self.chunks:
            return inf
        at = self.chunks[0][0]
        blocked_since = self._link.blocked_since
        return at if blocked_since is None or at < blocked_since else inf

    def is_due(self, now: float) -> bool:
        """Return whether a chunk has arrived by the time ``now``."""
        return self._due_at() <= now

    async def arrival(self) -> None:
        """Sleep until a chunk has arrived or :meth:`notify` is called."""
        self._alarm = alarm = Alarm(self._due_at(), trio.lowlevel.current_task())
        self._clock.set_alarm(alarm)
        try:
            await trio.lowlevel.wait_task_rescheduled(alarm.abort)
        finally:
            alarm.discard()
            self._alarm = None

    async def wait_until_taken(self) -> None:
        """Sleep until the receiver has taken bytes or :meth:`notify` is called."""
        if self._taken is None:
            self._taken = anyio.Event()
        await self._taken.wait()

    def take(self, max_bytes: int) -> bytes:
        """Return the next bytes, which must have arrived; at the end of the stream, return b"" in every call."""
        at, chunk = self.chunks.popleft()
        if not chunk:
            self.chunks.append((at, chunk))  # later calls return the end of the stream again
        elif len(chunk) > max_bytes:
            self.chunks.appendleft((at, chunk[max_bytes:]))
            chunk = chunk[:max_bytes]
        self.size -= len(chunk)
        self._notify_sender()
        return chunk

    def reopened(self, blocked_since: float, now: float) -> None:
        """Let held chunks arrive after one more latency: the link, blocked since ``blocked_since``, is open again."""
        again = now + self._link.delay(self._chance)
        self.chunks = deque((max(at, again) if at >= blocked_since else at, chunk) for at, chunk in self.chunks)
        self._last_at = max(self._last_at, again)
        self.notify()

    def cut(self, now: float) -> None:
        """Break the connection: of the bytes in transit, a random number arrive now, and the rest are lost."""
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
        """Mark the receiver as gone and discard the bytes in transit to it."""
        self.receiver_gone = True
        self.chunks.clear()
        self.size = 0
        self.notify()

    def notify(self) -> None:
        """Wake the tasks that wait at either side."""
        if self._alarm is not None:
            self._alarm.ring()
        self._notify_sender()

    def _notify_sender(self) -> None:
        if self._taken is not None:
            self._taken.set()
            self._taken = None
