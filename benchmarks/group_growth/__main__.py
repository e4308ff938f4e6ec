"""The cost of one more member for the others of a large group, in the consumer protocol (KIP-848) or the classic one.

Fifty consumers in a few processes share a topic of 500 partitions on one Apache Kafka. The clock runs until all have
their share. Then a producer (aiokafkawire's, acks=all) writes at a steady rate, and one more consumer joins: the clock
runs until all have equal shares again, and the members' reads are compared with the producer's journal. aiokafkawire,
Java's KafkaConsumer (a thread for each consumer) and confluent-kafka take turns, on one cluster, with new groups.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from support.apache_kafka import missing

from benchmarks.arguments import LOOPS, names_of, positive, require_installed
from benchmarks.cluster import create_topics, delete_topics, kafka
from benchmarks.faults.journal import Job as ProducerJob
from benchmarks.faults.journal import read_journal
from benchmarks.faults.program import ClientFailed, Program, Progress
from benchmarks.group_growth.crowd import Job
from benchmarks.group_growth.judge import LATE, Growth, figures
from benchmarks.group_growth.processes import Process, owners, program_of, wait_shared
from benchmarks.group_growth.report import Row, render
from benchmarks.java import JAVA, CompilationFailed
from benchmarks.machine import describe
from benchmarks.progress import progress

CLIENTS = ("ours", JAVA, "confluent")
EPILOG = f"""\
examples, each after `python -m benchmarks.group_growth`:
                                        all clients, three rounds each
  --protocol classic                    the same with JoinGroup, cooperative-sticky
  --clients ours,java --rounds 5        two of them
  --heartbeat-interval-ms 1000          members learn of their assignments from heartbeats
  --consumers 4 --partitions 20 --rounds 1 --seconds 15
                                        does everything work?

