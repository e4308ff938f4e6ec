"""The server's side of SASL mechanisms: PLAIN (RFC 4616), SCRAM (RFC 5802), OAUTHBEARER (RFC 7628)."""

import base64
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from ...errors import ConfigError
from ..cluster.api_error import Disconnect
from .bearer_tokens import BearerTokens, TokenRefused
from .credentials import LEAST_ITERATIONS, Credentials, ScramAlgorithm, ScramCredential
from .delegation_tokens import IssuedToken

__all__ = (
    "MECHANISMS",
    "Exchange",
    "LoginFailed",
    "OAuthBearer",
    "Plain",
    "Scram",
    "enabled_mechanisms",
    "new_exchange",
)


class LoginFailed(Exception):
    """A failed authentication.

    ``client_message`` decides on the message to the client: the reason (True), the given text, or Kafka's general
    message (False), which hides the reason.
    """

    def __init__(self, reason: str, *, client_message: bool | str = False) -> None:
        super().__init__(reason)
        text = reason if client_message is True else client_message
        self.client_message: str | None = None if text is False else text


class Exchange(Protocol):
    """One SASL authentication in progress."""

    user: str | None
    """The authenticated user; None until authentication is complete."""
    holds_ms: int | None
    """The lifetime of the authentication in ms; None for no limit."""
    by_token: bool
    """Whether the client authenticated by a delegation token."""

    def answer(self, token: bytes) -> bytes:
        """Return the response to the client's next token.

        Raises:
            LoginFailed: authentication failed.
            Disconnect: authentication failed, and the client gets no response.
        """


class Plain:
    """PLAIN: a user name and a password in one token."""

    def __init__(self, credentials: Credentials) -> None:
        self.user: str | None = None
        self.holds_ms: int | None = None
        self.by_token: bool = False
        self._credentials = credentials

    def answer(self, token: bytes) -> bytes:
        """Check the password and return an empty response. Raises as :meth:`Exchange.answer`."""
        parts = token.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            raise LoginFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}", client_message=True)
        for_user, user, password = parts
        for what, given in (("username", user), ("password", password)):
            if not given:
                raise LoginFailed(f"Authentication failed: {what} not specified", client_message=True)
        if not self._credentials.is_password(user, password):
            raise LoginFailed("Authentication failed: Invalid username or password", client_message=True)
        _check_authorization_id(for_user, user)
        self.user = user
        return b""


_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
# Kafka does not support channel binding: the flags "y" and "p" do not match.
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<for_user>{_SASL_NAME}))?,"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<user>{_SASL_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL: Final = re.compile(
    rf"(?P<without_proof>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)


class Scram:
    """SCRAM: the client proves that it knows the password, and the server proves that it has the credential."""

    def __init__(self, mechanism: ScramAlgorithm, credentials: Credentials, new_nonce: Callable[[], str]) -> None:
        self.user: str | None = None
        self.holds_ms: int | None = None
        self.by_token: bool = False
        self._mechanism = mechanism
        self._credentials = credentials
        self._new_nonce = new_nonce
        self._token: IssuedToken | None = None
        self._begun: _Begun | None = None

    def answer(self, token: bytes) -> bytes:
        """Answer the first token with nonce and salt, the next with a signature. Raises as :meth:`Exchange.answer`."""
        text = token.decode(errors="replace")
        return self._first(text) if self._begun is None else self._final(text, self._begun)

    def _first(self, text: str) -> bytes:
        found = _FIRST.fullmatch(text)
        if found is None:
            raise LoginFailed("invalid first message of SCRAM without channel binding")
        user = found["user"].replace("=2C", ",").replace("=3D", "=")
        credential = self._credential(user, found["extensions"])
        _check_authorization_id(found["for_user"] or "", user)
        if credential.iterations < LEAST_ITERATIONS:
            raise LoginFailed(f"{credential.iterations} iterations are fewer than {LEAST_ITERATIONS}")
        nonce = found["nonce"] + self._new_nonce()
        message = f"r={nonce},s={base64.b64encode(credential.salt).decode()},i={credential.iterations}"
        self._begun = _Begun(user, credential, nonce, f"{found['bare']},{message}")
        return message.encode()

    def _credential(self, user: str, extensions: str) -> ScramCredential:
        """Return the credential of a user, or that of a delegation token, if the client logs in by one (KIP-48).

        Raises:
            LoginFailed: there is no such user or token.
        """
        given = dict(extension.split("=", 1) for extension in extensions.split(",")[1:])
        if given.get("tokenauth", "").lower() == "true":
            tokens = self._credentials.delegation_tokens
            self._token = tokens.get(user) if tokens is not None else None
            if self._token is None:
                raise LoginFailed("there is no such delegation token")
            return self._token.credential(self._mechanism)
        credential = self._credentials.scram(self._mechanism, user)
        if credential is None:
            raise LoginFailed("the user has no credentials")
        return credential

    def _final(self, text: str, begun: "_Begun") -> bytes:
        found = _FINAL.fullmatch(text)
        if found is None:
            raise LoginFailed("invalid final message of SCRAM")
        if found["nonce"] != begun.nonce:
            raise LoginFailed("the nonce differs from that of this exchange")
        mechanism, credential = self._mechanism, begun.credential
        signed = f"{begun.messages},{found['without_proof']}".encode()
        signature, proof = mechanism.hmac(credential.stored_key, signed), base64.b64decode(found["proof"])
        if len(proof) != len(signature):
            raise Disconnect("the proof has a wrong length")  # Apache Kafka fails here, too
        client_key = bytes(left ^ right for left, right in zip(signature, proof, strict=True))
        if not hmac.compare_digest(mechanism.hash(client_key), credential.stored_key):
            raise LoginFailed("the proof is wrong")
        self.user = begun.user
        if self._token is not None and self._credentials.delegation_tokens is not None:
            self.by_token = True
            self.user = self._token.owner.partition(":")[2]
            self.holds_ms = max(0, self._token.expires_ms - self._credentials.delegation_tokens.clock())
        return b"v=" + base64.b64encode(mechanism.hmac(credential.server_key, signed))


