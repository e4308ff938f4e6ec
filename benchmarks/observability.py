"""The CPU time that metrics add to each record of 100 B, produced and consumed, and the memory that they take.

Ways of observing take turns on one client after another, in one process: each round has all of them, in another order.
A way's share of more CPU time is its time over that of a client without observers, in the same round.
"""

import argparse
import gc
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

import anyio
from opentelemetry.metrics import MeterProvider, NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider as SDKMeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from aiokafkawire import Client, TopicPartition
from aiokafkawire.metrics.measurements import Measurements
from aiokafkawire.observe import BatchEnded, FetchEnded
from aiokafkawire.opentelemetry import instrument
from benchmarks.arguments import positive, positives
from benchmarks.cluster import create_topics, delete_topics, kafka
from benchmarks.machine import describe
from benchmarks.progress import progress

Way = Callable[[Client], AbstractContextManager[object]]
"""Begins to observe a client that is open, until the context ends."""
NOTHING: Final = "nothing"
BATCH_SIZES: Final = (16_384, 1_000_000)
"""Kafka's default, and that of the other benchmarks."""

_VALUE: Final = b"x" * 100
_TOPIC: Final = "observability"
_TOPICS, _PARTITIONS = 1_000, 10


@contextmanager
def _metrics(client: Client) -> Iterator[None]:
    client.metrics()
    yield
    client.metrics()


@contextmanager
def _opentelemetry(client: Client, ratio: float, *, measures: bool) -> Iterator[None]:
    tracers = TracerProvider(sampler=ParentBased(TraceIdRatioBased(ratio)))
    tracers.add_span_processor(BatchSpanProcessor(_Discarded()))
    meters: MeterProvider = SDKMeterProvider([InMemoryMetricReader()]) if measures else NoOpMeterProvider()
    made = instrument(client, tracers, meters)
    yield
    made.uninstrument()
    tracers.shutdown()


class _Discarded(SpanExporter):
    """Exports nothing: a collector takes its time, not the client's."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


WAYS: Final[Mapping[str, Way]] = {
    NOTHING: lambda client: nullcontext(),
    "metrics": _metrics,
    "OpenTelemetry metrics": lambda client: _opentelemetry(client, 0.0, measures=True),
    "1 % sampled traces": lambda client: _opentelemetry(client, 0.01, measures=False),
}
"""The ways to observe, by name; the first is what the others are compared with."""


async def _produce(client: Client, records: int, batch_size: int) -> float:
    async with client.producer(batch_size=batch_size, linger_ms=5, acks=1) as producer:
        await producer.send(_TOPIC, _VALUE)
        gc.collect()
        began = time.process_time()
        for _ in range(records):
            await producer.enqueue(_TOPIC, _VALUE)
        await producer.flush()
        return time.process_time() - began


async def _consume(client: Client, records: int) -> float:
    async with client.consumer(_TOPIC, auto_offset_reset="earliest") as consumer:
        gc.collect()
        read, began = 0, time.process_time()
        async for _ in consumer:
            read += 1
            if read == records:
                break
        return time.process_time() - began


async def _round(
    bootstrap: str, way: Way, records: int, batch_size: int, create: Callable[[], None]
) -> tuple[float, float]:
    """Return the CPU time of each record produced and consumed, in µs."""
    await anyio.to_thread.run_sync(create)
    async with Client(bootstrap) as client:
        with way(client):
            produced = await _produce(client, records, batch_size)
            consumed = await _consume(client, records)
    return produced / records * 1e6, consumed / records * 1e6


def compare(bootstrap: str, records: int, rounds: int, batch_size: int, step: Callable[[str], None]) -> list[str]:
    """Return the rows of the table for one size of batches."""
    names = list(WAYS)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}

    def create() -> None:
        delete_topics(bootstrap, [_TOPIC])
        create_topics(bootstrap, [_TOPIC], 1)

    for number in range(rounds + 1):  # the first warms up
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            step(f"{name}, batches of {batch_size:,} B")
            times = anyio.run(_round, bootstrap, WAYS[name], records, batch_size, create)
            if number:
                found[name].append(times)
    return [
        f"| {batch_size:,} | {what} | {name} | {_row(found, name, at)} |"
        for at, what in enumerate(("produce", "consume"))
        for name in names
    ]


def _row(found: Mapping[str, Sequence[tuple[float, float]]], name: str, at: int) -> str:
    times = [both[at] for both in found[name]]
    shown = f"{statistics.median(times):.3f} ({min(times):.3f} to {max(times):.3f})"
    if name == NOTHING:
        return f"{shown} |"
    shares = [time / before[at] * 100 - 100 for time, before in zip(times, found[NOTHING], strict=True)]
    return f"{shown} | {statistics.median(shares):+.1f} % ({min(shares):+.1f} to {max(shares):+.1f})"


def memory(passes: int) -> list[int]:
    """Return the bytes that metrics hold after each pass over 1,000 topics with 10 partitions, 20 seconds apart."""
    measured, held = Measurements(), []
    names = [f"topic-{number}" for number in range(_TOPICS)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(passes):
            for name in names:
                for partition in range(_PARTITIONS):
                    measured.batch_ended(_batch(name, partition), number * 20.0)
                measured.fetch_ended(_fetch(name), number * 20.0)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
    return held


def _batch(topic: str, partition: int) -> BatchEnded:
    return BatchEnded(
        lane="produce-1",
        transactional_id=None,
        topic=topic,
        partition=partition,
        records=100,
        size=12_000,
        compressed_size=12_000,
        codec="none",
        seconds=0.01,
        queued_seconds=0.005,
        attempts=1,
        offset=0,
        error=None,
    )


def _fetch(topic: str) -> FetchEnded:
    return FetchEnded(
        broker="localhost:9092",
        node_id=1,
        lane="fetch-2",
        group=None,
        partitions=[TopicPartition(topic, number) for number in range(_PARTITIONS)],
        records=_PARTITIONS * 100,
        counts=[100] * _PARTITIONS,
        size=_PARTITIONS * 12_000,
        sizes=[12_000] * _PARTITIONS,
        seconds=0.1,
    )


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.observability",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bootstrap", help="the address of a Kafka that runs; by default one is booted")
    parser.add_argument("--rounds", type=positive, default=9)
    parser.add_argument("--records", type=positive, default=200_000)
    parser.add_argument("--batch-sizes", type=positives, default=BATCH_SIZES, help="in bytes (16384,1000000)")
    options = parser.parse_args()
    rows: list[str] = []
    steps = len(options.batch_sizes) * (options.rounds + 1) * len(WAYS)
    with kafka() if options.bootstrap is None else nullcontext() as booted, progress(steps) as step:
        bootstrap = options.bootstrap or booted.bootstrap  # type: ignore[union-attr]
        for batch_size in options.batch_sizes:
            rows += compare(bootstrap, options.records, options.rounds, batch_size, step)
    about = describe(sys.argv)
    print("\n".join(f"{name:<{max(map(len, about))}}  {text}" for name, text in about.items()), end="\n\n")
    print(f"{options.records:,} records of {len(_VALUE)} B, linger 5 ms, acks=1, {options.rounds} rounds; CPU time\n")
    print("| batches up to, B | | observed by | µs a record: median (range) | more than nothing: median (range) |")
    print("|---:|---|---|---|---|")
    print("\n".join(rows))
    held = memory(8)
    sizes = ", ".join(f"{each / 1e6:.2f}" for each in held)
    print(f"\nMB held after each pass over {_TOPICS:,} topics, {_TOPICS * _PARTITIONS:,} partitions: {sizes}")


if __name__ == "__main__":
    main()
