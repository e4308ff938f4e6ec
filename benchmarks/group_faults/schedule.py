"""Which member is killed or closed when: a schedule that comes from a seed, carried out while brokers die as well."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.group_faults.processes import Group

_FIRST = (5.0, 8.0)
_EVERY = (8.0, 13.0)
_AWAY = (1.0, 9.0)


@dataclass
class Departure:
    """One member that went. Times are in seconds since the producer began."""

    place: int
    how: str
    """"killed" or "closed"."""
    at: float
    back: float = 0.0
    """When another process was started in its place."""


class Departures:
    """Kills a member, closes one in order, kills one and so forth, one every 8 to 13 s.

    Another is started 1 to 9 s later: some before the session of the killed one is over, some after. One that has not
    closed by then goes on closing beside its successor, so that a client that closes slowly meets the same schedule.
    """

    def __init__(self, group: Group, seed: int, seconds: float) -> None:
        self.done: list[Departure] = []
        self._group, self._seconds = group, seconds
        # Not the numbers that the schedule of the brokers is made of.
        self._chance = random.Random(f"members {seed}")
        self._thread: threading.Thread | None = None
        self._closings: list[threading.Thread] = []

    def start(self, tell: Callable[[str], None], stop: threading.Event) -> None:
        """Run the schedule in a thread. It starts nothing more once `stop` is set."""
        self._thread = threading.Thread(target=self._run, args=(tell, stop), daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the schedule; afterwards all places are taken, and who was to close has, or is killed."""
        for thread in (self._thread, *self._closings):
            if thread is not None:
                thread.join()

    def as_json(self) -> list[dict[str, Any]]:
        """Return the departures, for a report."""
        return [asdict(one) for one in self.done]

    def _run(self, tell: Callable[[str], None], stop: threading.Event) -> None:
        began = time.monotonic()
        due = self._chance.uniform(*_FIRST)
        while due < self._seconds and not stop.wait(max(due - (time.monotonic() - began), 0)):
            how = "closed" if len(self.done) % 2 else "killed"
            one = Departure(self._chance.choice(self._group.places), how, time.monotonic() - began)
            self.done.append(one)
            self._go(one, tell)
            time.sleep(self._chance.uniform(*_AWAY))
            self._group.start(one.place)
            one.back = time.monotonic() - began
            tell(f"member {one.place} is started again")
            due = max(one.at + self._chance.uniform(*_EVERY), one.back + 1.0)

    def _go(self, one: Departure, tell: Callable[[str], None]) -> None:
        if one.how == "killed":
            self._group.kill(one.place)
            tell(f"member {one.place} killed")
            return
        tell(f"member {one.place} is told to close")
        self._closings.append(self._group.close(one.place))