class _Begun:
    """The state of a SCRAM exchange between the client's first and second token."""

    __slots__ = ("credential", "messages", "nonce", "user")

    def __init__(self, user: str, credential: ScramCredential, nonce: str, messages: str) -> None:
        self.user = user
        self.credential = credential
        self.nonce = nonce
        self.messages = messages


_OAUTHBEARER: Final = "OAUTHBEARER"
_PAIR: Final = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_BEARER_FIRST: Final = re.compile(rf"n,(?:a=(?P<for_user>{_SASL_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_UNDERSTOOD: Final = b"\x01"


class OAuthBearer:
    """OAUTHBEARER: a token contains the principal. Extensions (KIP-342) are accepted and ignored."""

    def __init__(self, tokens: BearerTokens) -> None:
        self.user: str | None = None
        self.holds_ms: int | None = None
        self.by_token: bool = False
        self._tokens = tokens
        self._refused: TokenRefused | None = None

    def answer(self, token: bytes) -> bytes:
        """Return b"" if the token is valid, otherwise an error in JSON, which the client must acknowledge.

        Raises as :meth:`Exchange.answer`.
        """
        refused, self._refused = self._refused, None
        if refused is not None and token == _UNDERSTOOD:
            raise LoginFailed(str(refused), client_message=refused.answer)
        found = _BEARER_FIRST.fullmatch(token.decode(errors="replace"))
        if found is None:
            raise LoginFailed("invalid first message of OAUTHBEARER")
        pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01")[:-1])
        auth = _AUTH.fullmatch(pairs.pop("auth", ""))
        if auth is None:
            raise LoginFailed("the first message of OAUTHBEARER has no token")
        if auth["scheme"].lower() != "bearer":
            raise Disconnect("the token's scheme is not Bearer")  # Apache Kafka fails here, too
        try:
            user, holds_ms = self._tokens.check(auth["token"])
        except TokenRefused as reason:
            self._refused = reason
            return reason.answer.encode()
        if found["for_user"] and found["for_user"] != user:
            difference = (
                f"Authentication failed: Client requested an authorization id ({found['for_user']}) that is different "
                f"from the token's principal name ({user})"
            )
            raise LoginFailed("the token belongs to another principal", client_message=difference)
        self.user, self.holds_ms = user, holds_ms
        return b""


MECHANISMS: Final = ("PLAIN", *(mechanism.value for mechanism in ScramAlgorithm))
"""The mechanisms that authenticate users by passwords."""


def enabled_mechanisms(
    users: Mapping[str, str] | None, mechanisms: Iterable[str], tokens: BearerTokens | None = None
) -> tuple[str, ...]:
    """Return the enabled mechanisms; empty if there are neither users nor ``tokens``: clients need not authenticate.

    Raises:
        ConfigError: ``mechanisms`` is a string, contains an unknown one or OAUTHBEARER without ``tokens``, or has
            none for the users.
    """
    if isinstance(mechanisms, str):
        raise ConfigError(f"sasl_enabled_mechanisms is {mechanisms!r}: a list of names, as [{mechanisms!r}]")
    if not isinstance(mechanisms, Iterable):
        raise ConfigError(f"sasl_enabled_mechanisms is {mechanisms!r:.200}: a list of names")
    listed = tuple(mechanisms)
    if _OAUTHBEARER in listed and tokens is None:
        raise ConfigError("sasl_enabled_mechanisms has OAUTHBEARER: set oauthbearer, which enables it")
    enabled = tuple(mechanism for mechanism in listed if mechanism != _OAUTHBEARER)
    for mechanism in enabled:
        if mechanism not in MECHANISMS:
            raise ConfigError(f"unknown SASL mechanism {mechanism}; known: {', '.join(MECHANISMS)}")
    bearer = () if tokens is None else (_OAUTHBEARER,)
    if users is None:
        return bearer
    if not enabled:
        raise ConfigError(f"users need at least one of sasl_enabled_mechanisms: {', '.join(MECHANISMS)}")
    return enabled + bearer


def new_exchange(mechanism: str, credentials: Credentials, new_nonce: Callable[[], str]) -> Exchange:
    """Return a new authentication exchange for a mechanism.

    Raises:
        ValueError: the mechanism is unknown.
    """
    if mechanism == "PLAIN":
        return Plain(credentials)
    if credentials.tokens is not None and mechanism == _OAUTHBEARER:
        return OAuthBearer(credentials.tokens)
    return Scram(ScramAlgorithm(mechanism), credentials, new_nonce)


def _check_authorization_id(for_user: str, user: str) -> None:
    if for_user and for_user != user:
        raise LoginFailed(
            "Authentication failed: Client requested an authorization id that is different from username",
            client_message=True,
        )
