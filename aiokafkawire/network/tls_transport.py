"""TLS over asyncio's own transports: what the socket brings is decrypted right into the frames."""

import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio

from .asyncio_transport import AsyncioTransport
from .pipeline import Pipeline
from .transport import broken

__all__ = ("TlsTransport",)

Begin = Callable[[ssl.MemoryBIO, ssl.MemoryBIO], Awaitable[ssl.SSLObject]]

_FIRST: Final = 16 * 1024
_MOST: Final = 256 * 1024
"""How much is read from the socket at once, on a connection that brings so much."""
_TELLING: Final = 64


class TlsTransport(AsyncioTransport):
    """A wire inside TLS, to be used from :meth:`shake_hands` on; arguments are those of its plain kind.

    Nobody says goodbye: Kafka's brokers do not, and frames have lengths, so nothing can be cut off unseen.
    """

    def __init__(self, pipeline: Pipeline, where: str, limit: float, on_fault: Callable[[Exception], None]) -> None:
        super().__init__(pipeline, where, limit, on_fault)
        self.heard: bytes = b""
        """How what the other side said began."""
        self._coming, self._going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session: ssl.SSLObject | None = None
        self._is_open = False
        self._shaken = anyio.Event()
        self._refused: Exception | None = None
        self._encrypted = bytearray(_FIRST)
        # What OpenSSL takes only after it has read something, as when the other side wants new keys.
        self._unsaid = b""

    async def shake_hands(self, begin: Begin) -> None:
        """Agree on everything; the time for that is the caller's to limit. If it fails the wire is to be closed.

        Args:
            begin: makes the client's side of a session, of what comes and what goes.

        Raises:
            ssl.SSLError: one side refuses.
            EndOfStream, BrokenResourceError: the other side hung up.
        """
        self._session = await begin(self._coming, self._going)
        ended, self._refused = self._refused, None
        self._shake()  # even with who has left already: what they said counts
        if ended is not None:
            self._refuse(ended)
        await self._shaken.wait()
        if self._refused is not None:
            raise self._refused

    def _shake(self) -> None:
        assert self._session is not None  # or nothing was said yet that could be answered
        try:
            self._session.do_handshake()
            self._is_open = True
            self._shaken.set()
        except ssl.SSLWantReadError:
            pass
        except Exception as error:  # an ssl.SSLError, unless the context is of another kind
            self._refuse(error)
        self._flush()  # which, if it failed, says why

    def _refuse(self, error: Exception) -> None:
        if not self._is_open and self._refused is None:
            self._refused = error
            self._shaken.set()

    def _flush(self) -> None:
        if self._going.pending and self._transport is not None and not self._transport.is_closing():
            self._transport.write(self._going.read())

    # --- what goes out ---------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        assert self._session is not None
        self._unsaid += data
        try:
            while self._unsaid:
                self._unsaid = self._unsaid[self._session.write(self._unsaid) :]
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as cause:
            self._break(cause)
            return
        self._flush()

    # --- what the transport tells ----------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return memoryview(self._encrypted)

    def _take(self, count: int) -> None:
        with memoryview(self._encrypted) as seen:
            self._coming.write(seen[:count])
            if len(self.heard) < _TELLING:
                self.heard += seen[: min(count, _TELLING)]
        if count == len(self._encrypted) < _MOST:  # this one brings much
            self._encrypted = bytearray(4 * count)
        if not self._is_open and self._refused is None and self._session is not None:
            self._shake()
        if self._is_open:
            self._decrypt()

    def _decrypt(self) -> None:
        assert self._session is not None
        read: Any = self._session.read  # into any buffer, whatever is declared
        try:
            while self._pipeline.failure is None:
                with self._pipeline.room() as room:
                    count = read(len(room), room)
                if count:
                    self._pipeline.filled(count)
                else:  # the other side said goodbye
                    self._pipeline.hung_up()
                    self.abort()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as cause:
            self._break(cause)
        if self._unsaid and self._pipeline.failure is None:
            self._write(b"")
        self._flush()

    def _break(self, cause: ssl.SSLError) -> None:
        self._pipeline.fail(broken(self._where, cause))
        self._flush()
        self.abort()

    def eof_received(self) -> None:
        """The broker sends no more; the transport closes itself."""
        self._refuse(anyio.EndOfStream())
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        lost = anyio.EndOfStream() if exc is None else anyio.BrokenResourceError()
        lost.__cause__ = exc
        self._refuse(lost)
        super().connection_lost(exc)
