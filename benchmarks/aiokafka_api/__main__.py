"""One program with aiokafka's API, run on aiokafka and on aiokafkawire.aiokafka, on one real Kafka.

Every measurement is a new process of one of the two packages, by turns, every other round backwards. Ratios are
computed within a round. The program is benchmarks/clients/aiokafka_peer.py, unchanged for both; --instrumented traces
its sends and reads by opentelemetry-instrumentation-aiokafka.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import anyio

from aiokafkawire import Client
from benchmarks.aiokafka_api.job import LOOPS, OURS, PACKAGES, THEIRS, WAYS, Case, cases
from benchmarks.aiokafka_api.program import command_on
from benchmarks.arguments import names_of, positive, positives
from benchmarks.clients.measurement import Job
from benchmarks.cluster import create_topics, delete_topics, kafka, records_in
from benchmarks.machine import ROOT, describe, has_module, version_of
from benchmarks.progress import progress
from benchmarks.report import aligned, short, spread

EPILOG = """\
examples, each after `python -m benchmarks.aiokafka_api`:
                                    all ways, values of 100 B and 1 KB, five rounds
  --ways async_for,getone --sizes 100
                                    two of them
  --loops asyncio,uvloop            both packages on uvloop as well
  --instrumented --ways send,getone,getmany --records 10000
                                    with a span for each record, which takes most of the time
  --records 2000 --rounds 1         does everything work? (the figures say little)
"""
INSTRUMENTATION = "opentelemetry-instrumentation-aiokafka"
_TIMEOUT = 300.0


class Figures(NamedTuple):
    """One measurement."""

    rate: float
    """Records per second."""
    cpu: float
    """Microseconds of CPU time per record, in all threads of the client's process."""


Found = dict[tuple[str, str], list[Figures]]
"""The measurements of a case, by package and loop, a round each."""


def main() -> None:
    options = _options()
    work = cases(options.ways, options.sizes)
    contenders = [(package, loop) for loop in options.loops for package in PACKAGES]
    found: dict[Case, Found] = {case: {one: [] for one in contenders} for case in work}
    about = describe(sys.argv) | _settings(options)
    with (
        kafka() if options.bootstrap is None else nullcontext() as booted,
        progress(len(work) * len(contenders) * options.rounds) as step,
    ):
        bootstrap = options.bootstrap or booted.bootstrap  # type: ignore[union-attr]
        for case in work:
            with _topics(bootstrap, case, options) as topics:
                for package in PACKAGES:  # discarded: the broker is warm afterwards
                    _measure(bootstrap, case, package, options.loops[0], topics, options)
                for number in range(options.rounds):
                    for package, loop in contenders if number % 2 == 0 else reversed(contenders):
                        step(f"{case.name}, round {number + 1}: {package} {loop}")
                        figures = _measure(bootstrap, case, package, loop, topics, options)
                        found[case][package, loop].append(figures)
    if options.json is not None:
        options.json.write_text(json.dumps({"about": about, "ratios": ratios(found)}, indent=1) + "\n")
    print(render(about, options.records, found))


# --- the report ----------------------------------------------------------------------------------------------


def render(about: Mapping[str, str], records: int, found: Mapping[Case, Found]) -> str:
    """Return the run as text: medians, with least and most; ratios are those of the rounds."""
    width = max(map(len, about))
    lines = [f"{name:<{width}}  {text}" for name, text in about.items()]
    for case, measured in found.items():
        table = [["", "records", "records/s", "CPU us/record"]]
        for (package, loop), runs in measured.items():
            rates, cpus = _range(one.rate for one in runs), _range(one.cpu for one in runs)
            table.append([f"{package} {loop}", f"{case.records(package, records):,}", rates, cpus])
        lines += ["", f"{case.name}: {WAYS[case.way].line}", *aligned(table)]
    table = [["ours divided by aiokafka's", "rate", "CPU per record"]]
    for line in ratios(found):
        texts = [_range(line["rates"]), _range(line["cpus"])]
        table.append([f"{line['case']}, {line['loop']}", *texts])
    return "\n".join([*lines, "", "ratios of the rounds: rates above 1 and CPU below 1 are better", *aligned(table)])


def ratios(found: Mapping[Case, Found]) -> list[dict[str, Any]]:
    """Return our figures divided by aiokafka's, in each round of each case and loop."""
    lines = []
    for case, measured in found.items():
        for loop in dict.fromkeys(loop for _, loop in measured):
            pairs = list(zip(measured[OURS, loop], measured[THEIRS, loop], strict=True))
            rates, cpus = [ours.rate / theirs.rate for ours, theirs in pairs], [a.cpu / b.cpu for a, b in pairs]
            middle = {"rate": statistics.median(rates), "cpu": statistics.median(cpus)}
            lines.append({"case": case.name, "loop": loop, **middle, "rates": rates, "cpus": cpus})
    return lines


