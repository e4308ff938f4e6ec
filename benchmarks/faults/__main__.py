"""Producers while brokers die: aiokafkawire, confluent-kafka and aiokafka, each on a fresh cluster of three brokers.

Every client sends numbered records at a steady rate while the broker that leads most is killed, again and again, by the
same schedule. Then everything is read back: what was acknowledged must be there, once, and in order.
The program of aiokafka runs on aiokafkawire.aiokafka too.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from support.kafka_cluster import KafkaCluster

from benchmarks.faults.journal import ABORTED_EVERY, LINGER_MS, read_journal
from benchmarks.faults.judge import WRONGS, count_wrongs, figures, find_anomalies, read_back
from benchmarks.faults.program import Program, Progress, prepare
from benchmarks.faults.report import render
from benchmarks.faults.running import TOPIC, Row, broker_properties, job_of, parsed, parser_of, run_each
from benchmarks.faults.schedule import Faults

_SHOWN = 3
"""The counterexamples in the report."""
EPILOG = """\
examples, each after `python -m benchmarks.faults`:
                                        records, all clients, a minute of faults each
  --transactions 100                    transactions of 100 records, every tenth aborted on purpose
  --clients ours --seconds 600 --seed 7 ten minutes of one client, by another schedule
  --seconds 20                          does everything work?

A client takes up to a minute more than --seconds. The exit status is 1 if anything is wrong with aiokafkawire, or if a
client could not be run; what the peers do wrong is in the report.
"""


def main() -> int:
    parser = parser_of("benchmarks.faults", __doc__, EPILOG, rate=2_000)
    parser.add_argument("--transactions", type=int, default=0, metavar="N", help="send transactions of N records")
    options = parsed(parser)
    return run_each(options, _settings(options), _run, render)


def _run(client: str, options: argparse.Namespace) -> Row:
    """Run one client on a cluster of its own; return its row of the report."""
    tell = Progress(client, options.seconds)
    tell("booting the cluster")
    with KafkaCluster(properties=broker_properties(options)) as cluster, tempfile.TemporaryDirectory() as folder:
        job = job_of(cluster, Path(folder), options, transactions=options.transactions, loop=options.loop)
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
    anomalies = find_anomalies(job, lines, handed, logs)
    wrongs = count_wrongs(job, lines, handed, anomalies) | {"open": still_open}
    errors = Counter(line["error"] for line in lines if "error" in line)
    return {
        "client": client,
        "seed": options.seed,
        "transactions_of": job.transactions,
        "problems": [problem] if problem else [],
        **said,
        "handed": handed,
        **figures(job, lines, logs),
        "wrong": sum(wrongs[name] for name in WRONGS),
        **wrongs,
        "counterexamples": [str(anomaly) for anomaly in anomalies[:_SHOWN]],
        "errors": dict(errors.most_common(8)),
        "kills": faults.as_json(),
    }


def _settings(options: argparse.Namespace) -> dict[str, str]:
    what = "numbered records"
    if options.transactions:
        what = f"transactions of {options.transactions} records, every {ABORTED_EVERY}th aborted on purpose"
    return {
        "records": f"{what}, {options.rate} records/s for {options.seconds:.0f} s, values of {options.value_size} "
        f"bytes, {options.partitions} partitions",
        "clients": f"acks=all, idempotent, linger {LINGER_MS} ms, {options.loop}, otherwise their defaults",
        "schedule": f"seed {options.seed}" if options.kills else "nobody is killed",
    }


if __name__ == "__main__":
    sys.exit(main())
