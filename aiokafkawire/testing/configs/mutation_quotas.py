"""The quota of partitions that a client may create and delete in a second (KIP-599): a token bucket of each client."""

from typing import Final

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from .quotas import ClientQuotas, Limit

__all__ = ("MutationQuotas", "TokenBucket")

_KEY: Final = "controller_mutation_rate"
_BURST_SECONDS: Final = 11  # controller.quota.window.num, of one second each


class TokenBucket:
    """Tokens that come at a rate, up to those of 11 seconds. More may be taken than there are; times are in ms."""

    __slots__ = ("_filled_at", "_tokens")

    def __init__(self) -> None:
        self._tokens: float | None = None
        self._filled_at = 0.0

    def tokens(self, rate: float, now: float) -> float:
        """Return the number of tokens at the time ``now``; below 0 if too many were taken."""
        most = rate * _BURST_SECONDS
        if self._tokens is None:
            self._tokens = most
        self._tokens = min(most, self._tokens + rate * (now - self._filled_at) / 1000)
        self._filled_at = now
        return self._tokens

    def take(self, count: float, rate: float, now: float) -> None:
        """Take tokens, also if there are fewer."""
        self._tokens = self.tokens(rate, now) - count


class MutationQuotas:
    """The controller's quotas of partitions that are created and deleted, with what each client has used."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._quotas = quotas
        self._buckets: dict[tuple[str, str], TokenBucket] = {}

    def take(self, partitions: int, user: str, client_id: str, now: float, *, strict: bool) -> None:
        """Count partitions that a client creates or deletes; a client below the quota may exceed it once.

        Raises:
            ApiError: THROTTLING_QUOTA_EXCEEDED, the client has exceeded its quota, and ``strict`` is set.
        """
        limit = self._quotas.limit(_KEY, user, client_id)
        if limit is None:
            return
        bucket = self._bucket(limit)
        if strict and bucket.tokens(limit.value, now) < 0:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
        bucket.take(partitions, limit.value, now)

    def pause_ms(self, user: str, client_id: str, now: float) -> int:
        """Return the ms until the client is within its quota again."""
        limit = self._quotas.limit(_KEY, user, client_id)
        if limit is None:
            return 0
        return max(0, round(-self._bucket(limit).tokens(limit.value, now) / limit.value * 1000))

    def _bucket(self, limit: Limit) -> TokenBucket:
        return self._buckets.setdefault((limit.user, limit.client_id), TokenBucket())
