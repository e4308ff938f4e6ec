"""The rate and the CPU time of handlers: process() beside FastStream, kstreams and Parallel Consumer (Java).

FastStream and kstreams, which use aiokafka, run on aiokafkawire.aiokafka too.

Every measurement is a new process that is the only member of a new group, and handles records of the same topic, by
turns, every other round backwards. The clock runs from the first handled record to the last.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import anyio

from aiokafkawire import Client
from benchmarks.aiokafka_api.program import command_on
from benchmarks.arguments import names_of, positive
from benchmarks.cluster import create_topics, delete_topics, kafka
from benchmarks.contenders import DROP_IN
from benchmarks.java import missing_java
from benchmarks.machine import ROOT, describe, has_module, version_of
from benchmarks.processing.job import Job
from benchmarks.processing.parallel_consumer import PARALLEL_CONSUMER, VERSION, arguments, parallel_consumer
from benchmarks.progress import progress
from benchmarks.report import aligned

EPILOG = """\
examples, each after `python -m benchmarks.processing`:
                          both handlers, all clients, five rounds
  --tasks wait            the handler that waits for 10 ms: the rate beside the ideal
  --tasks nothing --clients process,faststream-aiokafka,faststream-confluent
                          the handler that does nothing: the CPU time of each record
  --tasks nothing --clients kstreams-aiokafkawire.aiokafka,kstreams-aiokafka
                          one framework on both packages: the first divided by the second
  --rounds 1 --records 20000 --seconds 1   a trial

It needs `pip install 'faststream[kafka,confluent]' kstreams`, Java 17 and Maven for Parallel Consumer. What is repeated
after kill -9 is measured by `python -m benchmarks.process_faults --ways process,parallel-consumer`.
"""
OURS = ("process", "process-uvloop", "process-trio")
FASTSTREAM = {
    f"faststream-{DROP_IN}": DROP_IN,
    "faststream-aiokafka": "aiokafka",
    "faststream-confluent": "confluent",
}
KSTREAMS = {f"kstreams-{DROP_IN}": DROP_IN, "kstreams-aiokafka": "aiokafka"}
FRAMEWORKS = FASTSTREAM | KSTREAMS
"""Each with the client that it uses."""
CLIENTS = (*OURS, *FRAMEWORKS, PARALLEL_CONSUMER)
TASKS = ("nothing", "wait")
_LOOPS = {"process-uvloop": "uvloop", "process-trio": "trio"}
_DEFAULT = ("process", "process-uvloop", *FRAMEWORKS, PARALLEL_CONSUMER)
_SLOWER = 10
"""FastStream handles a tenth of the records of the handler that does nothing, to take about as long."""
_VALUE = b"x" * 100
_TOPIC = "processing"
_TIMEOUT = 600.0


class Figures(NamedTuple):
    """One measurement."""

    rate: float
    """Records per second."""
    cpu: float
    """Microseconds of CPU time per record, in all threads of the client's process."""
    version: str


def main() -> None:
    options = _options()
    rows = []
    steps = options.rounds * len(options.tasks) * len(options.clients)
    with (
        kafka() if options.bootstrap is None else nullcontext() as booted,
        tempfile.TemporaryDirectory() as folder,
        progress(steps) as step,
    ):
        bootstrap = options.bootstrap or booted.bootstrap  # type: ignore[union-attr]
        java = parallel_consumer(Path(folder)) if PARALLEL_CONSUMER in options.clients else []
        most = max(_records(options, task, "process") for task in options.tasks)
        create_topics(bootstrap, [_TOPIC], options.partitions)
        try:
            anyio.run(_fill, bootstrap, most, options.keys)
            for task in options.tasks:
                found: dict[str, list[Figures]] = {client: [] for client in options.clients}
                for number in range(options.rounds):
                    for client in options.clients if number % 2 == 0 else reversed(options.clients):
                        step(f"{task}, round {number + 1}: {client}")
                        found[client].append(_measure(bootstrap, options, task, client, java))
                rows.append((task, found))
        finally:
            delete_topics(bootstrap, [_TOPIC])
    print(render(describe(sys.argv) | _settings(options), options, rows))


def render(
    about: Mapping[str, str],
    options: argparse.Namespace,
    tables: Sequence[tuple[str, Mapping[str, Sequence[Figures]]]],
) -> str:
    """Return the run as text: medians, with least and most; ratios are of the first client's figures in each round."""
    width = max(map(len, about))
    lines = [f"{name:<{width}}  {text}" for name, text in about.items()]
    for task, found in tables:
        ideal = options.concurrency / options.handler_ms * 1000 if task == "wait" else None
        head = ["", "records", "records/s", "of the ideal", "CPU us/record", "rate ratio", "CPU ratio", "version"]
        table = [head]
        first = next(iter(found.values()))
        for client, runs in found.items():
            rates, cpus = [one.rate for one in runs], [one.cpu for one in runs]
            share = "-" if ideal is None else f"{statistics.median(rates) / ideal:.1%}"
            ratios = ["1", "1"]
            if runs is not first:
                ratios = [
                    _spread([mine.rate / one.rate for mine, one in zip(first, runs, strict=True)], 2),
                    _spread([one.cpu / mine.cpu for mine, one in zip(first, runs, strict=True)], 2),
                ]
            count = f"{_records(options, task, client):,}"
            table.append([client, count, _spread(rates, 0), share, _spread(cpus, 1), *ratios, runs[0].version])
        what = (
            f"a handler that waits for {options.handler_ms:g} ms" if task == "wait" else "a handler that does nothing"
        )
        lines += ["", what, *aligned(table)]
    return "\n".join(lines)


