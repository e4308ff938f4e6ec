"""Code of the programs that run clients under fault: their options, and one client after the other."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from confluent_kafka import KafkaException
from support.apache_kafka import NEWEST, missing
from support.guarded_process import BootFailed
from support.kafka_cluster import KafkaCluster

from benchmarks.aiokafka_api.job import PACKAGES
from benchmarks.arguments import LOOPS, names_of, positive, require_installed
from benchmarks.contenders import DROP_IN, OURS
from benchmarks.faults.journal import Job
from benchmarks.faults.program import ClientFailed
from benchmarks.java import CompilationFailed
from benchmarks.machine import describe
from benchmarks.progress import tell

Row: TypeAlias = dict[str, Any]

CLIENTS = (OURS, "confluent", "aiokafka", DROP_IN)
TOPIC = "faults"


def parser_of(
    module: str, description: str | None, epilog: str, *, rate: int, clients: Sequence[str] = CLIENTS
) -> argparse.ArgumentParser:
    """Return a parser of the options of both programs, for these clients."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--clients", type=names_of(clients), help=f"some of {','.join(clients)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long records are sent for each client (60)")
    parser.add_argument("--seed", type=int, default=1, help="of the schedule (1)")
    parser.add_argument("--runs", type=positive, default=1, help="of each client, with this and the next seeds (1)")
    parser.add_argument("--rate", type=positive, default=rate, help=f"records per second ({rate})")
    parser.add_argument("--partitions", type=positive, default=6, help="partitions of the topic (6)")
    parser.add_argument("--value-size", type=positive, default=100, help="bytes of each value (100)")
    parser.add_argument("--loop", choices=LOOPS, default="asyncio", help="trio: ours only")
    parser.add_argument("--session-timeout-ms", type=positive, default=9_000, help="broker.session.timeout.ms (9000)")
    parser.add_argument("--no-kills", dest="kills", action="store_false", help="no broker is killed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append one line of JSON for each client")
    return parser


def parsed(
    parser: argparse.ArgumentParser, clients: Callable[[argparse.Namespace], Sequence[str]] = lambda _: CLIENTS
) -> argparse.Namespace:
    """Return the command line's options, by default with these clients; refuse those that no client supports."""
    options = parser.parse_args()
    options.clients = options.clients or tuple(clients(options))
    if options.loop == "trio" and runs_aiokafka(options):
        parser.error("--loop trio: aiokafka knows asyncio alone; choose --clients without it")
    require_installed(parser, options.clients)
    return options


def runs_aiokafka(options: argparse.Namespace) -> bool:
    """Return whether a client runs the program of aiokafka, on aiokafka or on our package."""
    return not set(PACKAGES).isdisjoint(options.clients)


def broker_properties(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings of the cluster."""
    return {
        "broker.session.timeout.ms": str(options.session_timeout_ms),
        "broker.heartbeat.interval.ms": str(min(options.session_timeout_ms // 3, 2_000)),
    }


def job_of(cluster: KafkaCluster, folder: Path, options: argparse.Namespace, *, transactions: int, loop: str) -> Job:
    """Return the job of the producing client; `transactions` is the number of records of each, 0 for none."""
    return Job(
        bootstrap=cluster.bootstrap,
        topic=TOPIC,
        journal=folder / "journal",
        partitions=options.partitions,
        seconds=options.seconds,
        rate=options.rate,
        value_size=options.value_size,
        transactions=transactions,
        loop=loop,
    )


def run_each(
    options: argparse.Namespace,
    settings: Mapping[str, str],
    run: Callable[[str, argparse.Namespace], Row],
    render: Callable[[Mapping[str, str], list[Row]], str],
) -> int:
    """Run one client after the other, with each seed, and print the report; the exit status.

    It is 1 where a row has `problems`, or is ours and has something `wrong`.

    :raises SystemExit: there is no Kafka to boot, or a client could not be run; the message says which and why.
    """
    lacks = missing()
    if lacks is not None:
        raise SystemExit(f"cannot boot Apache Kafka here. {lacks}")
    kafka = (
        f"Apache Kafka {NEWEST} on this machine: a controller and three brokers, booted anew for each client; "
        f"replication.factor 3, min.insync.replicas 2, broker.session.timeout.ms {options.session_timeout_ms}"
    )
    about = describe(sys.argv) | {"kafka": kafka, **settings}
    rows: list[Row] = []
    runs = list(product(range(options.seed, options.seed + options.runs), options.clients))
    for number, (seed, client) in enumerate(runs, 1):
        tell(f"{number}/{len(runs)} {client}, seed {seed}")
        try:
            rows.append(run(client, argparse.Namespace(**{**vars(options), "seed": seed})))
        except (BootFailed, KafkaException, ClientFailed, CompilationFailed) as failed:
            raise SystemExit(f"{client}: {failed}") from None
        if options.json is not None:
            with options.json.open("a") as file:
                file.write(json.dumps({"about": about, **rows[-1]}) + "\n")
    print(render(about, rows))
    return 1 if any(row["problems"] or (row["client"] in (OURS, DROP_IN) and row["wrong"]) for row in rows) else 0
