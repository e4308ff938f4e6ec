"""The CPU time that metrics add to each record of 100 B, produced and consumed, and the memory that they take.

Clients with different ways of observing take short turns in one process, so that all of them meet the same conditions.
A way's share of more CPU time is its time over that of the client without observers, in the same turn.
"""

import argparse
import gc
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, nullcontext
from typing import Any, Final

import anyio
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider as SDKMeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace import TracerProvider as SDKTracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import NoOpTracerProvider

from aiokafkawire import Client, Producer, TopicPartition
from aiokafkawire.metrics.measurements import Measurements
from aiokafkawire.notes import BatchNote
from aiokafkawire.observe import FetchEnded
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
_TURN: Final = 10_000
"""The records that are produced in one turn."""
_READ: Final = 100_000
"""The records that are consumed in one turn."""
_Turns = list[list[float]]


@contextmanager
def _metrics(client: Client) -> Iterator[None]:
    client.metrics()
    yield
    client.metrics()


@contextmanager
def _meters(client: Client) -> Iterator[None]:
    made = instrument(client, NoOpTracerProvider(), SDKMeterProvider([InMemoryMetricReader()]))
    yield
    made.uninstrument()


@contextmanager
def _traces(client: Client, ratio: float) -> Iterator[None]:
    tracers = SDKTracerProvider(sampler=ParentBased(TraceIdRatioBased(ratio)))
    tracers.add_span_processor(BatchSpanProcessor(_Discarded()))
    made = instrument(client, tracers, NoOpMeterProvider())
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
    "OpenTelemetry metrics": _meters,
    "1 % sampled traces": lambda client: _traces(client, 0.01),
}
"""The ways to observe, by name; the first is what the others are compared with."""


async def _produce(producer: Producer[Any, Any]) -> float:
    began = time.process_time()
    for _ in range(_TURN):
        await producer.enqueue(_TOPIC, _VALUE)
    await producer.flush()
    return time.process_time() - began


async def _consume(client: Client) -> float:
    async with client.consumer(_TOPIC, auto_offset_reset="earliest") as consumer:
        await anext(consumer)
        read, began = 1, time.process_time()
        async for _ in consumer:
            read += 1
            if read == _READ:
                break
        return time.process_time() - began


async def _round(bootstrap: str, turns: int, batch_size: int, create: Callable[[], None]) -> tuple[_Turns, _Turns]:
    """Return the CPU times of each record produced and consumed, in µs: for each turn, those of each way."""
    await anyio.to_thread.run_sync(create)
    produced: _Turns = []
    consumed: _Turns = []
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(bootstrap)) for _ in WAYS]
        for client, way in zip(clients, WAYS.values(), strict=True):
            stack.enter_context(way(client))
        producers = [
            await stack.enter_async_context(client.producer(batch_size=batch_size, linger_ms=5, acks=1))
            for client in clients
        ]
        for producer in producers:
            await _produce(producer)  # warms up
        gc.collect()
        for number in range(turns):
            times = {at: await _produce(producers[at]) for at in _order(number)}
            produced.append([times[at] / _TURN * 1e6 for at in range(len(WAYS))])
        for number in range(max(2, turns // 6 * 2)):  # an even number, so that each way is first equally often
            times = {at: await _consume(clients[at]) for at in _order(number)}
            consumed.append([times[at] / _READ * 1e6 for at in range(len(WAYS))])
    return produced, consumed


def _order(number: int) -> list[int]:
    """Return the order of the ways in one turn: forth and back, so that each way is first equally often."""
    order = list(range(len(WAYS)))
    return order if number % 2 else order[::-1]


def compare(bootstrap: str, turns: int, rounds: int, batch_size: int, step: Callable[[str], None]) -> list[str]:
    """Return the rows of the table for one size of batches."""

    def create() -> None:
        delete_topics(bootstrap, [_TOPIC])
        create_topics(bootstrap, [_TOPIC], 1)

    found = []
    for _ in range(rounds):
        step(f"batches of {batch_size:,} B")
        found.append(anyio.run(_round, bootstrap, turns, batch_size, create))
    return [
        f"| {batch_size:,} | {what} | {name} | {_row([each[which] for each in found], at)} |"
        for which, what in enumerate(("produce", "consume"))
        for at, name in enumerate(WAYS)
    ]


def _row(rounds: Sequence[_Turns], at: int) -> str:
    shown = _median([[times[at] for times in turns] for turns in rounds], ".3f")
    if not at:
        return f"{shown} |"
    return f"{shown} | {_median([[times[at] / times[0] * 100 - 100 for times in turns] for turns in rounds], '+.1f')}"


def _median(rounds: Sequence[Sequence[float]], form: str) -> str:
    """Return the median of all turns, and the range of the medians of the rounds."""
    all_of_them, medians = [one for turns in rounds for one in turns], [statistics.median(turns) for turns in rounds]
    return f"{statistics.median(all_of_them):{form}} ({min(medians):{form}} to {max(medians):{form}})"


def memory(passes: int) -> list[int]:
    """Return the bytes that metrics hold after each pass over 1,000 topics with 10 partitions, 20 seconds apart."""
    measured, held = Measurements(), []
    names = [f"topic-{number}" for number in range(_TOPICS)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(passes):
            for name in names:
                measured.batches_ended([_batch(name, number * 20.0)] * _PARTITIONS)
                measured.fetch_ended(_fetch(name), number * 20.0)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
    return held


def _batch(topic: str, now: float) -> BatchNote:
    return topic, 100, 12_000, 12_000, 1, now - 0.01, now - 0.005, False, now


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
    parser.add_argument("--turns", type=positive, default=100, help=f"of {_TURN:,} records, in each round (100)")
    parser.add_argument("--batch-sizes", type=positives, default=BATCH_SIZES, help="in bytes (16384,1000000)")
    options = parser.parse_args()
    rows: list[str] = []
    steps = len(options.batch_sizes) * options.rounds
    with kafka() if options.bootstrap is None else nullcontext() as booted, progress(steps) as step:
        bootstrap = options.bootstrap or booted.bootstrap  # type: ignore[union-attr]
        for batch_size in options.batch_sizes:
            rows += compare(bootstrap, options.turns, options.rounds, batch_size, step)
    about = describe(sys.argv)
    print("\n".join(f"{name:<{max(map(len, about))}}  {text}" for name, text in about.items()), end="\n\n")
    print(f"{options.rounds} rounds of {options.turns} turns of {_TURN:,} records of {len(_VALUE)} B; CPU time")
    print("linger 5 ms, acks=1; the median of all turns, and the range of the medians of the rounds\n")
    print("| batches up to, B | | observed by | µs a record | more than nothing, % |")
    print("|---:|---|---|---|---|")
    print("\n".join(rows))
    held = memory(8)
    sizes = ", ".join(f"{each / 1e6:.2f}" for each in held)
    print(f"\nMB held after each pass over {_TOPICS:,} topics, {_TOPICS * _PARTITIONS:,} partitions: {sizes}")


if __name__ == "__main__":
    main()
