"""What happens inside SASL, token by token: the server's side of PLAIN (RFC 4616), SCRAM (5802), OAUTHBEARER (7628)."""

import base64
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from ...errors import ConfigError
from ..cluster.api_error import Disconnect
from .bearer_tokens import BearerTokens, TokenRefused
from .credentials import LEAST_ITERATIONS, Credentials, ScramCredential, ScramMechanism

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
    """The client is not let in, and why. ``told`` is the message for it: the reason, another one, or as Kafka has it
    where it keeps the reason to itself."""

    def __init__(self, reason: str, *, told: bool | str = False) -> None:
        super().__init__(reason)
        self.told: str | None = told if isinstance(told, str) else reason if told else None


class Exchange(Protocol):
    """One login under way."""

    user: str | None
    """Who has logged in; None until then."""
    holds_ms: int | None
    """For how long from then on what the client has shown is good; None: for ever."""

    def answer(self, token: bytes) -> bytes:
        """What to say to the client's next token.

        Raises:
            LoginFailed: that it failed.
            Disconnect: nothing.
        """


class Plain:
    """A user name and a password in one token."""

    def __init__(self, credentials: Credentials) -> None:
        self.user: str | None = None
        self.holds_ms: int | None = None
        self._credentials = credentials

    def answer(self, token: bytes) -> bytes:
        """Nothing, if the password is right. Raises as :class:`Exchange` says."""
        parts = token.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            raise LoginFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}", told=True)
        for_user, user, password = parts
        for what, given in (("username", user), ("password", password)):
            if not given:
                raise LoginFailed(f"Authentication failed: {what} not specified", told=True)
        if not self._credentials.is_password(user, password):
            raise LoginFailed("Authentication failed: Invalid username or password", told=True)
        _check_authorization_id(for_user, user)
        self.user = user
        return b""


