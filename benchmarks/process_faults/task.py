"""The task of one instance, its command line, and the lines that it writes about each record."""

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

SESSION_TIMEOUT_MS = 10_000
"""After so long the partitions of a killed instance go to others, in groups of both kinds."""


@dataclass(frozen=True)
class Task:
    """The topics that an instance processes, and how."""

    bootstrap: str
    source: str
    sink: str
    """The topic for results of ``transform``."""
    group: str
    way: str
    log: str
    """The file for the lines of all instances."""
    concurrency: int
    max_in_hand: int
    handler_ms: float
    group_protocol: str = "classic"
    """``"classic"`` or ``"consumer"`` (KIP-848), of ``process`` and ``transform``."""

    def as_argument(self) -> str:
        """Return the one argument of an instance's command line."""
        return json.dumps(asdict(self))


def read_task() -> Task:
    """Return the command line's task."""
    return Task(**json.loads(sys.argv[1]))


class Log:
    """Appends a line for each event by one call, so that a kill cuts no line."""

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, what: str, partition: int = -1, offset: int = -1, key: bytes | None = None) -> None:
        """Write that a record ``began`` or is ``done``, or that partitions were ``lost``."""
        text = f"{time.monotonic_ns()} {what} {partition} {offset} {(key or b'-').decode()}\n"
        os.write(self._file, text.encode())
