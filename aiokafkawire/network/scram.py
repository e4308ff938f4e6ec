"""SCRAM on the client's side (RFC 5802, RFC 7677, KIP-84): both sides prove that they know the password.

Names and passwords are taken as they are, without SASLprep, as Kafka's own brokers and clients do: whoever prepared a
password that Kafka has not would be refused.
"""

import base64
import binascii
import hashlib
import hmac
import re
from typing import Final

from ..errors import AuthenticationFailed
from .sasl import Exchange, RunInThread

__all__ = ("LEAST_ITERATIONS", "scram")

LEAST_ITERATIONS: Final = 4096
"""The least rounds of hashing (RFC 7677); with fewer, whoever has the broker's answer guesses passwords fast."""

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_BASE64: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]"  # no comma
_EXTENSIONS: Final = r"(?:,[A-Za-z]=[^\x00,]+)*"
_FIRST: Final = re.compile(
    rf"r=(?P<nonce>{_PRINTABLE}+),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,10}}){_EXTENSIONS}"
)
_FINAL: Final = re.compile(rf"(?:v=(?P<signature>{_BASE64})|e=(?P<error>[^\x00,]+)){_EXTENSIONS}")
_LONGEST: Final = 4096  # bytes of an answer
_SHOWN: Final = 200


def scram(mechanism: str, username: str, password: str, nonce: str, *, most_iterations: int) -> Exchange:
    """A login.

    Args:
        mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
        username, password: as the broker knows them.
        nonce: printable, without a comma, new for each login and not to be guessed.
        most_iterations: more rounds of hashing than that are refused: a hostile broker could keep us at it.

    Raises:
        AuthenticationFailed: the broker's answer is no SCRAM, or it does not know the password itself.
    """
    name = _HASHES[mechanism]
    bare = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    found = _read(_FIRST, (yield f"n,,{bare}".encode()), mechanism)
    first, iterations = found.string, int(found["iterations"])
    _check_first(found["nonce"], nonce, iterations, most_iterations, mechanism)
    salt = _decoded(found["salt"], mechanism)
    if not salt:
        raise AuthenticationFailed(f"{mechanism}: the broker sent an empty salt")
    salted = yield RunInThread(lambda: hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations))
    without_proof = f"c=biws,r={found['nonce']}"
    signed = f"{bare},{first},{without_proof}".encode()
    client_key = hmac.digest(salted, b"Client Key", name)
    signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    final = _read(_FINAL, (yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()), mechanism)
    if final["error"] is not None:
        raise AuthenticationFailed(f"{mechanism}: the broker refused the login: {final['error'][:_SHOWN]!r}")
    expected = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
    if not hmac.compare_digest(_decoded(final["signature"], mechanism), expected):
        raise AuthenticationFailed(
            f"{mechanism}: the broker's signature is wrong: it does not know the password itself, so it is not the "
            "broker it says it is"
        )


def _read(pattern: re.Pattern[str], answer: bytes, mechanism: str) -> re.Match[str]:
    try:
        found = pattern.fullmatch(answer.decode()) if len(answer) <= _LONGEST else None
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise AuthenticationFailed(f"{mechanism}: the broker's answer is no SCRAM message, or asks for an extension")
    return found


def _check_first(nonce: str, ours: str, iterations: int, most: int, mechanism: str) -> None:
    if not nonce.startswith(ours) or len(nonce) == len(ours):
        raise AuthenticationFailed(
            f"{mechanism}: the broker's nonce does not go on from ours: an answer to another login"
        )
    if not LEAST_ITERATIONS <= iterations <= most:
        raise AuthenticationFailed(
            f"{mechanism}: the broker asks for {iterations} iterations, allowed are {LEAST_ITERATIONS} to {most} "
            "(sasl_scram_iterations_max)"
        )


def _decoded(text: str, mechanism: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AuthenticationFailed(f"{mechanism}: the broker's answer is no base64") from None
