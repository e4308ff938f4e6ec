"""The interface and the shared code of transports, which write a connection's frames completely and in order."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import anyio

from ..errors import ConnectionLost, KafkaError, copy_for_reraise
from .connection_protocol import LARGE_PART, ConnectionProtocol
from .tls_errors import refused_by_broker

__all__ = ("IdleWaiters", "OWN_WRITE", "Outgoing", "Transport", "WriteObserver", "broken", "stalled")

OWN_WRITE: Final = LARGE_PART
"""The maximum size, in bytes, of several pieces in one write, and of a piece that the caller's task writes."""


class WriteObserver(Protocol):
    """An object to notify of a frame's write."""

    def sent(self) -> None:
        """Take notice that the write of the frame begins."""


class Outgoing(deque[bytes]):
    """The pieces of frames that wait to be written, in order."""

    def __init__(self) -> None:
        super().__init__()
        # The observers of frames that still wait, each with the number of pieces before and including its frame's.
        self._observers: deque[tuple[int, WriteObserver]] = deque()
        self._taken = 0

    def observe(self, observer: WriteObserver) -> None:
        """Notify an observer when the last piece is taken."""
        self._observers.append((self._taken + len(self), observer))

    def take(self) -> bytes:
        """Return the next piece, joined with small ones that follow it, and remove these pieces."""
        data, count = self.popleft(), 1
        while self and len(data) + len(self[0]) <= OWN_WRITE:
            data += self.popleft()
            count += 1
        if self._observers:
            self._taken += count
            while self._observers and self._observers[0][0] <= self._taken:
                self._observers.popleft()[1].sent()
        return data


class Transport(Protocol):
    """A transport of frames, which passes received bytes, and the stream's error, to the connection's pipeline."""

    def enqueue(self, frame: Sequence[bytes], observer: "WriteObserver | None" = None) -> None:
        """Enqueue a frame, or pieces of it, to be sent by :meth:`transmit` or :meth:`transmit_soon`.

        ``observer`` is notified when the write of its last piece begins.
        """

    async def transmit(self) -> None:
        """Write the enqueued frames, or only start to write them as :meth:`transmit_soon`: the transport chooses."""

    def transmit_soon(self) -> None:
        """Start to write the enqueued frames, and return without waiting until they are written."""

    def transmit_at_once(self) -> bool:
        """Transmit as :meth:`transmit_soon` and return True if writes never wait, as on asyncio; else return False."""

    async def written(self) -> None:
        """Wait until all enqueued frames are written.

        Raises:
            ConnectionLost, WireError: the connection broke.
        """

    async def run(self) -> None:
        """Run until the connection ends. Cancelling this call closes the connection."""

    def unanswered(self) -> float:
        """Return for how many seconds the broker's system has answered nothing, as :func:`.unanswered_seconds`."""

    async def close(self) -> None:
        """Close the stream. Repeated calls have no effect."""


def broken(broker: str, cause: BaseException) -> KafkaError:
    """Return the error with which pending requests fail after a stream failed."""
    lost = refused_by_broker(broker, getattr(cause, "reason", None))
    lost = lost or ConnectionLost(f"the connection to {broker} broke: {cause.__cause__ or cause}")
    lost.__cause__ = cause
    return lost


class IdleWaiters:
    """The tasks that wait until all frames are written. ``is_busy`` returns whether there are unwritten frames."""

    def __init__(self, pipeline: ConnectionProtocol, is_busy: Callable[[], bool]) -> None:
        self._pipeline, self._is_busy = pipeline, is_busy
        self._event: anyio.Event | None = None

    async def wait(self) -> None:
        """Wait as :meth:`Transport.written`."""
        while self._is_busy() and self._pipeline.failure is None:
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()
        if self._pipeline.failure is not None:
            raise copy_for_reraise(self._pipeline.failure)

    def notify(self) -> None:
        """Wake the waiting tasks after a write, or a failure."""
        event, self._event = self._event, None
        if event is not None:
            event.set()


def stalled(broker: str, size: int, limit: float) -> ConnectionLost:
    """Return the error with which pending requests fail when the socket accepts no bytes within ``limit`` seconds."""
    return ConnectionLost(f"{broker} did not take {size} bytes within {limit:g} s")
