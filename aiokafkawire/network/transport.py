"""Transports, which write a connection's frames to a byte stream, completely and in order."""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import anyio
from anyio.abc import ByteStream

from ..errors import ConnectionLost, KafkaError, copy_for_reraise
from ..runtime import background_tasks
from .connection_protocol import ConnectionProtocol
from .tls_errors import refused_by_broker

__all__ = ("StreamTransport", "IdleWaiters", "Transport", "broken", "next_write", "stalled")

_OWN_WRITE: Final = 64 * 1024
"""The maximum size, in bytes, of several frames in one write, and of a frame that the caller's task writes."""
_READ: Final = 256 * 1024
_WRITE_STALL_SECONDS: Final = 5.0
"""The time limit, in seconds, of a write in the caller's task, which cannot be cancelled meanwhile."""


class Transport(Protocol):
    """A transport of frames, which passes received bytes, and the stream's error, to the connection's pipeline."""

    def enqueue(self, frame: bytes) -> None:
        """Enqueue a frame, to be sent by :meth:`transmit` or :meth:`transmit_soon`."""

    async def transmit(self) -> None:
        """Write the enqueued frames, in the calling task or as :meth:`transmit_soon`."""

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


class StreamTransport:
    """A transport over any anyio stream. One task reads; another writes the frames that :meth:`transmit` does not.

    Args:
        limit: how long writing a frame may take, in seconds.
    """

    def __init__(self, stream: ByteStream, pipeline: ConnectionProtocol, broker: str, limit: float) -> None:
        self._stream, self._pipeline, self._broker, self._limit = stream, pipeline, broker, limit
        self._outgoing: deque[bytes] = deque()
        self._writing = False
        self._to_write = anyio.Event()
        self._waiters = IdleWaiters(pipeline, lambda: self._writing or bool(self._outgoing))

    def enqueue(self, frame: bytes) -> None:
        """Enqueue as :meth:`Transport.enqueue`."""
        self._outgoing.append(frame)

    async def transmit(self) -> None:
        """Transmit as :meth:`Transport.transmit`; if the transport is idle, the caller itself writes a small frame."""
        if len(self._outgoing) == 1 and not self._writing and len(self._outgoing[0]) <= _OWN_WRITE:
            await self._write(self._outgoing.popleft(), min(_WRITE_STALL_SECONDS, self._limit))
        else:
            self.transmit_soon()

    def transmit_soon(self) -> None:
        """Transmit as :meth:`Transport.transmit_soon`."""
        if self._outgoing:
            self._to_write.set()

    def transmit_at_once(self) -> bool:
        """Return False, since a write to a stream may wait."""
        return False

    async def written(self) -> None:
        """Wait as :meth:`Transport.written`."""
        await self._waiters.wait()

    async def close(self) -> None:
        """Close as :meth:`Transport.close`."""
        with anyio.CancelScope(shield=True):
            await self._stream.aclose()

    async def run(self) -> None:
        """Run as :meth:`Transport.run`: read until the stream ends or fails, and write the enqueued frames."""
        async with background_tasks() as group:
            group.start_soon(self._write_enqueued)
            try:
                await self._read()
            finally:
                self._pipeline.fail(ConnectionLost(f"the connection to {self._broker} was closed"))
                group.cancel_scope.cancel()
                self._waiters.notify()
                await self.close()

    async def _read(self) -> None:
        try:
            while self._pipeline.failure is None:
                self._pipeline.receive(await self._stream.receive(_READ))
        except (KafkaError, anyio.ClosedResourceError):
            return  # the pipeline has failed already
        except anyio.EndOfStream:
            self._pipeline.connection_closed()
        except (anyio.BrokenResourceError, OSError) as cause:
            self._pipeline.fail(broken(self._broker, cause))

    async def _write(self, data: bytes, limit: float) -> None:
        self._writing = True
        try:
            # A partial frame would corrupt the stream, so a cancelled caller finishes its frame first.
            with anyio.CancelScope(deadline=anyio.current_time() + limit, shield=True) as in_time:
                await self._stream.send(data)
            if in_time.cancelled_caught:
                await self._fail(stalled(self._broker, len(data), limit))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as cause:
            await self._fail(broken(self._broker, cause))
        except Exception as cause:  # after any other error of the stream, the frame may be written partially
            await self._fail(ConnectionLost(f"the connection to {self._broker} broke: {cause!r}"))
            raise
        finally:
            self._writing = False
            self._waiters.notify()
            if self._outgoing:
                self._to_write.set()

    async def _fail(self, error: KafkaError) -> None:
        self._pipeline.fail(error)
        await self.close()

    async def _write_enqueued(self) -> None:
        while True:
            await self._to_write.wait()
            self._to_write = anyio.Event()
            while self._outgoing and not self._writing:
                # The limit is long: no caller waits for this write, and a large frame may take long on a slow network.
                await self._write(next_write(self._outgoing), self._limit)


def next_write(outgoing: deque[bytes]) -> bytes:
    """Return the next frame together with the small frames after it, and remove all of these from the queue."""
    data = outgoing.popleft()
    while outgoing and len(data) + len(outgoing[0]) <= _OWN_WRITE:
        data += outgoing.popleft()
    return data


def stalled(broker: str, size: int, limit: float) -> ConnectionLost:
    """Return the error with which pending requests fail when the socket accepts no bytes within ``limit`` seconds."""
    return ConnectionLost(f"{broker} did not take {size} bytes within {limit:g} s")
