"""Code of the processes whose consumers share a group, for every client: the job, and the report of what they read.

The first byte of its standard input has all consumers of a process join; the end of the standard input closes them.
The process writes lines of JSON to standard output. All times are `time.monotonic`, which all processes of a machine
share:

- ``{"version": ...}``, once, when it is ready to join
- ``{"consumer": 3, "assigned": [0, 1], "at": ...}``: a consumer's partitions, when they have changed
- ``{"reads": [[partition, number, at], ...]}``: the records that were read since the last such line
- ``{"error": ...}``: what ended a consumer, or was raised to it
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks.faults.journal import describe

FLUSH_EVERY: Final = 0.1
"""Seconds between the lines that say what was read."""


@dataclass(frozen=True)
class Job:
    """A process's work. Settings that are not here are the client's defaults."""

    bootstrap: str
    topic: str
    """Also the name of the group."""
    consumers: int
    """Of this process."""
    protocol: str
    """"classic", then with cooperative-sticky, or "consumer"."""
    loop: str

    def as_argument(self) -> str:
        """Return the one argument of a process's command line."""
        return json.dumps(asdict(self))


def read_job() -> Job:
    """Return the command line's job."""
    return Job(**json.loads(sys.argv[1]))


class Voice:
    """Writes the lines. It may be used from several threads."""

    def __init__(self, version: str) -> None:
        self._lock = threading.Lock()
        self._reads: list[tuple[int, int, float]] = []
        self._shares: dict[int, set[int]] = {}
        self._say({"version": version})
        threading.Thread(target=self._flush_often, daemon=True).start()

    def read(self, partition: int, value: bytes | None) -> None:
        """Note that a record was read."""
        assert value is not None
        read = (partition, int(value.split(maxsplit=1)[0]), time.monotonic())
        with self._lock:
            self._reads.append(read)

    def assigned(self, consumer: int, partitions: Iterable[int]) -> None:
        """Note that a consumer got partitions."""
        self._change(consumer, lambda share: share | {*partitions})

    def revoked(self, consumer: int, partitions: Iterable[int]) -> None:
        """Note that a consumer gave up or lost partitions."""
        self._change(consumer, lambda share: share - {*partitions})

    def error(self, error: object) -> None:
        """Note an exception of the client."""
        self._say({"error": describe(error)})

    def flush(self) -> None:
        """Write what was read since the last time."""
        with self._lock:
            reads, self._reads = self._reads, []
        if reads:
            self._say({"reads": reads})

    def _change(self, consumer: int, change: Callable[[set[int]], set[int]]) -> None:
        at = time.monotonic()
        share = self._shares[consumer] = change(self._shares.get(consumer, set()))
        self._say({"consumer": consumer, "assigned": sorted(share), "at": at})

    def _flush_often(self) -> None:
        while True:
            time.sleep(FLUSH_EVERY)
            self.flush()

    def _say(self, line: Any) -> None:
        text = json.dumps(line).encode() + b"\n"
        with self._lock:
            while text:
                text = text[os.write(1, text) :]


def wait_join() -> None:
    """Block the thread until the order to join comes: the first byte of the standard input."""
    # Not sys.stdin, whose lock would hold up the end of the interpreter.
    os.read(0, 1)


def wait_close() -> None:
    """Block the thread until the order to close comes: the end of the standard input."""
    while os.read(0, 1):
        pass
