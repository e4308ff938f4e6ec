"""Clients whose brokers fail: aiokafkawire, confluent-kafka and aiokafka, under the same faults at the same times.

Brokers of Apache Kafka stop, fill their disks, write slowly, crash, run out of memory, move partitions, throttle and
are upgraded. It needs Java and Maven, root for the small disk, gcc for a slow one, and libfaketime for a wrong clock.
"""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from support.apache_kafka import NEWEST
from support.apache_kafka import missing as missing_kafka
from support.guarded_process import BootFailed
from support.kafka_cluster import KafkaCluster

from benchmarks.broker_faults.cluster import Place, small_disk, usual_cluster
from benchmarks.broker_faults.kinds import KINDS, duration
from benchmarks.broker_faults.schedule import run
from benchmarks.broker_faults.slow_disk import slow_disks
from benchmarks.faults.program import ClientFailed
from benchmarks.machine import describe
from benchmarks.progress import tell
from benchmarks.recovery.command_line import exit_status, figures, new_parser, parse
from benchmarks.recovery.report import markdown, write_into
from benchmarks.recovery.run import Load, Row, Run
from benchmarks.recovery.windows import WARM_UP

_EPILOG: Final = """\
examples, each after `python -m benchmarks.broker_faults`:
                                           all kinds, all clients
  --clients ours --kinds freeze-20,quota   some
  --json FILE --docs docs                  keep the figures, and write the tables of docs/faults.md
  --show FILE --docs docs                  write them again
"""


def main() -> int:
    parser = new_parser("benchmarks.broker_faults", __doc__, _EPILOG, KINDS, faults=1)
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="write the tables into its faults.md")
    options = parse(parser)
    about, rows = figures(options, _measure)
    if options.docs is not None:
        write_into(options.docs / "faults.md", "brokers", markdown(about, rows, "slowest"))
    return exit_status(rows)


def _measure(options: argparse.Namespace) -> tuple[dict[str, str], list[Row]]:
    lacks = missing_kafka()
    if lacks is not None:
        raise SystemExit(f"cannot boot Apache Kafka here. {lacks}")
    about = describe(sys.argv) | {
        "kafka": f"Apache Kafka {NEWEST}: three controllers and three brokers; replication.factor 3, "
        "min.insync.replicas 2",
        "load": f"{options.rate} records/s of {options.value_size} bytes for each producer and each reader, "
        f"{options.faults} faults of each kind, {options.loop}",
    }
    rows: list[Row] = []
    clusters = dict.fromkeys(KINDS[name].cluster for name in options.kinds)
    try:
        for cluster in clusters:
            rows += _run_on(cluster, [name for name in options.kinds if KINDS[name].cluster == cluster], options)
    except (BootFailed, ClientFailed) as failed:
        raise SystemExit(str(failed)) from None
    return about, rows


def _run_on(release: str, names: list[str], options: argparse.Namespace) -> list[Row]:
    """Run these kinds on one cluster.

    :raises BootFailed, ClientFailed: a broker or a client's program did not start.
    """
    load, within = Load(options.rate, options.value_size, options.loop), dict.fromkeys(options.clients, ())
    rows: list[Row] = []
    with ExitStack() as stack:
        disk, slow = stack.enter_context(small_disk()), stack.enter_context(slow_disks())
        tell("booting the cluster")
        wanted = usual_cluster(disk, slow) if release == "usual" else KafkaCluster(release, controllers=3)
        cluster = stack.enter_context(wanted)
        for name in names:
            kind = KINDS[name]
            lacks = kind.lacks(disk)
            if lacks is not None:
                tell(f"{name} IS SKIPPED: {lacks}")
                continue
            with Run(name, kind.title, cluster, within, load) as one:
                rows += one.rows(
                    WARM_UP + duration(kind, options.faults),
                    lambda topics, news, kind=kind: run(  # type: ignore[misc]
                        kind, Place(cluster, topics, disk, slow), options.faults, news
                    ),
                )
            cluster.wait_whole()
    return rows


if __name__ == "__main__":
    sys.exit(main())
