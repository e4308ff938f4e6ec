"""TLS on a broker's port: the handshake, and whose certificate it was."""

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

_PATIENCE: Final = 30.0  # seconds
_NO_TLS: Final = b"\x15\x03\x03\0\2\2\x50"
"""The alert (internal_error) with which Java leaves clients that do not speak TLS; OpenSSL would say nothing."""
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
    """The stream inside TLS; None if there is none to be had: then the connection is closed.

    A client that shows a certificate, which it does only if the context asks, is the one that it names.
    """
    seen: Any = _Seen(context)
    try:
        with anyio.fail_after(_PATIENCE):
            # Kafka's clients leave without saying goodbye, which the standard would have them do.
            secured = await TLSStream.wrap(stream, server_side=True, ssl_context=seen, standard_compatible=False)
    except (OSError, anyio.BrokenResourceError, anyio.EndOfStream) as fault:  # errors of ssl are OSErrors
        _log.warning("%s does not get through the TLS handshake: %s", peer.name, fault)
        await _say_why(stream, seen.outgoing, fault)
        await _close(stream)
        return None
    except BaseException:
        await _close(stream)  # the broker stops
        raise
    certificate = secured.extra(TLSAttribute.peer_certificate, None)  # noqa: S610  # not Django's extra
    if certificate:
        peer.principal = f"User:{name_in(certificate)}"
    return secured


class _Seen:
    """A context whose outgoing bytes can be looked at: the alert that ends a failed handshake is left there."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.outgoing: ssl.MemoryBIO | None = None
        self._context = context

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *rest: Any, **more: Any) -> ssl.SSLObject:
        self.outgoing = outgoing
        return self._context.wrap_bio(incoming, outgoing, *rest, **more)


async def _say_why(stream: ByteStream, outgoing: ssl.MemoryBIO | None, fault: Exception) -> None:
    alert = outgoing.read() if outgoing is not None else b""
    if not alert and isinstance(fault, ssl.SSLError):
        alert = _NO_TLS
    if not alert:
        return
    with anyio.move_on_after(1), contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.EndOfStream):
        await stream.send(alert)
        await stream.send_eof()
        # What the client sent meanwhile would make its system drop the alert, were it never read.
        while True:
            await stream.receive()


async def _close(stream: ByteStream) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.aclose_forcefully(stream)


def name_in(certificate: dict[str, Any]) -> str:
    """The distinguished name of a certificate as RFC 2253 writes it, and Kafka's principals have it."""
    return ",".join(
        "+".join(f"{_SHORT.get(kind, kind)}={_escaped(value)}" for kind, value in relative)
        for relative in reversed(certificate.get("subject", ()))
    )


def _escaped(value: str) -> str:
    value = re.sub(r'([,+"\\<>;])', r"\\\1", value)
    value = re.sub(r"^[# ]", r"\\\g<0>", value)
    return re.sub(r"(?<!\\) $", r"\\ ", value)
