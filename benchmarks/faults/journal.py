"""Code that the clients of a run under fault share: the job, the clock, and the journal of what became of every record.

A client writes a line of JSON to its journal for every outcome, and one to standard output every second; the last of
these has ``figures``. The journal is flushed every second, so a client that hangs leaves what it knew.
"""

import argparse
import json
import logging
import re
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

TICK = 0.005
"""Seconds that a client rests at least when it is ahead of its records' times."""
ABORTED_EVERY = 10
"""Every so many transactions one is aborted on purpose."""
LINGER_MS = 5


@dataclass(frozen=True)
class Job:
    """One client's work: numbered records, due at a steady rate, whatever becomes of those before."""

    bootstrap: str
    topic: str
    journal: Path
    partitions: int
    seconds: float
    rate: int
    value_size: int
    transactions: int
    """Records of a transaction; 0 for none."""
    loop: str

    @property
    def records(self) -> int:
        return int(self.seconds * self.rate)

    def value(self, number: int) -> bytes:
        """Return the number, and padding."""
        return (b"%010d " % number).ljust(self.value_size, b".")

    def due(self, number: int) -> float:
        """Return the seconds from the start until the record is due."""
        return number / self.rate

    def is_to_abort(self, first: int) -> bool:
        """Return whether the transaction that begins with this record is aborted on purpose."""
        return first // self.transactions % ABORTED_EVERY == ABORTED_EVERY - 1

    def is_to_flush(self, first: int) -> bool:
        """Return whether all records of such a transaction are written before the abort: clients drop unsent ones.

        In the other transactions some records are in flight.
        """
        return first // self.transactions // ABORTED_EVERY % 2 == 0


def read_job(description: str) -> Job:
    """Return the command line's job."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--journal", required=True, type=Path)
    parser.add_argument("--partitions", required=True, type=int)
    parser.add_argument("--seconds", required=True, type=float)
    parser.add_argument("--rate", required=True, type=int)
    parser.add_argument("--value-size", required=True, type=int)
    parser.add_argument("--transactions", required=True, type=int)
    parser.add_argument("--loop", required=True)
    return Job(**vars(parser.parse_args()))


def command_of(job: Job) -> list[str]:
    """Return the arguments that `read_job` reads as this job."""
    fields = asdict(job).items()
    return [word for name, value in fields for word in (f"--{name.replace('_', '-')}", str(value))]


class Journal:
    """Keeps the outcomes. The clock begins with the ``with`` block, which also says that the client is ready.

    Times are in seconds since then. It may be used from one thread at a time.
    """

    def __init__(self, job: Job, logger: logging.Logger) -> None:
        self.handed = self.acknowledged = self.failed = 0
        self.more: dict[str, Any] = {}
        """Figures that only some clients have."""
        self._file = job.journal.open("w")
        self._told = 0.0
        self._logged = _LogCount()
        self._logger = logger
        logger.addHandler(self._logged)
        # Else Python prints warnings of a logger without handlers; we print none, and count them all.
        logger.propagate = False

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._print(ready=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._logger.removeHandler(self._logged)
        if error is None:
            logged = {"log_lines": self._logged.lines.total(), "logged": dict(self._logged.lines.most_common(8))}
            self._print(figures={"handed": self.handed, "ran": self.now(), **logged, **self.more})

    @property
    def settled(self) -> bool:
        """Whether all that was handed over has an outcome."""
        return self.handed == self.acknowledged + self.failed

    def now(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._began

    def written(self, number: int, partition: int, offset: int | None) -> None:
        """Record an acknowledgement, at this offset if the client reports it."""
        self.acknowledged += 1
        at = offset if offset is not None and offset >= 0 else None
        self._write({"record": number, "partition": partition, "at": self.now(), "offset": at})

    def lost(self, number: int, partition: int, error: object) -> None:
        """Record a failure: the record may have been written or not."""
        self.failed += 1
        self._write({"record": number, "partition": partition, "at": self.now(), "error": describe(error)})

    def transaction(self, first: int, records: int, began: float, outcome: str, error: object = None) -> None:
        """Record the end of a transaction.

        "committed", "aborted" on purpose, "failed" before its commit, so that none of it may be visible, or "unsure",
        when its commit failed: all or none of it is visible.
        """
        self.handed += records
        if outcome in ("committed", "aborted"):
            self.acknowledged += records
        else:
            self.failed += records
        cause = {} if error is None else {"error": describe(error)}
        about = {"transaction": first, "records": records, "began": began, "at": self.now()}
        self._write({**about, "outcome": outcome, **cause})

    def tell(self) -> None:
        """Let progress be seen, if a second has passed; to be called often."""
        now = self.now()
        if now - self._told >= 1:
            self._told = now
            self._file.flush()
            self._print(at=now, handed=self.handed, acknowledged=self.acknowledged, failed=self.failed)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")

    def _print(self, **line: Any) -> None:
        print(json.dumps(line), flush=True)


def read_journal(path: Path) -> list[dict[str, Any]]:
    """Return the outcomes that a client wrote, whole lines only: a kill may have cut the last one."""
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def describe(error: object) -> str:
    """Return an error as a short line."""
    named = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)
    return named[:200]


class _LogCount(logging.Handler):
    """Counts what a client complains of: warnings and worse, by their text without its numbers."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines[re.sub(r"\d+", "#", record.getMessage())[:100]] += 1
