"""The handshake with a proxy: SOCKS5 (RFC 1928, RFC 1929) and HTTP CONNECT (RFC 9110). It does no I/O.

The handshake is a generator. It yields ``bytes`` to send to the proxy, or the maximal number of bytes to receive; then
the caller sends the received bytes, at least one, to the generator. When that returns, the stream leads to the broker.
"""

import base64
import re
from collections.abc import Generator
from ipaddress import IPv6Address, ip_address
from typing import Final, TypeAlias

from ..config.network import Proxy
from ..errors import ProxyFailed, ProxyRefused, WireError
from ..types import Address
from .sasl import printable

__all__ = ("ProxyHandshake", "handshake")

ProxyHandshake: TypeAlias = Generator[bytes | int, bytes | None, None]
"""The steps of one handshake."""

_VERSION: Final = 5
_NO_LOGIN, _PASSWORD = 0, 2
_MAX_HEADER: Final = 16 * 1024
_SHOWN: Final = 100
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: ([^\r\n]*))?\r?\n")
_ENDS: Final = re.compile(rb"\r?\n\r?\n")
_NOT_ALLOWED: Final = 2
_REPLIES: Final = {
    1: "general failure",
    _NOT_ALLOWED: "its rules do not allow the connection",
    3: "the network is unreachable",
    4: "the host is unreachable, or its name is unknown to the proxy",
    5: "the connection was refused",
    6: "the TTL expired",
    7: "it does not support CONNECT",
    8: "it does not support this address type",
}


def handshake(proxy: Proxy, to: Address) -> ProxyHandshake:
    """Yield the steps that make the proxy connect to the broker ``to``.

    Raises:
        ProxyFailed: the proxy cannot reach the broker, or has an internal error.
        ProxyRefused: the proxy requires authentication, refuses the password, or its rules forbid the connection.
        WireError: the server does not answer as a SOCKS5 or HTTP proxy.
    """
    return _socks5(proxy, to) if proxy.kind == "socks5" else _connect(proxy, to)


# --- SOCKS5 ------------------------------------------------------------------------------------------------------


def _socks5(proxy: Proxy, to: Address) -> ProxyHandshake:
    address = _socks5_address(to.host)
    known = proxy.username is not None
    yield bytes((_VERSION, 2, _NO_LOGIN, _PASSWORD) if known else (_VERSION, 1, _NO_LOGIN))
    version, method = yield from _exactly(2)
    if version != _VERSION:
        raise WireError(f"{proxy} did not answer as a SOCKS5 proxy, but with {bytes((version, method)).hex()}")
    if method == _PASSWORD and known:
        yield from _log_in(proxy)
    elif method == 0xFF:
        reason = "does not support name and password" if known else "requires a name and password: add them to the URL"
        raise ProxyRefused(f"{proxy} {reason}")
    elif method != _NO_LOGIN:
        raise WireError(f"{proxy} chose an authentication method that was not offered: {method}")
    yield bytes((_VERSION, 1, 0)) + address + to.port.to_bytes(2, "big")
    version, reply, _, address_type = yield from _exactly(4)
    if version != _VERSION:
        raise WireError(f"{proxy} did not answer CONNECT as a SOCKS5 proxy, but with version {version}")
    if reply:
        message = f"{proxy} did not connect to {to}: {_REPLIES.get(reply, f'reply {reply}')}"
        raise (ProxyRefused if reply == _NOT_ALLOWED else ProxyFailed)(message)
    # The address from which the proxy connected follows; it is not needed.
    if address_type == 3:
        (size,) = yield from _exactly(1)
    elif address_type in (1, 4):
        size = 4 if address_type == 1 else 16
    else:
        raise WireError(f"{proxy} answered CONNECT with an unknown address type: {address_type}")
    yield from _exactly(size + 2)


def _log_in(proxy: Proxy) -> ProxyHandshake:
    yield _login_message(proxy)
    _, status = yield from _exactly(2)
    if status:
        raise ProxyRefused(f"{proxy} refused the name and password")


def _login_message(proxy: Proxy) -> bytes:
    """Return the name and password for SOCKS5. No variable of a frame that a traceback may show has them."""
    name, password = proxy.username or b"", proxy.password
    return bytes((1, len(name))) + name + bytes((len(password),)) + password


def _socks5_address(host: str) -> bytes:
    try:
        found = ip_address(host)
    except ValueError:
        name = _ascii(host)
        return bytes((3, len(name))) + name
    return bytes((4 if isinstance(found, IPv6Address) else 1,)) + found.packed


def _ascii(host: str) -> bytes:
    import idna  # a dependency of anyio, which encodes names by it where there is no proxy

    try:
        name = host.encode() if host.isascii() else idna.encode(host, uts46=True)
    except UnicodeError:
        name = b""
    if not 0 < len(name) <= 255 or any(letter <= 32 or letter == 127 for letter in name):
        raise ProxyFailed(f"cannot connect to {printable(host[:_SHOWN])!r} through a proxy: it is no host name")
    return name


def _exactly(size: int) -> Generator[bytes | int, bytes | None, bytes]:
    received = b""
    while len(received) < size:
        received += (yield size - len(received)) or b""
    return received


# --- HTTP CONNECT ------------------------------------------------------------------------------------------------


def _connect(proxy: Proxy, to: Address) -> ProxyHandshake:
    host = _ascii(to.host).decode()
    target = str(Address(host, to.port))
    yield _connect_request(proxy, target)
    answer = b""
    while (end := _ENDS.search(answer)) is None:
        if len(answer) >= _MAX_HEADER:
            raise WireError(f"{proxy} answered CONNECT with a header larger than {_MAX_HEADER} bytes")
        if answer and not answer.startswith(b"HTTP/"[: len(answer)]):
            break
        answer += (yield _MAX_HEADER - len(answer)) or b""
    status = _STATUS.match(answer)
    if status is None:
        raise WireError(f"{proxy} did not answer in HTTP, but with {answer[:_SHOWN]!r}")
    _check_status(proxy, to, int(status[1]), printable((status[2] or b"").decode("latin-1")[:_SHOWN]))
    if end is None or end.end() < len(answer):
        # A broker sends nothing before a request: these bytes would be read as the first response.
        raise WireError(f"{proxy} sent bytes after its answer to CONNECT: {answer[-_SHOWN:]!r}")


def _connect_request(proxy: Proxy, target: str) -> bytes:
    """Return the header of a CONNECT with the name and password; as :func:`_login_message`."""
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.username is not None:
        known = base64.b64encode(proxy.username + b":" + proxy.password).decode()
        lines.append(f"Proxy-Authorization: Basic {known}")
    return "\r\n".join([*lines, "", ""]).encode()


def _check_status(proxy: Proxy, to: Address, code: int, reason: str) -> None:
    if 200 <= code < 300:
        return
    message = f"{proxy} answered CONNECT {to} with {code} {reason}".rstrip()
    if code == 407:
        refusal = "refused the name and password" if proxy.username is not None else "requires a name and password"
        raise ProxyRefused(f"{message}: it {refusal} (see the URL in the setting proxy)")
    if 400 <= code < 500 and code not in (408, 425, 429):
        raise ProxyRefused(f"{message}: its rules do not allow the connection, or it is no proxy")
    raise ProxyFailed(message)
