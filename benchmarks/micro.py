"""The cost of single parts of aiokafkawire, without a network: messages, records, and the import.

Each timing is the best and the median of several repetitions. The best is the cost; a median far above it says that
the machine was busy.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import timeit
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import anyio
import pyarrow as pa

from aiokafkawire.config import ProducerConfig
from aiokafkawire.producer.accumulator import RecordAccumulator
from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from aiokafkawire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aiokafkawire.protocol.schema import Message
from aiokafkawire.records.batch import IMPLEMENTATION, BatchBuilder, Delivery, RecordBatch, RecordReader
from aiokafkawire.types import TopicPartition
from benchmarks.arrow_columns import Encoder, to_arrow
from benchmarks.codec.messages import metadata
from benchmarks.machine import describe
from benchmarks.report import aligned

TIMESTAMP = 1_700_000_000_000
TOPIC_ID = UUID(int=7)
BATCH_LIMIT = 1_000_000
WAITING = 200_000
ROWS = 100_000

IMPORT_LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|( +)(\S+)")


class Timing(NamedTuple):
    what: str
    per: str
    best: float
    median: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="repetitions of each timing (7)")
    parser.add_argument("--seconds", type=float, default=0.2, help="seconds for each repetition, about (0.2)")
    parser.add_argument("--value-size", type=int, default=100, help="bytes of a record's value (100)")
    options = parser.parse_args()
    about = describe(sys.argv) | {"records": f"{IMPLEMENTATION}, values of {options.value_size} bytes, no keys"}
    width = max(map(len, about))
    for name, text in about.items():
        print(f"{name:<{width}}  {text}")
    print(flush=True)
    table = [["", "best", "median", ""]]
    table += [
        [one.what, _short(one.best), _short(one.median), f"us per {one.per}"]
        for one in _timings(options.repeat, options.seconds, options.value_size)
    ]
    print("\n".join(aligned(table)), end="\n\n", flush=True)
    print("\n".join(aligned(_memory(options.value_size))), end="\n\n", flush=True)
    print("\n".join(aligned(_imports(options.repeat))))


def _timings(repeat: int, seconds: float, value_size: int) -> Iterator[Timing]:
    value = bytes(value_size)

    def timed(what: str, per: str, function: Callable[[], object], parts: int = 1) -> Timing:
        timer = timeit.Timer(function)
        once = min(timer.repeat(3, 1))
        number = max(1, int(seconds / max(once, 1e-9)))
        found = [total / number / parts * 1e6 for total in timer.repeat(repeat, number)]
        return Timing(what, per, min(found), statistics.median(found))

    for name, version, message in _messages(value):
        data = encode(message, version)
        cls = type(message)
        size = f"{len(data):,} B"
        yield timed(f"encode {name} v{version}, {size}", "message", partial(encode, message, version))
        yield timed(f"decode {name} v{version}, {size}", "message", partial(decode, cls, version, data))
    full = _full_batch(value)
    count, body = full.count, full.build()
    view = memoryview(body)
    yield timed(f"append records, {count:,} to a batch", "record", lambda: _full_batch(value), count)
    yield timed(f"build that batch, {len(body):,} B", "batch", full.build)
    yield timed("check its CRC32C", "batch", lambda: RecordBatch.parse(view).check())
    yield timed("step over its records", "record", lambda: _step(view), count)
    yield timed("read its records, key and value", "record", lambda: _touch(view), count)
    yield timed("turn it into an Arrow record batch", "record", lambda: to_arrow(_reader(view)), count)
    values = pa.array([value] * ROWS)
    keys = pa.array([b"%d" % number for number in range(ROWS)])
    encoder = Encoder(BATCH_LIMIT)
    shape = f"{ROWS:,} rows to built batches"
    yield timed(f"Arrow column, {shape}", "record", lambda: encoder.encode(values, None), ROWS)
    yield timed(f"Arrow columns with keys, {shape}", "record", lambda: encoder.encode(values, keys), ROWS)


def _full_batch(value: bytes) -> BatchBuilder:
    builder = BatchBuilder(limit=BATCH_LIMIT)
    append = builder.append
    while append(TIMESTAMP, None, value) >= 0:
        pass
    return builder


def _step(view: memoryview) -> None:
    for _ in _reader(view):
        pass


def _touch(view: memoryview) -> None:
    for record in _reader(view):
        _ = record.key, record.value


def _reader(view: memoryview) -> RecordReader[bytes, bytes]:
    return RecordBatch.parse(view).records("topic", 0, check_crcs=False)


def _messages(value: bytes) -> list[tuple[str, int, Message]]:
    batch = _full_batch(value).build()
    return [
        ("ProduceRequest, 4 batches", 13, _produce(batch, 4)),
        ("ProduceRequest, 1 record", 13, _produce(_one_record(value), 1)),
        ("FetchResponse, 4 batches", 18, _fetch(memoryview(batch), 4)),
        ("FetchResponse, 1,000 idle partitions", 18, _fetch(memoryview(b""), 1000)),
        ("MetadataResponse, 1 topic of 4", 13, metadata(1, 4)),
        ("MetadataResponse, 100 topics of 10", 13, metadata(100, 10)),
    ]


def _one_record(value: bytes) -> bytes:
    builder = BatchBuilder(limit=BATCH_LIMIT)
    builder.append(TIMESTAMP, None, value)
    return builder.build()


def _produce(batch: bytes, partitions: int) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=batch) for index in range(partitions)]
    return ProduceRequest(
        acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(topic_id=TOPIC_ID, partition_data=data)]
    )


def _fetch(records: memoryview, partitions: int) -> FetchResponse:
    data = [
        PartitionData(
            partition_index=index,
            error_code=0,
            high_watermark=1000,
            last_stable_offset=1000,
            log_start_offset=0,
            records=records,
        )
        for index in range(partitions)
    ]
    return FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=data)])


# --- memory --------------------------------------------------------------------------------------------------


def _memory(value_size: int) -> list[list[str]]:
    """Measure the memory of a record that waits in a producer, beyond its value; without its delivery, and with it."""
    table = [["memory, bytes per waiting record", "beyond its value", ""]]
    for keeps, told in ((False, "delivery not kept"), (True, "delivery kept")):
        for batch_size in (16_384, 1_000_000):
            gathered = RecordAccumulator(
                ProducerConfig(batch_size=batch_size, buffer_memory=2**31 - 1), anyio.Event, None
            )
            kept: list[Delivery] = []
            tracemalloc.start()
            for number in range(WAITING):
                place = TopicPartition("t", number % 4)
                batch, index = gathered.append(place, TIMESTAMP, None, bytes(value_size), (), 0.0)
                if keeps:
                    kept.append(Delivery(batch.result, index))
            used = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            table.append([f"batches of {batch_size:,} B", f"{used / WAITING - value_size:.1f}", told])
    return table


# --- imports -------------------------------------------------------------------------------------------------


def _imports(repeat: int) -> list[list[str]]:
    """Measure ``import aiokafkawire`` in a fresh Python, and the time of each module."""
    runs = sorted((_import_once() for _ in range(repeat)), key=lambda modules: modules["aiokafkawire"][1])
    best, median = runs[0], runs[len(runs) // 2]
    shown = best, median = runs[0], runs[len(runs) // 2]
    table = [["import, ms", "best", "median"]]
    table.append(["aiokafkawire, all told", *(_ms(run["aiokafkawire"][1]) for run in shown)])
    packages = ("aiokafkawire", "anyio", "attr", "asyncio")
    table += [[f"  in modules of {package}", *(_ms(_own(run, package)) for run in shown)] for package in packages]
    rest = [run["aiokafkawire"][1] - sum(_own(run, package) for package in packages) for run in shown]
    table.append(["  in all others", *map(_ms, rest)])
    heaviest = sorted(best, key=lambda name: -best[name][0])[:8]
    table += [[f"  of it, {name} itself", _ms(best[name][0]), _ms(median[name][0])] for name in heaviest]
    return table


def _import_once() -> dict[str, tuple[int, int]]:
    """Return each module's own and cumulative microseconds, for the modules that the import loaded."""
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import aiokafkawire"],
        check=True,
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    found: dict[str, tuple[int, int]] = {}
    for own, all_told, indent, name in IMPORT_LINE.findall(done.stderr):
        # A module's line comes after those that it imported; the start of Python itself ends with `site`.
        if indent == " " and name != "aiokafkawire":
            found.clear()
        else:
            found[name] = int(own), int(all_told)
    return found


def _own(modules: dict[str, tuple[int, int]], package: str) -> int:
    return sum(own for name, (own, _) in modules.items() if name.partition(".")[0] == package)


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1000:.1f}"


def _short(microseconds: float) -> str:
    return f"{microseconds:.3g}" if microseconds < 1000 else f"{microseconds:,.0f}"


if __name__ == "__main__":
    main()
