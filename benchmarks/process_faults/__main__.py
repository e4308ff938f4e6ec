"""Instances of process(), process(share=True) and transform() while they and brokers die: is each record handled?

Five instances of one group, a process each, handle the records that a producer writes to three brokers at a steady
rate. One instance after the other is killed (kill -9), every 2 to 6 s, and started again; and so is the broker that
leads most. Confluent's Parallel Consumer may take part. Each way has a fresh cluster.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from support.apache_kafka import NEWEST, missing
from support.guarded_process import BootFailed
from support.kafka_cluster import KafkaCluster

from benchmarks.arguments import names_of, positive
from benchmarks.faults.program import ClientFailed
from benchmarks.faults.report import count
from benchmarks.faults.schedule import Faults
from benchmarks.java import CompilationFailed, missing_java
from benchmarks.machine import describe
from benchmarks.process_faults.instances import Instances
from benchmarks.process_faults.judge import Event, check_copied, check_handled, done_of, events_of
from benchmarks.process_faults.task import SESSION_TIMEOUT_MS, Task
from benchmarks.process_faults.topics import Writer, committed_copies, create
from benchmarks.processing.parallel_consumer import PARALLEL_CONSUMER, arguments, parallel_consumer
from benchmarks.report import aligned

Row = dict[str, Any]

WAYS = ("process", "share", "transform")
"""Ours."""
WRONGS = ("lost", "doubled", "early")
"""The figures of which each must be 0."""
EPILOG = """\
examples, each after `python -m benchmarks.process_faults`:
                                     ours, a minute each
  --minutes 10                       the long form
  --ways process,parallel-consumer   beside Confluent's Parallel Consumer
  --ways process,transform --group-protocol consumer
  --ways transform --minutes 0.5 --no-kills   instances die, brokers do not

