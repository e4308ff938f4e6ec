"""The transport over any anyio stream: on trio, and where a test or simulation provides the stream."""

from collections.abc import Sequence
from typing import Final

import anyio
from anyio.abc import ByteStream, SocketAttribute

from ..errors import ConnectionLost, KafkaError
from ..runtime import background_tasks, new_event
from .connection_protocol import ConnectionProtocol
from .dead_paths import unanswered_seconds
from .transport import OWN_WRITE, IdleWaiters, Outgoing, WriteObserver, broken, stalled

__all__ = ("StreamTransport",)

_READ: Final = 256 * 1024
_WRITE_STALL_SECONDS: Final = 5.0
"""The time limit, in seconds, of a write in the caller's task, which cannot be cancelled meanwhile."""


class StreamTransport:
    """A transport over any anyio stream. One task reads. Another task writes, unless :meth:`transmit` does.

    Args:
        limit: how long writing a frame may take, in seconds.
    """

    def __init__(self, stream: ByteStream, pipeline: ConnectionProtocol, broker: str, limit: float) -> None:
        self._stream, self._pipeline, self._broker, self._limit = stream, pipeline, broker, limit
        self._outgoing = Outgoing()
        self._writing = False
        self._to_write = new_event()
        self._waiters = IdleWaiters(pipeline, lambda: self._writing or bool(self._outgoing))

    def enqueue(self, frame: Sequence[bytes], observer: WriteObserver | None = None) -> None:
        """Enqueue as :meth:`Transport.enqueue`."""
        self._outgoing.extend(frame)
        if observer is not None:
            self._outgoing.observe(observer)

    async def transmit(self) -> None:
        """Transmit as :meth:`Transport.transmit`; if the transport is idle, the caller itself writes a small frame."""
        if len(self._outgoing) == 1 and not self._writing and len(self._outgoing[0]) <= OWN_WRITE:
            await self._write(self._outgoing.take(), min(_WRITE_STALL_SECONDS, self._limit))
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

    def unanswered(self) -> float:
        """Return as :meth:`Transport.unanswered`."""
        return unanswered_seconds(self._stream.extra(SocketAttribute.raw_socket, None))  # noqa: S610

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
            self._to_write = new_event()
            while self._outgoing and not self._writing:
                # The limit is long: no caller waits for this write, and a large frame may take long on a slow network.
                await self._write(self._outgoing.take(), self._limit)
