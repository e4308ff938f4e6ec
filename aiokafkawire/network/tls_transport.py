"""The transport with TLS over asyncio's transports. Received bytes are decrypted directly into the frames."""

import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio

from .asyncio_transport import AsyncioTransport
from .connection_protocol import ConnectionProtocol
from .transport import broken

__all__ = ("TlsTransport",)

Begin = Callable[[ssl.MemoryBIO, ssl.MemoryBIO], Awaitable[ssl.SSLObject]]

_FIRST: Final = 16 * 1024
_MAX_READ: Final = 256 * 1024
"""The maximal number of bytes to read from the socket at once; the buffer grows on a busy connection."""
_KEPT: Final = 64


class TlsTransport(AsyncioTransport):
    """A transport with TLS. Call :meth:`shake_hands` first. The arguments are those of the base class.

    Neither side sends close_notify: Kafka's brokers do not, and frames have lengths, so truncation is always detected.
    """

    def __init__(
        self, pipeline: ConnectionProtocol, broker: str, limit: float, on_fault: Callable[[Exception], None]
    ) -> None:
        super().__init__(pipeline, broker, limit, on_fault)
        self.received: bytes = b""
        """The first received bytes, from which errors guess the server's protocol."""
        self._incoming, self._outgoing_tls = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session: ssl.SSLObject | None = None
        self._is_open = False
        self._shaken = anyio.Event()
        self._refused: Exception | None = None
        self._encrypted = bytearray(_FIRST)
        # Bytes that OpenSSL accepts only after it has read more, as when the broker updates keys.
        self._unwritten = b""

    async def shake_hands(self, begin: Begin) -> None:
        """Perform the handshake. The caller limits the time, and closes the transport after a failure.

        Args:
            begin: makes the client's TLS session from the incoming and the outgoing BIO.

        Raises:
            ssl.SSLError: the broker or this client refuses.
            EndOfStream, BrokenResourceError: the broker closed the connection.
        """
        self._session = await begin(self._incoming, self._outgoing_tls)
        ended, self._refused = self._refused, None
        self._shake()  # even if the broker has closed the connection: its last bytes may contain the reason
        if ended is not None:
            self._refuse(ended)
        await self._shaken.wait()
        if self._refused is not None:
            raise self._refused

    def _shake(self) -> None:
        assert self._session is not None  # the callers have checked this
        try:
            self._session.do_handshake()
            self._is_open = True
            self._shaken.set()
        except ssl.SSLWantReadError:
            pass
        except Exception as error:  # an ssl.SSLError, unless the user's context raises others
            self._refuse(error)
        self._flush()  # after a failed handshake, this sends the alert

    def _refuse(self, error: Exception) -> None:
        if not self._is_open and self._refused is None:
            self._refused = error
            self._shaken.set()

    def _flush(self) -> None:
        if self._outgoing_tls.pending and self._transport is not None and not self._transport.is_closing():
            self._transport.write(self._outgoing_tls.read())

    # --- writing ---------------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        assert self._session is not None
        self._unwritten += data
        try:
            while self._unwritten:
                self._unwritten = self._unwritten[self._session.write(self._unwritten) :]
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as cause:
            self._fail_with(cause)
            return
        self._flush()

    # --- called by asyncio's transport -----------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next encrypted bytes."""
        return memoryview(self._encrypted)

    def _take(self, count: int) -> None:
        with memoryview(self._encrypted) as view:
            self._incoming.write(view[:count])
            if len(self.received) < _KEPT:
                self.received += view[: min(count, _KEPT)]
        if count == len(self._encrypted) < _MAX_READ:  # a busy connection
            self._encrypted = bytearray(4 * count)
        if not self._is_open and self._refused is None and self._session is not None:
            self._shake()
        if self._is_open:
            self._decrypt()

    def _decrypt(self) -> None:
        assert self._session is not None
        read: Any = self._session.read  # reads into any buffer, although typeshed declares fewer types
        try:
            while self._pipeline.failure is None:
                with self._pipeline.buffer() as buffer:
                    count = read(len(buffer), buffer)
                if count:
                    self._pipeline.filled(count)
                else:  # the broker sent close_notify
                    self._pipeline.connection_closed()
                    self.abort()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as cause:
            self._fail_with(cause)
        if self._unwritten and self._pipeline.failure is None:
            self._write(b"")
        self._flush()

    def _fail_with(self, cause: ssl.SSLError) -> None:
        self._pipeline.fail(broken(self._broker, cause))
        self._flush()
        self.abort()

    def eof_received(self) -> None:
        """Fail the handshake or the pipeline, since the broker closed the connection."""
        self._refuse(anyio.EndOfStream())
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the handshake or the pipeline with the error that ended the connection."""
        lost = anyio.EndOfStream() if exc is None else anyio.BrokenResourceError()
        lost.__cause__ = exc
        self._refuse(lost)
        super().connection_lost(exc)
