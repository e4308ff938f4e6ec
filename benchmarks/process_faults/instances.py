"""The instances of one group under fault: processes that are killed and started again by a schedule from a seed."""

import random
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.faults.program import ClientFailed
from benchmarks.machine import ROOT

_EVERY = (2.0, 6.0)
_AWAY = (0.0, 2.0)
_CLOSING = 60.0
"""Seconds that an instance has to end after SIGTERM."""


class Instances:
    """Processes of one command; none outlives the ``with`` block.

    Args:
        command: starts one.
        count: how many there are.
        folder: has their standard outputs.
        seed: of the schedule of kills.
    """

    def __init__(self, command: Sequence[str], count: int, folder: Path, seed: int) -> None:
        self.kills = 0
        self._command, self._folder, self._chance = command, folder, random.Random(f"instances {seed}")
        self._started = 0
        self._processes: list[subprocess.Popen[bytes]] = []
        self._count = count

    def __enter__(self) -> "Instances":
        self._processes = [self._start() for _ in range(self._count)]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        self._started += 1
        with self._output(self._started).open("wb") as output:
            return subprocess.Popen(self._command, cwd=ROOT, stdout=output, stderr=output)

    def _output(self, number: int) -> Path:
        return self._folder / f"instance-{number}"

    def kill_for(self, seconds: float, tell: Callable[[str], None], stop: threading.Event) -> None:
        """Kill one after the other with ``kill -9`` and start it again, until the seconds are over or ``stop`` is set.

        :raises ClientFailed: one has ended by itself.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end and not stop.wait(self._chance.uniform(*_EVERY)):
            at = self._chance.randrange(self._count)
            self.require_running()
            self._processes[at].kill()
            self._processes[at].wait()
            self.kills += 1
            tell(f"instance {at + 1} killed")
            stop.wait(self._chance.uniform(*_AWAY))
            self._processes[at] = self._start()

    def require_running(self) -> None:
        """Raise ClientFailed with the outputs of all, if one has ended by itself."""
        if any(process.poll() is not None for process in self._processes):
            raise ClientFailed(f"an instance has ended by itself:\n{self.said()}")

    def end(self) -> None:
        """End all in order, as SIGTERM does.

        :raises ClientFailed: one does not end, or fails.
        """
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                status = process.wait(_CLOSING)
            except subprocess.TimeoutExpired:
                raise ClientFailed(f"an instance had not ended after {_CLOSING:.0f} s:\n{self.said()}") from None
            if status not in (0, 143):  # Java's status after SIGTERM
                raise ClientFailed(f"an instance ended with status {status}:\n{self.said()}")

    def said(self) -> str:
        """Return the last lines of the outputs."""
        outputs = [self._output(number + 1) for number in range(self._started)]
        return "\n".join("\n".join(one.read_text(errors="replace").splitlines()[-15:]) for one in outputs)
