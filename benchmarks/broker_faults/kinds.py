"""The kinds of faults of brokers: what happens, for how long, and how long everything has to recover."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.broker_faults import faults
from benchmarks.broker_faults.cluster import Place, fake_time
from benchmarks.broker_faults.slow_disk import missing_compiler


@dataclass(frozen=True)
class Kind:
    """One kind of fault, which happens several times in a run."""

    title: str
    seconds: float
    """From its beginning until it is healed."""
    rest: float
    """Seconds from then until the next one."""
    fault: Callable[[Place], Iterator[None]]
    """Causes it, yields, and heals it."""
    cluster: str = "usual"
    """"usual", or the release from which it is upgraded."""
    lacks: Callable[[Path | None], str | None] = lambda _: None
    """Returns what this machine lacks for it, or None. Its argument is the small disk of a broker, if there is one."""


def _lacks_disk(disk: Path | None) -> str | None:
    return None if disk else "a small disk needs root, and mount"


def _lacks_fake_time(_: Path | None) -> str | None:
    return None if fake_time() else "a wrong clock needs libfaketime: on Debian, apt-get install faketime"


KINDS: Final[Mapping[str, Kind]] = {
    "freeze-1": Kind("a broker stops for 1 s", 1, 5, faults.freeze),
    "freeze-5": Kind("a broker stops for 5 s", 5, 8, faults.freeze),
    "freeze-20": Kind("a broker stops for 20 s", 20, 15, faults.freeze),
    "freeze-60": Kind("a broker stops for 60 s", 60, 20, faults.freeze),
    "full-disk": Kind("a broker's disk is full for 15 s", 15, 25, faults.fill_disk, lacks=_lacks_disk),
    "slow-disk": Kind("a broker's disk is slow for 15 s", 15, 20, faults.slow_disk, lacks=lambda _: missing_compiler()),
    "reassign": Kind("partitions move six times", 15, 10, faults.reassign),
    "delete": Kind("another topic is deleted and created", 15, 10, faults.delete_topic),
    "controller": Kind("the active controller dies", 10, 10, faults.controller_dies),
    "no-controller": Kind("all controllers die", 10, 20, faults.no_controller),
    "quota": Kind("clients may send a tenth", 10, 25, faults.throttle),
    "crash-loop": Kind("a broker crashes in a loop", 17, 25, faults.crash_loop),
    "small-heap": Kind("a broker runs out of memory three times", 60, 60, faults.small_heap),
    "clock": Kind("a broker's clock is 5 h ahead", 60, 60, faults.wrong_clock, lacks=_lacks_fake_time),
    "upgrade": Kind("3.9 is upgraded to 4.4, a node at a time", 120, 10, faults.upgrade, cluster="3.9.1"),
}


def duration(kind: Kind, number: int) -> float:
    """Return the seconds between the first fault and the end of the last one's rest."""
    return number * (kind.seconds + kind.rest)
