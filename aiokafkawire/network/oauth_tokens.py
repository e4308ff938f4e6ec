"""Fetches the OAUTHBEARER token of a client, caches it, and refreshes it before it expires."""

import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio
import attrs

from ..config.security import SecurityConfig
from ..errors import AuthenticationFailed, ConfigError, ConnectionLost, KafkaError
from ..event_log import EventLog, TroubleLog
from ..types import OAuthBearerToken
from .sasl import check_token

__all__ = ("Fetch", "TokenSchedule", "Tokens", "expiry_of")

_log = EventLog("aiokafkawire.security")

Fetch: TypeAlias = Callable[[], Awaitable[str | OAuthBearerToken]]

_LONGEST_WAIT_MS: Final = 1000
"""How long a connection waits for the next attempt to fetch a token. If it is later, the connection fails at once, with
the error of the last attempt."""
_PATIENCE: Final = 3.0


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


def _as_token(given: object) -> OAuthBearerToken | None:
    if isinstance(given, OAuthBearerToken):
        return given
    return OAuthBearerToken(given) if isinstance(given, str) else None


@attrs.frozen
class TokenSchedule:
    """When a token is replaced, and when it is requested again after a failure. Times are in ms."""

    window_factor: float
    window_jitter: float
    min_period_ms: int
    buffer_ms: int
    backoff_ms: int
    backoff_max_ms: int

    @classmethod
    def of(cls, config: SecurityConfig) -> "TokenSchedule":
        """Return the schedule according to the settings ``sasl_login_refresh_...`` and ``sasl_login_retry_...``."""
        return cls(
            config.sasl_login_refresh_window_factor,
            config.sasl_login_refresh_window_jitter,
            config.sasl_login_refresh_min_period_seconds * 1000,
            config.sasl_login_refresh_buffer_seconds * 1000,
            config.sasl_login_retry_backoff_ms,
            config.sasl_login_retry_backoff_max_ms,
        )

    def refresh_at(self, got_at_ms: int, expires_at_ms: int, chance: float) -> int:
        """Return the time at which to replace a token fetched at ``got_at_ms``; ``chance`` is a number from 0 to 1."""
        lifetime = max(0, expires_at_ms - got_at_ms)
        wait = int(lifetime * min(1.0, self.window_factor + self.window_jitter * chance))
        if self.min_period_ms + self.buffer_ms <= lifetime:
            wait = max(min(wait, lifetime - self.buffer_ms), self.min_period_ms)
        return got_at_ms + wait

    def backoff_after(self, failures: int) -> int:
        """Return the wait after the last of so many failures in a row."""
        return min(self.backoff_ms << min(failures - 1, 31), self.backoff_max_ms)


class Tokens:
    """The token of one client, which all its connections share. It is fetched when a connection needs it.

    Args:
        fetch: fetches a new token.
        wall_ms: the clock, in ms since the epoch.
        schedule: when to fetch the next token.
        chance: returns a random number from 0 to 1.
        patience: the seconds to wait for a new token while the previous one is valid.
    """

    def __init__(
        self,
        fetch: Fetch,
        wall_ms: Callable[[], int],
        schedule: TokenSchedule,
        chance: Callable[[], float],
        patience: float = _PATIENCE,
    ) -> None:
        self._fetch, self._wall_ms, self._schedule, self._chance = fetch, wall_ms, schedule, chance
        self._patience = patience
        self._fetching = anyio.Lock()
        self._token: OAuthBearerToken | None = None
        self._refresh_at = self._ends_at = self._failures = self._failed_at = self._pause = 0
        self._failure = ""
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
            if wait := self._left_to_wait(now):
                if self._token is not None and now < self._ends_at:
                    return self._token
                if wait > _LONGEST_WAIT_MS:
                    raise ConnectionLost(f"{self._failure} (the next attempt is in {wait / 1000:.1f} s)")
                await anyio.sleep(wait / 1000)
                now = self._wall_ms()
            try:
                return self._keep(await self._fetch_in_time(now), now)
            except KafkaError as error:
                if isinstance(error, ConnectionLost):
                    self._failures, self._failed_at, self._failure = self._failures + 1, now, str(error)
                    # Or each login would wait for a silent source again.
                    self._pause = 2 * (self._wall_ms() - now) if self._is_valid(now) else 0
                if self._token is None or now >= self._ends_at:
                    raise
                message = "cannot renew the OAUTHBEARER token, keeping the previous one until it expires: %(error)s"
                self._trouble.failed("token", message, error=error)
                return self._token

    async def _fetch_in_time(self, now: int) -> str | OAuthBearerToken:
        """Fetch a token; while the previous one is valid, give up a silent source before the login's time is over."""
        with anyio.move_on_after(self._patience if self._is_valid(now) else None):
            return await self._fetch()
        raise ConnectionLost(f"no token within {self._patience:g} s")

    def _is_valid(self, now: int) -> bool:
        return self._token is not None and now < self._ends_at

    def _left_to_wait(self, now: int) -> int:
        """Return how long to wait before the next attempt, in ms. A clock that was set back lengthens no wait."""
        if not self._failures:
            return 0
        backoff = max(self._schedule.backoff_after(self._failures), self._pause)
        return max(0, min(backoff, self._failed_at + backoff - now))

    async def prepare(self) -> None:
        """Fetch the next token if it is due, so that :meth:`get` returns at once. Raises as :meth:`get`.

        A token without a known expiry is not cached, so it cannot be fetched in advance.
        """
        if self._token is not None:
            await self.get()

    def _keep(self, given: str | OAuthBearerToken, now: int) -> OAuthBearerToken:
        token, kind = _as_token(given), type(given).__name__
        del given  # reports of errors show the variables of tracebacks
        if token is None:
            raise ConfigError(f"sasl_oauthbearer_token must return a str or an OAuthBearerToken, not a {kind}")
        self._failures = 0
        check_token(token)
        ends = token.expires_at_ms if token.expires_at_ms is not None else expiry_of(token.value)
        if ends is None:
            self._token = None
            return token
        if ends <= now:
            raise AuthenticationFailed(f"the OAUTHBEARER token expired {(now - ends) / 1000:.0f} s ago")
        self._token, self._ends_at, self._refresh_at = token, ends, self._schedule.refresh_at(now, ends, self._chance())
        self._trouble.ended("token", "renewed the OAUTHBEARER token")
        return token

    def invalidate(self) -> None:
        """Discard the token, which a broker has refused. The next authentication fetches another token."""
        self._token = None