def _range(values: Iterator[float] | Sequence[float]) -> str:
    found = spread(values)
    middle, least, most = (short(found[name]) for name in ("median", "least", "most"))
    return middle if least == most else f"{middle} [{least}-{most}]"


# --- the measurements ----------------------------------------------------------------------------------------


@contextmanager
def _topics(bootstrap: str, case: Case, options: argparse.Namespace) -> Iterator[Mapping[str, str]]:
    """Yield the topic of each package: filled ones if the case reads."""
    names = {package: f"aiokafka-api-{token_hex(4)}" for package in PACKAGES}
    create_topics(bootstrap, list(names.values()), options.partitions)
    try:
        if WAYS[case.way].reads:
            for package, name in names.items():
                job = _job(bootstrap, case, name, "asyncio", case.records(package, options.records), options)
                anyio.run(_fill, bootstrap, job)
        yield names
    finally:
        delete_topics(bootstrap, list(names.values()))


async def _fill(bootstrap: str, job: Job) -> None:
    """Write the records, evenly spread, and see that all are acknowledged."""
    async with Client(bootstrap) as client, client.producer(linger_ms=5) as producer:
        for topic, partition, value in job.filling():
            await producer.enqueue(topic, value, partition=partition)
        await producer.flush()


def _measure(
    bootstrap: str, case: Case, package: str, loop: str, topics: Mapping[str, str], options: argparse.Namespace
) -> Figures:
    """Run the program once; compare the number of records in the brokers with what it has sent.

    :raises SystemExit: it failed, or records were lost or doubled.
    """
    way, topic = WAYS[case.way], topics[package]
    job = _job(bootstrap, case, topic, loop, case.records(package, options.records), options)
    before = records_in(bootstrap, [topic], options.partitions)
    module = "benchmarks.aiokafka_api.instrumented" if options.instrumented else "benchmarks.clients.aiokafka_peer"
    command = [*command_on(package, module), job.as_argument()]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(f"{case.name}, {package} ended with {done.returncode}:\n{done.stderr[-3_000:]}")
    written = records_in(bootstrap, [topic], options.partitions) - before
    expected = 0 if way.reads else job.records + options.partitions  # one to each partition connects
    if written != expected:
        raise SystemExit(f"{case.name}, {package}: the brokers got {written} records, {expected} were sent")
    line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return Figures(line["records"] / line["seconds"], line["cpu_seconds"] / line["records"] * 1e6)


def _job(bootstrap: str, case: Case, topic: str, loop: str, records: int, options: argparse.Namespace) -> Job:
    return Job(
        bootstrap=bootstrap,
        topic=topic,
        way=WAYS[case.way].of_program,
        loop=loop,
        records=records,
        partitions=options.partitions,
        value_size=case.size,
    )


def _settings(options: argparse.Namespace) -> dict[str, str]:
    instrumented = {"instrumented": f"{INSTRUMENTATION} {version_of(INSTRUMENTATION)}, spans are not exported"}
    return {
        "settings": f"both: no keys, {options.partitions} partitions, acks=1, max_batch_size 1 MB, linger_ms 5 "
        "(send_and_wait: 0), assigned partitions without a group, otherwise aiokafka's defaults",
        "rounds": f"{options.rounds}, every other one backwards",
        **(instrumented if options.instrumented else {}),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.aiokafka_api",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bootstrap", help="the address of a Kafka that runs; by default one is booted")
    parser.add_argument("--ways", type=names_of(WAYS), default=tuple(WAYS), help=f"some of {','.join(WAYS)}")
    parser.add_argument("--sizes", type=positives, default=(100, 1_000), help="of values, in bytes (100,1000)")
    parser.add_argument("--loops", type=names_of(LOOPS), default=("asyncio",), help=f"some of {','.join(LOOPS)}")
    parser.add_argument("--rounds", type=positive, default=5, help="measurements of each package (5)")
    parser.add_argument(
        "--records",
        type=positive,
        default=50_000,
        help="of aiokafka; ours gets four times as many, send_and_wait a quarter (50000)",
    )
    parser.add_argument("--partitions", type=positive, default=4, help="of the topic (4)")
    parser.add_argument("--instrumented", action="store_true", help=f"trace by {INSTRUMENTATION}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the ratios of all rounds")
    options = parser.parse_args()
    if not has_module("aiokafka"):
        parser.error("aiokafka is not installed: pip install aiokafka")
    if options.instrumented and not (version_of(INSTRUMENTATION) and version_of("opentelemetry-sdk")):
        parser.error(f"not installed: pip install {INSTRUMENTATION} opentelemetry-sdk")
    return options


if __name__ == "__main__":
    main()
