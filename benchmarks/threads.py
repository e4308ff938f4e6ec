"""Consumers in threads: the records per second of one thread and of several, each with an event loop and a client.

Each thread reads a partition of its own, and decodes every value as JSON. A CPython with a GIL shows what threads cost
there; a free-threaded one (3.13t, 3.14t) whether they scale. Medians of the rounds, with their ranges.
"""

import argparse
import contextlib
import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import anyio

from aiokafkawire import Client, TopicPartition
from benchmarks.arguments import positive, positives
from benchmarks.cluster import create_topics, delete_topics, kafka
from benchmarks.machine import describe
from benchmarks.report import aligned

TOPIC = "benchmark-threads"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.threads",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--threads", type=positives, default=(1, 2, 4), help="numbers of threads (1,2,4)")
    parser.add_argument("--records", type=positive, default=200_000, help="records of each thread (200000)")
    parser.add_argument("--rounds", type=positive, default=5, help="measurements of each number (5)")
    parser.add_argument("--bootstrap", help="a running Kafka; by default Apache Kafka is booted")
    options = parser.parse_args()
    about = describe(sys.argv) | {"GIL": "on" if has_gil() else "off"}
    print("\n".join(f"{name:<{max(map(len, about))}}  {text}" for name, text in about.items()), end="\n\n")
    with contextlib.ExitStack() as stack:
        bootstrap = options.bootstrap or stack.enter_context(kafka()).bootstrap
        partitions = max(options.threads)
        create_topics(bootstrap, [TOPIC], partitions)
        stack.callback(delete_topics, bootstrap, [TOPIC])
        anyio.run(_fill, bootstrap, partitions, options.records)
        rates: dict[int, list[float]] = {count: [] for count in options.threads}
        for round_ in range(options.rounds + 1):  # the first warms the broker
            for count in options.threads:
                rate = measure(bootstrap, count, options.records)
                if round_:
                    rates[count].append(rate)
    one = statistics.median(rates[options.threads[0]])
    table = [["threads", "records/s", "range", f"times {options.threads[0]}"]]
    for count, found in rates.items():
        median = statistics.median(found)
        table.append([f"{count}", f"{median:,.0f}", f"{min(found):,.0f}-{max(found):,.0f}", f"{median / one:.2f}"])
    print("\n".join(aligned(table)))


def has_gil() -> bool:
    """Return whether threads of this interpreter take turns."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()


async def _fill(bootstrap: str, partitions: int, count: int) -> None:
    values = [json.dumps({"carrier": "UA", "flight": index, "delay": index % 60}).encode() for index in range(count)]
    async with Client(bootstrap) as client, client.producer(batch_size=1 << 17) as producer:
        for partition in range(partitions):
            await producer.enqueue_many(TOPIC, values, partition=partition)
        await producer.flush()


def measure(bootstrap: str, threads: int, count: int) -> float:
    """Return the records per second of all threads together."""
    starts: list[float] = []
    start = Barrier(threads, action=lambda: starts.append(time.perf_counter()))

    async def read(partition: int) -> None:
        async with (
            Client(bootstrap) as client,
            client.consumer(auto_offset_reset="earliest", value_deserializer=json.loads) as consumer,
        ):
            consumer.assign([TopicPartition(TOPIC, partition)])
            left = count
            async for record in consumer:
                if left == count:
                    start.wait()  # when all are connected
                assert record.value == {"carrier": "UA", "flight": count - left, "delay": (count - left) % 60}
                left -= 1
                if not left:
                    return

    with ThreadPoolExecutor(threads) as pool:
        for call in [pool.submit(anyio.run, read, partition) for partition in range(threads)]:
            call.result()
    return threads * count / (time.perf_counter() - starts[0])


if __name__ == "__main__":
    main()
