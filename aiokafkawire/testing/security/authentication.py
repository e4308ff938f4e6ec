"""SASL authentication: the requests that are allowed at each stage of a connection (KIP-43, KIP-152, KIP-368)."""

import math
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final

from ...errors import ErrorCode
from ...protocol.api import ApiKey
from ..cluster.api_error import ApiError, Disconnect
from .credentials import Credentials
from .mechanisms import Exchange, LoginFailed, new_exchange

__all__ = ("MAX_TOKEN_FRAME", "LoginState", "LoginFailed")

MAX_TOKEN_FRAME: Final = 524_288
"""``sasl.server.max.receive.size``: the largest frame of a client that has not authenticated."""

_BETWEEN_RENEWALS: Final = 1.0  # seconds
_LONGEST_MS: Final = 9_000_000_000_000  # Apache Kafka counts in ns, and overflows soon after this
_LONGEST_MESSAGE: Final = 32_767  # bytes of a string in the old versions of SaslAuthenticate


class _Stage(Enum):
    FIRST = auto()  # ApiVersions or SaslHandshake
    HANDSHAKE = auto()  # SaslHandshake only, after ApiVersions was answered
    TOKENS = auto()
    OTHER_MECHANISM = auto()  # a reauthentication changed the mechanism; the next request ends the connection
    DONE = auto()


