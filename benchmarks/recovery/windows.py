"""The times of faults."""

import time
from typing import Final, NamedTuple

WARM_UP: Final = 5.0
"""Seconds before the first fault."""


class Window(NamedTuple):
    """The time of one fault, by `time.monotonic`."""

    began: float
    healed: float
    until: float
    """When the next one begins, or the run ends."""


def wait(until: float) -> None:
    """Sleep until this moment of `time.monotonic`."""
    time.sleep(max(until - time.monotonic(), 0.0))
