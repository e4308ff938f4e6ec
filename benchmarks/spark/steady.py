"""The cost of a micro-batch in a long query: our source, Spark's own, and a Python source whose rows are ready.

Every measurement is a Spark session of its own. The clock runs from the query's first third to its end, so that neither
the start of planner and workers nor most of Java's compilation counts. A query that waits for data looks for it every
second. The CPU is that of the driver's JVM and of Python's processes together.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.arguments import positive, positives
from benchmarks.cluster import create_topics, kafka
from benchmarks.machine import ROOT, describe
from benchmarks.progress import progress
from benchmarks.report import short, spread
from benchmarks.spark.__main__ import fill
from benchmarks.spark.arms import JVM, OURS, PARTITIONS, READY, Place
from benchmarks.spark.ready_rows import BATCHES, ReadyRows
from benchmarks.spark.session import connector, cpu_seconds, jvm_pid, session, versions

_LOOK_EVERY: Final = 0.1
_IDLE: Final = 20.0
_TIMEOUT: Final = 900.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all arms in turns, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.steady", description=__doc__)
    parser.add_argument("--rows", type=positives, default=(50_000, 250_000), help="of a micro-batch (50000,250000)")
    parser.add_argument("--records", type=positive, default=10_000_000, help="of a query (10000000)")
    parser.add_argument("--pairs", type=positive, default=5, help="how often each arm is measured (5)")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure is not None:
        return _measure(**json.loads(options.measure))
    for name, value in (describe(sys.argv) | {"spark": versions()}).items():
        print(f"{name}: {value}")
    cases = [(arm, rows) for rows in (*options.rows, 0) for arm in (OURS, JVM, READY)]
    found: dict[tuple[str, int], list[dict[str, float]]] = {case: [] for case in cases}
    with kafka() as cluster, progress(len(cases) * options.pairs) as step:
        place = Place(cluster.bootstrap, "steady", options.records)
        create_topics(cluster.bootstrap, [place.topic], PARTITIONS)
        fill(place)
        for pair in range(options.pairs):
            for arm, rows in cases if pair % 2 == 0 else reversed(cases):
                step(f"pair {pair + 1}: {arm}, {rows:,} rows")
                found[arm, rows].append(_one(arm, rows, place))
    for (arm, rows), runs in found.items():
        print(_line(arm, rows, runs, None if (arm, rows) == (READY, 0) else found[JVM, rows]))
    return 0


def _one(arm: str, rows: int, place: Place) -> dict[str, float]:
    job = {"arm": arm, "rows": rows, "bootstrap": place.bootstrap, "topic": place.topic, "records": place.records}
    command = [sys.executable, "-m", "benchmarks.spark.steady", "--measure", json.dumps(job)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if ended.returncode:
        raise SystemExit(f"{arm} failed: {ended.stderr[-2_000:]}")
    # Maven, which finds the jars, writes escape sequences before the line.
    figures: dict[str, float] = json.loads(ended.stdout[ended.stdout.rindex("{") :])
    return figures


def _measure(arm: str, rows: int, bootstrap: str, topic: str, records: int) -> int:
    """Run one query in a session, and print the figures of a micro-batch, or of a second without rows."""
    with tempfile.TemporaryDirectory() as folder, session(connector(Path(folder))[0]) as spark:
        trigger: dict[str, Any]
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
        if arm == READY:
            spark.dataSource.register(ReadyRows)
            given, trigger = {"rows": str(rows)}, {"processingTime": "0 seconds"}
        elif rows:
            given |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(rows)}
            trigger = {"availableNow": True}
        else:
            trigger = {"processingTime": "1 second"}
        frame = spark.readStream.format(arm).options(**given).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(Path(folder) / "checkpoint"))
        query = writer.trigger(**trigger).start()
        waits, last = not rows and arm != READY, BATCHES if arm == READY else records // max(rows, 1)
        figures = _idle(spark) if waits else _watch(spark, query, last - 1)
        query.stop()
    print(json.dumps(figures))
    return 0


def _idle(spark: Any) -> dict[str, float]:
    """Return the CPU of a second, after the query has started."""
    time.sleep(_IDLE)
    began = cpu_seconds(jvm_pid(spark))
    time.sleep(_IDLE)
    return {"ms": 1e3, "cpu_ms": (cpu_seconds(jvm_pid(spark)) - began) * 1e3 / _IDLE}


def _watch(spark: Any, query: Any, last: int) -> dict[str, float]:
    """Return the time and the CPU of a micro-batch after the first third of a query."""
    pid, began = jvm_pid(spark), (0, 0.0, 0.0)
    while (batch := _batch(query)) < last and query.isActive:
        if not began[0] and batch >= last // 3:
            began = (batch, time.perf_counter(), cpu_seconds(pid))
        time.sleep(_LOOK_EVERY)
    seconds, cpu = time.perf_counter() - began[1], cpu_seconds(pid) - began[2]
    batch = _batch(query)
    if not began[0] or batch < last:
        raise SystemExit(f"the query ended at batch {batch} of {last}: {query.exception()}")
    return {"ms": seconds * 1e3 / (batch - began[0]), "cpu_ms": cpu * 1e3 / (batch - began[0])}


def _batch(query: Any) -> int:
    latest = query.lastProgress
    return -1 if latest is None else int(latest["batchId"])


def _line(arm: str, rows: int, runs: list[dict[str, float]], jvm: list[dict[str, float]] | None) -> str:
    cells = [f"{arm}, {rows:,} rows" if rows else f"{arm}, without rows"]
    for name, unit in (("ms", "ms"), ("cpu_ms", "ms of CPU")):
        cells.append(f"{_cell([run[name] for run in runs])} {unit}")
        if jvm is not None and jvm is not runs:
            cells.append(
                f"{_cell([ours[name] / theirs[name] for ours, theirs in zip(runs, jvm, strict=True)])} of {JVM}'s"
            )
    return "; ".join(cells)


def _cell(values: list[float]) -> str:
    found = spread(values)
    return f"{short(found['median'])} [{short(found['least'])}-{short(found['most'])}]"


if __name__ == "__main__":
    sys.exit(main())
