"""The quota of partitions that clients create and delete, ``controller_mutation_rate`` (KIP-599)."""

from typing import Final

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from .quotas import ClientQuotas, Limit

__all__ = ("MutationQuota",)

_KEY: Final = "controller_mutation_rate"
_BURST_SECONDS: Final = 11  # controller.quota.window.num, each of controller.quota.window.size.seconds


class MutationQuota:
    """The tokens that clients have left: one for each partition, as many a second as their quota, up to a burst.

    A request is admitted if tokens are left, however many it takes; the next requests then wait. Times are in ms.
    """

    def __init__(self, quotas: ClientQuotas) -> None:
        self._quotas = quotas
        self._left: dict[tuple[str, str], tuple[float, float]] = {}

    def applies_to(self, user: str, client_id: str) -> bool:
        """Return whether a user's client has this quota."""
        return self._quotas.limit(_KEY, user, client_id) is not None

    def forget(self) -> None:
        """Forget what clients have used, as controllers do at a restart."""
        self._left.clear()

    def record(self, partitions: int, user: str, client_id: str, now: float, *, strict: bool) -> int:
        """Take tokens for partitions; return the throttle time in ms.

        Raises:
            ApiError: THROTTLING_QUOTA_EXCEEDED, no tokens are left; only if ``strict``, and nothing is taken.
        """
        limit = self._quotas.limit(_KEY, user, client_id)
        if limit is None:
            return 0
        left = self._refilled(limit, now)
        if strict and left < 0:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)  # without a message, as Kafka does
        left = min(_BURST_SECONDS * limit.value, left - partitions)
        self._left[limit.user, limit.client_id] = left, now
        return 0 if strict else _pause(left, limit)

    def throttle_ms(self, user: str, client_id: str, now: float) -> int:
        """Return how long a client has to wait for tokens, in ms."""
        limit = self._quotas.limit(_KEY, user, client_id)
        return 0 if limit is None else _pause(self._refilled(limit, now), limit)

    def _refilled(self, limit: Limit, now: float) -> float:
        burst = _BURST_SECONDS * limit.value
        left, then = self._left.get((limit.user, limit.client_id), (burst, now))
        return min(burst, left + (now - then) / 1000 * limit.value)


def _pause(left: float, limit: Limit) -> int:
    return max(0, round(-left / limit.value * 1000))
