"""Offsets that nobody has needed for long are forgotten, and so are groups without members or offsets (KIP-211)."""

from collections.abc import Callable

from ..cluster.timers import Timer, Timers
from .committed import Committed, CommittedOffsets
from .group import ClassicGroup
from .settings import GroupSettings
from .states import CoordinatorState
from .store import GroupStore

__all__ = ("Expiry",)


class Expiry:
    """Looks at all groups every ``offsets.retention.check.interval.ms``. ``clock`` is in ms since the epoch."""

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
        """Look again and again from now on."""
        if self._timer is not None:
            self._timer.cancel()
        interval = self._settings.offsets_retention_check_interval_ms / 1000
        self._timer = self._timers.after(interval, self._check_and_go_on)

    def check(self) -> None:
        """Look once."""
        now = self._clock()
        for group in self._store:
            for where, offset in self._committed.of(group.group_id).items():
                pending = self._committed.is_pending(group.group_id, where)
                if not pending and not group.reads(where.topic) and self._has_expired(group, offset, now):
                    self._committed.delete(group.group_id, where)
            if group.state == CoordinatorState.EMPTY and group.group_id not in self._committed.groups():
                self._store.delete(group)

    def _check_and_go_on(self) -> None:
        self.check()
        self.start()

    def _has_expired(self, group: ClassicGroup, offset: Committed, now: int) -> bool:
        if group.protocol_type is None:
            since = offset.timestamp  # whoever commits is no member
        elif group.state == CoordinatorState.EMPTY:
            since = group.empty_since
        elif group.state == CoordinatorState.STABLE and group.subscribed_topics is not None:
            since = offset.timestamp
        else:
            return False
        if offset.expires is not None:
            return now >= offset.expires
        return now - since >= self._settings.offsets_retention_minutes * 60_000
