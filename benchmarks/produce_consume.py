"""Produce, consume and single-send latency: aiokafkawire beside aiokafka and confluent-kafka, on one real Kafka.

Every measurement is a fresh process of one client; the clients take turns, and every other round goes backwards, so
that what changes slowly on the machine touches all alike. Ratios are made within a round.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from aiokafkawire import KafkaError
from benchmarks import report
from benchmarks.clients.measurement import WARM_UP_SENDS
from benchmarks.cluster import create_topic, delete_topic, kafka, records_in
from benchmarks.contenders import CLIENTS, TASKS, Contender, contenders, program_of
from benchmarks.machine import ROOT, describe, has_module
from benchmarks.progress import progress, tell

EPILOG = """\
examples, each after `python benchmarks/produce_consume.py`:
  --records 20000 --rounds 1         does everything work? (the figures say little)
                                     the whole comparison, on an Apache Kafka booted for it
  --bootstrap localhost:9092         the same against a cluster that runs
  --only "consume ours"              some rows only; --list shows their names
  --tasks produce --clients ours,confluent --rounds 9 --plot produce.png

Keep the machine quiet meanwhile: the broker and the client share its cores. The peers come with
`pip install aiokafka confluent-kafka`; those that are missing are left out.
"""


def main() -> int:
    options = _options()
    rows = [one for one in contenders(options.tasks, options.clients, options.loops) if options.only in one.label]
    absent = [client for client in CLIENTS if not has_module(CLIENTS[client])]
    missing_loops = [loop for loop in ("uvloop", "trio") if not has_module(loop)]
    rows = [one for one in rows if one.client not in absent and one.loop not in missing_loops]
    if options.list:
        print("\n".join(one.label for one in rows))
        return 0
    if not rows:
        raise SystemExit("nothing to measure: --list shows what there is, and which packages are installed decides too")
    about = describe(sys.argv)
    with kafka(options.bootstrap) as (bootstrap, description):
        about |= {"kafka": description, **_settings(options)}
        left_out = [*absent, *missing_loops]
        if left_out:
            about["left out"] = f"{', '.join(left_out)} (not installed)"
        run = Run(bootstrap, options)
        try:
            run.prepare(rows)
            with progress(len(rows) * options.rounds) as advance:
                for number in range(1, options.rounds + 1):
                    for one in rows if number % 2 else reversed(rows):
                        advance(f"round {number} of {options.rounds}: {one.label}")
                        run.measure(number, one)
        except KeyboardInterrupt:
            about["interrupted"] = f"after {len(run.measurements)} of {len(rows) * options.rounds} measurements"
        except (MeasurementFailed, KafkaError) as failed:
            raise SystemExit(f"cannot prepare the run: {failed}") from None
        finally:
            run.clean_up()
    if not run.measurements:
        raise SystemExit("nothing was measured")
    result = report.summarise(about, run.measurements, run.failures)
    print(report.render(result))
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    print(f"\nwritten to {report.write(result, options.results / f'produce_consume-{stamp}.json')}")
    if options.plot is not None:
        report.plot(result, options.plot)
        print(f"plotted to {options.plot}")
    return 1 if run.failures or "interrupted" in about else 0


class Run:
    """The measurements of one run, and the topics made for them."""

    def __init__(self, bootstrap: str, options: argparse.Namespace) -> None:
        self.measurements: list[dict[str, Any]] = []
        self.failures: list[dict[str, Any]] = []
        self._bootstrap, self._options = bootstrap, options
        self._prefix = f"benchmark-{datetime.now(UTC).strftime('%Y%m%d%H%M%S%f')}"
        self._numbers = count(1)
        self._topics: list[str] = []
        self._filled: dict[int, str] = {}

    def prepare(self, rows: list[Contender]) -> None:
        """Fill a topic for each number of records to consume; then warm the broker by measuring each client once."""
        filler = "confluent" if has_module(CLIENTS["confluent"]) else "ours"
        for records in sorted({self._records(one) for one in rows if one.task == "consume"}):
            tell(f"filling a topic with {records} records by {filler}")
            self._filled[records] = topic = self._new_topic()
            self._run(program_of(filler), topic, records, "--way", "fill")
            self._check(topic, records)
        if self._options.warm_up:
            for one in {(row.task, row.client): row for row in rows}.values():
                tell(f"warming the broker: {one.label}")
                self.measure(0, one)
        self.measurements.clear()

    def measure(self, number: int, one: Contender) -> None:
        """One measurement. One that fails is kept as a failure, and the run goes on."""
        try:
            figures = self._figures(one)
        except (MeasurementFailed, KafkaError) as failed:
            tell(f"FAILED {one.label}: {failed}")
            self.failures.append({"round": number, **asdict(one), "error": str(failed)})
        else:
            self.measurements.append({"round": number, **asdict(one), **figures})

    def _figures(self, one: Contender) -> dict[str, Any]:
        records, arguments = self._records(one), ("--way", one.way, "--loop", one.loop)
        if one.task == "consume":
            return self._run(one.program, self._filled[records], records, *arguments)
        topic = self._new_topic()
        try:
            figures = self._run(one.program, topic, records, *arguments)
            self._check(topic, records + WARM_UP_SENDS * self._options.partitions)
            return figures
        finally:
            self._drop_topic(topic)

    def clean_up(self) -> None:
        """Delete what is left of the topics."""
        for topic in list(self._topics):
            self._drop_topic(topic)

    def _records(self, one: Contender) -> int:
        options = self._options
        if one.task == "latency":
            return int(options.sends)
        return int(options.confluent_records if one.client == "confluent" else options.records)

    def _run(self, program: str, topic: str, records: int, *arguments: str) -> dict[str, Any]:
        """Run one client to its end; the figures that it printed.

        :raises MeasurementFailed: it failed, took too long, or printed no figures.
        """
        options = self._options
        command = [sys.executable, "-m", program, *arguments]
        command += ["--bootstrap", self._bootstrap, "--topic", topic, "--records", str(records)]
        command += ["--partitions", str(options.partitions), "--value-size", str(options.value_size)]
        command += ["--batch-size", str(options.batch_size), "--linger-ms", str(options.linger_ms)]
        try:
            done = subprocess.run(
                command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=options.timeout
            )
        except subprocess.TimeoutExpired:
            raise MeasurementFailed(f"it did not end within {options.timeout:g} s (--timeout)") from None
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["it said nothing"]
            raise MeasurementFailed(f"status {done.returncode}: {said[-1]}")
        try:
            figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        except (IndexError, ValueError):
            raise MeasurementFailed(f"it printed no figures but {done.stdout[-200:]!r}") from None
        return figures

    def _check(self, topic: str, expected: int) -> None:
        """The brokers' own word on how many records arrived."""
        found = records_in(self._bootstrap, topic, self._options.partitions)
        if found != expected:
            raise MeasurementFailed(f"the brokers hold {found} records, {expected} were sent")

    def _new_topic(self) -> str:
        topic = f"{self._prefix}-{next(self._numbers)}"
        create_topic(self._bootstrap, topic, self._options.partitions)
        self._topics.append(topic)
        return topic

    def _drop_topic(self, topic: str) -> None:
        self._topics.remove(topic)
        delete_topic(self._bootstrap, topic)