def _measure(bootstrap: str, options: argparse.Namespace, task: str, client: str, java: list[str]) -> Figures:
    """Run one client.

    :raises SystemExit: it failed.
    """
    records, handler_ms = _records(options, task, client), options.handler_ms if task == "wait" else 0.0
    group = f"{_TOPIC}-{token_hex(4)}"
    if client == PARALLEL_CONSUMER:
        given = arguments(
            bootstrap, _TOPIC, group, records=records, handler_ms=handler_ms, concurrency=options.concurrency
        )
        command = [*java, *given]
    else:
        way, loop = FRAMEWORKS.get(client, ""), _LOOPS.get(client, "asyncio")
        job = Job(bootstrap, _TOPIC, group, way, loop, records, handler_ms, options.concurrency)
        module = f"{client.partition('-')[0]}_peer" if way else "ours"
        command = [*command_on(way, f"benchmarks.processing.{module}"), job.as_argument()]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(f"{client} ended with {done.returncode}:\n{done.stderr[-3_000:]}")
    line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    version = f"{VERSION}, {line['version']}" if client == PARALLEL_CONSUMER else line["version"]
    return Figures(line["records"] / line["seconds"], line["cpu_seconds"] / line["records"] * 1e6, version)


def _records(options: argparse.Namespace, task: str, client: str) -> int:
    if task == "wait":
        at_once = 1 if client in KSTREAMS else options.concurrency
        return int(options.seconds * at_once / options.handler_ms * 1000)
    records: int = options.records
    return records // _SLOWER if client in FASTSTREAM else records


async def _fill(bootstrap: str, records: int, keys: int) -> None:
    """Write the records, with keys in turn, and see that all are acknowledged."""
    async with Client(bootstrap) as client, client.producer(linger_ms=5) as producer:
        await producer.send_many(_TOPIC, [_VALUE] * records, keys=[b"%d" % (at % keys) for at in range(records)])


def _spread(values: Sequence[float], digits: int) -> str:
    middle = f"{statistics.median(values):,.{digits}f}"
    return middle if len(values) == 1 else f"{middle} [{min(values):,.{digits}f}-{max(values):,.{digits}f}]"


def _settings(options: argparse.Namespace) -> dict[str, str]:
    return {
        "records": f"values of {len(_VALUE)} B, {options.keys:,} keys, {options.partitions} partitions",
        "clients": f"concurrency {options.concurrency}; process and Parallel Consumer in the order of keys; FastStream "
        f"{version_of('faststream') or 'is not installed'}, which commits before it handles, and without order where a "
        "handler waits; kstreams handles one record at a time",
        "ratios": f"of {options.clients[0]}, by round: its rate over theirs, their CPU time over its own",
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.processing",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bootstrap", help="the address of a Kafka that runs; by default one is booted")
    parser.add_argument("--tasks", type=names_of(TASKS), default=TASKS, help=f"some of {','.join(TASKS)}")
    parser.add_argument(
        "--clients", type=names_of(CLIENTS), default=_DEFAULT, help=f"some of {','.join(CLIENTS)} (all but trio)"
    )
    parser.add_argument("--rounds", type=positive, default=5, help="measurements of each client (5)")
    parser.add_argument("--records", type=positive, default=300_000, help="for the handler that does nothing (300000)")
    parser.add_argument("--seconds", type=float, default=8.0, help="of the handler that waits, ideally (8)")
    parser.add_argument("--handler-ms", type=float, default=10.0, help="how long a call of that handler waits (10)")
    parser.add_argument("--concurrency", type=positive, default=64, help="calls of the handler at once (64)")
    parser.add_argument("--partitions", type=positive, default=4, help="of the topic (4)")
    parser.add_argument("--keys", type=positive, default=1_000, help="different keys, in turns (1000)")
    options = parser.parse_args()
    if not has_module("faststream") and any(client in FASTSTREAM for client in options.clients):
        parser.error("FastStream is not installed: pip install 'faststream[kafka,confluent]', or choose --clients")
    if not has_module("kstreams") and any(client in KSTREAMS for client in options.clients):
        parser.error("kstreams is not installed: pip install kstreams, or choose --clients")
    lacks = missing_java()
    if PARALLEL_CONSUMER in options.clients and lacks is not None:
        parser.error(lacks)
    return options


if __name__ == "__main__":
    main()
