"""Producers while brokers die: aiokafkawire, confluent-kafka and aiokafka, each on a fresh cluster of three brokers.

Every client sends numbered records at a steady rate while the broker that leads most is killed, again and again, by the
same schedule. Then everything is read back: what was acknowledged must be there, once, and in order.
"""

import argparse
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from support.apache_kafka import NEWEST, BootFailed, missing
from support.kafka_cluster import KafkaCluster

from benchmarks.faults_journal import ABORTED_EVERY, LINGER_MS, Job, command_of, read_journal
from benchmarks.faults_judge import QUIET, WRONGS, check, figures, read_back
from benchmarks.faults_report import render
from benchmarks.faults_schedule import Faults
from benchmarks.machine import ROOT, describe, has_module

CLIENTS = {"ours": "aiokafkawire", "confluent": "confluent_kafka", "aiokafka": "aiokafka"}
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
_READY = 60.0
_PATIENCE = 180.0
"""Seconds that a client has for what is left when its time is over."""


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


class ClientFailed(Exception):
    """A client's program did not begin; the message has what it said."""


def _run(client: str, options: argparse.Namespace) -> dict[str, Any]:
    """One client on a cluster of its own; its row of the report."""
    tell = _Progress(client, options.seconds)
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
        _prepare(cluster, job)
        faults = Faults(cluster, TOPIC, options.seed, options.seconds if options.kills else 0.0)
        with _Program(client, job, Path(folder) / "errors", tell) as program:
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


def _prepare(cluster: KafkaCluster, job: Job) -> None:
    """Create the topic, and that in which the brokers keep transactions, so that no client has to wait for it."""
    # What they log goes nowhere: brokers come and go.
    admin = AdminClient({"bootstrap.servers": job.bootstrap}, logger=QUIET)
    wanted = NewTopic(job.topic, job.partitions, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([wanted])[job.topic].result(60)
    if job.transactions:
        settings = {"bootstrap.servers": job.bootstrap, "transactional.id": "warm-up"}
        Producer(settings, logger=QUIET).init_transactions(60)
    cluster.wait_whole()


class _Program:
    """One client's process, from its start to its end; it does not outlive the ``with`` block."""

    def __init__(self, client: str, job: Job, errors: Path, tell: "_Progress") -> None:
        self.figures: dict[str, Any] = {}
        self.handed = 0
        self.ended = threading.Event()
        self._command = [sys.executable, "-m", f"benchmarks.faults_{client}", *command_of(job)]
        self._errors, self._tell = errors, tell
        self._ready: queue.Queue[bool] = queue.Queue()

    def __enter__(self) -> "_Program":
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def wait_ready(self) -> None:
        """Wait until its clock runs.

        :raises ClientFailed: it ends before, or takes too long.
        """
        try:
            ready = self._ready.get(timeout=_READY)
        except queue.Empty:
            ready = False
        if not ready:
            raise ClientFailed(f"it did not begin:\n{self._said()}")

    def wait_ended(self, seconds: float) -> str:
        """Wait for its end; what was wrong with that, or an empty string."""
        if not self.ended.wait(max(seconds + _PATIENCE - self._tell.at, 1.0)):
            return f"it had not ended {_PATIENCE:.0f} s after its time"
        status = self._process.wait()
        return f"it ended with status {status}:\n{self._said()}" if status or not self.figures else ""

    def _said(self) -> str:
        return "\n".join(self._errors.read_text(errors="replace").splitlines()[-30:])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line = json.loads(text)
            if "ready" in line:
                self._tell.begin()
                self._ready.put(True)
            elif "figures" in line:
                self.figures = line["figures"]
            else:
                self.handed = line["handed"]
                self._tell.progress(line)
        self.ended.set()
        self._ready.put(False)


class _Progress:
    """What happens, a line each on standard error: news at once, counts every five seconds."""

    def __init__(self, client: str, seconds: float) -> None:
        self._client, self._seconds, self._next = client, seconds, 5.0
        self._began: float | None = None

    def begin(self) -> None:
        """The client's clock runs."""
        self._began = time.monotonic()

    @property
    def at(self) -> float:
        """Seconds since then."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    def __call__(self, news: str) -> None:
        self._print(news)

    def progress(self, line: dict[str, Any]) -> None:
        if line["at"] >= self._next:
            self._next = line["at"] + 5
            counts = ", ".join(f"{line[name]:,} {name}" for name in ("handed", "acknowledged", "failed"))
            self._print(counts)

    def _print(self, text: str) -> None:
        print(f"{self._client:<9} {self.at:4.0f}/{self._seconds:.0f} s  {text}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=_clients, default=tuple(CLIENTS), help=f"some of {','.join(CLIENTS)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each client sends (60)")
    parser.add_argument("--seed", type=int, default=1, help="of the schedule (1)")
    parser.add_argument("--transactions", type=int, default=0, metavar="N", help="send transactions of N records")
    parser.add_argument("--rate", type=_positive, default=2_000, help="records per second (2000)")
    parser.add_argument("--partitions", type=_positive, default=6, help="partitions of the topic (6)")
    parser.add_argument("--value-size", type=_positive, default=100, help="bytes of each value (100)")
    parser.add_argument("--loop", choices=("asyncio", "uvloop", "trio"), default="asyncio", help="trio: ours only")
    parser.add_argument("--session-timeout-ms", type=_positive, default=9_000, help="broker.session.timeout.ms (9000)")
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


def _clients(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in CLIENTS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(CLIENTS)}")
    return names


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1 is needed, got {text}")
    return number


if __name__ == "__main__":
    sys.exit(main())
