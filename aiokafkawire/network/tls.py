"""TLS around the streams of a connector: the handshake, certificates that are read again when their files change, and
errors that say which side refused, and why.
"""

import contextlib
import logging
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
from ..runtime import Offload
from ..types import Address
from .connector import Connector
from .tls_context import files_of, make_context
from .tls_errors import not_tls, refused_by_broker, refused_by_us
from .tls_transport import TlsTransport

__all__ = ("Tls",)

_log = logging.getLogger("aiokafkawire.security")

_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
_HOST_CODES: Final = (62, 64)
_ALERT_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 3.0
"""How long a second look at a broker that refused may take."""
# ApiVersions v0 without a client id, which every broker answers; the number is to be found in the answer.
_PLAIN_QUESTION: Final = b"\0\0\0\x0a\0\x12\0\0KAFK\xff\xff"
_PLAIN_NUMBER: Final = b"KAFK"


class Tls:
    """The TLS of one client.

    Args:
        config: the settings.
        offload: runs what reads files.
    """

    def __init__(self, config: SecurityConfig, offload: Offload) -> None:
        self._config, self._offload = config, offload
        self._context: ssl.SSLContext | None = config.ssl_context
        self._stamp: object = None

    async def context(self) -> ssl.SSLContext:
        """The context for a new connection, of the files as they are now.

        Files that were changed and do not do any more, perhaps as they are half written, leave it as it was.

        Raises:
            ConfigError: it could not be made yet.
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
            if stamp != self._stamp:
                _log.warning("cannot reload changed certificates, keeping the previous ones: %s", error)
            made = self._context
        self._context, self._stamp = made, stamp
        return made

    def around(self, connector: Connector) -> Connector:
        """A connector that opens streams inside TLS.

        It raises KafkaError where it is known what went wrong, and what the connector raises.
        """

        async def connect(host: str, port: int) -> ByteStream:
            seen: Any = _Seen(await self.context())
            transport = _Transport(await connector(host, port))
            try:
                # Kafka's brokers leave without a goodbye; frames have lengths, so nothing can be cut off unseen.
                return await TLSStream.wrap(
                    transport, hostname=host, ssl_context=seen, standard_compatible=False, server_side=False
                )
            except BaseException as error:
                if isinstance(error, ssl.SSLError):
                    await _say_why(transport, seen.outgoing)
                with anyio.CancelScope(shield=True):
                    await anyio.aclose_forcefully(transport)
                if not isinstance(error, Exception):
                    raise
                told = await self._told(error, connector, Address(host, port), transport.heard)
                raise told from (error if told is not error else error.__cause__)

        return connect

    async def over_transport(
        self,
        at: Address,
        connector: Connector,
        dial: Callable[[type[TlsTransport]], Awaitable[TlsTransport]],
    ) -> TlsTransport:
        """A wire inside TLS, on what ``dial`` opens; raises as what :meth:`around` gives.

        Args:
            at: the broker; its certificate is to be for that host.
            connector: opens other connections to it.
            dial: opens the connection, with a wire of that kind on it.
        """
        begin = partial(self._begin, await self.context(), at.host)
        wire = await dial(TlsTransport)
        try:
            await wire.shake_hands(begin)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await wire.close()  # behind the alert that says why
            if not isinstance(error, Exception):
                raise
            told = await self._told(error, connector, at, wire.heard)
            raise told from (error if told is not error else error.__cause__)
        return wire

    async def _begin(
        self, context: ssl.SSLContext, host: str, coming: ssl.MemoryBIO, going: ssl.MemoryBIO
    ) -> ssl.SSLObject:
        if type(context) is ssl.SSLContext:
            return context.wrap_bio(coming, going, server_hostname=host)
        # Other kinds may look at more than memory.
        return await self._offload(partial(context.wrap_bio, coming, going, server_hostname=host))

    async def _told(self, error: Exception, connector: Connector, at: Address, heard: bytes) -> Exception:
        where = str(at)
        if isinstance(error, ssl.SSLCertVerificationError):
            names = None
            if error.verify_code in _HOST_CODES:
                names = await self._names(connector, at)
            return refused_by_us(where, at.host, error.verify_code, error.verify_message, names=names)
        if isinstance(error, ssl.SSLError):
            if error.reason in _NOT_TLS and heard[:1] not in (b"\x15", b"\x16"):
                return not_tls(where, heard)
            alert = refused_by_broker(where, error.reason)
            return alert or TlsFailed(f"the TLS handshake with {where} failed in this client: {error.reason or error}")
        if not heard and isinstance(error, anyio.EndOfStream | anyio.BrokenResourceError):
            if await _speaks_plain_kafka(connector, at):
                return not_tls(where, b"")
            return ConnectionLost(f"{where} closed the connection on the TLS handshake (is it a TLS listener?)")
        if isinstance(error, anyio.EndOfStream):
            return ConnectionLost(f"{where} closed the connection in the midst of the TLS handshake")
        return error

    async def _names(self, connector: Connector, at: Address) -> tuple[str, ...] | None:
        """The names that a certificate is for: OpenSSL does not show the one it has just refused.

        It is looked at once more, over a connection that checks who signed it, and on which nothing is said.
        """
        if self._config.ssl_context is not None:
            return None
        with anyio.move_on_after(_LOOK_SECONDS):
            try:
                context = await self._offload(lambda: make_context(self._config, looking=True))
                async with await connector(*at) as stream:
                    seen = await TLSStream.wrap(
                        stream, hostname=at.host, ssl_context=context, standard_compatible=False, server_side=False
                    )
                    certificate: Any = seen.extra(TLSAttribute.peer_certificate, {})  # noqa: S610
            except Exception:  # then it is told without them
                return None
            held = certificate.get("subjectAltName", ())
            return tuple(value for kind, value in held if kind in ("DNS", "IP Address"))
        return None


async def _speaks_plain_kafka(connector: Connector, at: Address) -> bool:
    """Whether who hung up on a TLS handshake answers Kafka's first question outside of TLS."""
    with anyio.move_on_after(_LOOK_SECONDS):
        try:
            async with await connector(*at) as stream:
                await stream.send(_PLAIN_QUESTION)
                heard = b""
                while len(heard) < 8:
                    heard += await stream.receive()
                return heard[4:8] == _PLAIN_NUMBER
        except Exception:  # it does not, or is gone
            return False
    return False


