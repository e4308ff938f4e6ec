"""The common base of the admin's methods: the cluster, and the deadline of a call."""

from collections.abc import Collection
from typing import Any

from ..argument_checks import check_seconds, flattened
from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..types import check_group_id

__all__ = ("AdminBase", "check_group_ids")


class AdminBase:
    """The cluster that an admin asks."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def _deadline(self, timeout: float | None) -> Deadline:
        check_seconds("timeout", timeout)
        allowed = self._cluster.config.default_api_timeout_ms / 1000 if timeout is None else timeout
        return self._cluster.deadline(allowed)


def check_group_ids(given: tuple[str | Collection[str], ...]) -> tuple[str, ...]:
    """Return the group ids given as positional arguments or as one collection; raise UsageError for an invalid id."""
    group_ids: tuple[Any, ...] = flattened(given)
    for group_id in group_ids:
        check_group_id(group_id)
    return group_ids
