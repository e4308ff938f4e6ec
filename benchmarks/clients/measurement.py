"""What all measured clients share, so that they are measured alike: arguments, clock, and the JSON line at the end."""

import argparse
import gc
import json
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

WARM_UP_SENDS = 1
"""Awaited sends to each partition before the clock runs, so that connections, metadata and code are warm."""


@dataclass(frozen=True)
class Job:
    """One measurement, as the command line asks for it."""

    bootstrap: str
    topic: str
    way: str
    loop: str
    records: int
    partitions: int
    value_size: int
    batch_size: int
    linger_ms: int

    @property
    def value(self) -> bytes:
        return bytes(index % 251 for index in range(self.value_size))


def read_job(description: str, ways: Sequence[str], loops: Sequence[str]) -> Job:
    """The command line's measurement; ``--help`` tells what this client can do."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT", help="a broker of the cluster")
    parser.add_argument("--topic", required=True, help="an existing topic; to consume, one that holds the records")
    parser.add_argument("--way", required=True, choices=ways, help="what is done, and by which calls")
    parser.add_argument("--loop", default=loops[0], choices=loops, help="the event loop, where the client has one")
    parser.add_argument("--records", type=int, default=200_000, help="records, or sends where latency is measured")
    parser.add_argument("--partitions", type=int, default=4, help="partitions of the topic")
    parser.add_argument("--value-size", type=int, default=100, help="bytes of each value; there are no keys")
    parser.add_argument("--batch-size", type=int, default=1_000_000, help="the largest batch, in bytes")
    parser.add_argument("--linger-ms", type=int, default=5, help="linger when throughput is measured")
    return Job(**vars(parser.parse_args()))


class Watch:
    """Wall clock and this process's own CPU time, of all its threads, while the ``with`` block runs."""

    seconds = 0.0
    cpu_seconds = 0.0

    def __enter__(self) -> Self:
        gc.collect()
        self._cpu, self._began = _cpu_seconds(), time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.perf_counter() - self._began
        self.cpu_seconds = _cpu_seconds() - self._cpu


def print_throughput(job: Job, watch: Watch, *, done: int, version: str) -> None:
    """Print a measurement of records per second; ``done`` is what the client counted itself."""
    if done != job.records:
        raise SystemExit(f"asked for {job.records} records, counted {done}")
    _print(watch, records=job.records, version=version)


def print_latency(watch: Watch, latencies: Sequence[float], *, version: str) -> None:
    """Print a measurement of single sends; ``latencies`` are in seconds, in any order."""
    ordered = sorted(latencies)
    quantiles = {
        name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e6
        for name, share in (("p50_us", 0.5), ("p99_us", 0.99))
    }
    _print(watch, records=len(ordered), version=version, **quantiles)


def _print(watch: Watch, **figures: float | str) -> None:
    max_rss_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = {"seconds": watch.seconds, "cpu_seconds": watch.cpu_seconds, "max_rss_kb": max_rss_kb, **figures}
    print(json.dumps(line), flush=True)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
