"""Counts records and bytes, and reports the rate."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .output import note

__all__ = ("Meter", "summary")


class Meter:
    """A count of records and bytes since a moment."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()
        self.records: int = 0
        self.bytes: int = 0

    def add(self, records: int, size: int) -> None:
        """Count records of this size in bytes."""
        self.records += records
        self.bytes += size

    def text(self) -> str:
        """Return the count, the time since the start, and the rate."""
        seconds = max(self._now() - self._began, 1e-6)
        rate, megabytes = self.records / seconds, self.bytes / 1e6
        noun = "record" if self.records == 1 else "records"
        return (
            f"{self.records:,} {noun}, {megabytes:,.1f} MB in {seconds:.2f} s: "
            f"{rate:,.0f} records/s, {megabytes / seconds:,.1f} MB/s"
        )


@contextmanager
def summary(meter: Meter, *, quiet: bool) -> Iterator[None]:
    """Print the count and the rate to standard error at the end, or at Ctrl-C; not after an error, nor if quiet."""
    try:
        yield
    except Exception:
        raise
    except BaseException:  # the command is cancelled
        if not quiet:
            note(meter.text())
        raise
    if not quiet:
        note(meter.text())
