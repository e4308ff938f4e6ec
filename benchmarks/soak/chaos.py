"""A real cluster whose brokers are killed in turn, with every protocol in use: minutes or hours of it.

An idempotent producer, a transform in transactions, a reader of its committed copies, groups of two members by the
classic and by the consumer protocol, `process`, and a share group, all with metrics. It prints the resident memory, the
tasks and the open files, and verdicts: whether anything is lost, doubled or out of order, and whether the figures stay
flat.
"""

import argparse
import gc
import os
import random
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from typing import Final

import anyio
from support.everything import Everything, until
from support.kafka_cluster import KafkaCluster

from benchmarks.arguments import positive
from benchmarks.clients.measurement import resident_mb
from benchmarks.machine import describe
from benchmarks.soak.judge import LIMITS, Sample, growth, table

_EVERY: Final = 20.0
"""Seconds between two samples."""
_STUCK: Final = 60.0
"""After so many seconds a part without a record is told."""
_PATIENCE: Final = 180.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak.chaos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=positive, default=60, help="how long brokers are killed (60)")
    parser.add_argument("--seed", type=int, default=1, help="of the times and the brokers (1)")
    options = parser.parse_args()
    about = describe(sys.argv)
    print("\n".join(f"{name:<{max(map(len, about))}}  {text}" for name, text in about.items()), end="\n\n")
    with KafkaCluster(controllers=3) as cluster:
        load = Everything(cluster.bootstrap, pause=0.02)
        samples, kills = anyio.run(soak, cluster, load, options.minutes * 60.0, random.Random(options.seed))
    print("\n".join(table(samples)), end="\n\n")
    found = verdicts(samples, load)
    print(f"{kills} kills, {load.written:,} records acknowledged")
    for name, (fine, told) in found.items():
        print(f"{name:<10} {'ok' if fine else 'FAILED':<6} {told}")
    return 0 if all(fine for fine, _ in found.values()) else 1


async def soak(
    cluster: KafkaCluster, load: Everything, seconds: float, chance: random.Random
) -> tuple[list[Sample], int]:
    """Run everything while brokers are killed; return samples of the process, and how many brokers were killed."""
    await load.create_topics()
    samples: list[Sample] = []
    kills, began = 0, time.monotonic()
    async with anyio.create_task_group() as tasks:
        for part in (load.write, load.transform, load.follow_copies):
            tasks.start_soon(part)
        for _ in range(2):
            tasks.start_soon(load.read_in_group, "classic", "classic")
            tasks.start_soon(load.read_in_group, "consumer", "consumer")
        tasks.start_soon(load.process, "process")
        tasks.start_soon(load.share, "shared")
        await until(lambda: "shared" in load.seen and load.seen["shared"].count > 0, _PATIENCE)
        first = load.first_seen("shared")
        async with anyio.create_task_group() as sampling:
            sampling.start_soon(_sample_on, samples, began, load)
            for name in load.seen:
                sampling.start_soon(_tell_when_stuck, name, load)
            while time.monotonic() < began + seconds:
                await anyio.sleep(chance.uniform(5, 20))
                node = chance.choice((1, 2, 3))
                await anyio.to_thread.run_sync(cluster.kill, node)
                kills += 1
                await anyio.sleep(chance.uniform(0, 10))
                await anyio.to_thread.run_sync(cluster.restart, node)
                await anyio.to_thread.run_sync(cluster.wait_whole)
                if sys.stderr.isatty():
                    print(f"\r{(time.monotonic() - began) / 60:.0f} min, {kills} kills", end="", file=sys.stderr)
            sampling.cancel_scope.cancel()
        load.enough = True
        with suppress(TimeoutError):  # the verdict has what is missing
            for name in load.seen:
                await load.wait_until_all_is_seen(name, first if name == "shared" else 0, _PATIENCE)
        tasks.cancel_scope.cancel()
    return samples, kills


async def _sample_on(samples: list[Sample], began: float, load: Everything) -> None:
    while True:
        await anyio.sleep(_EVERY)
        gc.collect()
        counts = len(anyio.get_running_tasks()), len(os.listdir("/proc/self/fd"))
        samples.append(Sample(time.monotonic() - began, 0, 0, load.written, resident_mb(), *counts))


async def _tell_when_stuck(name: str, load: Everything) -> None:
    """Print what a part's consumer says of itself whenever the part has seen nothing for long while others write."""
    seen = load.seen[name]
    while True:
        before = seen.count, load.written
        await anyio.sleep(_STUCK)
        if seen.count == before[0] and load.written > before[1]:
            health = load.healths[name]() if name in load.healths else "it has no health"
            print(f"{name} has seen nothing for {_STUCK:.0f} s: {health}", file=sys.stderr, flush=True)


def verdicts(samples: list[Sample], load: Everything) -> dict[str, tuple[bool, str]]:
    """Return whether each part and each figure is as it should be, and how that is said."""
    found = {}
    for part, seen in load.seen.items():
        lost = seen.missing(load.first_seen(part) if part == "shared" else 0, load.written)
        once = part != "copies" or not seen.repeated
        told = f"{seen.count:,} seen, {lost} lost, {seen.repeated} again, {seen.disordered} out of order"
        found[part] = not lost and not seen.disordered and once, told
    for name, limit in LIMITS.items():
        grown = growth([asdict(sample)[name] for sample in samples])
        found[name] = grown <= limit, f"{grown:+.1f} from the second fifth to the last, at most {limit:+.1f} is flat"
    return found


if __name__ == "__main__":
    sys.exit(main())
