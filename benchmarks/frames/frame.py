"""The frame, the line that a measured program prints, and the clock of both clients."""

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import polars as pl

__all__ = ("Job", "PARTITIONS", "measure", "new_frame", "read_job")

PARTITIONS: Final = 4
_WIDTH: Final = 100
_DISTINCT: Final = 1_000


class Job(NamedTuple):
    """One measurement: the task, ``write`` or ``read``, and its topic."""

    task: str
    bootstrap: str
    topic: str
    rows: int
    compression: str


def read_job() -> Job:
    """Return the job of this program's command line."""
    task, bootstrap, topic, rows, compression = sys.argv[1:]
    return Job(task, bootstrap, topic, int(rows), compression)


def new_frame(rows: int) -> pl.DataFrame:
    """Return a frame of the columns ``key``, a number as 8 bytes, and ``value``, 100 bytes of a thousand kinds."""
    numbers = pl.int_range(rows, eager=True)
    values = pl.Series([f"{number:06d}".ljust(_WIDTH, "x").encode() for number in range(_DISTINCT)], dtype=pl.Binary)
    keys = numbers.cast(pl.String).str.zfill(8).cast(pl.Binary)
    return pl.DataFrame({"key": keys, "value": values.gather(numbers % _DISTINCT)})


def measure(task: Callable[[], Any], rows: int) -> None:
    """Run the task once; print its seconds, its seconds of CPU and the program's peak memory in MB.

    Raises:
        SystemExit: a frame that was read is not the one that was written.
    """
    began, cpu = time.perf_counter(), time.process_time()
    found = task()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    if isinstance(found, pl.DataFrame) and not _same(found, rows):
        raise SystemExit("the frame that was read differs from the one that was written")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu_seconds, "peak_mb": peak}))


def _same(found: pl.DataFrame, rows: int) -> bool:
    columns = ["key", "value"]
    return found.height == rows and found.select(columns).sort("key").equals(new_frame(rows))
