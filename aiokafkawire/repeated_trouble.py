"""Decides which failures in a row to report: the first, one per growing interval with a count, and the end."""

from collections.abc import Hashable
from typing import Final

from ._lazy_classes import frozen

__all__ = ("RepeatedTrouble", "TroubleReport")

_STEPS: Final = (10.0, 60.0, 600.0)
"""The seconds after the first failure when a failure is reported again; afterwards one is each hour."""
_LAST_STEP: Final = 3600.0
_SAME: Final = 60.0
"""Seconds within which a failure after an end continues the same trouble, so that a flapping broker is not news."""
_FORGOTTEN: Final = 600.0
"""Seconds without a failure after which nobody seems to try any more, so another key takes the place."""
_MAX_APART: Final = 5
_MAX_OTHERS: Final = 1000
"""Further keys only add to the count of failures."""


@frozen
class TroubleReport:
    """A report of trouble: how often and for how long something failed."""

    count: int
    """The failures since the trouble began."""
    elapsed: float
    """The seconds since the trouble began."""
    others: int = 0
    """The number of other keys that the report covers."""


class _Trouble:
    """The failures of one key, or of all keys that are not counted apart."""

    def __init__(self, now: float) -> None:
        self.began = self.last = now
        self.count = 0
        self.due_at = now
        self.ended_at: float | None = None
        self.reported = False

    def continues(self, now: float, within: float) -> bool:
        return self.ended_at is None or now - self.ended_at < within

    def fail(self, now: float) -> bool:
        """Count a failure; return whether to report it."""
        self.count, self.last = self.count + 1, now
        if self.ended_at is not None:
            # After "works again", trouble that lasts must not stay unreported for an hour.
            self.ended_at, self.due_at = None, min(self.due_at, now + _SAME)
        if now < self.due_at:
            return False
        elapsed = now - self.began
        step = next((step for step in _STEPS if step > elapsed), None)
        self.due_at = self.began + step if step is not None else now + _LAST_STEP
        self.reported = True
        return True


class RepeatedTrouble:
    """The failures of one kind, such as failed connections. Times are in seconds of one clock.

    Keys, such as brokers, have reports of their own as long as at most five fail at once. More keys share the reports
    of a sixth, so that a cluster of many brokers that is down causes few reports.

    Args:
        at_once: whether the first failure is reported; otherwise trouble is reported once it has lasted for 10 s.
    """

    def __init__(self, *, at_once: bool = True) -> None:
        self._at_once = at_once
        # A failure that is expected and soon over does not continue earlier trouble.
        self._same = _SAME if at_once else 0.0
        self._apart: dict[Hashable, _Trouble] = {}
        self._others: dict[Hashable, float] = {}
        self._shared: _Trouble | None = None
        self._most = 0

    def __bool__(self) -> bool:
        """Return whether any key has failed and has not recovered for long."""
        return bool(self._apart or self._others)

    def failed(self, key: Hashable, now: float) -> TroubleReport | None:
        """Count a failure; return what to report, or None."""
        trouble = self._apart.get(key)
        if trouble is not None and not trouble.continues(now, self._same):
            trouble = self._apart[key] = self._new(now)
        if trouble is None and key not in self._others and self._has_place(now):
            trouble = self._apart[key] = self._new(now)
        if trouble is not None:
            return TroubleReport(trouble.count, now - trouble.began) if trouble.fail(now) else None
        return self._failed_too(key, now)

    def ended(self, key: Hashable, now: float) -> TroubleReport | None:
        """Record that a key works; return what to report, or None if no failure was reported before."""
        trouble = self._apart.get(key)
        others = 0
        if trouble is None:
            if self._others.pop(key, None) is None or self._others:
                return None
            trouble, others = self._shared, self._most - 1
        if trouble is None or trouble.ended_at is not None:
            return None
        reported, trouble.reported, trouble.ended_at = trouble.reported, False, now
        if not self._same:
            self._apart.pop(key, None)
        return TroubleReport(trouble.count, now - trouble.began, others) if reported else None

    def _new(self, now: float) -> _Trouble:
        trouble = _Trouble(now)
        if not self._at_once:
            trouble.due_at = now + _STEPS[0]
        return trouble

    def _has_place(self, now: float) -> bool:
        """Return whether another key may have reports of its own; forget keys that have ended or are not in use."""
        if len(self._apart) >= _MAX_APART:
            gone = [
                key
                for key, trouble in self._apart.items()
                if not trouble.continues(now, self._same) or now - trouble.last >= _FORGOTTEN
            ]
            for key in gone:
                del self._apart[key]
        return len(self._apart) < _MAX_APART

    def _failed_too(self, key: Hashable, now: float) -> TroubleReport | None:
        if self._shared is None or not (self._others or self._shared.continues(now, self._same)):
            self._shared, self._most = self._new(now), 0
        if key in self._others or len(self._others) < _MAX_OTHERS:
            self._others[key] = now
        self._most = max(self._most, len(self._others))
        if not self._shared.fail(now):
            return None
        self._others = {other: last for other, last in self._others.items() if now - last < _FORGOTTEN}
        return TroubleReport(self._shared.count, now - self._shared.began, len(self._others) - 1)
