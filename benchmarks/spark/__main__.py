"""Our data source beside Spark's own Kafka source: batches and streams read to noop, and rows written.

One Spark session has both; the arms of a case take turns, every other pair goes backwards, and ratios are made within a
pair. The clock runs from the query's start to its end, planning included; the CPU is that of the driver's JVM and of
Python's workers together, by the operating system.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from aiokafkawire import blocking
from benchmarks.arguments import names_of, positive
from benchmarks.cluster import Kafka, create_topics, delete_topics, kafka, records_in
from benchmarks.machine import describe, has_module
from benchmarks.progress import tell
from benchmarks.report import RESULTS, aligned, short, spread
from benchmarks.spark.arms import CASES, PARTITIONS, READY, VALUE_SIZE, Arm, Case, Place
from benchmarks.spark.session import connector, cpu_seconds, jvm_pid, session, versions

METRICS = {
    "records_per_second": "records/s (more is better)",
    "cpu_us_per_record": "CPU us per record (less is better)",
}
_AT_ONCE = 10_000

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    from benchmarks.spark.ready_rows import ReadyRows  # PySpark is installed: `_options` has checked it

    about = describe(sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        jars, named = connector(Path(folder))
        with _cluster(options.bootstrap) as cluster, session(jars) as spark:
            about |= {"kafka": cluster.description, "spark": f"{versions()}, local[2], 4 GB", "its own source": named}
            about["topics"] = (
                f"{options.records:,} values of {VALUE_SIZE} B, {PARTITIONS} partitions, batches of 128 KiB"
            )
            spark.dataSource.register(ReadyRows)
            rows = list(_measure(spark, cluster.bootstrap, options))
    ratios = [line for name in options.cases for line in ratios_of(CASES[name], rows)]
    print("\n".join(render(about, [CASES[name] for name in options.cases], rows, ratios)))
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    kept = RESULTS / f"spark-{stamp}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"about": about, "rows": rows, "ratios": ratios}, indent=1) + "\n")
    print(f"\nkept as {kept}")
    if options.json is not None:
        with options.json.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in ratios)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks spark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=names_of(CASES), default=tuple(CASES), help=f"some of {','.join(CASES)}")
    parser.add_argument("--records", type=positive, default=5_000_000, help="of each measurement (5000000)")
    parser.add_argument("--pairs", type=positive, default=5, help="how often each arm is measured (5)")
    parser.add_argument(
        "--bootstrap", metavar="HOST:PORT", help="a cluster that runs; else Apache Kafka is booted here"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="append a line of JSON for each ratio")
    options = parser.parse_args(arguments)
    if not (has_module("pyspark") and has_module("pyarrow")):
        parser.error("pyspark is not installed: pip install 'aiokafkawire[spark]'; it needs Java 17 besides")
    return options


@contextmanager
def _cluster(bootstrap: str | None) -> Iterator[Kafka]:
    if bootstrap is not None:
        yield Kafka(bootstrap, f"the cluster at {bootstrap}")
        return
    with kafka() as booted:
        yield booted


# --- measuring -----------------------------------------------------------------------------------------------


def _measure(spark: Any, bootstrap: str, options: argparse.Namespace) -> Iterator[Row]:
    prefix, numbers = f"benchmark-spark-{datetime.now(UTC).strftime('%Y%m%d%H%M%S%f')}", count(1)

    def new_topic() -> Place:
        place = Place(bootstrap, f"{prefix}-{next(numbers)}", options.records)
        create_topics(bootstrap, [place.topic], PARTITIONS)
        return place

    filled = new_topic()
    if any(not CASES[name].writes for name in options.cases):
        tell(f"filling {filled.topic}: {options.records:,} records")
        fill(filled)
    for name in options.cases:
        case = CASES[name]
        for pair in range(options.pairs + 1):  # the first warms up the JVM and the broker
            for arm in case.arms if pair % 2 else reversed(case.arms):
                tell(f"{case.name}, {f'pair {pair}' if pair else 'warming up'}: {arm.label}")
                place = new_topic() if case.writes else filled
                row = _one(spark, case, arm, place)
                if case.writes:
                    _check(place, 0 if arm.source == READY else place.records)
                    delete_topics(bootstrap, [place.topic])
                if pair:
                    yield {"case": case.name, "arm": arm.label, "pair": pair, **row}
    delete_topics(bootstrap, [filled.topic])


def _one(spark: Any, case: Case, arm: Arm, place: Place) -> Row:
    pid = jvm_pid(spark)
    spark._jvm.java.lang.System.gc()
    before, began = cpu_seconds(pid), time.perf_counter()
    case.work(spark, arm, place)
    seconds = time.perf_counter() - began
    cpu = cpu_seconds(pid) - before
    return {
        "seconds": seconds,
        "records_per_second": place.records / seconds,
        "cpu_us_per_record": cpu * 1e6 / place.records,
    }


def fill(place: Place) -> None:
    values = [bytes(index % 251 for index in range(VALUE_SIZE))] * _AT_ONCE
    with (
        blocking.Client(place.bootstrap) as client,
        client.producer(acks=1, batch_size=131_072, linger_ms=5) as producer,
    ):
        for partition in range(PARTITIONS):
            left = place.records // PARTITIONS + (partition < place.records % PARTITIONS)
            while left:
                left -= producer.enqueue_many(place.topic, values[:left], partition=partition)
        producer.flush()
    _check(place, place.records)


def _check(place: Place, written: int) -> None:
    found = records_in(place.bootstrap, [place.topic], PARTITIONS)
    if found != written:
        raise SystemExit(f"the brokers hold {found} records of {place.topic}, {written} were written")


# --- what came of it -----------------------------------------------------------------------------------------


def ratios_of(case: Case, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Return ours divided by each of the others, within each pair: a line for each figure."""
    ours, *others = case.arms
    for metric in METRICS:
        figures = {(row["arm"], row["pair"]): row[metric] for row in rows if row["case"] == case.name}
        pairs = sorted({pair for _, pair in figures})
        for peer in others:
            found = spread(figures[ours.label, pair] / figures[peer.label, pair] for pair in pairs)
            yield {
                "benchmark": "spark",
                "case": case.title,
                "ours": ours.label,
                "peer": peer.label,
                "metric": metric,
                "ratio": found["median"],
                "low": found["least"],
                "high": found["most"],
                "rounds": len(pairs),
            }


def render(
    about: Mapping[str, str], cases: Sequence[Case], rows: Sequence[Row], ratios: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return the run as lines of text."""
    width = max(map(len, about))
    lines = [f"{name:<{width}}  {text}" for name, text in about.items()]
    for case in cases:
        table = [["", *METRICS.values()]]
        for arm in case.arms:
            own = [row for row in rows if (row["case"], row["arm"]) == (case.name, arm.label)]
            table.append([arm.label, *(_cell(spread(row[metric] for row in own)) for metric in METRICS)])
        for line in ratios:
            if line["case"] == case.title and line["metric"] == next(iter(METRICS)):
                both = [one for one in ratios if (one["case"], one["peer"]) == (case.title, line["peer"])]
                cells = [_cell({"median": one["ratio"], "least": one["low"], "most": one["high"]}) for one in both]
                table.append([f"ours divided by {line['peer']}", *cells])
        lines += ["", f"{case.name.upper()}: {case.title}; the median, and the range of the pairs", *aligned(table)]
    return lines


def _cell(found: Mapping[str, float]) -> str:
    median, least, most = (short(found[name]) for name in ("median", "least", "most"))
    return median if least == most else f"{median} [{least}-{most}]"


if __name__ == "__main__":
    sys.exit(main())
