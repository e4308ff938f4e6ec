"""Measures how long a large group takes to rebalance when one more consumer comes, and when it goes.

Fifty consumers share a topic of 500 partitions without records. The 51st comes; the clock runs until every partition
has one owner again, and all have an equal share, as their own assignments say. Then it leaves in order. All consumers
are in this process, and on one event loop where the client has one.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import anyio

from benchmarks.clients.measurement import Job as PlainJob
from benchmarks.clients.measurement import Watch, print_figures
from benchmarks.contenders import CLIENTS
from benchmarks.machine import version_of
from benchmarks.rebalance.crowds import Crowd, Settings, new_crowd

_PATIENCE = 180.0
_LOOK = 0.01
"""Seconds between looks at the assignments, and so how exact the times are."""


@dataclass(frozen=True)
class Job:
    """One measurement. Its fields are the settings that cases have."""

    bootstrap: str
    topic: str
    client: str
    loop: str
    partitions: int = 500
    consumers: int = 50
    """Of the group, without the one more."""
    assignor: str = "range"
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    """Members hear of a rebalance by the answer to a heartbeat."""


class NotStable(Exception):
    """A group did not come to rest in time; the message says how far it was."""


async def measure(job: Job, watch: Watch) -> dict[str, Any]:
    """Return the figures of one group.

    :raises NotStable: it did not come to rest.
    """
    settings = Settings(
        bootstrap=job.bootstrap,
        topic=job.topic,
        assignor=job.assignor,
        session_timeout_ms=job.session_timeout_ms,
        heartbeat_interval_ms=job.heartbeat_interval_ms,
    )
    async with new_crowd(job.client, settings) as crowd:
        # The first group of all makes the brokers create the topic of offsets, which is no part of a rebalance.
        crowd.join()
        await _stable(crowd, 1, job.partitions)
        with watch:
            began = time.monotonic()
            for _ in range(job.consumers - 1):
                crowd.join()
            assembled = await _stable(crowd, job.consumers, job.partitions) - began
            joins, moved = await _timed(crowd, crowd.join, job.consumers + 1, job.partitions)
            leaves, moved_back = await _timed(crowd, crowd.leave, job.consumers, job.partitions)
    times = {"assembled_s": assembled, "joins_s": joins, "leaves_s": leaves}
    return {**times, "moved": moved, "moved_back": moved_back}


async def _timed(crowd: Crowd, act: Callable[[], None], consumers: int, partitions: int) -> tuple[float, int]:
    """Return the seconds until the group is stable, and the number of partitions with another owner."""
    before = _owners(crowd)
    began = time.monotonic()
    act()
    seconds = await _stable(crowd, consumers, partitions) - began
    after = _owners(crowd)
    return seconds, sum(after[one] != owner for one, owner in before.items())


async def _stable(crowd: Crowd, consumers: int, partitions: int) -> float:
    """Wait until each partition has one owner and the shares are equal; when that was seen."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        now = time.monotonic()
        shares = list(crowd.shares().values())
        if is_stable(shares, consumers, partitions):
            return now
        if now > deadline or crowd.failures:
            sizes = f"{len(shares)} consumers have {sum(map(len, shares))} partitions"
            raise NotStable("; ".join([f"after {now - deadline + _PATIENCE:.0f} s {sizes}", *crowd.failures]))
        await anyio.sleep(_LOOK)


def is_stable(shares: list[frozenset[int]], consumers: int, partitions: int) -> bool:
    """Return whether this many consumers own this many partitions, each partition once, and evenly."""
    sizes = [len(share) for share in shares]
    if len(sizes) != consumers or sum(sizes) != partitions or max(sizes) - min(sizes) > 1:
        return False
    return len(set(chain.from_iterable(shares))) == partitions


def _owners(crowd: Crowd) -> dict[int, int]:
    return {partition: member for member, share in crowd.shares().items() for partition in share}


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    if job.consumers >= job.partitions:
        raise SystemExit("there must be a partition for each consumer, and one more")
    backend = "trio" if job.loop == "trio" else "asyncio"
    loop = {"use_uvloop": job.loop == "uvloop"} if backend == "asyncio" else {}
    watch = Watch(PlainJob())
    try:
        figures = anyio.run(measure, job, watch, backend=backend, backend_options=loop)
    except NotStable as failed:
        raise SystemExit(str(failed)) from None
    package = CLIENTS[job.client].replace("_", "-")
    print_figures(watch, records=job.consumers, version=version_of(package) or "", **figures)


if __name__ == "__main__":
    main()
