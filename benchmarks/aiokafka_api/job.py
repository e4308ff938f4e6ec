"""The cases: what the program does, and the number of records of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.contenders import DROP_IN

OURS: Final = DROP_IN
THEIRS: Final = "aiokafka"
PACKAGES: Final = (OURS, THEIRS)
"""The package under measurement, and the one that it stands in for."""
LOOPS: Final = ("asyncio", "uvloop")

_FASTER: Final = 4
"""The factor by which our package needs more records for a run of similar length."""


@dataclass(frozen=True)
class Way:
    """One way to use the API."""

    of_program: str
    """Its name in the measured program."""
    line: str
    reads: bool = False
    share: float = 1.0
    """The number of records, as a fraction of ``--records``."""


WAYS: Final = {
    "send": Way("send", "send() for every record, then flush()"),
    "send_gathered": Way("send_gathered", "send() for every record; the futures of each 10,000 are gathered"),
    "send_and_wait": Way("senders", "100 tasks, each with one send_and_wait() after the other, linger 0", share=0.25),
    "send_batch": Way("send_batch", "create_batch(), append() for every record, send_batch()"),
    "async_for": Way("async_for", "async for record in consumer", reads=True),
    "getone": Way("getone", "getone()", reads=True),
    "getmany": Way("getmany", "getmany(timeout_ms=1000)", reads=True),
}


@dataclass(frozen=True)
class Case:
    """One table: a way, with values of one size."""

    way: str
    size: int

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.way}, values of {self.size:,} B"

    def records(self, package: str, wished: int) -> int:
        """Return the number of records of one measurement, if ``--records`` is ``wished``."""
        times = _FASTER if package == OURS else 1
        return max(100, int(wished * WAYS[self.way].share * times))


def cases(ways: Sequence[str], sizes: Sequence[int]) -> list[Case]:
    """Return a case for each size and way."""
    return [Case(way, size) for size in sizes for way in ways]
