"""The processes of a large group, and what they said."""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.contenders import FILES
from benchmarks.faults.program import ClientFailed
from benchmarks.group_faults.processes import Read
from benchmarks.group_growth.crowd import Job
from benchmarks.group_growth.judge import Owners
from benchmarks.java import JAVA, compiled
from benchmarks.machine import ROOT
from benchmarks.rebalance.program import is_stable

_READY = 60.0
_CLOSING = 60.0
_LOOK = 0.01


def program_of(client: str, folder: Path) -> list[str]:
    """Return the command of a client's processes; Java's are compiled into the folder.

    :raises CompilationFailed: Java's were not compiled.
    """
    if client == JAVA:
        return compiled(Path(__file__).with_name("Crowd.java"), folder)
    return [sys.executable, "-m", f"benchmarks.group_growth.{FILES[client]}"]


class Process:
    """One process and its consumers; it does not outlive the ``with`` block."""

    def __init__(self, name: str, command: list[str], job: Job, errors: Path) -> None:
        self.name, self.consumers = name, job.consumers
        self.version = ""
        self.reads: list[Read] = []
        self.errors: Counter[str] = Counter()
        self.shares: dict[str, frozenset[int]] = {}
        """The partitions of each consumer that ever had one."""
        self.changed_at = 0.0
        """When a share last changed."""
        self._command, self._errors = [*command, job.as_argument()], errors

    def __enter__(self) -> Self:
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self) -> None:
        """Wait until it can take the order to join.

        :raises ClientFailed: it ends before, or takes too long.
        """
        deadline = time.monotonic() + _READY
        while not self.version:
            if not self.runs or time.monotonic() > deadline:
                raise ClientFailed(f"process {self.name} did not start:\n{self.said()}")
            time.sleep(_LOOK)

    def join_group(self) -> None:
        """Let all its consumers join; return at once."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def order_close(self) -> None:
        """Request the close of all its consumers; return at once."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait_closed(self) -> str:
        """Wait for its end; return the problem, or an empty string."""
        try:
            status = self._process.wait(_CLOSING)
        except subprocess.TimeoutExpired:
            return f"process {self.name} had not closed after {_CLOSING:.0f} s"
        self._reader.join()
        return f"process {self.name} ended with status {status}:\n{self.said()}" if status else ""

    def said(self) -> str:
        """Return the last lines that it wrote to standard error."""
        return "\n".join(self._errors.read_text(errors="replace").splitlines()[-30:])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            self._take(json.loads(text))

    def _take(self, line: dict[str, Any]) -> None:
        if "reads" in line:
            self.reads += [Read(self.name, *one) for one in line["reads"]]
        elif "assigned" in line:
            # A new dict, since another thread may look at the old one.
            changed = {f"{self.name}.{line['consumer']}": frozenset(line["assigned"])}
            self.changed_at = max(self.changed_at, line["at"])
            self.shares = self.shares | changed
        elif "error" in line:
            self.errors[line["error"]] += 1
        else:
            self.version = line["version"]


def wait_shared(processes: list[Process], partitions: int, seconds: float) -> float:
    """Wait until each partition has one owner and all shares are equal; return when the last share changed.

    :raises ClientFailed: that takes longer than these seconds, or a process ends.
    """
    deadline = time.monotonic() + seconds
    consumers = sum(one.consumers for one in processes)
    while True:
        shares = [share for one in processes for share in one.shares.values()]
        if is_stable(shares, consumers, partitions):
            return max(one.changed_at for one in processes)
        if time.monotonic() > deadline or not all(one.runs for one in processes):
            sizes = f"{sum(map(bool, shares))} of {consumers} consumers have {sum(map(len, shares))} partitions"
            said = "\n".join(
                [*(error for one in processes for error in one.errors), *(one.said() for one in processes)]
            )
            raise ClientFailed(f"the group did not come together within {seconds:.0f} s: {sizes}\n{said}")
        time.sleep(_LOOK)


def owners(processes: list[Process]) -> Owners:
    """Return the owner of each partition."""
    return {partition: name for one in processes for name, share in one.shares.items() for partition in share}
