"""Consumer groups while brokers and members die: aiokafkawire beside confluent-kafka, aiokafka and Java's consumer.

Each client has a fresh cluster. The program of aiokafka runs on aiokafkawire.aiokafka too.

A group of three members, each a process, reads a topic of six partitions that one producer (aiokafkawire's, acks=all)
fills at a steady rate. The broker that leads most is killed, again and again; members are killed too, and others close
in order, by the same schedule for each client. Then the members' reads are compared with the producer's journal.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from support.kafka_cluster import KafkaCluster

from benchmarks.arguments import positive
from benchmarks.faults.journal import Job, read_journal
from benchmarks.faults.judge import figures as producer_figures
from benchmarks.faults.program import Program, Progress, prepare
from benchmarks.faults.running import (
    CLIENTS,
    TOPIC,
    Row,
    broker_properties,
    job_of,
    parsed,
    parser_of,
    run_each,
    runs_aiokafka,
)
from benchmarks.faults.schedule import Faults
from benchmarks.group_faults.judge import WRONGS, check, figures, rebalances
from benchmarks.group_faults.member import Membership
from benchmarks.group_faults.processes import Group
from benchmarks.group_faults.report import render
from benchmarks.group_faults.schedule import Departures
from benchmarks.java import JAVA

EPILOG = """\
examples, each after `python -m benchmarks.group_faults`:
                                        all clients, a minute of faults each
  --assignor cooperative-sticky --clients ours,confluent
                                        the same, rebalancing cooperatively; aiokafka cannot
  --protocol consumer                   the consumer protocol (KIP-848): ours, Java's and confluent; aiokafka has none
  --protocol consumer --runs 5          the same with seeds 1 to 5, and a table of medians
  --clients ours --seconds 600 --seed 7 ten minutes of one client, by another schedule
  --no-kills                            members die, brokers do not
  --no-departures                       brokers die, members do not
  --clients confluent --seconds 15      does everything work?

A client takes up to two minutes more than --seconds. The exit status is 1 if aiokafkawire lost a record, or if a client
could not be run; what the peers do wrong is in the report.
"""
GROUP = "readers"
ASSIGNORS = {"classic": ("range", "cooperative-sticky"), "consumer": ("uniform", "range")}
"""Those of each group protocol, the default first."""
PROTOCOL_CLIENTS = {"classic": CLIENTS, "consumer": ("ours", JAVA, "confluent")}
"""The clients of a run without --clients."""
_DRAIN = 60.0
"""Seconds that the group has, once all brokers and members are back, for what is left to read."""


def main() -> int:
    options = _options()
    return run_each(options, _settings(options), _run, render)


def _run(client: str, options: argparse.Namespace) -> Row:
    """Run one client's group on a cluster of its own; return its row of the report."""
    tell = _Counts(client, options.seconds)
    tell("booting the cluster")
    properties = broker_properties(options)
    properties |= _group_properties(options)
    with KafkaCluster(properties=properties) as cluster, tempfile.TemporaryDirectory() as folder:
        job = job_of(cluster, Path(folder), options, transactions=0, loop="asyncio")
        prepare(cluster, job)
        tell("the group comes together")
        with Group(client, _membership(cluster, options), options.members, Path(folder)) as group:
            tell.group = group
            group.wait_ready(job.partitions)
            cluster.wait_whole()
            row = _under_fault(cluster, group, job, options, tell)
        row["rebalances"] = rebalances(_broker_logs(cluster), GROUP)
    kind = {"protocol": options.protocol, "assignor": options.assignor}
    return {"client": client, "seed": options.seed, **kind, **row}


def _under_fault(cluster: KafkaCluster, group: Group, job: Job, options: argparse.Namespace, tell: "_Counts") -> Row:
    """Run from the first record to the end of the last member."""
    faults = Faults(cluster, TOPIC, options.seed, options.seconds if options.kills else 0.0)
    departures = Departures(group, options.seed, options.seconds if options.departures else 0.0)
    try:
        with Program("ours", job, job.journal.with_name("errors"), tell) as producer:
            producer.wait_ready()
            began = time.monotonic()
            departures.start(tell, producer.ended)
            faults.run(tell, producer.ended)
            problem = producer.wait_ended(options.seconds)
    finally:
        departures.join()
    lines = read_journal(job.journal)
    tell("waiting for what is left to read")
    group.wait_read({line["record"] for line in lines if "error" not in line}, _DRAIN)
    ended = time.monotonic()
    tell("closing the members, one after the other")
    for place in group.places:
        group.close(place).join()
    handed = producer.figures.get("handed", producer.handed)
    wrongs = check(lines, group.reads, handed)
    return {
        "version": group.version,
        "problems": [*([f"the producer: {problem}"] if problem else []), *group.problems],
        "handed": handed,
        "acknowledged": sum("error" not in line for line in lines),
        **figures(lines, group.reads, began, ended),
        "wrong": sum(wrongs[name] for name in WRONGS),
        **wrongs,
        "closes": group.closes,
        "slowest_close_s": max(group.closes, default=None),
        "raised": group.errors.total(),
        "errors": dict(group.errors.most_common(8)),
        "log_lines": group.logged.total(),
        "logged": dict(group.logged.most_common(8)),
        "producer": producer_figures(job, lines, {}),
        "kills": faults.as_json(),
        "departures": departures.as_json(),
    }


