"""Expiration of offsets that no group needs any longer, and of groups with neither members nor offsets (KIP-211)."""

from collections.abc import Callable

from ..cluster.timers import Timer, Timers
from .committed import Committed, CommittedOffsets
from .group import ClassicGroup
from .settings import GroupSettings
from .states import CoordinatorState
from .store import Group, GroupStore

__all__ = ("Expiry",)


class Expiry:
    """The periodic deletion of expired offsets and groups. ``clock`` returns the time in ms since the epoch."""

    def __init__(
        self,
        settings: GroupSettings,
        timers: Timers,
        clock: Callable[[], int],
        store: GroupStore,
        committed: CommittedOffsets,
    ) -> None:
        self._settings = settings
        self._timers = timers
        self._clock = clock
        self._store = store
        self._committed = committed
        self._timer: Timer | None = None

    def start(self) -> None:
        """Start to call :meth:`check` every ``offsets.retention.check.interval.ms``."""
        if self._timer is not None:
            self._timer.cancel()
        interval = self._settings.offsets_retention_check_interval_ms / 1000
        self._timer = self._timers.after(interval, self._check_and_go_on)

    def check(self) -> None:
        """Delete the expired offsets of all groups, and the groups with neither members nor offsets."""
        now = self._clock()
        for group in self._store:
            for partition, offset in self._committed.of(group.group_id).items():
                pending = self._committed.is_pending(group.group_id, partition)
                if not pending and not group.reads(partition.topic) and self._has_expired(group, offset, now):
                    self._committed.delete(group.group_id, partition)
            if group.is_empty and group.group_id not in self._committed.groups():
                self._store.delete(group)

    def _check_and_go_on(self) -> None:
        self.check()
        self.start()

    def _has_expired(self, group: Group, offset: Committed, now: int) -> bool:
        if not isinstance(group, ClassicGroup):
            since = offset.timestamp  # a consumer group has no offsets to expire in topics to which it subscribes
        elif group.protocol_type is None:
            since = offset.timestamp  # the committing clients are not members
        elif group.state == CoordinatorState.EMPTY:
            since = group.empty_since
        elif group.state == CoordinatorState.STABLE and group.subscribed_topics is not None:
            since = offset.timestamp
        else:
            return False
        if offset.expires is not None:
            return now >= offset.expires
        return now - since >= self._settings.offsets_retention_minutes * 60_000
