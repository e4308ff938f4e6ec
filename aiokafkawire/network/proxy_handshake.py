"""What a client and a proxy say to one another before the broker's bytes go through: SOCKS5 (RFC 1928, RFC 1929) and
HTTP CONNECT (RFC 9110). Pure: a talk is a generator.

It yields ``bytes`` to send, or a number, and is then sent as many bytes as came, at least one and at most that number.
When it returns, the broker is at the other end. Whatever the proxy says, it raises the errors of :func:`talk` alone.
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

__all__ = ("ProxyHandshake", "talk")

ProxyHandshake: TypeAlias = Generator[bytes | int, bytes | None, None]
"""One conversation under way."""

_VERSION: Final = 5
_NO_LOGIN, _PASSWORD = 0, 2
_LARGEST_HEADER: Final = 16 * 1024
_SHOWN: Final = 100
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: ([^\r\n]*))?\r?\n")
_ENDS: Final = re.compile(rb"\r?\n\r?\n")
_NOT_ALLOWED: Final = 2
_REPLIES: Final = {
    1: "general failure",
    _NOT_ALLOWED: "its rules do not allow the connection",
    3: "the network is unreachable",
    4: "the host is unreachable, or its name is not known there",
    5: "the connection was refused",
    6: "the way there is too long (TTL expired)",
    7: "it does not know CONNECT",
    8: "it does not know this kind of address",
}


def talk(proxy: Proxy, to: Address) -> ProxyHandshake:
    """Have the proxy connect to a broker.

    Raises:
        ProxyFailed: the proxy cannot reach the broker, or has trouble of its own.
        ProxyRefused: it wants a login or does not take this one, or its rules do not let this client there.
        WireError: what answers is no such proxy.
    """
    return _socks5(proxy, to) if proxy.kind == "socks5" else _connect(proxy, to)


# --- SOCKS5 ------------------------------------------------------------------------------------------------------


def _socks5(proxy: Proxy, to: Address) -> ProxyHandshake:
    address = _socks5_address(to.host)
    known = proxy.username is not None
    yield bytes((_VERSION, 2, _NO_LOGIN, _PASSWORD) if known else (_VERSION, 1, _NO_LOGIN))
    version, method = yield from _exactly(2)
    if version != _VERSION:
        raise WireError(f"{proxy} did not answer as SOCKS5 does, but with {bytes((version, method)).hex()}")
    if method == _PASSWORD and known:
        yield from _log_in(proxy)
    elif method == 0xFF:
        what = "takes no login by name and password" if known else "wants a login: write it into the URL"
        raise ProxyRefused(f"{proxy} {what}")
    elif method != _NO_LOGIN:
        raise WireError(f"{proxy} chose a way to log in that was not offered: {method}")
    yield bytes((_VERSION, 1, 0)) + address + to.port.to_bytes(2, "big")
    version, reply, _, kind = yield from _exactly(4)
    if version != _VERSION:
        raise WireError(f"{proxy} did not answer CONNECT as SOCKS5 does: it says version {version}")
    if reply:
        told = f"{proxy} did not connect to {to}: {_REPLIES.get(reply, f'reply {reply}')}"
        raise (ProxyRefused if reply == _NOT_ALLOWED else ProxyFailed)(told)
    # Where it connects from, which nobody needs to know.
    if kind == 3:
        (size,) = yield from _exactly(1)
    elif kind in (1, 4):
        size = 4 if kind == 1 else 16
    else:
        raise WireError(f"{proxy} answered CONNECT with an address of an unknown kind: {kind}")
    yield from _exactly(size + 2)


def _log_in(proxy: Proxy) -> ProxyHandshake:
    name, password = proxy.username or b"", proxy.password
    yield bytes((1, len(name))) + name + bytes((len(password),)) + password
    _, status = yield from _exactly(2)
    if status:
        raise ProxyRefused(f"{proxy} did not take the name and password")


def _socks5_address(host: str) -> bytes:
    try:
        found = ip_address(host)
    except ValueError:
        name = _ascii(host)
        return bytes((3, len(name))) + name
    return bytes((4 if isinstance(found, IPv6Address) else 1,)) + found.packed


def _ascii(host: str) -> bytes:
    try:
        name = host.encode("ascii" if host.isascii() else "idna")
    except UnicodeError:
        name = b""
    if not 0 < len(name) <= 255 or any(letter <= 32 or letter == 127 for letter in name):
        raise ProxyFailed(f"no proxy can be asked for the host {printable(host[:_SHOWN])!r}: it is no host name")
    return name


def _exactly(size: int) -> Generator[bytes | int, bytes | None, bytes]:
    gathered = b""
    while len(gathered) < size:
        gathered += (yield size - len(gathered)) or b""
    return gathered


# --- HTTP CONNECT ------------------------------------------------------------------------------------------------


def _connect(proxy: Proxy, to: Address) -> ProxyHandshake:
    host = _ascii(to.host).decode()
    target = str(Address(host, to.port))
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.username is not None:
        known = base64.b64encode(proxy.username + b":" + proxy.password).decode()
        lines.append(f"Proxy-Authorization: Basic {known}")
    yield "\r\n".join([*lines, "", ""]).encode()
    answer = b""
    while (end := _ENDS.search(answer)) is None:
        if len(answer) >= _LARGEST_HEADER:
            raise WireError(f"{proxy} answered CONNECT with a header larger than {_LARGEST_HEADER} bytes")
        if answer and not answer.startswith(b"HTTP/"[: len(answer)]):
            break
        answer += (yield _LARGEST_HEADER - len(answer)) or b""
    status = _STATUS.match(answer)
    if status is None:
        raise WireError(f"{proxy} did not answer as HTTP does, but with {answer[:_SHOWN]!r}")
    _judge(proxy, to, int(status[1]), printable((status[2] or b"").decode("latin-1")[:_SHOWN]))
    if end is None or end.end() < len(answer):
        # Brokers say nothing before they are asked: it would be read as the answer to what comes first.
        raise WireError(f"{proxy} sent more than its answer to CONNECT: {answer[-_SHOWN:]!r}")


def _judge(proxy: Proxy, to: Address, code: int, reason: str) -> None:
    if 200 <= code < 300:
        return
    told = f"{proxy} answered CONNECT {to} with {code} {reason}".rstrip()
    if code == 407:
        what = "did not take the name and password" if proxy.username is not None else "wants a login"
        raise ProxyRefused(f"{told}: it {what} (see the URL in the setting proxy)")
    if 400 <= code < 500 and code not in (408, 425, 429):
        raise ProxyRefused(f"{told}: its rules do not allow the connection, or it is no proxy")
    raise ProxyFailed(told)