_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
# The flags "y" and "p" of channel binding, which Kafka does not have, make no first message here.
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<for_user>{_SASL_NAME}))?,"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<user>{_SASL_NAME}),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
)
_FINAL: Final = re.compile(
    rf"(?P<without_proof>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)


class Scram:
    """A proof that the client knows the password, and one that the server does."""

    def __init__(self, mechanism: ScramMechanism, credentials: Credentials, new_nonce: Callable[[], str]) -> None:
        self.user: str | None = None
        self.holds_ms: int | None = None
        self._mechanism = mechanism
        self._credentials = credentials
        self._new_nonce = new_nonce
        self._begun: _Begun | None = None

    def answer(self, token: bytes) -> bytes:
        """Salt, iterations and nonce, then the server's signature. Raises as :class:`Exchange` says."""
        text = token.decode(errors="replace")
        return self._first(text) if self._begun is None else self._final(text, self._begun)

    def _first(self, text: str) -> bytes:
        found = _FIRST.fullmatch(text)
        if found is None:
            raise LoginFailed("no first message of SCRAM without channel binding")
        user = found["user"].replace("=2C", ",").replace("=3D", "=")
        credential = self._credentials.scram(self._mechanism, user)
        if credential is None:
            raise LoginFailed("no such user has credentials")
        _check_authorization_id(found["for_user"] or "", user)
        if credential.iterations < LEAST_ITERATIONS:
            raise LoginFailed(f"{credential.iterations} iterations, {LEAST_ITERATIONS} the least")
        nonce = found["nonce"] + self._new_nonce()
        said = f"r={nonce},s={base64.b64encode(credential.salt).decode()},i={credential.iterations}"
        self._begun = _Begun(user, credential, nonce, f"{found['bare']},{said}")
        return said.encode()

    def _final(self, text: str, begun: "_Begun") -> bytes:
        found = _FINAL.fullmatch(text)
        if found is None:
            raise LoginFailed("no final message of SCRAM")
        if found["nonce"] != begun.nonce:
            raise LoginFailed("another nonce than the one of this login")
        mechanism, credential = self._mechanism, begun.credential
        signed = f"{begun.said},{found['without_proof']}".encode()
        signature, proof = mechanism.hmac(credential.stored_key, signed), base64.b64decode(found["proof"])
        if len(proof) != len(signature):
            raise Disconnect("a proof of another length")  # Apache Kafka stumbles over it
        client_key = bytes(one ^ other for one, other in zip(signature, proof, strict=True))
        if not hmac.compare_digest(mechanism.hash(client_key), credential.stored_key):
            raise LoginFailed("the proof is wrong")
        self.user = begun.user
        return b"v=" + base64.b64encode(mechanism.hmac(credential.server_key, signed))


class _Begun:
    """What the first half of a SCRAM login leaves for the second."""

    __slots__ = ("credential", "nonce", "said", "user")

    def __init__(self, user: str, credential: ScramCredential, nonce: str, said: str) -> None:
        self.user = user
        self.credential = credential
        self.nonce = nonce
        self.said = said


_OAUTHBEARER: Final = "OAUTHBEARER"
_PAIR: Final = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_BEARER_FIRST: Final = re.compile(rf"n,(?:a=(?P<for_user>{_SASL_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_UNDERSTOOD: Final = b"\x01"


class OAuthBearer:
    """A token that says who it is. Extensions beside it (KIP-342) are all taken, and mean nothing."""

    def __init__(self, tokens: BearerTokens) -> None:
        self.user: str | None = None
        self.holds_ms: int | None = None
        self._tokens = tokens
        self._refused: TokenRefused | None = None

    def answer(self, token: bytes) -> bytes:
        """Nothing, or JSON that says what is wrong, after which a client may say more. Raises as :class:`Exchange`."""
        refused, self._refused = self._refused, None
        if refused is not None and token == _UNDERSTOOD:
            raise LoginFailed(str(refused), told=refused.answer)
        found = _BEARER_FIRST.fullmatch(token.decode(errors="replace"))
        if found is None:
            raise LoginFailed("no first message of OAUTHBEARER")
        pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01")[:-1])
        auth = _AUTH.fullmatch(pairs.pop("auth", ""))
        if auth is None:
            raise LoginFailed("no token in the first message of OAUTHBEARER")
        if auth["scheme"].lower() != "bearer":
            raise Disconnect("a token that is not for its bearer")  # Apache Kafka stumbles over it
        try:
            user, holds_ms = self._tokens.check(auth["token"])
        except TokenRefused as reason:
            self._refused = reason
            return reason.answer.encode()
        if found["for_user"] and found["for_user"] != user:
            told = (
                f"an authorization id ({found['for_user']}) that is different from the token's principal name ({user})"
            )
            raise LoginFailed("the token is another's", told=f"Authentication failed: Client requested {told}")
        self.user, self.holds_ms = user, holds_ms
        return b""


MECHANISMS: Final = ("PLAIN", *(mechanism.value for mechanism in ScramMechanism))
"""Those that ask for a password."""


def enabled_mechanisms(
    users: Mapping[str, str] | None, mechanisms: Iterable[str], tokens: BearerTokens | None = None
) -> tuple[str, ...]:
    """The mechanisms to log in with; none where there are neither users nor tokens, and everyone is let in.

    Raises:
        ConfigError: they are one string, or there is no such mechanism, or none at all for the users.
    """
    if isinstance(mechanisms, str):
        raise ConfigError(f"mechanisms are {mechanisms!r}: a list of them, as [{mechanisms!r}]")
    if not isinstance(mechanisms, Iterable):
        raise ConfigError(f"sasl_enabled_mechanisms is {mechanisms!r:.200}: a list of names")
    listed = tuple(mechanisms)
    if _OAUTHBEARER in listed and tokens is None:
        raise ConfigError("OAUTHBEARER is enabled by oauthbearer, which says which tokens are taken")
    enabled = tuple(mechanism for mechanism in listed if mechanism != _OAUTHBEARER)
    for mechanism in enabled:
        if mechanism not in MECHANISMS:
            raise ConfigError(f"no SASL mechanism {mechanism}: there are {', '.join(MECHANISMS)}")
    bearer = () if tokens is None else (_OAUTHBEARER,)
    if users is None:
        return bearer
    if not enabled:
        raise ConfigError(f"users, and no mechanism to log in with: there are {', '.join(MECHANISMS)}")
    return enabled + bearer


def new_exchange(mechanism: str, credentials: Credentials, new_nonce: Callable[[], str]) -> Exchange:
    """A login with one of the mechanisms.

    Raises:
        ValueError: there is no such mechanism.
    """
    if mechanism == "PLAIN":
        return Plain(credentials)
    if credentials.tokens is not None and mechanism == _OAUTHBEARER:
        return OAuthBearer(credentials.tokens)
    return Scram(ScramMechanism(mechanism), credentials, new_nonce)


def _check_authorization_id(for_user: str, user: str) -> None:
    if for_user and for_user != user:
        raise LoginFailed(
            "Authentication failed: Client requested an authorization id that is different from username", told=True
        )