def _group_properties(options: argparse.Namespace) -> dict[str, str]:
    """Return the brokers' settings that let members have the times of the command line."""
    timeout, interval = str(options.member_timeout_ms), str(options.member_timeout_ms // 3)
    return {
        "group.min.session.timeout.ms": str(min(options.member_timeout_ms, 6_000)),
        "group.consumer.min.session.timeout.ms": timeout,
        "group.consumer.session.timeout.ms": timeout,
        "group.consumer.min.heartbeat.interval.ms": interval,
        "group.consumer.heartbeat.interval.ms": interval,
    }


def _membership(cluster: KafkaCluster, options: argparse.Namespace) -> Membership:
    return Membership(
        bootstrap=cluster.bootstrap,
        topic=TOPIC,
        group=GROUP,
        assignor=options.assignor,
        session_timeout_ms=options.member_timeout_ms,
        heartbeat_interval_ms=options.member_timeout_ms // 3,
        commit_interval_ms=options.commit_interval_ms,
        loop=options.loop,
        protocol=options.protocol,
    )


def _broker_logs(cluster: KafkaCluster) -> list[str]:
    return [server.log.read_text(errors="replace") for server in cluster._servers.values()]


class _Counts(Progress):
    """Reports the records that the members have read as well."""

    group: Group | None = None

    def counts(self, line: dict[str, Any]) -> str:
        assert self.group is not None
        read, unique = len(self.group.reads), self.group.unique
        return f"{line['acknowledged']:,} acknowledged, {unique:,} read, {read - unique:,} redelivered"


def _options() -> argparse.Namespace:
    parser = parser_of("benchmarks.group_faults", __doc__, EPILOG, rate=1_000, clients=(*CLIENTS, JAVA))
    parser.add_argument("--members", type=positive, default=3, help="members of the group (3)")
    parser.add_argument("--protocol", choices=tuple(ASSIGNORS), default="classic", help="group.protocol (classic)")
    parser.add_argument(
        "--assignor",
        choices=("range", "cooperative-sticky", "uniform"),
        help="classic: range, the default, or cooperative-sticky; consumer: uniform, the default, or range",
    )
    parser.add_argument("--member-timeout-ms", type=positive, default=6_000, help="session.timeout.ms, all (6000)")
    parser.add_argument("--commit-interval-ms", type=positive, default=1_000, help="auto.commit.interval.ms (1000)")
    parser.add_argument("--no-departures", dest="departures", action="store_false", help="no member goes")
    options = parsed(parser, lambda given: PROTOCOL_CLIENTS[given.protocol])
    options.assignor = options.assignor or ASSIGNORS[options.protocol][0]
    if options.assignor not in ASSIGNORS[options.protocol]:
        parser.error(f"--assignor {options.assignor}: not in the {options.protocol} protocol")
    if options.protocol == "consumer" and runs_aiokafka(options):
        parser.error("--protocol consumer: aiokafka does not know it; choose --clients without it")
    if options.assignor == "cooperative-sticky" and runs_aiokafka(options):
        parser.error("--assignor cooperative-sticky: aiokafka has none; choose --clients without it")
    if options.members > options.partitions:
        parser.error("--members: there must be a partition for each, or the group never comes together")
    return options


def _seeds(options: argparse.Namespace) -> str:
    return f"seed {options.seed}" if options.runs == 1 else f"seeds {options.seed} to {options.seed + options.runs - 1}"


def _settings(options: argparse.Namespace) -> dict[str, str]:
    return {
        "records": f"{options.rate} records/s for {options.seconds:.0f} s, values of {options.value_size} bytes, "
        f"{options.partitions} partitions; by one producer of aiokafkawire, acks=all, idempotent",
        "group": f"{options.members} members, a process each; {options.protocol} protocol, {options.assignor}, "
        f"session.timeout.ms {options.member_timeout_ms}, heartbeat.interval.ms {options.member_timeout_ms // 3}, "
        f"auto.commit.interval.ms {options.commit_interval_ms}, {options.loop}, otherwise their defaults",
        "schedule": f"{_seeds(options)}, brokers {'are killed' if options.kills else 'stay'}, members "
        f"{'go' if options.departures else 'stay'}",
    }


if __name__ == "__main__":
    sys.exit(main())
