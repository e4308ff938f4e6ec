"""What moves a connection's frames over a byte stream: in line, whole, and in order."""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import anyio
from anyio.abc import ByteStream

from ..errors import ConnectionLost, KafkaError, copy_for_reraise
from ..runtime import background_tasks
from .pipeline import Pipeline
from .tls_errors import refused_by_broker

__all__ = ("StreamTransport", "IdleWaiters", "Transport", "broken", "next_write", "stalled")

_OWN_WRITE: Final = 64 * 1024
"""Small frames up to this many bytes go out as one."""
_READ: Final = 256 * 1024
_WRITE_STALL_SECONDS: Final = 5.0
"""How long a frame that its caller writes may take; the caller cannot be cancelled meanwhile."""


class Transport(Protocol):
    """What comes over it goes into the connection's pipeline, and so does the cause of its end."""

    def put(self, frame: bytes) -> None:
        """Put a frame in line; it goes out on :meth:`transmit` or :meth:`transmit_soon`."""

    async def transmit(self) -> None:
        """Write what is in line, here and now if nothing is being written."""

    def transmit_soon(self) -> None:
        """Have what is in line written, without waiting for anything."""

    def transmit_at_once(self) -> bool:
        """Write what is in line if that never takes waiting, as with a loop's own transport; whether it is so."""

    async def written(self) -> None:
        """Wait until nothing is in line.

        Raises:
            ConnectionLost, WireError: the connection broke.
        """

    async def run(self) -> None:
        """Last as long as the connection; it is closed if this is cancelled."""

    async def close(self) -> None:
        """Close the stream. May be called again."""


def broken(where: str, cause: BaseException) -> KafkaError:
    """The error of those who wait when a stream has failed."""
    lost = refused_by_broker(where, getattr(cause, "reason", None))
    lost = lost or ConnectionLost(f"the connection to {where} broke: {cause.__cause__ or cause}")
    lost.__cause__ = cause
    return lost


class IdleWaiters:
    """Those who wait until nothing is in line. ``is_busy`` says whether something is."""

    def __init__(self, pipeline: Pipeline, is_busy: Callable[[], bool]) -> None:
        self._pipeline, self._is_busy = pipeline, is_busy
        self._event: anyio.Event | None = None

    async def wait(self) -> None:
        """As :meth:`Transport.written`."""
        while self._is_busy() and self._pipeline.failure is None:
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()
        if self._pipeline.failure is not None:
            raise copy_for_reraise(self._pipeline.failure)

    def tell(self) -> None:
        """Something was written, or never will be: have them look."""
        event, self._event = self._event, None
        if event is not None:
            event.set()


class StreamTransport:
    """Over any stream of anyio's: one task reads, one writes what callers leave.

    Args:
        limit: how long the stream may take for a frame, in seconds.
    """

    def __init__(self, stream: ByteStream, pipeline: Pipeline, where: str, limit: float) -> None:
        self._stream, self._pipeline, self._where, self._limit = stream, pipeline, where, limit
        self._outgoing: deque[bytes] = deque()
        self._writing = False
        self._to_write = anyio.Event()
        self._waiters = IdleWaiters(pipeline, lambda: self._writing or bool(self._outgoing))

    def put(self, frame: bytes) -> None:
        """As :meth:`Transport.put`."""
        self._outgoing.append(frame)

    async def transmit(self) -> None:
        """As :meth:`Transport.transmit`; on an idle transport the caller itself writes a small frame."""
        if len(self._outgoing) == 1 and not self._writing and len(self._outgoing[0]) <= _OWN_WRITE:
            await self._write(self._outgoing.popleft(), min(_WRITE_STALL_SECONDS, self._limit))
        else:
            self.transmit_soon()

    def transmit_soon(self) -> None:
        """As :meth:`Transport.transmit_soon`."""
        if self._outgoing:
            self._to_write.set()

    def transmit_at_once(self) -> bool:
        """As :meth:`Transport.transmit_at_once`."""
        return False

    async def written(self) -> None:
        """As :meth:`Transport.written`."""
        await self._waiters.wait()

    async def close(self) -> None:
        """As :meth:`Transport.close`."""
        with anyio.CancelScope(shield=True):
            await self._stream.aclose()

    async def run(self) -> None:
        """As :meth:`Transport.run`: read until the stream ends or fails, and write what callers have left."""
        async with background_tasks() as group:
            group.start_soon(self._write_what_is_left)
            try:
                await self._read()
            finally:
                self._pipeline.fail(ConnectionLost(f"the connection to {self._where} was closed"))
                group.cancel_scope.cancel()
                self._waiters.tell()
                await self.close()

    async def _read(self) -> None:
        try:
            while self._pipeline.failure is None:
                self._pipeline.receive(await self._stream.receive(_READ))
        except (KafkaError, anyio.ClosedResourceError):
            return  # the pipeline has failed already, and knows why
        except anyio.EndOfStream:
            self._pipeline.hung_up()
        except (anyio.BrokenResourceError, OSError) as cause:
            self._pipeline.fail(broken(self._where, cause))

    async def _write(self, data: bytes, limit: float) -> None:
        self._writing = True
        try:
            # Half a frame would spoil everything behind it: a cancelled caller lets its frame out first.
            with anyio.CancelScope(deadline=anyio.current_time() + limit, shield=True) as in_time:
                await self._stream.send(data)
            if in_time.cancelled_caught:
                await self._fail(stalled(self._where, len(data), limit))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as cause:
            await self._fail(broken(self._where, cause))
        except Exception as cause:  # a stream that fails in a way of its own may have written half the frame
            await self._fail(ConnectionLost(f"the connection to {self._where} broke: {cause!r}"))
            raise
        finally:
            self._writing = False
            self._waiters.tell()
            if self._outgoing:
                self._to_write.set()

    async def _fail(self, error: KafkaError) -> None:
        self._pipeline.fail(error)
        await self.close()

    async def _write_what_is_left(self) -> None:
        while True:
            await self._to_write.wait()
            self._to_write = anyio.Event()
            while self._outgoing and not self._writing:
                # Nobody's cancellation waits for this one, and a large frame may take its time on a slow line.
                await self._write(next_write(self._outgoing), self._limit)


def next_write(outgoing: deque[bytes]) -> bytes:
    """Take the next frame out of the line, and small ones behind it along."""
    data = outgoing.popleft()
    while outgoing and len(data) + len(outgoing[0]) <= _OWN_WRITE:
        data += outgoing.popleft()
    return data


def stalled(where: str, size: int, limit: float) -> ConnectionLost:
    """The error of those who wait when a stream takes no bytes."""
    return ConnectionLost(f"{where} did not take {size} bytes within {limit:g} s")