A way takes up to three minutes more than --minutes: the cluster boots, and what is left is handled. The exit status is
1 if one of ours lost a record, counted one twice (transform), or handled records of a key out of order.
"""
SOURCE, SINK, GROUP = "source", "sink", "instances"
_DRAIN = 180.0
"""Seconds that the instances have, once all brokers and instances are back, for what is left to handle."""
_COLUMNS = {
    "records": count("acknowledged"),
    "instances killed": count("killed"),
    "brokers killed": count("brokers_killed"),
    "handled": count("handled"),
    "repeated": count("repeated"),
    "in hand of the killed": count("bound"),
    "revoked or lost": count("moved"),
    "lost": count("lost"),
    "doubled": count("doubled"),
    "early": count("early"),
    "drained in s": count("drain_s"),
}


def main() -> int:
    options = _options()
    lacks = missing() or (missing_java() if PARALLEL_CONSUMER in options.ways else None)
    if lacks is not None:
        raise SystemExit(f"cannot run Apache Kafka, or a program in Java, here. {lacks}")
    about = describe(sys.argv) | _settings(options)
    rows = []
    for way in options.ways:
        try:
            rows.append(_run(way, options))
        except (BootFailed, ClientFailed, CompilationFailed) as failed:
            raise SystemExit(f"{way}: {failed}") from None
        if options.json is not None:
            with options.json.open("a") as file:
                file.write(json.dumps({"about": about, **rows[-1]}) + "\n")
    print(render(about, rows))
    ours = [row for row in rows if row["way"] in WAYS]
    return 1 if any(row["problems"] or any(row.get(name) for name in WRONGS) for row in ours) else 0


def render(about: dict[str, str], rows: list[Row]) -> str:
    """Return the run as text."""
    width = max(map(len, about))
    table = [["", *_COLUMNS], *([row["way"], *(show(row) for show in _COLUMNS.values())] for row in rows)]
    problems = [f"  {row['way']}: {problem}" for row in rows for problem in row["problems"]]
    return "\n".join([*(f"{name:<{width}}  {text}" for name, text in about.items()), "", *aligned(table), *problems])


def _run(way: str, options: argparse.Namespace) -> Row:
    """Run one way on a cluster of its own; return its row of the report."""
    tell = _Progress(way)
    tell("booting the cluster")
    properties = {
        "group.consumer.min.session.timeout.ms": "5000",
        "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "group.consumer.min.heartbeat.interval.ms": "1000",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.share.min.record.lock.duration.ms": "5000",
        "group.share.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "group.share.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "group.share.min.heartbeat.interval.ms": "1000",
        "group.share.heartbeat.interval.ms": "1000",
    }
    with KafkaCluster(properties=properties) as cluster, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        create(cluster.bootstrap, {SOURCE: options.partitions, SINK: options.partitions}, 3, share_group=GROUP)
        cluster.wait_whole()
        log = folder / "log"
        log.touch()
        task = Task(
            bootstrap=cluster.bootstrap,
            source=SOURCE,
            sink=SINK,
            group=GROUP,
            way=way,
            log=str(log),
            concurrency=options.concurrency,
            max_in_hand=options.max_in_hand,
            handler_ms=options.handler_ms,
            group_protocol=options.group_protocol,
        )
        with Instances(_command(task, folder), options.instances, folder, options.seed) as instances:
            return _under_fault(cluster, instances, task, options, tell)


def _under_fault(
    cluster: KafkaCluster, instances: Instances, task: Task, options: argparse.Namespace, tell: "_Progress"
) -> Row:
    """Run from the first record until all is handled and all instances have ended."""
    seconds, stop = options.minutes * 60, threading.Event()
    writer = Writer(cluster.bootstrap, SOURCE, options.rate, options.keys)
    faults = Faults(cluster, SOURCE, options.seed, seconds if options.kills else 0.0)
    breaking = threading.Thread(target=faults.run, args=(tell, stop))
    writer.start()
    breaking.start()
    try:
        instances.kill_for(seconds, tell, stop)
    finally:
        stop.set()
        breaking.join()
        writer.stop()
    began = time.monotonic()
    tell("waiting for what is left to handle")
    problems = list(writer.errors[:3])
    left = _wait_handled(writer, Path(task.log))
    if left:
        problems.append(f"{left:,} records were not handled {_DRAIN:.0f} s after all was well:\n{instances.said()}")
    drained = time.monotonic() - began
    instances.end()
    tell("checking")
    events = _read(Path(task.log))
    if task.way == "transform":
        copies = committed_copies(cluster.bootstrap, SINK, options.partitions)
        figures = check_copied(writer.places, copies, events)
    else:
        figures = check_handled(writer.places.values(), events, ordered=task.way != "share")
    return {
        "way": task.way,
        "seed": options.seed,
        "acknowledged": len(writer.places),
        "killed": instances.kills,
        "brokers_killed": len(faults.kills),
        **figures,
        "bound": instances.kills * options.max_in_hand if task.way in WAYS else None,
        "moved": sum(event.what in ("lost", "revoked") for event in events),
        "drain_s": round(drained),
        "problems": problems,
        "kills": faults.as_json(),
    }


def _command(task: Task, folder: Path) -> list[str]:
    if task.way != PARALLEL_CONSUMER:
        return [sys.executable, "-m", "benchmarks.process_faults.instance", task.as_argument()]
    return [
        *parallel_consumer(folder),
        *arguments(
            task.bootstrap,
            task.source,
            task.group,
            records=2**31 - 1,
            handler_ms=task.handler_ms,
            concurrency=task.concurrency,
            log=task.log,
        ),
    ]


def _wait_handled(writer: Writer, log: Path) -> int:
    """Wait until all that was acknowledged is done; return how much is not."""
    end = time.monotonic() + _DRAIN
    while True:
        done = done_of(_read(log))
        left = sum(place not in done for place in writer.places.values())
        if not left or time.monotonic() > end:
            return left
        time.sleep(2)


def _read(log: Path) -> list[Event]:
    return events_of(log.read_text().splitlines())


class _Progress:
    """Writes what happens to standard error."""

    def __init__(self, way: str) -> None:
        self._way, self._began = way, time.monotonic()

    def __call__(self, news: str) -> None:
        print(f"{self._way:<9} {time.monotonic() - self._began:4.0f} s  {news}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.process_faults",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = (*WAYS, PARALLEL_CONSUMER)
    parser.add_argument("--ways", type=names_of(known), default=WAYS, help=f"some of {','.join(known)} (ours)")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long instances are killed for each way (1)")
    parser.add_argument("--seed", type=int, default=1, help="of the schedules (1)")
    parser.add_argument("--rate", type=positive, default=300, help="records per second (300)")
    parser.add_argument("--keys", type=positive, default=200, help="different keys, in turns (200)")
    parser.add_argument("--partitions", type=positive, default=6, help="partitions of the topic (6)")
    parser.add_argument("--instances", type=positive, default=5, help="processes (5)")
    parser.add_argument("--concurrency", type=positive, default=8, help="calls of the handler at once, each (8)")
    parser.add_argument("--max-in-hand", type=positive, default=50, help="records in hand of an instance (50)")
    parser.add_argument("--handler-ms", type=float, default=10.0, help="the time of a call of the handler (10)")
    protocols = ("classic", "consumer")
    parser.add_argument("--group-protocol", choices=protocols, default="classic", help="of process and transform")
    parser.add_argument("--no-kills", dest="kills", action="store_false", help="no broker is killed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append one line of JSON for each way")
    return parser.parse_args()


def _settings(options: argparse.Namespace) -> dict[str, str]:
    return {
        "kafka": f"Apache Kafka {NEWEST} on this machine: a controller and three brokers, replication.factor 3, "
        "min.insync.replicas 2",
        "records": f"{options.rate} records/s for {options.minutes:g} minutes, {options.keys} keys, "
        f"{options.partitions} partitions, acks=all",
        "instances": f"{options.instances}, each {options.concurrency} calls of {options.handler_ms:g} ms at once, "
        f"max_in_hand {options.max_in_hand}, group_protocol {options.group_protocol} (process, transform)",
        "schedule": f"seed {options.seed}, an instance is killed every 2 to 6 s, "
        f"{'a broker too' if options.kills else 'brokers stay'}",
    }


if __name__ == "__main__":
    sys.exit(main())
