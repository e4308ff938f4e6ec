"""Producers while brokers die: aiokafkawire, confluent-kafka and aiokafka, each on a fresh cluster of three brokers.

Every client sends numbered records at a steady rate while the broker that leads most is killed, again and again, by the
same schedule. Then everything is read back: what was acknowledged must be there, once, and in order.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from confluent_kafka import KafkaException
from support.apache_kafka import NEWEST, BootFailed, missing
from support.kafka_cluster import KafkaCluster

from benchmarks.faults_journal import ABORTED_EVERY, LINGER_MS, Job, read_journal
from benchmarks.faults_judge import WRONGS, check, figures, read_back
from benchmarks.faults_program import CLIENTS, ClientFailed, Program, Progress, client_names, positive, prepare
from benchmarks.faults_report import render
from benchmarks.faults_schedule import Faults
from benchmarks.machine import describe, has_module

EPILOG = """\
examples, each after `python benchmarks/faults.py`:
                                        records, all clients, a minute of faults each
  --transactions 100                    transactions of 100 records, every tenth aborted on purpose
  --clients ours --seconds 600 --seed 7 ten minutes of one client, by another schedule
  --seconds 20                          does everything work?

A client takes up to a minute more than --seconds. The exit status is 1 if anything is wrong with aiokafkawire, or if a
client could not be run; what the peers do wrong is in the report.
"""
TOPIC = "faults"


def main() -> int:
    options = _options()
    lacks = missing()
    if lacks is not None:
        raise SystemExit(f"cannot boot Apache Kafka here. {lacks}")
    about = describe(sys.argv) | _settings(options)
    rows = []
    for client in options.clients:
        try:
            rows.append(_run(client, options))
        except (BootFailed, KafkaException, ClientFailed) as failed:
            raise SystemExit(f"{client}: {failed}") from None
        if options.json is not None:
            with options.json.open("a") as file:
                file.write(json.dumps({"about": about, **rows[-1]}) + "\n")
    print(render(about, rows))
    return 1 if any(row["problem"] or (row["client"] == "ours" and row["wrong"]) for row in rows) else 0


def _run(client: str, options: argparse.Namespace) -> dict[str, Any]:
    """One client on a cluster of its own; its row of the report."""
    tell = Progress(client, options.seconds)
    tell("booting the cluster")
    properties = {
        "broker.session.timeout.ms": str(options.session_timeout_ms),
        "broker.heartbeat.interval.ms": str(min(options.session_timeout_ms // 3, 2_000)),
    }
    with KafkaCluster(properties=properties) as cluster, tempfile.TemporaryDirectory() as folder:
        job = Job(
            bootstrap=cluster.bootstrap,
            topic=TOPIC,
            journal=Path(folder) / "journal",
            partitions=options.partitions,
            seconds=options.seconds,
            rate=options.rate,
            value_size=options.value_size,
            transactions=options.transactions,
            loop=options.loop,
        )
        prepare(cluster, job)
        faults = Faults(cluster, TOPIC, options.seed, options.seconds if options.kills else 0.0)
        with Program(client, job, Path(folder) / "errors", tell) as program:
            program.wait_ready()
            faults.run(tell, program.ended)
            problem = program.wait_ended(options.seconds)
        tell("reading back")
        lines, said = read_journal(job.journal), program.figures
        handed = said.get("handed", program.handed)
        logs, still_open = read_back(job)
    wrongs = check(job, lines, handed, logs) | {"open": still_open}
    errors = Counter(line["error"] for line in lines if "error" in line)
    return {
        "client": client,
        "seed": options.seed,
        "transactions_of": job.transactions,
        "problem": problem,
        **said,
        "handed": handed,
        **figures(job, lines, logs),
        "wrong": sum(wrongs[name] for name in WRONGS),
        **wrongs,
        "errors": dict(errors.most_common(8)),
        "kills": faults.as_json(),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=client_names, default=tuple(CLIENTS), help=f"some of {','.join(CLIENTS)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each client sends (60)")
    parser.add_argument("--seed", type=int, default=1, help="of the schedule (1)")
    parser.add_argument("--transactions", type=int, default=0, metavar="N", help="send transactions of N records")
    parser.add_argument("--rate", type=positive, default=2_000, help="records per second (2000)")
    parser.add_argument("--partitions", type=positive, default=6, help="partitions of the topic (6)")
    parser.add_argument("--value-size", type=positive, default=100, help="bytes of each value (100)")
    parser.add_argument("--loop", choices=("asyncio", "uvloop", "trio"), default="asyncio", help="trio: ours only")
    parser.add_argument("--session-timeout-ms", type=positive, default=9_000, help="broker.session.timeout.ms (9000)")
    parser.add_argument("--no-kills", dest="kills", action="store_false", help="the same without faults")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append one line of JSON for each client")
    options = parser.parse_args()
    if options.loop == "trio" and "aiokafka" in options.clients:
        parser.error("--loop trio: aiokafka knows asyncio alone")
    absent = [one for one in options.clients if not has_module(CLIENTS[one])]
    if absent:
        parser.error(f"not installed: {', '.join(absent)}")
    return options


def _settings(options: argparse.Namespace) -> dict[str, str]:
    what = "numbered records"
    if options.transactions:
        what = f"transactions of {options.transactions} records, every {ABORTED_EVERY}th aborted on purpose"
    return {
        "kafka": f"Apache Kafka {NEWEST} on this machine: a controller and three brokers, booted anew for each client; "
        f"replication.factor 3, min.insync.replicas 2, broker.session.timeout.ms {options.session_timeout_ms}",
        "records": f"{what}, {options.rate} records/s for {options.seconds:.0f} s, values of {options.value_size} "
        f"bytes, {options.partitions} partitions",
        "clients": f"acks=all, idempotent, linger {LINGER_MS} ms, {options.loop}, otherwise their defaults",
        "schedule": f"seed {options.seed}" if options.kills else "nobody is killed",
    }


if __name__ == "__main__":
    sys.exit(main())
