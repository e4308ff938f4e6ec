"""TLS on connections: the handshake, the reloading of changed certificates, and errors that name the refusing side."""

import contextlib
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import anyio
from anyio.abc import ByteStream
from anyio.streams.tls import TLSAttribute, TLSStream

from ..config.security import SecurityConfig
from ..errors import ConfigError, ConnectionLost, TlsFailed
from ..event_log import EventLog
from ..runtime import Offload
from ..types import Address
from .connector import Connector
from .tls_context import files_of, make_context
from .tls_errors import not_tls, refused_by_broker, refused_by_us
from .tls_transport import TlsTransport

__all__ = ("Tls",)

_log = EventLog("aiokafkawire.security")

_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
_HOST_CODES: Final = (62, 64)
_ALERT_SECONDS: Final = 1.0
_PROBE_SECONDS: Final = 3.0
"""The time limit, in seconds, of another connection that is opened to find the reason of a failure."""
# ApiVersions v0 without a client id, which every broker answers with the same correlation id.
_API_VERSIONS: Final = b"\0\0\0\x0a\0\x12\0\0KAFK\xff\xff"
_CORRELATION_ID: Final = b"KAFK"


class Tls:
    """The TLS of one client's connections.

    Args:
        config: the settings.
        offload: calls functions that read files, on a thread.
    """

    def __init__(self, config: SecurityConfig, offload: Offload) -> None:
        self._config, self._offload = config, offload
        self._context: ssl.SSLContext | None = config.ssl_context
        self._stamp: object = None
        self._refused: object = None

    async def context(self) -> ssl.SSLContext:
        """Return the SSLContext for a new connection: the setting ``ssl_context``, or one made from the current files.

        If changed files are invalid, as when they are half written, the previous context remains in use.

        Raises:
            ConfigError: the files are invalid, and there is no previous context.
        """
        if self._config.ssl_context is not None:
            return self._config.ssl_context  # type: ignore[no-any-return]
        return await self._offload(self._current)

    def _current(self) -> ssl.SSLContext:
        stamp = [_stamp_of(path) for path in files_of(self._config)]
        if self._context is not None and stamp == self._stamp:
            return self._context
        try:
            made = make_context(self._config)
        except ConfigError as error:
            if self._context is None:
                raise
            if stamp != self._refused:
                self._refused = stamp
                message = "cannot reload changed certificates, keeping the previous ones: %(error)s"
                _log.warning(message, error=error)
            # Read again for the next connection: the files may become readable, or valid, without another change.
            return self._context
        self._context, self._stamp = made, stamp
        return made

    def around(self, connector: Connector) -> Connector:
        """Return a connector that opens streams inside TLS.

        The new connector raises the errors of ``connector``. If the cause of a failed handshake is known, it raises a
        KafkaError.
        """

        async def connect(host: str, port: int) -> ByteStream:
            seen: Any = _ExposedContext(await self.context())
            transport = _Transport(await connector(host, port))
            try:
                # Brokers send no close_notify; frames have lengths, so a truncated stream is always noticed.
                return await TLSStream.wrap(
                    transport, hostname=host, ssl_context=seen, standard_compatible=False, server_side=False
                )
            except BaseException as error:
                if isinstance(error, ssl.SSLError):
                    await _send_alert(transport, seen.outgoing)
                with anyio.CancelScope(shield=True):
                    await anyio.aclose_forcefully(transport)
                if not isinstance(error, Exception):
                    raise
                explained = await self._explain(error, connector, Address(host, port), transport.received)
                raise explained from (error if explained is not error else error.__cause__)

        return connect

    async def over_transport(
        self,
        at: Address,
        connector: Connector,
        dial: Callable[[type[TlsTransport]], Awaitable[TlsTransport]],
    ) -> TlsTransport:
        """Return a TLS transport on the connection that ``dial`` opens. Raises as the connectors of :meth:`around`.

        Args:
            at: the broker; its certificate must be for this host.
            connector: opens further connections, to find the reason of a failure.
            dial: opens the connection, with a transport of the given class.
        """
        begin = partial(self._begin, await self.context(), at.host)
        transport = await dial(TlsTransport)
        try:
            await transport.shake_hands(begin)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await transport.close()  # sends the alert first
            if not isinstance(error, Exception):
                raise
            explained = await self._explain(error, connector, at, transport.received)
            raise explained from (error if explained is not error else error.__cause__)
        return transport

    async def _begin(
        self, context: ssl.SSLContext, host: str, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> ssl.SSLObject:
        if type(context) is ssl.SSLContext:
            return context.wrap_bio(incoming, outgoing, server_hostname=host)
        # The methods of other context classes may read files.
        return await self._offload(partial(context.wrap_bio, incoming, outgoing, server_hostname=host))

    async def _explain(self, error: Exception, connector: Connector, at: Address, received: bytes) -> Exception:
        broker = str(at)
        if isinstance(error, ssl.SSLCertVerificationError):
            names = None
            if error.verify_code in _HOST_CODES:
                names = await self._names(connector, at)
            return refused_by_us(broker, at.host, error.verify_code, error.verify_message, names=names)
        if isinstance(error, ssl.SSLError):
            if error.reason in _NOT_TLS and received[:1] not in (b"\x15", b"\x16"):
                return not_tls(broker, received)
            alert = refused_by_broker(broker, error.reason)
            return alert or TlsFailed(f"the TLS handshake with {broker} failed in this client: {error.reason or error}")
        if not received and isinstance(error, anyio.EndOfStream | anyio.BrokenResourceError):
            if await _speaks_plain_kafka(connector, at):
                return not_tls(broker, b"")
            return ConnectionLost(f"{broker} closed the connection on the TLS handshake (is it a TLS listener?)")
        if isinstance(error, anyio.EndOfStream):
            return ConnectionLost(f"{broker} closed the connection in the midst of the TLS handshake")
        return error

    async def _names(self, connector: Connector, at: Address) -> tuple[str, ...] | None:
        """Return the host names in the broker's certificate; None if they cannot be read.

        OpenSSL returns no certificate that it has refused, so another connection is opened, which verifies no names.
        """
        if self._config.ssl_context is not None:
            return None
        with anyio.move_on_after(_PROBE_SECONDS):
            try:
                context = await self._offload(lambda: make_context(self._config, looking=True))
                async with await connector(*at) as stream:
                    seen = await TLSStream.wrap(
                        stream, hostname=at.host, ssl_context=context, standard_compatible=False, server_side=False
                    )
                    certificate: Any = seen.extra(TLSAttribute.peer_certificate, {})  # noqa: S610
            except Exception:  # the error for the user then lacks the names
                return None
            names = certificate.get("subjectAltName", ())
            return tuple(value for name_type, value in names if name_type in ("DNS", "IP Address"))
        return None


async def _speaks_plain_kafka(connector: Connector, at: Address) -> bool:
    """Return whether a broker that closed the connection on a TLS handshake answers ApiVersions without TLS."""
    with anyio.move_on_after(_PROBE_SECONDS):
        try:
            async with await connector(*at) as stream:
                await stream.send(_API_VERSIONS)
                received = b""
                while len(received) < 8:
                    received += await stream.receive()
                return received[4:8] == _CORRELATION_ID
        except Exception:  # no answer, or no connection
            return False
    return False


def _stamp_of(path: str) -> object:
    try:
        seen = os.stat(path)
    except OSError as error:
        return error.errno
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


class _ExposedContext:
    """A wrapper of an SSLContext that exposes the bytes to send, which include the alert of a failed handshake."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.outgoing: ssl.MemoryBIO | None = None
        self._context = context

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *rest: Any, **more: Any) -> ssl.SSLObject:
        self.outgoing = outgoing
        return self._context.wrap_bio(incoming, outgoing, *rest, **more)


async def _send_alert(stream: ByteStream, outgoing: ssl.MemoryBIO | None) -> None:
    """Send the TLS alert, so that the broker logs why the client closed the connection."""
    alert = outgoing.read() if outgoing is not None else b""
    if alert:
        with anyio.move_on_after(_ALERT_SECONDS), contextlib.suppress(Exception):
            await stream.send(alert)


class _Transport(ByteStream):
    """The stream below TLS. Reading from TLS may also send bytes, so a lock serializes sends."""

    def __init__(self, stream: ByteStream) -> None:
        self.received = b""
        """The first received bytes, from which errors guess the server's protocol."""
        self._stream = stream
        self._sending = anyio.Lock()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        return self._stream.extra_attributes

    async def receive(self, max_bytes: int = 65536) -> bytes:
        data = await self._stream.receive(max_bytes)
        if len(self.received) < 64:
            self.received += data[:64]
        return data

    async def send(self, item: bytes) -> None:
        async with self._sending:
            await self._stream.send(item)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()
