"""The members of a group under fault, each a process, and what they said."""

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.aiokafka_api.program import command_on
from benchmarks.contenders import FILES
from benchmarks.faults.program import ClientFailed
from benchmarks.group_faults.member import Membership
from benchmarks.java import JAVA, compiled
from benchmarks.machine import ROOT

_READY = 90.0
_CLOSING = 30.0
"""Seconds that a member has for closing before it is killed."""
_REST = 0.05


class Read(NamedTuple):
    """A record that a member was given."""

    member: str
    """The place and how often it was taken before: "2.0", then "2.1"."""
    partition: int
    number: int
    at: float
    """By `time.monotonic`."""


class Member:
    """One process, from its start until it was killed or has closed."""

    def __init__(self, name: str, command: list[str], errors: Path, group: "Group") -> None:
        self.name = name
        self.assigned: frozenset[int] = frozenset()
        self.closed: float | None = None
        self._group, self._errors = group, errors
        with errors.open("w") as file:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, cwd=ROOT
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once, as ``kill -9`` does; its output is kept."""
        self._process.kill()
        self._wait_gone()

    def close(self) -> str:
        """Request the close, and wait; return the problem, or an empty string."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            status = self._process.wait(_CLOSING)
        except subprocess.TimeoutExpired:
            self.kill()
            self.closed = _CLOSING
            return f"member {self.name} had not closed after {_CLOSING:.0f} s"
        self._wait_gone()
        return f"member {self.name} ended with status {status}:\n{self.said()}" if status or self.closed is None else ""

    def said(self) -> str:
        """Return the last lines that it wrote to standard error."""
        return "\n".join(self._errors.read_text(errors="replace").splitlines()[-30:])

    def _wait_gone(self) -> None:
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line = json.loads(text)
            if isinstance(line, list):
                self._group.take(Read(self.name, *line))
            elif "assigned" in line:
                self.assigned = frozenset(line["assigned"])
            elif "closed" in line:
                self.closed = line["closed"]
            else:
                self._group.note(line)


def program_of(client: str, folder: Path) -> list[str]:
    """Return the command of a client's members; Java's are compiled into the folder.

    :raises CompilationFailed: Java's were not compiled.
    """
    if client == JAVA:
        return compiled(Path(__file__).with_name("Member.java"), folder)
    return command_on(client, f"benchmarks.group_faults.{FILES[client]}")


class Group:
    """The members of one group, by place; none outlives the ``with`` block.

    One thread at a time may let them go and come. ``within`` is the beginning of a command that runs them elsewhere, as
    in another network.
    """

    def __init__(self, client: str, job: Membership, size: int, folder: Path, within: Sequence[str] = ()) -> None:
        self.reads: list[Read] = []
        self.unique = 0
        """How many records were read, each counted once."""
        self.version = "version unknown"
        self.errors: Counter[str] = Counter()
        self.logged: Counter[str] = Counter()
        self.closes: list[float] = []
        """Seconds that each orderly close took."""
        self.problems: list[str] = []
        self._command, self._folder = [*within, *program_of(client, folder), job.as_argument()], folder
        self._seen: set[int] = set()
        self._lock = threading.Lock()
        self._times: Counter[int] = Counter()
        self._members: dict[int, Member] = {}
        self.places = range(1, size + 1)

    def __enter__(self) -> "Group":
        for place in self.places:
            self.start(place)
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members.values():
            member.kill()

    def start(self, place: int) -> None:
        """Let a new process take a place that is free."""
        name = f"{place}.{self._times[place]}"
        self._times[place] += 1
        self._members[place] = Member(name, self._command, self._folder / f"errors-{name}", self)

    def kill(self, place: int) -> None:
        """Kill the member with ``kill -9``: it leaves without a word to the group."""
        member = self._leave(place)
        if member is not None:
            member.kill()

    def close(self, place: int) -> threading.Thread:
        """Request an orderly close; the place is free at once. The thread ends when the member has, or after 30 s."""
        member = self._leave(place)
        closing = threading.Thread(target=self._close, args=(member,), daemon=True)
        closing.start()
        return closing

    def _close(self, member: Member | None) -> None:
        if member is None:
            return
        problem = member.close()
        with self._lock:
            if problem:
                self.problems.append(problem)
            if member.closed is not None:
                self.closes.append(member.closed)

    def wait_ready(self, partitions: int) -> None:
        """Wait until each member has some partitions, and each partition has an owner.

        :raises ClientFailed: that takes too long.
        """
        deadline = time.monotonic() + _READY
        while not self._is_ready(partitions):
            ended = [one for one in self._members.values() if not one.runs]
            if ended or time.monotonic() > deadline:
                said = "\n".join(one.said() for one in self._members.values())
                errors = "\n".join(self.errors)
                raise ClientFailed(f"the group did not come together:\n{errors}\n{said}")
            time.sleep(_REST)

    def wait_read(self, numbers: set[int], seconds: float) -> None:
        """Wait until all of these have been read, or the seconds have passed."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with self._lock:
                if numbers <= self._seen:
                    return
            time.sleep(_REST)

    def take(self, read: Read) -> None:
        """Note that a member has read a record."""
        with self._lock:
            self.reads.append(read)
            self._seen.add(read.number)
            self.unique = len(self._seen)

    def note(self, line: dict[str, Any]) -> None:
        """Note any other message of a member."""
        with self._lock:
            if "error" in line:
                self.errors[line["error"]] += 1
            elif "logged" in line:
                self.logged[line["logged"]] += 1
            else:
                self.version = line["version"]

    def _leave(self, place: int) -> Member | None:
        """Remove the place's member and return it; return None and note a problem if it has ended already."""
        member = self._members.pop(place)
        if member.runs:
            return member
        self.problems.append(f"member {member.name} ended by itself:\n{member.said()}")
        member.kill()
        return None

    def _is_ready(self, partitions: int) -> bool:
        shares = [one.assigned for one in self._members.values()]
        return all(shares) and sum(map(len, shares)) == partitions == len(frozenset().union(*shares))
