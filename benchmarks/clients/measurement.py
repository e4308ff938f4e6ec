"""Code of all measured clients, so that they are measured alike: the job, the clock, and the line at the end."""

import gc
import json
import os
import random
import resource
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

_POOL = 1_000
"""Different values, where they are text."""
_SAMPLES = 200


@dataclass(frozen=True)
class Job:
    """One measurement. Its fields are the settings that cases have."""

    bootstrap: str = ""
    topic: str = ""
    way: str = ""
    loop: str = "asyncio"
    records: int = 200_000
    """Records, or sends."""
    topics: int = 1
    partitions: int = 4
    """Of each topic."""
    value_size: int = 100
    """Bytes; there are no keys."""
    content: Literal["same", "text"] = "same"
    """All values the same, or a thousand different ones that compress as JSON does."""
    compression: str = "none"
    batch_size: int = 1_000_000
    linger_ms: int = 5
    in_flight: int = 5
    senders: int = 100
    """Where many send at once."""
    consumers: int = 1
    """In one process; each has its share of the partitions."""
    group: Literal["none", "classic", "consumer"] = "none"
    """The protocol of a group whose only member is the consumer, with auto-commit; "none" for assigned partitions."""
    check_crcs: str = ""
    """Whether consumers check the batches' checksums, "true" or "false"; by default each client does what it does."""
    max_poll_records: int = 500
    """How many records one fetch of a share consumer requests, and one poll returns at the most."""
    tls: bool = False
    ca_file: str = ""
    samples: bool = False
    """Whether the memory is looked at all the while."""

    @property
    def names(self) -> list[str]:
        """The topics."""
        return [self.topic] if self.topics == 1 else [f"{self.topic}-{index}" for index in range(self.topics)]

    @property
    def places(self) -> list[tuple[str, int]]:
        """Every topic and partition."""
        return [(name, index) for index in range(self.partitions) for name in self.names]

    @property
    def value(self) -> bytes:
        """One value."""
        return next(self.values())

    def values(self) -> Iterator[bytes]:
        """Yield values without end, each of ``value_size`` bytes."""
        if self.content == "same":
            return cycle([bytes(index % 251 for index in range(self.value_size))])
        chance = random.Random(self.value_size)
        return cycle([_text(chance, self.value_size) for _ in range(_POOL)])

    def work(self) -> Iterator[tuple[str, bytes]]:
        """Yield topic and value of each record to send."""
        return islice(zip(cycle(self.names), self.values(), strict=False), self.records)

    def filling(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield topic, partition and value of each record for the consumers, evenly spread."""
        each = zip(cycle(self.places), self.values(), strict=False)
        return islice(((name, index, value) for (name, index), value in each), self.records)

    def shares(self) -> list[tuple[list[tuple[str, int]], int]]:
        """Return each consumer's partitions, and the number of records that `filling` has written to them."""
        places = self.places
        least, more = divmod(self.records, len(places))
        counts = [least + (number < more) for number in range(len(places))]
        numbers = [range(first, len(places), self.consumers) for first in range(self.consumers)]
        return [([places[one] for one in own], sum(counts[one] for one in own)) for own in numbers]

    def turns(self) -> list[int]:
        """Return the number of records of each concurrent sender."""
        least, more = divmod(self.records, self.senders)
        return [least + (number < more) for number in range(self.senders)]

    @property
    def group_id(self) -> str:
        """A group that no other measurement has."""
        return f"{self.topic}-{os.getpid()}"

    def as_argument(self) -> str:
        """Return the one argument of a client's command line."""
        return json.dumps(asdict(self))


def read_job() -> Job:
    """Return the command line's job."""
    return Job(**json.loads(sys.argv[1]))


class Watch:
    """Wall clock and this process's own CPU time, of all its threads, while the ``with`` block runs.

    With ``job.samples`` a thread notes the memory too: then the times are not to be compared.
    """

    seconds = 0.0
    cpu_seconds = 0.0

    def __init__(self, job: Job) -> None:
        self.memory: list[float] = []
        """MB, at equal times."""
        self._over = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True) if job.samples else None

    def __enter__(self) -> Self:
        gc.collect()
        if self._sampler is not None:
            self._sampler.start()
        self._cpu, self._began = cpu_seconds(), time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.perf_counter() - self._began
        self.cpu_seconds = cpu_seconds() - self._cpu
        if self._sampler is not None:
            self._over.set()
            self._sampler.join()

    def _sample(self) -> None:
        over = False
        while not over:
            over = self._over.wait(0.02)
            self.memory.append(resident_mb())


def print_throughput(job: Job, watch: Watch, *, done: int, version: str) -> None:
    """Print a measurement of records per second; ``done`` is what the client counted itself."""
    if done != job.records:
        raise SystemExit(f"asked for {job.records} records, counted {done}")
    samples = {"memory_mb": thinned(watch.memory, _SAMPLES)} if job.samples else {}
    print_figures(watch, records=job.records, version=version, **samples)


def print_share(job: Job, watch: Watch, *, first: int, done: int, version: str) -> None:
    """Print a measurement of a share consumer, whose clock begins when the ``first`` records are there."""
    if done != job.records:
        raise SystemExit(f"asked for {job.records} records, counted {done}")
    print_figures(watch, records=done - first, version=version)


def print_latency(watch: Watch, latencies: Sequence[float], *, version: str) -> None:
    """Print a measurement of single sends; ``latencies`` are in seconds, in any order."""
    ordered = sorted(latencies)
    quantiles = {
        name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e6
        for name, share in (("p50_us", 0.5), ("p99_us", 0.99))
    }
    print_figures(watch, records=len(ordered), version=version, **quantiles)


def print_figures(watch: Watch, **figures: object) -> None:
    """Print what was measured, as the line that ends a client's output."""
    line = {"seconds": watch.seconds, "cpu_seconds": watch.cpu_seconds, "max_rss_kb": _most_resident_kb(), **figures}
    print(json.dumps(line), flush=True)


def thinned(values: Sequence[float], most: int) -> list[float]:
    """Return this many items at equal distances, the last item included."""
    step = max(1, -(-len(values) // most))
    return list(values[::-1][::step][::-1])


def cpu_seconds() -> float:
    """Return the CPU time of this process, in all its threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _most_resident_kb() -> int:
    # On Linux ru_maxrss begins with what the process had that started this one.
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def resident_mb() -> float:
    """Return the resident memory of this process."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # no Linux: the largest so far
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / 2**20


def _text(chance: random.Random, size: int) -> bytes:
    """Yield lines of JSON as an application would send them, cut to the size."""
    text = ""
    while len(text) < size:
        user, cents = chance.randrange(10**6), chance.randrange(10**5)
        place = chance.choice(("Lisbon", "Osaka", "Nairobi", "Montreal", "Hamburg", "Quito"))
        text += f'{{"user": {user}, "cents": {cents}, "place": "{place}", "paid": {str(cents % 3 == 0).lower()}}}\n'
    return text[:size].encode()