def _stamp_of(path: str) -> object:
    try:
        seen = os.stat(path)
    except OSError as error:
        return error.errno
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


class _Seen:
    """A context whose outgoing bytes can be looked at: the alert that ends a failed handshake is left there."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.outgoing: ssl.MemoryBIO | None = None
        self._context = context

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *rest: Any, **more: Any) -> ssl.SSLObject:
        self.outgoing = outgoing
        return self._context.wrap_bio(incoming, outgoing, *rest, **more)


async def _say_why(stream: ByteStream, outgoing: ssl.MemoryBIO | None) -> None:
    """Send the alert, so that the broker's log says why we left."""
    alert = outgoing.read() if outgoing is not None else b""
    if alert:
        with anyio.move_on_after(_ALERT_SECONDS), contextlib.suppress(Exception):
            await stream.send(alert)


class _Transport(ByteStream):
    """The stream under TLS. Reading may have to send, too; so sends take turns."""

    def __init__(self, stream: ByteStream) -> None:
        self.heard = b""
        """How what the other side said began."""
        self._stream = stream
        self._turn = anyio.Lock()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        return self._stream.extra_attributes

    async def receive(self, max_bytes: int = 65536) -> bytes:
        data = await self._stream.receive(max_bytes)
        if len(self.heard) < 64:
            self.heard += data[:64]
        return data

    async def send(self, item: bytes) -> None:
        async with self._turn:
            await self._stream.send(item)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()
