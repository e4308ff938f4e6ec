"""The check of ``controller_mutation_rate`` for requests that create and delete partitions (KIP-599)."""

from ..serving.call import ServerCall

__all__ = ("Mutations",)


class Mutations:
    """The partitions that one request creates or deletes.

    Args:
        call: the request's circumstances.
        strict_since: the first version of the request that is refused when the quota is used up; older versions are
            only throttled.
    """

    def __init__(self, call: ServerCall, strict_since: int) -> None:
        self._quota = call.cluster.mutation_quota
        self._client = call.peer.principal.removeprefix("User:"), call.client_id or ""
        self._now = call.cluster.timers.now() * 1000
        self._strict = call.version >= strict_since
        self.throttle_time_ms: int = 0
        """The time for which the client is throttled after the response."""

    @property
    def limited(self) -> bool:
        """Whether the client has this quota."""
        return self._quota.applies_to(*self._client)

    def record(self, partitions: int) -> None:
        """Count partitions.

        Raises:
            ApiError: THROTTLING_QUOTA_EXCEEDED, the quota is used up.
        """
        refused_for = self._quota.throttle_ms(*self._client, self._now) if self._strict else 0
        self.throttle_time_ms = max(self.throttle_time_ms, refused_for)
        pause = self._quota.record(partitions, *self._client, self._now, strict=self._strict)
        self.throttle_time_ms = max(self.throttle_time_ms, pause)
