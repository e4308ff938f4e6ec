"""The transport of frames over asyncio's transports, without a task between the socket and the waiting callers."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import Final, TypeVar, cast

import anyio
import anyio.lowlevel

from ..errors import ConnectionLost, KafkaError
from ..types import Address
from .connection_protocol import ConnectionProtocol
from .connector import SocketOptions
from .dead_paths import unanswered_seconds
from .happy_eyeballs import addresses_of, dial
from .transport import IdleWaiters, Outgoing, WriteObserver, broken, stalled

__all__ = ("AsyncioTransport", "open_transport")

W = TypeVar("W", bound="AsyncioTransport")

_PLAIN: Final = SocketOptions()


async def open_transport(at: Address, make: Callable[[], W], *, options: SocketOptions = _PLAIN) -> W:
    """Open a TCP connection to the first of the host's addresses that accepts it.

    Args:
        at: the host and port.
        make: makes a transport for each attempt.
        options: the options of the socket.

    Raises:
        OSError: the connection cannot be opened.
    """
    loop = asyncio.get_running_loop()

    async def connect(address: str) -> W:
        protocol = make()
        # The transport's callbacks run in a copy of this context, outside of any task, so sniffio needs the variable.
        sniffio = sys.modules.get("sniffio")
        token = sniffio.current_async_library_cvar.set("asyncio") if sniffio is not None else None
        try:
            transport, _ = await loop.create_connection(lambda: protocol, address, at.port)
        except BaseException:
            protocol.discard()  # asyncio may report the end of a connection that was made before
            raise
        finally:
            if sniffio is not None:
                sniffio.current_async_library_cvar.reset(token)
        options.set_on(transport.get_extra_info("socket"))
        return protocol

    return await dial(await addresses_of(*at), connect, AsyncioTransport.discard, lambda: addresses_of(*at))


class AsyncioTransport(asyncio.BufferedProtocol):
    """A transport on asyncio or uvloop. The event loop reads into the frames, and its callbacks call the handlers.

    Args:
        limit: how long writing a frame may take, in seconds.
        on_fault: called with an unexpected error of a response handler, after the connection was closed.
    """

    def __init__(
        self, pipeline: ConnectionProtocol, broker: str, limit: float, on_fault: Callable[[Exception], None]
    ) -> None:
        self._pipeline, self._broker, self._limit, self._on_fault = pipeline, broker, limit, on_fault
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._is_discarded = False
        self._outgoing = Outgoing()
        # The time limit that runs while asyncio's transport holds bytes that the socket did not take; else None.
        self._stall: asyncio.TimerHandle | None = None
        self._stalled_size = 0
        self._waiters = IdleWaiters(pipeline, lambda: self._stall is not None or bool(self._outgoing))
        self._lost = anyio.Event()

    async def run(self) -> None:
        """Run as :meth:`.transport.Transport.run`."""
        try:
            await self._lost.wait()
        finally:
            self._pipeline.fail(ConnectionLost(f"the connection to {self._broker} was closed"))
            await self.close()

    # --- called by the connection ----------------------------------------------------------------------

    def enqueue(self, frame: Sequence[bytes], observer: WriteObserver | None = None) -> None:
        """Enqueue as :meth:`.transport.Transport.enqueue`."""
        self._outgoing.extend(frame)
        if observer is not None:
            self._outgoing.observe(observer)

    async def transmit(self) -> None:
        """Transmit as :meth:`.transport.Transport.transmit`."""
        self.transmit_soon()

    def transmit_soon(self) -> None:
        """Transmit as :meth:`.transport.Transport.transmit_soon`, without a task, as asyncio's writes never wait."""
        if self._pipeline.failure is not None:
            return  # uvloop raises an error if a closed transport is written to
        while self._outgoing and self._stall is None and self._transport is not None:
            data = self._outgoing.take()
            self._stalled_size = len(data)
            self._write(data)

    def transmit_at_once(self) -> bool:
        """Transmit as :meth:`.transport.Transport.transmit_at_once`."""
        self.transmit_soon()
        return True

    def _write(self, data: bytes) -> None:
        assert self._transport is not None  # frames are written only to an open transport
        self._transport.write(data)

    async def written(self) -> None:
        """Wait as :meth:`.transport.Transport.written`."""
        self.transmit_soon()
        await self._waiters.wait()

    def unanswered(self) -> float:
        """Return as :meth:`.transport.Transport.unanswered`."""
        return 0.0 if self._transport is None else unanswered_seconds(self._transport.get_extra_info("socket"))

    async def close(self) -> None:
        """Close as :meth:`.transport.Transport.close`."""
        if self._transport is not None:
            self._transport.close()
            # Let the transport send its last bytes, such as a TLS alert.
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self._transport.abort()

    # --- called by asyncio's transport -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store asyncio's transport, which is open now."""
        # uvloop's transports inherit from no class of asyncio.
        self._transport = cast("asyncio.Transport", transport)
        # With this limit, asyncio pauses writing as long as there are bytes that the socket did not take.
        self._transport.set_write_buffer_limits(high=0)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next received bytes."""
        return self._pipeline.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Process the received bytes."""
        try:
            self._take(nbytes)
        except KafkaError:
            self.abort()  # the pipeline has failed already
        except Exception as fault:
            self._fail(
                ConnectionLost(f"the connection to {self._broker} was closed: handling a response failed: {fault!r}")
            )
            self._on_fault(fault)

    def _take(self, count: int) -> None:
        self._pipeline.filled(count)

    def pause_writing(self) -> None:
        """Start the time limit, since the socket takes no more bytes at the moment."""
        self._stall = self._loop.call_later(self._limit, self._time_out)

    def resume_writing(self) -> None:
        """Write the next frames, since the socket has taken all bytes."""
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        self.transmit_soon()
        if self._stall is None:
            self._waiters.notify()

    def _time_out(self) -> None:
        self._fail(stalled(self._broker, self._stalled_size, self._limit))

    def eof_received(self) -> None:
        """Fail the pipeline, since the broker closed the connection; the transport closes itself."""
        self._pipeline.connection_closed()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the pipeline with the error that ended the connection."""
        if self._is_discarded:
            return
        if exc is not None:
            self._pipeline.fail(broken(self._broker, exc))
        self._pipeline.connection_closed()
        if self._stall is not None:
            self._stall.cancel()
        self._waiters.notify()
        self._lost.set()

    def _fail(self, error: ConnectionLost) -> None:
        self._pipeline.fail(error)
        self.abort()

    def abort(self) -> None:
        """Close the transport at once; unsent bytes are lost."""
        if self._transport is not None:
            self._transport.abort()

    def discard(self) -> None:
        """Close the transport at once, and leave the pipeline to another attempt to connect, which shares it."""
        self._is_discarded = True
        self.abort()
