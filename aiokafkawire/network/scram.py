"""The client's side of SCRAM (RFC 5802, RFC 7677, KIP-84): client and broker prove that they know the password.

SASLprep is not applied to names and passwords, as in Kafka's brokers and clients: a prepared password would differ from
the password that Kafka stores.
"""

import base64
import binascii
import hashlib
import hmac
import re
from functools import partial
from operator import xor
from typing import Final

from ..errors import AuthenticationFailed
from .sasl import Exchange, RunInThread

__all__ = ("MIN_ITERATIONS", "scram")

MIN_ITERATIONS: Final = 4096
"""The minimal number of hashing rounds (RFC 7677): with fewer, the messages let an attacker find the password fast."""

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_BASE64: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]"  # no comma
_EXTENSIONS: Final = r"(?:,[A-Za-z]=[^\x00,]+)*"
_FIRST: Final = re.compile(
    rf"r=(?P<nonce>{_PRINTABLE}+),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,10}}){_EXTENSIONS}"
)
_FINAL: Final = re.compile(rf"(?:v=(?P<signature>{_BASE64})|e=(?P<error>[^\x00,]+)){_EXTENSIONS}")
_MAX_SIZE: Final = 4096  # the maximal size of a response, in bytes
_SHOWN: Final = 200


def scram(
    mechanism: str, username: str, password: str, nonce: str, *, max_iterations: int, tokenauth: bool = False
) -> Exchange:
    """Authenticate with SCRAM.

    Args:
        mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
        username, password: the credentials.
        nonce: an unguessable printable text without a comma, new for each authentication.
        max_iterations: the maximal number of hashing rounds, so that a hostile broker cannot keep the client busy.
        tokenauth: whether the credentials are the id and the HMAC of a delegation token (KIP-48).

    Raises:
        AuthenticationFailed: the broker refuses, sends no valid SCRAM message, or does not know the password itself.
    """
    bare = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={nonce}" + (",tokenauth=true" if tokenauth else "")
    return _exchange(_Prover(mechanism, password), bare, nonce, max_iterations)


class _Prover:
    """A password, and the proofs that are made of it: they are not variables of frames that a traceback may show."""

    def __init__(self, mechanism: str, password: str) -> None:
        self.mechanism = mechanism
        self._hash = _HASHES[mechanism]
        self._password, self._salted = password, b""

    def salt(self, salt: bytes, iterations: int) -> None:
        """Hash the password, which takes long."""
        self._salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, iterations)

    def proof(self, signed: bytes) -> str:
        """Return the client's proof, in Base64."""
        client_key = self._key(b"Client Key")
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), signed, self._hash)
        return base64.b64encode(bytes(map(xor, client_key, signature))).decode()

    def server_signature(self, signed: bytes) -> bytes:
        """Return the signature by which the broker proves that it knows the password."""
        return hmac.digest(self._key(b"Server Key"), signed, self._hash)

    def _key(self, name: bytes) -> bytes:
        return hmac.digest(self._salted, name, self._hash)


def _exchange(prover: _Prover, bare: str, nonce: str, max_iterations: int) -> Exchange:
    mechanism = prover.mechanism
    found = _read(_FIRST, (yield f"n,,{bare}".encode()), mechanism)
    first, iterations = found.string, int(found["iterations"])
    _check_first(found["nonce"], nonce, iterations, max_iterations, mechanism)
    salt = _decoded(found["salt"], mechanism)
    if not salt:
        raise AuthenticationFailed(f"{mechanism}: the broker sent an empty salt")
    yield RunInThread(partial(prover.salt, salt, iterations))
    without_proof = f"c=biws,r={found['nonce']}"
    signed = f"{bare},{first},{without_proof}".encode()
    final = _read(_FINAL, (yield f"{without_proof},p={prover.proof(signed)}".encode()), mechanism)
    if final["error"] is not None:
        raise AuthenticationFailed(f"{mechanism}: the broker refused the login: {final['error'][:_SHOWN]!r}")
    if not hmac.compare_digest(_decoded(final["signature"], mechanism), prover.server_signature(signed)):
        raise AuthenticationFailed(
            f"{mechanism}: the broker's signature is wrong: it does not know the password, so it is not the "
            "broker it claims to be"
        )


def _read(pattern: re.Pattern[str], answer: bytes, mechanism: str) -> re.Match[str]:
    try:
        found = pattern.fullmatch(answer.decode()) if len(answer) <= _MAX_SIZE else None
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise AuthenticationFailed(f"{mechanism}: the broker's response is no SCRAM message, or needs an extension")
    return found


def _check_first(nonce: str, ours: str, iterations: int, maximum: int, mechanism: str) -> None:
    if not nonce.startswith(ours) or len(nonce) == len(ours):
        raise AuthenticationFailed(
            f"{mechanism}: the broker's nonce does not begin with the client's: a response to another login"
        )
    if not MIN_ITERATIONS <= iterations <= maximum:
        raise AuthenticationFailed(
            f"{mechanism}: the broker asks for {iterations} iterations, allowed are {MIN_ITERATIONS} to {maximum} "
            "(sasl_scram_iterations_max)"
        )


def _decoded(text: str, mechanism: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AuthenticationFailed(f"{mechanism}: the broker's response is not base64") from None
