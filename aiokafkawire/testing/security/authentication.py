"""Logging in: which requests a connection may make before, during and after it (KIP-43, KIP-152, KIP-368)."""

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
"""``sasl.server.max.receive.size``: the largest frame of a client that has not logged in."""

_BETWEEN_RENEWALS: Final = 1.0  # seconds
_LONGEST_MS: Final = 9_000_000_000_000  # Apache Kafka's clock counts in ns, and goes not much further
_LONGEST_TOLD: Final = 32_767  # bytes of a string in the old versions of SaslAuthenticate


class _Stage(Enum):
    FIRST = auto()  # ApiVersions or SaslHandshake
    HANDSHAKE = auto()  # SaslHandshake alone: the versions were told
    TOKENS = auto()
    OTHER_MECHANISM = auto()  # chosen while renewing, and answered; what comes next ends the connection
    DONE = auto()


class LoginState:
    """How far one connection has come with SASL.

    1. Before the login only ApiVersions (once) and SaslHandshake are answered, then only SaslAuthenticate; after a
       SaslHandshake v0, tokens come as bare frames.
    2. With ``max_reauth_ms``, or a token that ends, a login holds for that long: then any request but SaslHandshake
       ends the connection.
       SaslHandshake renews the login, at most once a second, as the same user by the same mechanism.
    3. What goes wrong is in :attr:`failed`: once the client has its answer, if there is one, the broker hangs up.

    Times are the loop's, in seconds.
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
        """Who has logged in."""
        self.failed: str | None = None
        """Why the broker hangs up; None while it does not."""
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
        """Whether the client has logged in, and is not about to do it again."""
        return self._stage is _Stage.DONE

    @property
    def expects_handshake(self) -> bool:
        """Whether SaslHandshake is due, or may come."""
        return self._stage in (_Stage.FIRST, _Stage.HANDSHAKE)

    @property
    def expects_token(self) -> bool:
        """Whether a token is due."""
        return self._stage is _Stage.TOKENS

    @property
    def expects_bare_token(self) -> bool:
        """Whether the next frame is a token and no request."""
        return self.expects_token and self._bare

    def admit(self, key: ApiKey, now: float) -> None:
        """Whether a request may be made.

        Raises:
            Disconnect: it may not, and is not answered.
            Refused: it may not, which its answer should say; then the broker hangs up.
        """
        match self._stage:
            case _Stage.DONE:
                self._admit_later(key, now)
            case _Stage.TOKENS if key != ApiKey.SASL_AUTHENTICATE:
                self.failed = f"Unexpected Kafka request of type {key.name} during SASL authentication."
                raise ApiError(ErrorCode.ILLEGAL_SASL_STATE, self.failed)
            case _Stage.OTHER_MECHANISM:
                raise Disconnect("the mechanism of a login cannot change")
            case _Stage.FIRST if key != ApiKey.API_VERSIONS and key != ApiKey.SASL_HANDSHAKE:
                raise Disconnect(f"Unexpected Kafka request of type {key.name} during SASL handshake.")
            case _Stage.HANDSHAKE if key != ApiKey.SASL_HANDSHAKE:
                raise Disconnect(f"Unexpected Kafka request of type {key.name} during SASL handshake.")

    def _admit_later(self, key: ApiKey, now: float) -> None:
        if self._expires is None:
            return
        rested = self._renewed is None or now - self._renewed >= _BETWEEN_RENEWALS
        if key == ApiKey.SASL_HANDSHAKE and rested:
            self._renewed = now
            self._stage = _Stage.HANDSHAKE
        elif now > self._expires:
            raise Disconnect("the login has expired")

    def versions_told(self) -> None:
        """ApiVersions was answered."""
        if self._stage is _Stage.FIRST:
            self._stage = _Stage.HANDSHAKE

    def handshake(self, mechanism: str, version: int) -> bool:
        """SaslHandshake has come: whether its mechanism is enabled.

        Raises:
            Disconnect: it is not, while the login is renewed.
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
        """What to say to a token, and for how many ms the login holds: 0 while it is under way, and for ever.

        Raises:
            LoginFailed: the client is not let in.
            Disconnect: nor answered.
        """
        exchange = self._exchange
        assert exchange is not None
        try:
            said = exchange.answer(token)
            if exchange.user is None:
                return said, 0
            if self.user not in (None, exchange.user):
                reason = "Cannot change principals during re-authentication"
                raise LoginFailed(f"{reason} from User.{self.user}: User.{exchange.user}", told=True)
        except LoginFailed as failure:
            self.failed = f"a login failed: {failure}"
            raise
        lifetime = self._lifetime_ms(exchange)
        self.user = exchange.user
        self._exchange = None
        self._stage = _Stage.DONE
        if lifetime > 0:
            self._expires = now + lifetime / 1000
        return said, lifetime

    def _lifetime_ms(self, exchange: Exchange) -> int:
        """The shorter of the broker's setting and what the token says; 0 for ever."""
        told = [one for one in (self._max_reauth_ms, exchange.holds_ms) if one is not None and one > 0]
        lifetime = min(told, default=0)
        if lifetime > _LONGEST_MS:
            raise Disconnect("a login that would hold for centuries")  # Apache Kafka stumbles over it
        return lifetime

    def why(self, failure: LoginFailed) -> str:
        """What the client is told about a failure: all there is, or nothing that would help to guess.

        Raises:
            Disconnect: nothing, for it would not fit in.
        """
        if failure.told is not None:
            if len(failure.told.encode()) > _LONGEST_TOLD:
                raise Disconnect("a login failed, for a reason that is too long to be told")
            return failure.told
        doing = "authentication" if self.user is None else "re-authentication"
        return f"Authentication failed during {doing} due to invalid credentials with SASL mechanism {self._mechanism}"
