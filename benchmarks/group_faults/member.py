"""Code of the members of a group under fault, for every client: the job, and the report of their reads.

A member is a process. The end of its standard input requests it to close. It writes one line of JSON to standard
output for each event, at once and by one call, as it may be killed at any moment:

- ``[partition, number, at]``: a record was read; `at` is `time.monotonic`, which all processes of a machine share
- ``{"version": ...}``, once, at the beginning
- ``{"assigned": [0, 1]}``: its partitions, when they have changed
- ``{"error": ...}``: an exception of its client
- ``{"logged": ...}``: a warning, or worse, of its client, its numbers as #
- ``{"closed": seconds}``: it has closed in order, this long after the request to close
"""

import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.faults.journal import describe

LOOK_EVERY = 0.1
"""Seconds between looks at which partitions are assigned."""
REST = 0.1
"""Seconds that a member waits after an error before it goes on."""
PATIENCE = 10
"""After so many errors in a row, with no record in between, a member replaces its consumer by a new one."""


@dataclass(frozen=True)
class Membership:
    """A member's job. Settings that are not here are the client's defaults."""

    bootstrap: str
    topic: str
    group: str
    assignor: str
    """"range" or "cooperative-sticky"; in the consumer protocol one of the coordinator's, "uniform" or "range"."""
    session_timeout_ms: int
    heartbeat_interval_ms: int
    commit_interval_ms: int
    loop: str
    protocol: str = "classic"
    """"classic" or "consumer" (KIP-848). In the latter the brokers have the session timeout and heartbeat interval."""

    def as_argument(self) -> str:
        """Return the one argument of a member's command line."""
        return json.dumps(asdict(self))


def read_membership() -> Membership:
    """Return the command line's job."""
    return Membership(**json.loads(sys.argv[1]))


class Voice:
    """Writes the lines. It may be used from several threads."""

    def __init__(self, logger: logging.Logger, version: str) -> None:
        self._assigned: list[int] = []
        logger.addHandler(_Complaints(self))
        # Else Python prints warnings of a logger without handlers.
        logger.propagate = False
        self._say({"version": version})

    def read(self, partition: int, value: bytes | None) -> None:
        """Note that a record was read. Call this before requesting the next one, since that may commit this one."""
        at = time.monotonic()
        assert value is not None
        self._say([partition, int(value.split(maxsplit=1)[0]), at])

    def assigned(self, partitions: Iterable[int]) -> None:
        """Note the member's partitions; may be repeated."""
        ordered = sorted(partitions)
        if ordered != self._assigned:
            self._assigned = ordered
            self._say({"assigned": ordered})

    def error(self, error: object) -> None:
        """Note an exception of the client."""
        self._say({"error": describe(error)})

    def logged(self, text: str) -> None:
        """Note a log line of the client."""
        self._say({"logged": text})

    def closed(self, since: float) -> None:
        """Note that the member has closed; `since` is the time of the request to close."""
        self._say({"closed": time.monotonic() - since})

    def _say(self, line: Any) -> None:
        # Less than a pipe accepts atomically, so that a kill cuts no line.
        os.write(1, json.dumps(line).encode() + b"\n")


def wait_for_order() -> None:
    """Block the thread until the order to close comes."""
    # Not sys.stdin, whose lock would hold up the end of the interpreter.
    os.read(0, 1)


def on_order(then: Callable[[], object]) -> None:
    """Call this in a thread of its own when the order to close has come."""

    def wait() -> None:
        wait_for_order()
        then()

    threading.Thread(target=wait, daemon=True).start()


class _Complaints(logging.Handler):
    def __init__(self, voice: Voice) -> None:
        super().__init__(logging.WARNING)
        self._voice = voice

    def emit(self, record: logging.LogRecord) -> None:
        self._voice.logged(re.sub(r"\d+", "#", record.getMessage())[:100])