The columns: all join is the time until all have their shares, one more until they have them again; moved are the
partitions that have another owner then. Unread are the records that were acknowledged and not read, at the worst
moment meanwhile; late those that were read more than {LATE:g} s after their acknowledgement, and latest the latest of
them. A gap is the longest time without a record of one partition, of those that stayed with their owner and of those
that moved; with the default rate it is 0.25 s when nothing happens, and it cannot be shorter than the producer's own.
The exit status is 1 if aiokafkawire lost a record, or if a client could not be run.
"""
_ASSEMBLING = 180.0
_BEFORE = 5.0
"""Seconds that the producer runs at least before one more consumer joins."""
_DRAIN = 30.0


class _Silence(Progress):
    """Prints no counts of the producer below the bar."""

    def progress(self, line: dict[str, Any]) -> None:
        pass


def main() -> int:
    options = _options()
    lacks = missing()
    if lacks is not None:
        raise SystemExit(f"cannot boot Apache Kafka here. {lacks}")
    about = describe(sys.argv)
    rows: list[Row] = []
    steps = [(number, client) for number in range(1, options.rounds + 1) for client in _turn(options.clients, number)]
    with kafka(properties=_broker_properties(options)) as cluster, progress(len(steps)) as advance:
        about |= {"kafka": cluster.description, **_settings(options)}
        for number, client in steps:
            advance(f"round {number}: {client}")
            try:
                rows.append({"client": client, "round": number, **_measure(client, cluster.bootstrap, number, options)})
            except (ClientFailed, CompilationFailed) as failed:
                raise SystemExit(f"{client}: {failed}") from None
            if options.json is not None:
                with options.json.open("a") as file:
                    file.write(json.dumps({"about": about, **rows[-1]}) + "\n")
    print(render(about, rows))
    return 1 if any(row["problems"] or (row["client"] == "ours" and row["lost"]) for row in rows) else 0


def _turn(clients: tuple[str, ...], number: int) -> tuple[str, ...]:
    return clients if number % 2 else clients[::-1]


def _measure(client: str, bootstrap: str, number: int, options: argparse.Namespace) -> Row:
    """Return the figures of one group, from its first consumer to the last."""
    topic = f"growth-{client}-{number}"
    create_topics(bootstrap, [topic], options.partitions)
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        folder = Path(name)
        command = program_of(client, folder)
        processes = []
        for index, consumers in enumerate([*_shares(options.consumers, _processes(client, options)), 1]):
            job = Job(bootstrap, topic, consumers, options.protocol, options.loop)
            process = Process(str(index), command, job, folder / f"errors-{index}")
            processes.append(opened.enter_context(process))
        # Members learn of their new assignments from heartbeats, so the time between two of them matters.
        pause = _BEFORE + random.Random(number).uniform(0, options.heartbeat_interval_ms / 1000)
        row = _grow(processes, _producer_job(bootstrap, topic, folder, options), client, pause)
    delete_topics(bootstrap, [topic])
    return row


def _grow(processes: list[Process], job: ProducerJob, client: str, pause: float) -> Row:
    """Let all processes but the last join, and the last when records have come for a while; return the figures."""
    *crowd, newcomer = processes
    for process in processes:
        process.wait_ready()
    began = time.monotonic()
    for process in crowd:
        process.join_group()
    assembled = wait_shared(crowd, job.partitions, _ASSEMBLING) - began
    with Program("ours", job, job.journal.with_name("errors"), _Silence(client, job.seconds)) as producer:
        producer.wait_ready()
        writing = time.monotonic()
        time.sleep(pause)
        before, ordered = owners(crowd), time.monotonic()
        newcomer.join_group()
        shared = wait_shared(processes, job.partitions, _ASSEMBLING)
        growth = Growth(ordered, shared, before, owners(processes))
        problem = producer.wait_ended(job.seconds)
    lines = read_journal(job.journal)
    _wait_read(processes, {line["record"] for line in lines if "error" not in line})
    closing = time.monotonic()
    for process in processes:
        process.order_close()
    problems = [problem, *[process.wait_closed() for process in processes]]
    closed = time.monotonic() - closing
    return {
        "version": newcomer.version,
        "assembled_s": assembled,
        **figures(lines, [read for process in processes for read in process.reads], writing, growth),
        "closed_s": closed,
        "problems": [text for text in problems if text],
        "errors": dict(sum((process.errors for process in processes), Counter[str]()).most_common(8)),
    }


def _wait_read(processes: list[Process], numbers: set[int]) -> None:
    """Wait until all of these have been read, or for half a minute."""
    deadline = time.monotonic() + _DRAIN
    while time.monotonic() < deadline:
        if numbers <= {read.number for process in processes for read in process.reads.copy()}:
            return
        time.sleep(0.5)


def _shares(total: int, parts: int) -> list[int]:
    least, more = divmod(total, parts)
    return [least + (index < more) for index in range(parts)]


def _processes(client: str, options: argparse.Namespace) -> int:
    return 1 if client == JAVA else min(options.processes, options.consumers)


def _producer_job(bootstrap: str, topic: str, folder: Path, options: argparse.Namespace) -> ProducerJob:
    return ProducerJob(
        bootstrap=bootstrap,
        topic=topic,
        journal=folder / "journal",
        partitions=options.partitions,
        seconds=options.seconds,
        rate=options.rate,
        value_size=100,
        transactions=0,
        loop="asyncio",
    )


def _broker_properties(options: argparse.Namespace) -> dict[str, str]:
    interval = str(options.heartbeat_interval_ms)
    return {
        "group.consumer.heartbeat.interval.ms": interval,
        "group.consumer.min.heartbeat.interval.ms": interval,
        "group.initial.rebalance.delay.ms": "0",
        # Otherwise all partitions write their first index entries at the same time, and slow disks stop the producer.
        "log.index.interval.bytes": "1000000000",
    }


def _settings(options: argparse.Namespace) -> dict[str, str]:
    return {
        "group": f"{options.consumers} consumers and one more, {options.partitions} partitions, {options.protocol} "
        f"protocol, group.consumer.heartbeat.interval.ms {options.heartbeat_interval_ms}; {options.processes} "
        f"processes of ours ({options.loop}) and of confluent's, one of Java's",
        "records": f"{options.rate} records/s for {options.seconds:g} s, values of 100 bytes, by one producer of "
        "aiokafkawire, acks=all",
        "rounds": f"{options.rounds}, every other one backwards; the median, and the range of the rounds",
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.group_growth",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--clients", type=names_of(CLIENTS), default=CLIENTS, help=f"some of {','.join(CLIENTS)}")
    parser.add_argument("--protocol", choices=("consumer", "classic"), default="consumer", help="(consumer)")
    parser.add_argument("--rounds", type=positive, default=3, help="groups of each client (3)")
    parser.add_argument("--consumers", type=positive, default=50, help="of the group, without the one more (50)")
    parser.add_argument("--partitions", type=positive, default=500, help="of the topic (500)")
    parser.add_argument("--processes", type=positive, default=2, help="that the consumers share; Java has one (2)")
    parser.add_argument("--rate", type=positive, default=2_000, help="records per second (2000)")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long records are written (30)")
    parser.add_argument("--heartbeat-interval-ms", type=positive, default=5_000, help="the brokers' setting (5000)")
    parser.add_argument("--loop", choices=LOOPS, default="asyncio", help="of aiokafkawire (asyncio)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append one line of JSON for each group")
    options = parser.parse_args()
    require_installed(parser, options.clients)
    if options.consumers >= options.partitions:
        parser.error("--consumers: there must be a partition for each, and one more")
    return options


if __name__ == "__main__":
    sys.exit(main())
