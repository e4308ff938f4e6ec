"""Tokens for OAUTHBEARER: where they come from, how long they are kept, and when a new one is fetched."""

import base64
import binascii
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio

from ..errors import AuthenticationFailed, ConfigError, KafkaError
from ..types import OAuthBearerToken
from .sasl import check_token

__all__ = ("Fetch", "Tokens", "expiry_of", "refresh_at")

_log = logging.getLogger("aiokafkawire.security")

Fetch: TypeAlias = Callable[[], Awaitable[str | OAuthBearerToken]]

_WINDOW: Final = 0.8
"""After which part of its time a token is replaced, as in Java."""


def expiry_of(token: str) -> int | None:
    """Until when a JWT holds, in ms since the epoch; None if it is none, or does not say.

    Nothing is verified: that is the broker's to do.
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
    """When to fetch the next token, in ms since the epoch."""
    return got_at_ms + int(max(0, expires_at_ms - got_at_ms) * _WINDOW)


class Tokens:
    """The token of one client, fetched when a connection needs it, and shared while it holds.

    Args:
        fetch: gets a new one.
        wall_ms: the clock, in ms since the epoch.
    """

    def __init__(self, fetch: Fetch, wall_ms: Callable[[], int]) -> None:
        self._fetch, self._wall_ms = fetch, wall_ms
        self._fetching = anyio.Lock()
        self._held: OAuthBearerToken | None = None
        self._refresh_at = self._ends_at = 0

    async def get(self) -> OAuthBearerToken:
        """A token that holds now.

        Raises:
            AuthenticationFailed: there is none to be had.
            ConfigError: what came is no token.
            ConnectionLost: the endpoint does not answer.
        """
        async with self._fetching:
            now = self._wall_ms()
            if self._held is not None and now < self._refresh_at:
                return self._held
            try:
                return self._keep(await self._fetch(), now)
            except KafkaError as error:
                if self._held is None or now >= self._ends_at:
                    raise
                _log.warning("cannot renew the OAUTHBEARER token, keeping the previous one until it expires: %s", error)
                return self._held

    async def prepare(self) -> None:
        """Fetch the next token if it is time, so that :meth:`get` has one; raises as that.

        One whose end is not known cannot be had beforehand, since it is not kept.
        """
        if self._held is not None:
            await self.get()

    def _keep(self, given: str | OAuthBearerToken, now: int) -> OAuthBearerToken:
        if not isinstance(given, str | OAuthBearerToken):
            told = f"text or an OAuthBearerToken, not a {type(given).__name__}"
            raise ConfigError(f"sasl_oauthbearer_token must give {told}")
        token = OAuthBearerToken(given) if isinstance(given, str) else given
        check_token(token)
        ends = token.expires_at_ms if token.expires_at_ms is not None else expiry_of(token.value)
        if ends is None:
            self._held = None
            return token
        if ends <= now:
            raise AuthenticationFailed(f"the token for OAUTHBEARER has expired {(now - ends) / 1000:.0f} s ago")
        self._held, self._ends_at, self._refresh_at = token, ends, refresh_at(now, ends)
        return token

    def forget(self) -> None:
        """A broker has refused it: the next login gets another."""
        self._held = None
