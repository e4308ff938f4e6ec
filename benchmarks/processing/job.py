"""Code of all measured clients: the job, and the counter that handlers call."""

import json
import sys
import time
from dataclasses import asdict, dataclass

import anyio

from benchmarks.clients.measurement import cpu_seconds


@dataclass(frozen=True)
class Job:
    """One measurement: a handler is called with the first records of a topic."""

    bootstrap: str
    topic: str
    group: str
    way: str
    loop: str
    records: int
    handler_ms: float
    """How long a call of the handler waits; 0 for one that does nothing."""
    concurrency: int

    def as_argument(self) -> str:
        """Return the one argument of a client's command line."""
        return json.dumps(asdict(self))


def read_job() -> Job:
    """Return the command line's job."""
    return Job(**json.loads(sys.argv[1]))


class Counter:
    """Counts the records that were handled; the clock runs from the first of them to the last."""

    def __init__(self, records: int) -> None:
        self.over = anyio.Event()
        self._left, self._records = records, records
        self._began = self._cpu = 0.0
        self._seconds = self._cpu_seconds = 0.0

    def count(self) -> None:
        """Count a record."""
        self._left -= 1
        if self._left == self._records - 1:
            self._began, self._cpu = time.perf_counter(), cpu_seconds()
        if not self._left:
            self._seconds, self._cpu_seconds = time.perf_counter() - self._began, cpu_seconds() - self._cpu
            self.over.set()

    def print(self, version: str) -> None:
        """Print what was measured."""
        line = {"seconds": self._seconds, "cpu_seconds": self._cpu_seconds, "records": self._records - 1}
        print(json.dumps({**line, "version": version}), flush=True)
