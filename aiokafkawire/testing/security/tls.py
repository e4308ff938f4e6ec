"""TLS on a broker's port: the handshake, and the principal of a client's certificate."""

import contextlib
import logging
import re
import ssl
from typing import Any, Final

import anyio
from anyio.abc import ByteStream
from anyio.streams.tls import TLSAttribute, TLSStream

from ..serving.call import Peer

__all__ = ("handshake", "name_in")

_TIMEOUT: Final = 30.0  # seconds
_NO_TLS: Final = b"\x15\x03\x03\0\2\2\x50"
"""The alert (internal_error) that Java sends to clients that do not use TLS; OpenSSL would send nothing."""
_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}

_log = logging.getLogger(__name__)


async def handshake(stream: ByteStream, context: ssl.SSLContext, peer: Peer) -> ByteStream | None:
    """Perform the TLS handshake and return the TLS stream; if it fails, close the connection and return None.

    If the client sends a certificate, which only some contexts request, the principal is the certificate's name.
    """
    seen: Any = _ContextWithAlert(context)
    try:
        with anyio.fail_after(_TIMEOUT):
            # Kafka's clients close connections without the close_notify of the standard.
            secured = await TLSStream.wrap(stream, server_side=True, ssl_context=seen, standard_compatible=False)
    except (OSError, anyio.BrokenResourceError, anyio.EndOfStream) as fault:  # errors of ssl are OSErrors
        _log.warning("the TLS handshake with %s failed: %s", peer.name, fault)
        await _send_alert(stream, seen.outgoing, fault)
        await _close(stream)
        return None
    except BaseException:
        await _close(stream)  # the broker stops
        raise
    certificate = secured.extra(TLSAttribute.peer_certificate, None)  # noqa: S610  # not Django's extra
    if certificate:
        peer.principal = f"User:{name_in(certificate)}"
    return secured


class _ContextWithAlert:
    """A TLS context that exposes the outgoing bytes, which contain the alert after a failed handshake."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.outgoing: ssl.MemoryBIO | None = None
        self._context = context

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *rest: Any, **more: Any) -> ssl.SSLObject:
        self.outgoing = outgoing
        return self._context.wrap_bio(incoming, outgoing, *rest, **more)


async def _send_alert(stream: ByteStream, outgoing: ssl.MemoryBIO | None, fault: Exception) -> None:
    alert = outgoing.read() if outgoing is not None else b""
    if not alert and isinstance(fault, ssl.SSLError):
        alert = _NO_TLS
    if not alert:
        return
    with anyio.move_on_after(1), contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.EndOfStream):
        await stream.send(alert)
        await stream.send_eof()
        # If the broker closed with bytes unread, the client's system would drop the alert.
        while True:
            await stream.receive()


async def _close(stream: ByteStream) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.aclose_forcefully(stream)


def name_in(certificate: dict[str, Any]) -> str:
    """Return the distinguished name of a certificate as in Kafka's principals, in the format of RFC 2253."""
    return ",".join(
        "+".join(f"{_SHORT.get(kind, kind)}={_escaped(value)}" for kind, value in relative)
        for relative in reversed(certificate.get("subject", ()))
    )


def _escaped(value: str) -> str:
    value = re.sub(r'([,+"\\<>;])', r"\\\1", value)
    value = re.sub(r"^[# ]", r"\\\g<0>", value)
    return re.sub(r"(?<!\\) $", r"\\ ", value)
