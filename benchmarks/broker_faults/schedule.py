"""Carries out the faults of one kind while clients work."""

import time
from collections.abc import Callable

from benchmarks.broker_faults.cluster import Place
from benchmarks.broker_faults.kinds import Kind
from benchmarks.recovery.windows import WARM_UP, Window, wait


def run(kind: Kind, place: Place, number: int, tell: Callable[[str], None]) -> list[Window]:
    """Run so many faults of a kind, from now on, and return their times.

    :raises BootFailed: a broker does not come back.
    """
    due = time.monotonic() + WARM_UP
    windows = []
    for one in range(1, number + 1):
        wait(due)
        tell(f"{one}/{number} {kind.title}")
        began = time.monotonic()
        fault = kind.fault(place)
        next(fault)
        wait(due + kind.seconds)
        for _ in fault:
            raise AssertionError("a fault yields once")
        healed = time.monotonic()
        tell(f"{one}/{number} healed after {healed - began:.1f} s")
        due = max(due + kind.seconds + kind.rest, healed)
        windows.append(Window(began, healed, due))
    wait(due)
    return windows
