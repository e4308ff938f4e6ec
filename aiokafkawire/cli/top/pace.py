"""The time between two samples, which the user changes and may stop."""

from typing import Final

import anyio

__all__ = ("INTERVALS", "Pace", "seconds_to_wait")

INTERVALS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""The intervals that keys choose, in seconds."""


def seconds_to_wait(interval: float, took: float) -> float:
    """Return the wait after a sample that took ``took`` seconds: at least as long as the sample took."""
    return max(interval - took, took)


class Pace:
    """The interval between samples, and whether sampling is paused."""

    def __init__(self, interval: float) -> None:
        self.interval: float = interval
        self.is_paused: bool = False
        self._changed = anyio.Event()

    async def wait(self, took: float) -> None:
        """Wait until the next sample is due, after one that took ``took`` seconds; return early at a change."""
        changed = self._changed
        if self.is_paused:
            await changed.wait()
            return
        with anyio.move_on_after(seconds_to_wait(self.interval, took)):
            await changed.wait()

    def pause(self) -> None:
        """Pause, or go on."""
        self.is_paused = not self.is_paused
        self._wake()

    def change(self, step: int) -> None:
        """Choose the next longer interval (1) or the next shorter one (-1)."""
        if step > 0:
            self.interval = next((known for known in INTERVALS if known > self.interval), self.interval)
        else:
            self.interval = next((known for known in reversed(INTERVALS) if known < self.interval), self.interval)
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
