"""Delegation tokens: who owns them, how long they are valid, and their SCRAM credentials (KIP-48, KIP-373).

Principals are texts such as "User:alice"; times are in ms since the epoch. Reprs show no secrets.
"""

import base64
import hmac
from collections.abc import Callable, Collection, Sequence
from typing import Final
from uuid import UUID

import attrs

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from .credentials import LEAST_ITERATIONS, ScramAlgorithm, ScramCredential

__all__ = ("DelegationTokens", "IssuedToken")

_CHECK_INTERVAL_MS: Final = 3_600_000  # delegation.token.expiry.check.interval.ms
_LATEST: Final = 2**63 - 1


@attrs.define
class IssuedToken:
    """A delegation token."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    hmac: bytes = attrs.field(repr=False)

    def has_expired(self, now_ms: int) -> bool:
        """Return whether the token is not valid any more."""
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def may_be_renewed_by(self, principal: str) -> bool:
        """Return whether this principal may renew and expire the token."""
        return principal == self.owner or principal in self.renewers

    def belongs_to(self, principal: str) -> bool:
        """Return whether this principal is the owner, the requester or a renewer."""
        return principal in (self.owner, self.requester, *self.renewers)

    def credential(self, algorithm: ScramAlgorithm) -> ScramCredential:
        """Return the SCRAM credential of the token, whose password is the HMAC in Base64."""
        # The salt is derived from the id, so that all runs are alike.
        salt = algorithm.hash(f"{algorithm.value} {self.token_id}".encode())[:16]
        salted = algorithm.salted(base64.b64encode(self.hmac).decode(), salt, LEAST_ITERATIONS)
        return ScramCredential.made_of(algorithm, salted, salt, LEAST_ITERATIONS)


class DelegationTokens:
    """The delegation tokens of a cluster.

    1. Requests about an expired token get DELEGATION_TOKEN_EXPIRED, until the next of the hourly checks removes it;
       then there is no such token any more.
    2. No renewal extends a token beyond its maximal lifetime.

    Args:
        secret_key: the key of the tokens' HMACs (``delegation.token.secret.key``).
        max_lifetime_ms: the longest lifetime (``delegation.token.max.lifetime.ms``).
        expiry_time_ms: the time until a token expires without a renewal (``delegation.token.expiry.time.ms``).
        clock: returns the time.
        new_uuid: makes the tokens' ids.
    """

    def __init__(
        self,
        secret_key: str,
        max_lifetime_ms: int,
        expiry_time_ms: int,
        clock: Callable[[], int],
        new_uuid: Callable[[], UUID],
    ) -> None:
        self.clock = clock
        self._secret_key = secret_key.encode()
        self._max_lifetime_ms, self._expiry_time_ms = max_lifetime_ms, expiry_time_ms
        self._new_uuid = new_uuid
        self._tokens: dict[str, IssuedToken] = {}
        self._checked_at: int | None = None

    def _new_id(self) -> str:
        """Return an id as Kafka makes it: an id that begins with a dash would look like an option in a command line."""
        while True:
            made = base64.urlsafe_b64encode(self._new_uuid().bytes).decode().rstrip("=")
            if not made.startswith("-"):
                return made

    def create(self, owner: str, requester: str, renewers: Sequence[str], max_lifetime_ms: int) -> IssuedToken:
        """Create a token. A lifetime of 0 or less means the longest."""
        now = self.clock()
        lifetime = min(max_lifetime_ms, self._max_lifetime_ms) if max_lifetime_ms > 0 else self._max_lifetime_ms
        latest = min(now + lifetime, _LATEST)
        token_id = self._new_id()
        token = IssuedToken(
            token_id,
            owner,
            requester,
            tuple(renewers),
            now,
            min(latest, now + self._expiry_time_ms),
            latest,
            hmac.digest(self._secret_key, token_id.encode(), "sha512"),
        )
        self._remove_expired(now)
        self._tokens[token_id] = token
        return token

    def renew(self, secret: bytes, principal: str, period_ms: int) -> int:
        """Renew a token, and return its new expiry. A period of 0 or less means the longest.

        Raises:
            ApiError: there is no such token, it has expired, or the principal may not renew it.
        """
        now = self.clock()
        token = self._token(secret, now)
        if token.has_expired(now):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        _check_may_renew(token, principal)
        period = min(period_ms, self._expiry_time_ms) if period_ms > 0 else self._expiry_time_ms
        token.expires_ms = min(token.max_ms, now + period)
        return token.expires_ms

    def expire(self, secret: bytes, principal: str, period_ms: int) -> int:
        """Change the expiry of a token, and return the new one. A negative period deletes the token.

        Raises:
            ApiError: there is no such token, it has expired, or the principal may not expire it.
        """
        now = self.clock()
        token = self._token(secret, now)
        _check_may_renew(token, principal)
        if period_ms < 0:
            del self._tokens[token.token_id]
            return now
        if token.has_expired(now):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        token.expires_ms = min(token.max_ms, now + period_ms)
        return token.expires_ms

    def of(self, owners: Collection[str] | None) -> list[IssuedToken]:
        """Return the tokens that one of these principals owns, requested or may renew; all tokens for None."""
        self._remove_expired(self.clock())
        return [
            token
            for token in self._tokens.values()
            if owners is None or any(token.belongs_to(owner) for owner in owners)
        ]

    def get(self, token_id: str) -> IssuedToken | None:
        """Return the token with this id; None if there is none."""
        self._remove_expired(self.clock())
        return self._tokens.get(token_id)

    def _token(self, secret: bytes, now_ms: int) -> IssuedToken:
        self._remove_expired(now_ms)
        for token in self._tokens.values():
            if hmac.compare_digest(token.hmac, secret):
                return token
        raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)

    def _remove_expired(self, now_ms: int) -> None:
        """Remove the tokens that had expired at the last of the hourly checks, which begin with the first call."""
        if self._checked_at is None:
            self._checked_at = now_ms
        self._checked_at += max(0, now_ms - self._checked_at) // _CHECK_INTERVAL_MS * _CHECK_INTERVAL_MS
        for token in list(self._tokens.values()):
            if token.has_expired(self._checked_at):
                del self._tokens[token.token_id]


def _check_may_renew(token: IssuedToken, principal: str) -> None:
    if not token.may_be_renewed_by(principal):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