class LoginState:
    """The SASL state of one connection.

    1. Until a client has authenticated, it may send ApiVersions once, then SaslHandshake, then only SaslAuthenticate.
       After SaslHandshake v0, the client sends tokens as frames without a request.
    2. Authentication expires after ``max_reauth_ms`` or with its token; any request except SaslHandshake then ends the
       connection. SaslHandshake begins reauthentication, at most once a second; user and mechanism must not change.
    3. After a failure, whose reason is in :attr:`failed`, the broker sends the response, if any, and disconnects.

    Times are those of the event loop's clock, in seconds.
    """

    def __init__(
        self,
        mechanisms: Sequence[str],
        credentials: Credentials,
        *,
        max_reauth_ms: int = 0,
        new_nonce: Callable[[], str],
    ) -> None:
        self.mechanisms: list[str] = list(mechanisms)
        self.user: str | None = None
        """The authenticated user."""
        self.by_token: bool = False
        """Whether the client authenticated by a delegation token."""
        self.failed: str | None = None
        """The reason why the broker will disconnect the client, or None."""
        self._credentials = credentials
        self._max_reauth_ms = max_reauth_ms
        self._new_nonce = new_nonce
        self._stage = _Stage.FIRST
        self._bare = False
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._expires: float | None = None
        self._renewed: float | None = None

    @property
    def complete(self) -> bool:
        """Whether the client has authenticated and is not reauthenticating."""
        return self._stage is _Stage.DONE

    @property
    def expects_handshake(self) -> bool:
        """Whether SaslHandshake is allowed next."""
        return self._stage in (_Stage.FIRST, _Stage.HANDSHAKE)

    @property
    def expects_token(self) -> bool:
        """Whether a token is expected next."""
        return self._stage is _Stage.TOKENS

    @property
    def expects_bare_token(self) -> bool:
        """Whether the next frame is a token instead of a request."""
        return self.expects_token and self._bare

    def admit(self, key: ApiKey, now: float) -> None:
        """Check that a request is allowed.

        Raises:
            Disconnect: the request is not allowed, and gets no response.
            ApiError: the request is not allowed; after the error response the broker disconnects.
        """
        match self._stage:
            case _Stage.DONE:
                self._admit_later(key, now)
            case _Stage.TOKENS if key != ApiKey.SASL_AUTHENTICATE:
                self.failed = f"Unexpected Kafka request of type {key.name} during SASL authentication."
                raise ApiError(ErrorCode.ILLEGAL_SASL_STATE, self.failed)
            case _Stage.OTHER_MECHANISM:
                raise Disconnect("the mechanism cannot change during reauthentication")
            case _Stage.FIRST if key != ApiKey.API_VERSIONS and key != ApiKey.SASL_HANDSHAKE:
                raise Disconnect(f"Unexpected Kafka request of type {key.name} during SASL handshake.")
            case _Stage.HANDSHAKE if key != ApiKey.SASL_HANDSHAKE:
                raise Disconnect(f"Unexpected Kafka request of type {key.name} during SASL handshake.")

    def _admit_later(self, key: ApiKey, now: float) -> None:
        if self._expires is None:
            return
        may_renew = self._renewed is None or now - self._renewed >= _BETWEEN_RENEWALS
        if key == ApiKey.SASL_HANDSHAKE and may_renew:
            self._renewed = now
            self._stage = _Stage.HANDSHAKE
        elif now > self._expires:
            raise Disconnect("the authentication has expired")

    def versions_sent(self) -> None:
        """Record that ApiVersions was answered."""
        if self._stage is _Stage.FIRST:
            self._stage = _Stage.HANDSHAKE

    def handshake(self, mechanism: str, version: int) -> bool:
        """Handle SaslHandshake; return whether its mechanism is enabled.

        Raises:
            Disconnect: the mechanism is not enabled, and the client is reauthenticating.
        """
        if mechanism not in self.mechanisms:
            self.failed = "Unsupported SASL mechanism"
            if self.user is not None:
                raise Disconnect(self.failed)
            return False
        if self.user is not None and mechanism != self._mechanism:
            self._stage = _Stage.OTHER_MECHANISM
            return True
        self._bare = version == 0
        self._mechanism = mechanism
        self._exchange = new_exchange(mechanism, self._credentials, self._new_nonce)
        self._stage = _Stage.TOKENS
        return True

    def answer(self, token: bytes, now: float) -> tuple[bytes, int]:
        """Return the response to a token, and the lifetime of the authentication in ms.

        The lifetime is 0 while the authentication is incomplete, if it has no limit, and if it has expired already.
        Raises as :meth:`Exchange.answer`.
        """
        exchange = self._exchange
        assert exchange is not None
        try:
            response = exchange.answer(token)
            if exchange.user is None:
                return response, 0
            if self.user not in (None, exchange.user):
                reason = "Cannot change principals during re-authentication"
                raise LoginFailed(f"{reason} from User.{self.user}: User.{exchange.user}", client_message=True)
        except LoginFailed as failure:
            self.failed = f"authentication failed: {failure}"
            raise
        lifetime = self._lifetime_ms(exchange)
        self.user, self.by_token = exchange.user, exchange.by_token
        self._exchange = None
        self._stage = _Stage.DONE
        if lifetime is not None:
            # Apache Kafka accepts a token that has expired and is not removed yet, but no request after it.
            self._expires = now + lifetime / 1000 if lifetime else -math.inf
        return response, lifetime or 0

    def _lifetime_ms(self, exchange: Exchange) -> int | None:
        """Return the authentication's lifetime in ms: the lower of the broker's and the token's limits, or None."""
        limits = [limit for limit in (self._max_reauth_ms or None, exchange.holds_ms) if limit is not None]
        lifetime = min(limits, default=None)
        if lifetime is not None and lifetime > _LONGEST_MS:
            raise Disconnect("the authentication would be valid for centuries")  # Apache Kafka fails here, too
        return lifetime

    def why(self, failure: LoginFailed) -> str:
        """Return the error message for the client: the reason, or a general text that does not help to guess passwords.

        Raises:
            Disconnect: the message is too long for the response.
        """
        if failure.client_message is not None:
            if len(failure.client_message.encode()) > _LONGEST_MESSAGE:
                raise Disconnect("authentication failed, and the reason is too long for a response")
            return failure.client_message
        doing = "authentication" if self.user is None else "re-authentication"
        return f"Authentication failed during {doing} due to invalid credentials with SASL mechanism {self._mechanism}"
