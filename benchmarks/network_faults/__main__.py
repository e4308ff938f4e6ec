"""Clients on a network that fails: aiokafkawire, confluent-kafka and aiokafka, under the same faults at the same times.

Three brokers of Apache Kafka listen in a network namespace; each client has a namespace of its own, and a link between
the two whose losses, delays and memory this program decides. It needs root, /dev/net/tun, Java and Maven.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from support.apache_kafka import NEWEST, resolve
from support.apache_kafka import missing as missing_kafka
from support.guarded_process import BootFailed
from support.kafka_cluster import KafkaCluster

from benchmarks.arguments import positive
from benchmarks.faults.program import ClientFailed
from benchmarks.machine import describe
from benchmarks.network_faults.emulator import congestion_control
from benchmarks.network_faults.kinds import KINDS
from benchmarks.network_faults.namespaces import (
    BROKERS,
    ClientNetwork,
    enter_network_of_brokers,
    missing,
    name_of,
)
from benchmarks.network_faults.plot import draw
from benchmarks.network_faults.schedule import Network, duration
from benchmarks.progress import tell
from benchmarks.recovery.command_line import exit_status, figures, new_parser, parse
from benchmarks.recovery.report import markdown, write_into
from benchmarks.recovery.run import Load, Row, Run, pooled

_EPILOG: Final = """\
examples, each after `python -m benchmarks.network_faults`:
                                         all kinds, all clients
  --clients ours --kinds cut,half-open   some
  --faults 9 --kinds loss-30             many of one kind
  --runs 4 --kinds slow                  the same in four runs, since much of a run depends on its connections
  --json FILE --docs docs                keep the figures, and write the tables and the picture of docs/faults.md
  --show FILE --docs docs                write them again
"""
_MOVES: Final = 20
"""How often each broker may get another address."""


def main() -> int:
    parser = new_parser("benchmarks.network_faults", __doc__, _EPILOG, KINDS, faults=3)
    parser.add_argument("--runs", type=positive, default=1, help="of each kind; their faults count together (1)")
    parser.add_argument("--at-once", type=positive, default=2, help="kinds that run at the same time (2)")
    parser.add_argument("--seed", type=int, default=1, help="of what the links lose (1)")
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="write the tables into its faults.md, and the plot")
    options = parse(parser)
    about, rows = figures(options, _measure)
    if options.docs is not None:
        write_into(options.docs / "faults.md", "networks", markdown(about, rows))
        draw(rows, options.docs / "plots")
    return exit_status(rows)


def _measure(options: argparse.Namespace) -> tuple[dict[str, str], list[Row]]:
    lacks = missing_kafka() or missing()
    if lacks is not None:
        raise SystemExit(f"cannot emulate networks here. {lacks}")
    about = describe(sys.argv) | {
        "kafka": f"Apache Kafka {NEWEST}: a controller and three brokers; replication.factor 3, min.insync.replicas 2",
        "load": f"{options.rate} records/s of {options.value_size} bytes for each producer and each reader, "
        f"{options.faults * options.runs} faults of each kind in {options.runs} runs, {options.at_once} runs at once, "
        f"{options.loop}",
    }
    resolve(NEWEST)  # Maven needs the network that this process leaves
    enter_network_of_brokers(_MOVES)
    about["load"] += f", TCP with {congestion_control()}"
    tell("booting the cluster")
    try:
        with KafkaCluster(outside={node: name_of(node) for node in BROKERS}) as cluster:
            return about, _run_all(cluster, options)
    except (BootFailed, ClientFailed) as failed:
        raise SystemExit(str(failed)) from None


def _run_all(cluster: KafkaCluster, options: argparse.Namespace) -> list[Row]:
    """Run some kinds at once, and those that kill brokers alone afterwards; return the rows in the order of the kinds.

    :raises BootFailed, ClientFailed: a broker or a client's program did not start.
    """
    load = Load(options.rate, options.value_size, options.loop)
    free: SimpleQueue[Network] = SimpleQueue()

    def run(name: str, number: int) -> list[Row]:
        network, kind = free.get(), KINDS[name]
        named = f"{name}-{number}" if options.runs > 1 else name
        within = {client: link.within() for client, link in network.links.items()}
        try:
            with Run(named, kind.title, cluster, within, load, cluster.outside_bootstrap) as one:
                network.calm(kind)
                return one.rows(
                    duration(kind, options.faults), lambda topics, news: network.run(kind, options.faults, topics, news)
                )
        finally:
            network.calm(kind)
            free.put(network)

    with ExitStack() as stack:
        numbers = count(1)
        for _ in range(options.at_once):
            links = {
                client: stack.enter_context(ClientNetwork(next(numbers), options.seed)) for client in options.clients
            }
            free.put(Network(cluster, links))
        wanted = [(name, number) for name in options.kinds for number in range(1, options.runs + 1)]
        alone = [one for one in wanted if KINDS[one[0]].kills]
        found: dict[tuple[str, int], list[Row]] = {}
        with ThreadPoolExecutor(options.at_once) as pool:
            # The longest first, so that all end at about the same time.
            together = sorted(set(wanted) - set(alone), key=lambda one: -duration(KINDS[one[0]], options.faults))
            found |= zip(together, pool.map(lambda one: run(*one), together), strict=True)
        found |= {one: run(*one) for one in alone}
    every = range(1, options.runs + 1)
    return [row | {"kind": name} for name in options.kinds for row in pooled([found[name, number] for number in every])]


if __name__ == "__main__":
    sys.exit(main())
