"""A server of the tests' own: a process that ends with them, however they end.

server = GuardedProcess(["java", "-cp", ...], home / "server.log")
server.launch()
server.wait_until(lambda: answers(port), "ZooKeeper")
server.kill()
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ("BootFailed", "GuardedProcess", "Server", "run_to_end", "tail")


class BootFailed(Exception):
    """A server could not be resolved, formatted or started; the message ends with the tail of the log that says why."""


class GuardedProcess:
    """A command in a process group of its own, from `launch` to `end` or `kill`; it may be launched again after them.

    What it says is added to the log, in whose folder it runs. It does not outlive this process, even a killed one.
    """

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.command, self.log = command, log
        self._environment = os.environ | dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                self.command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.log.parent,
                process_group=0,
            )
        # The guard shares the server's process group and waits on a pipe of ours. However this process ends, the pipe
        # closes, and the guard kills the group: a test run that is killed leaves no server behind.
        self._guard = subprocess.Popen(
            ["sh", "-c", "read _; kill -9 0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=self._process.pid,
        )

    @property
    def status(self) -> int | None:
        """What it has ended with by itself; None while it runs, and when it was not launched."""
        return None if self._process is None else self._process.poll()

    @property
    def runs(self) -> bool:
        return self._process is not None and self.status is None

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal, if it runs."""
        if self._process is not None:
            self._process.send_signal(number)

    def wait_until(self, ready: Callable[[], bool], what: str, timeout: float = 240.0) -> None:
        """Wait until the server is `ready`.

        :raises BootFailed: it has ended, or that takes longer than `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while not ready():
            if self.status is not None:
                raise BootFailed(f"{what} exited with status {self.status}:\n{tail(self.log)}")
            if time.monotonic() > deadline:
                raise BootFailed(f"{what} was not ready after {timeout:.0f} s:\n{tail(self.log)}")
            time.sleep(0.05)

    def end(self, patience: float) -> None:
        """Have it end in order; what has not after `patience` seconds is killed."""
        if self._process is not None:
            self._process.terminate()  # and not the group: the guard is needed until it is over
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
        self.kill()

    def kill(self) -> None:
        """End it at once, and what it has started, as ``kill -9`` does. May be repeated."""
        process, self._process = self._process, None
        guard, self._guard = self._guard, None
        if process is not None:
            # The guard, not yet reaped, keeps the group's id from being given to anyone else.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if guard is not None:
            assert guard.stdin is not None
            guard.stdin.close()
            guard.wait()


class Server(ABC):
    """What is booted for a test, with processes and files of its own; used as ``with``."""

    @abstractmethod
    def start(self) -> Self:
        """Boot, and wait until it serves; raises BootFailed."""

    @abstractmethod
    def stop(self) -> None:
        """Kill it, and remove the folder that it made, if any. May be repeated."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def run_to_end(command: Sequence[str], log: Path, timeout: float, doing: str) -> None:
    """Run what ends by itself, beside its log.

    :raises BootFailed: it fails, or takes longer than ``timeout`` seconds.
    """
    with log.open("wb") as out:
        try:
            done = subprocess.run(
                command, check=False, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=log.parent, timeout=timeout
            )
        except subprocess.TimeoutExpired:
            raise BootFailed(f"{doing} took more than {timeout:.0f} s:\n{tail(log)}") from None
    if done.returncode != 0:
        raise BootFailed(f"{doing} failed with status {done.returncode}:\n{tail(log)}")


def tail(log: Path, size: int = 40) -> str:
    """The log's last lines, below the first errors before them: a failing server says why, then logs its shutdown."""
    lines = log.read_text(errors="replace").splitlines()
    errors = [line for line in lines[:-size] if " ERROR " in line or line.startswith(("Exception", "Caused by"))]
    return "\n".join([*errors[:10], *lines[-size:]])
