"""The client's side of SASL, for tests of the broker's."""

from __future__ import annotations

import base64
import hashlib
import hmac

import attrs

from aiokafkawire.protocol.messages.metadata import MetadataRequest
from aiokafkawire.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from .dialling import Dial
from .raw_client import RawClient

__all__ = ("LIFETIME_MS", "Guarded", "ScramLogin", "handshake", "in_scram", "is_in", "plain", "send_token", "token")

NONCE = "fyko+d2lbbFgONRv9qkxdawL"
LIFETIME_MS = 60_000
"""For how long a login holds, where it has to be renewed."""


@attrs.frozen
class Guarded:
    """A Kafka that asks for a login. ``renewed``: and again after `LIFETIME_MS`."""

    connect: Dial
    renewed: Dial


async def handshake(client: RawClient, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    return await client.ask(SaslHandshakeRequest(mechanism=mechanism), version)


async def token(client: RawClient, said: bytes, version: int = 2) -> SaslAuthenticateResponse:
    return await client.ask(SaslAuthenticateRequest(auth_bytes=said), version)


async def send_token(client: RawClient, said: bytes) -> bytes:
    """A token without a request around it, as after SaslHandshake v0."""
    await client.send_frame(said)
    return await client.frame()


def plain(user: str, password: str, for_user: str = "") -> bytes:
    return f"{for_user}\0{user}\0{password}".encode()


async def is_in(client: RawClient) -> bool:
    """Whether the broker answers more than logins."""
    return bool((await client.ask(MetadataRequest(topics=[]), 12)).brokers)


class ScramLogin:
    """One login by SCRAM: what to say, and whether the server knows the password, too."""

    def __init__(self, mechanism: str, user: str, password: str, *, header: str = "n,,", extensions: str = "") -> None:
        self._hash = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        self._password = password
        self._header = header
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={NONCE}{extensions}"
        self._signed = self._salted = b""

    def first(self) -> bytes:
        return (self._header + self._bare).encode()

    def final(self, said: bytes, nonce: str | None = None) -> bytes:
        given = dict(part.split("=", 1) for part in said.decode().split(","))
        assert given["r"].startswith(NONCE)
        assert len(given["r"]) > len(NONCE)
        salt, iterations = base64.b64decode(given["s"]), int(given["i"])
        self._salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, iterations)
        bare = f"c={base64.b64encode(self._header.encode()).decode()},r={given['r'] if nonce is None else nonce}"
        self._signed = f"{self._bare},{said.decode()},{bare}".encode()
        client_key = hmac.digest(self._salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = hmac.digest(stored_key, self._signed, self._hash)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        return f"{bare},p={base64.b64encode(proof).decode()}".encode()

    def is_signed(self, said: bytes) -> bool:
        """Whether the server's last word shows that it knows the password."""
        server_key = hmac.digest(self._salted, b"Server Key", self._hash)
        return said == b"v=" + base64.b64encode(hmac.digest(server_key, self._signed, self._hash))


async def in_scram(client: RawClient, mechanism: str, user: str, password: str) -> SaslAuthenticateResponse:
    """Log in; the last answer, whose signature is right if the login succeeded."""
    assert (await handshake(client, mechanism)).error_code == 0
    login = ScramLogin(mechanism, user, password)
    first = await token(client, login.first())
    if first.error_code:
        return first
    last = await token(client, login.final(bytes(first.auth_bytes)))
    assert last.error_code or login.is_signed(bytes(last.auth_bytes))
    return last
