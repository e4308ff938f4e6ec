"""A client's cost per broker, in clusters of ever more of them: a curve that should be flat.

A cluster lives in virtual time, in this process; a topic has one partition on each of its brokers. The client opens all
connections with the first record to each, writes another to each, is idle for ten minutes, and reads everything.
The CPU is that of the client and of the simulated cluster together, divided by the number of brokers.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from aiokafkawire.producer.producer import Producer
from aiokafkawire.testing.simulation import Simulation, simulate
from benchmarks.arguments import positives
from benchmarks.machine import describe
from benchmarks.report import aligned, short

STEPS = ("the first record to each", "another to each", "ten idle minutes", "all read")
_IDLE = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.many_brokers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--brokers", type=positives, default=(10, 100, 300, 1_000), help="sizes of clusters (10,100,300,1000)"
    )
    sizes = parser.parse_args().brokers
    about = describe(sys.argv)
    print("\n".join(f"{name:<{max(map(len, about))}}  {text}" for name, text in about.items()), end="\n\n")
    table = [["brokers", *(f"{step}, ms of CPU a broker" for step in STEPS)]]
    for count in sizes:
        spent = measure(count)
        table.append([f"{count:,}", *(short(spent[step] * 1_000 / count) for step in STEPS)])
    print("\n".join(aligned(table)))


def measure(count: int) -> dict[str, float]:
    """Return the seconds of CPU for each step, with this many brokers."""
    spent: dict[str, float] = {}

    @contextmanager
    def step(name: str) -> Iterator[None]:
        began = time.process_time()
        yield
        spent[name] = time.process_time() - began

    async def run(sim: Simulation) -> None:
        sim.broker.create_topic("flights", partitions=count)
        async with sim.client("app") as kafka, kafka.producer() as producer:
            for name in STEPS[:2]:
                with step(name):
                    await _one_to_each(producer, count)
            with step(STEPS[2]):
                await anyio.sleep(_IDLE)
            with step(STEPS[3]):
                async with kafka.consumer("flights", auto_offset_reset="earliest") as consumer:
                    left = 2 * count
                    async for _ in consumer:
                        left -= 1
                        if not left:
                            break

    simulate(run, nodes=count)
    return spent


async def _one_to_each(producer: Producer[bytes, bytes], count: int) -> None:
    for partition in range(count):
        await producer.enqueue("flights", b"x", partition=partition)
    await producer.flush()


if __name__ == "__main__":
    main()