class MeasurementFailed(Exception):
    """One measurement has no figures; the message says why."""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_argument_group("what is measured")
    what.add_argument("--tasks", type=_names(TASKS), default=TASKS, help=f"some of {','.join(TASKS)}; all if not given")
    what.add_argument("--clients", type=_names(CLIENTS), default=tuple(CLIENTS), help=f"some of {','.join(CLIENTS)}")
    loops = ("asyncio", "uvloop", "trio")
    what.add_argument("--loops", type=_names(loops), default=loops, help=f"some of {','.join(loops)}")
    what.add_argument("--only", default="", metavar="TEXT", help="only rows whose name contains this")
    what.add_argument("--list", action="store_true", help="show the names of the rows, and measure nothing")
    much = parser.add_argument_group("how much")
    much.add_argument("--rounds", type=_positive, default=3, help="how often each row is measured (3); odd is better")
    much.add_argument("--records", type=_positive, default=200_000, help="a measurement for ours and aiokafka (200000)")
    much.add_argument(
        "--confluent-records",
        type=_positive,
        help="a measurement for confluent, which needs more for as long a one (5 times --records)",
    )
    much.add_argument("--sends", type=_positive, default=500, help="single sends where latency is measured (500)")
    much.add_argument("--timeout", type=float, default=180.0, help="seconds one measurement may take (180)")
    how = parser.add_argument_group("how")
    how.add_argument("--bootstrap", metavar="HOST:PORT", help="a cluster that runs; else Apache Kafka is booted here")
    how.add_argument("--partitions", type=_positive, default=4, help="partitions of every topic (4)")
    how.add_argument("--value-size", type=_positive, default=100, help="bytes of each value; there are no keys (100)")
    how.add_argument(
        "--batch-size", type=_positive, default=1_000_000, help="largest batch in bytes, all clients (1 MB)"
    )
    how.add_argument("--linger-ms", type=int, default=5, help="all clients, but 0 where latency is measured (5)")
    how.add_argument("--no-warm-up", dest="warm_up", action="store_false", help="do not warm the broker first")
    out = parser.add_argument_group("what becomes of it")
    out.add_argument("--results", type=Path, default=report.RESULTS, help="the folder for the JSON file")
    out.add_argument("--plot", type=Path, metavar="FILE.png", help="also draw it; needs matplotlib")
    options = parser.parse_args()
    if options.plot is not None and not has_module("matplotlib"):
        parser.error("--plot needs matplotlib: pip install matplotlib")
    options.confluent_records = options.confluent_records or 5 * options.records
    return options


def _settings(options: argparse.Namespace) -> dict[str, str]:
    return {
        "records": f"{options.records} a measurement for aiokafkawire and aiokafka, {options.confluent_records} for "
        f"confluent; {options.sends} single sends",
        "settings": f"values of {options.value_size} bytes without keys, {options.partitions} partitions, acks=1, "
        f"batches up to {options.batch_size} bytes, linger {options.linger_ms} ms (latency: 0), no compression",
        "rounds": f"{options.rounds}, every other one backwards",
    }


def _names(known: Any) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parse


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1 is needed, got {text}")
    return number


if __name__ == "__main__":
    sys.exit(main())
