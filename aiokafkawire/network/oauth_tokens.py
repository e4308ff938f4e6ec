"""Fetches the OAUTHBEARER token of a client, caches it, and refreshes it before it expires."""

import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio

from ..errors import AuthenticationFailed, ConfigError, KafkaError
from ..event_log import EventLog, TroubleLog
from ..types import OAuthBearerToken
from .sasl import check_token

__all__ = ("Fetch", "Tokens", "expiry_of", "refresh_at")

_log = EventLog("aiokafkawire.security")

Fetch: TypeAlias = Callable[[], Awaitable[str | OAuthBearerToken]]

_WINDOW: Final = 0.8
"""The fraction of a token's lifetime after which the token is refreshed, as in the Java client."""


def expiry_of(token: str) -> int | None:
    """Return the time at which a JWT expires, in ms since the epoch; None if the token is no JWT, or never expires.

    The signature is not verified; the broker verifies it.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    ends = claims.get("exp") if isinstance(claims, dict) else None
    if isinstance(ends, bool) or not isinstance(ends, int | float) or not 0 < ends < 1e11:
        return None
    return int(ends * 1000)


def refresh_at(got_at_ms: int, expires_at_ms: int) -> int:
    """Return the time at which to replace a token fetched at ``got_at_ms``. Times are in ms since the epoch."""
    return got_at_ms + int(max(0, expires_at_ms - got_at_ms) * _WINDOW)


class Tokens:
    """The token of one client, which all its connections share. It is fetched when a connection needs it.

    Args:
        fetch: fetches a new token.
        wall_ms: the clock, in ms since the epoch.
    """

    def __init__(self, fetch: Fetch, wall_ms: Callable[[], int]) -> None:
        self._fetch, self._wall_ms = fetch, wall_ms
        self._fetching = anyio.Lock()
        self._token: OAuthBearerToken | None = None
        self._refresh_at = self._ends_at = 0
        self._trouble = TroubleLog(_log, lambda: wall_ms() / 1000)

    async def get(self) -> OAuthBearerToken:
        """Return a valid token.

        Raises:
            AuthenticationFailed: no token can be fetched.
            ConfigError: the user's function returned no token.
            ConnectionLost: the token endpoint does not answer.
        """
        async with self._fetching:
            now = self._wall_ms()
            if self._token is not None and now < self._refresh_at:
                return self._token
            try:
                return self._keep(await self._fetch(), now)
            except KafkaError as error:
                if self._token is None or now >= self._ends_at:
                    raise
                message = "cannot renew the OAUTHBEARER token, keeping the previous one until it expires: %(error)s"
                self._trouble.failed("token", message, error=error)
                return self._token

    async def prepare(self) -> None:
        """Fetch the next token if it is due, so that :meth:`get` returns at once. Raises as :meth:`get`.

        A token without a known expiry is not cached, so it cannot be fetched in advance.
        """
        if self._token is not None:
            await self.get()

    def _keep(self, given: str | OAuthBearerToken, now: int) -> OAuthBearerToken:
        if not isinstance(given, str | OAuthBearerToken):
            raise ConfigError(
                f"sasl_oauthbearer_token must return a str or an OAuthBearerToken, not a {type(given).__name__}"
            )
        token = OAuthBearerToken(given) if isinstance(given, str) else given
        check_token(token)
        ends = token.expires_at_ms if token.expires_at_ms is not None else expiry_of(token.value)
        if ends is None:
            self._token = None
            return token
        if ends <= now:
            raise AuthenticationFailed(f"the OAUTHBEARER token expired {(now - ends) / 1000:.0f} s ago")
        self._token, self._ends_at, self._refresh_at = token, ends, refresh_at(now, ends)
        self._trouble.ended("token", "renewed the OAUTHBEARER token")
        return token

    def invalidate(self) -> None:
        """Discard the token, which a broker has refused. The next authentication fetches another token."""
        self._token = None
