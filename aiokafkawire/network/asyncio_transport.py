"""Frames over asyncio's own transports: no task between the socket and those who wait."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from typing import TypeVar, cast

import anyio
import anyio.lowlevel

from ..errors import ConnectionLost, KafkaError
from ..types import Address
from .connector import keep_alive
from .happy_eyeballs import addresses_of, dial
from .pipeline import Pipeline
from .transport import IdleWaiters, broken, next_write, stalled

__all__ = ("AsyncioTransport", "open_transport")


W = TypeVar("W", bound="AsyncioTransport")


async def open_transport(at: Address, make: Callable[[], W], *, keepalive: bool = False) -> W:
    """A TCP connection, on the first of the host's addresses that takes it; ``make`` is called for each that is tried.

    Raises:
        OSError: it cannot be opened.
    """
    loop = asyncio.get_running_loop()

    async def connect(address: str) -> W:
        wire = make()
        # The transport calls back in the context in which it is made, and outside of any task.
        sniffio = sys.modules.get("sniffio")
        token = sniffio.current_async_library_cvar.set("asyncio") if sniffio is not None else None
        try:
            transport, _ = await loop.create_connection(lambda: wire, address, at.port)
        finally:
            if sniffio is not None:
                sniffio.current_async_library_cvar.reset(token)
        if keepalive:
            keep_alive(transport.get_extra_info("socket"))
        return wire

    return await dial(await addresses_of(*at), connect, AsyncioTransport.abort)


class AsyncioTransport(asyncio.BufferedProtocol):
    """A wire on asyncio or uvloop. The socket writes into the frames themselves; answers are given from its callback.

    Args:
        limit: how long the socket may take for a frame, in seconds.
        on_fault: hears of what should not have happened while an answer was given; the connection is closed then.
    """

    def __init__(self, pipeline: Pipeline, where: str, limit: float, on_fault: Callable[[Exception], None]) -> None:
        self._pipeline, self._where, self._limit, self._on_fault = pipeline, where, limit, on_fault
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outgoing: deque[bytes] = deque()
        # While the transport holds bytes that the socket did not take.
        self._stall: asyncio.TimerHandle | None = None
        self._stalled_size = 0
        self._waiters = IdleWaiters(pipeline, lambda: self._stall is not None or bool(self._outgoing))
        self._lost = anyio.Event()

    async def run(self) -> None:
        """As :meth:`.wire.Wire.run`."""
        try:
            await self._lost.wait()
        finally:
            self._pipeline.fail(ConnectionLost(f"the connection to {self._where} was closed"))
            await self.close()

    # --- what the connection asks ----------------------------------------------------------------------

    def put(self, frame: bytes) -> None:
        """As :meth:`.wire.Wire.put`."""
        self._outgoing.append(frame)

    async def transmit(self) -> None:
        """As :meth:`.wire.Wire.transmit`."""
        self.transmit_soon()

    def transmit_soon(self) -> None:
        """As :meth:`.wire.Wire.transmit_soon`: a transport takes everything at once."""
        while self._outgoing and self._stall is None and self._transport is not None:
            data = self._outgoing.popleft() if len(self._outgoing) == 1 else next_write(self._outgoing)
            self._stalled_size = len(data)
            self._write(data)

    def transmit_at_once(self) -> bool:
        """As :meth:`.wire.Wire.transmit_at_once`."""
        self.transmit_soon()
        return True

    def _write(self, data: bytes) -> None:
        assert self._transport is not None  # or nothing is transmitted
        self._transport.write(data)

    async def written(self) -> None:
        """As :meth:`.wire.Wire.written`."""
        self.transmit_soon()
        await self._waiters.wait()

    async def close(self) -> None:
        """As :meth:`.wire.Wire.close`."""
        if self._transport is not None:
            self._transport.close()
            # Where there is something to say at the end, as in TLS, it is said meanwhile.
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self._transport.abort()

    # --- what the transport tells ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        # uvloop's transports say no class of asyncio's their own.
        self._transport = cast("asyncio.Transport", transport)
        # It is paused as long as there is anything that the socket did not take.
        self._transport.set_write_buffer_limits(high=0)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return self._pipeline.room()

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes came."""
        try:
            self._take(nbytes)
        except KafkaError:
            self.abort()  # the pipeline has failed, and knows why
        except Exception as fault:
            self._fail(ConnectionLost(f"the connection to {self._where} was closed: its answer met {fault!r}"))
            self._on_fault(fault)

    def _take(self, count: int) -> None:
        self._pipeline.filled(count)

    def pause_writing(self) -> None:
        """The socket takes no more."""
        self._stall = self._loop.call_later(self._limit, self._stop_waiting)

    def resume_writing(self) -> None:
        """The socket has taken everything."""
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        self.transmit_soon()
        if self._stall is None:
            self._waiters.tell()

    def _stop_waiting(self) -> None:
        self._fail(stalled(self._where, self._stalled_size, self._limit))

    def eof_received(self) -> None:
        """The broker sends no more; the transport closes itself."""
        self._pipeline.hung_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        if exc is not None:
            self._pipeline.fail(broken(self._where, exc))
        self._pipeline.hung_up()
        if self._stall is not None:
            self._stall.cancel()
        self._waiters.tell()
        self._lost.set()

    def _fail(self, error: ConnectionLost) -> None:
        self._pipeline.fail(error)
        self.abort()

    def abort(self) -> None:
        """Close it at once, whatever was not sent yet."""
        if self._transport is not None:
            self._transport.abort()
