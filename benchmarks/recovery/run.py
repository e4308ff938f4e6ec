"""One run: a producer and a reader of each client, through the faults of one kind."""

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from support.kafka_cluster import KafkaCluster

from benchmarks.faults.journal import Job, read_journal
from benchmarks.faults.judge import WRONGS, count_wrongs, find_anomalies, read_back
from benchmarks.faults.program import Program, Progress, prepare
from benchmarks.group_faults.judge import first_reads
from benchmarks.group_faults.member import Membership
from benchmarks.group_faults.processes import Group
from benchmarks.progress import tell
from benchmarks.recovery.judge import READER_WRONGS, Passed, reader_wrongs, recovery
from benchmarks.recovery.windows import Window

Row: TypeAlias = dict[str, Any]

PARTITIONS: Final = 3
_FEEDER: Final = "confluent"
"""The client, beside the brokers, that fills the topic of the readers."""
_DRAIN: Final = 60.0
"""Seconds that readers have for what is left to read."""


@dataclass(frozen=True)
class Load:
    """The records, and the event loop of our client."""

    rate: int
    value_size: int
    loop: str


class Run:
    """The programs of one kind of fault. Everything ends with the ``with`` block.

    `name` is the kind's, with the number of the run if there are several: topics have it in their names. `within` has
    the beginning of a command that runs the programs of a client, for each, and `bootstrap` where they find the
    brokers, if not where this program does.
    """

    def __init__(
        self,
        name: str,
        title: str,
        cluster: KafkaCluster,
        within: Mapping[str, Sequence[str]],
        load: Load,
        bootstrap: str = "",
    ) -> None:
        self._name, self._title, self._cluster, self._load = name, title, cluster, load
        self._within, self._bootstrap = within, bootstrap or cluster.bootstrap

    def __enter__(self) -> "Run":
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def rows(self, seconds: float, faults: Callable[[Sequence[str], Callable[[str], None]], list[Window]]) -> list[Row]:
        """Run the faults while all programs work, and return a row for the producer and for the reader of each client.

        `faults` gets the topics and a function that reports progress, and returns their times.

        :raises ClientFailed: a client's program did not start.
        """
        jobs = {client: self._job(client, seconds, self._bootstrap) for client in self._within}
        feed = self._job("feed", seconds, self._cluster.bootstrap)
        for job in (*jobs.values(), feed):
            prepare(self._cluster, self._seen_by_judge(job))
        readers = {client: self._reader(client, feed.topic) for client in self._within}
        for reader in readers.values():
            reader.wait_ready(PARTITIONS)
        writers = {client: self._writer(client, job, self._within[client]) for client, job in jobs.items()}
        feeder = self._writer(_FEEDER, feed, ())
        for writer, _ in (*writers.values(), feeder):
            writer.wait_ready()
        topics = [job.topic for job in (*jobs.values(), feed)]
        windows = faults(topics, lambda news: tell(f"{self._name:<11} {news}"))
        fed = self._fed(feeder[0], feed, seconds)
        rows = []
        for client in self._within:
            rows.append(self._of_writer(client, jobs[client], *writers[client], windows))
            rows.append(self._of_reader(client, feed, fed, readers[client], feeder[1].began or 0.0, windows))
        return rows

    def _job(self, topic: str, seconds: float, bootstrap: str) -> Job:
        return Job(
            bootstrap=bootstrap,
            topic=f"{self._name}-{topic}",
            journal=self._folder / f"journal-{topic}",
            partitions=PARTITIONS,
            seconds=seconds,
            rate=self._load.rate,
            value_size=self._load.value_size,
            transactions=0,
            loop=self._load.loop,
        )

    def _seen_by_judge(self, job: Job) -> Job:
        return Job(**asdict(job) | {"bootstrap": self._cluster.bootstrap})

    def _reader(self, client: str, topic: str) -> Group:
        # Kafka's own session timeout and heartbeats: no fault is long enough to take the partitions from a reader.
        job = Membership(self._bootstrap, topic, f"{topic}-{client}", "range", 45_000, 3_000, 5_000, self._load.loop)
        folder = self._folder / f"reader-{client}"
        folder.mkdir()
        return self._stack.enter_context(Group(client, job, 1, folder, self._within[client]))

    def _writer(self, client: str, job: Job, within: Sequence[str]) -> tuple[Program, Progress]:
        quiet = _Quiet(client, job.seconds)
        errors = job.journal.with_suffix(".errors")
        return self._stack.enter_context(Program(client, job, errors, quiet, within)), quiet

    def _fed(self, feeder: Program, job: Job, seconds: float) -> list[dict[str, Any]]:
        problem = feeder.wait_ended(seconds)
        if problem:
            raise RuntimeError(f"the producer beside the brokers: {problem}")
        return read_journal(job.journal)

    def _of_writer(self, client: str, job: Job, program: Program, clock: Progress, windows: Sequence[Window]) -> Row:
        problem = program.wait_ended(job.seconds)
        lines, handed = read_journal(job.journal), program.figures.get("handed", program.handed)
        logs, still_open = read_back(self._seen_by_judge(job))
        anomalies = find_anomalies(job, lines, handed, logs)
        wrongs = count_wrongs(job, lines, handed, anomalies) | {"open": still_open}
        began = clock.began or 0.0
        done = {line["record"]: began + line["at"] for line in lines if "error" not in line}
        passed = [Passed(began + job.due(number), done.get(number)) for number in range(handed)]
        return self._row(client, "producer", passed, windows) | {
            "version": program.figures.get("version", "version unknown"),
            "problems": [problem] if problem else [],
            "records": handed,
            "failed": sum("error" in line for line in lines),
            "wrong": sum(wrongs[name] for name in WRONGS),
            "wrongs": {name: count for name, count in wrongs.items() if count},
            "errors": dict(Counter(line["error"] for line in lines if "error" in line).most_common(5)),
            "log_lines": program.figures.get("log_lines"),
            "logged": program.figures.get("logged", {}),
        }

    def _of_reader(
        self,
        client: str,
        job: Job,
        lines: Sequence[dict[str, Any]],
        group: Group,
        began: float,
        windows: Sequence[Window],
    ) -> Row:
        group.wait_read({line["record"] for line in lines if "error" not in line}, _DRAIN)
        for place in group.places:
            group.close(place).join()
        wrongs = reader_wrongs(lines, group.reads, len(lines))
        firsts = first_reads(group.reads)
        # A reader is late from the acknowledgement on.
        passed = [
            Passed(began + line["at"], firsts[line["record"]].at if line["record"] in firsts else None)
            for line in lines
            if "error" not in line
        ]
        return self._row(client, "reader", passed, windows) | {
            "version": group.version,
            "problems": group.problems,
            "records": len(firsts),
            "failed": group.errors.total(),
            "wrong": sum(wrongs[name] for name in READER_WRONGS),
            "wrongs": {name: count for name, count in wrongs.items() if count},
            "errors": dict(group.errors.most_common(5)),
            "log_lines": group.logged.total(),
            "logged": dict(group.logged.most_common(5)),
        }

    def _row(self, client: str, role: str, passed: Sequence[Passed], windows: Sequence[Window]) -> Row:
        found = [asdict(recovery(passed, window)) for window in windows]
        return {"kind": self._name, "title": self._title, "client": client, "role": role, "faults": found}


def pooled(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of several runs of one kind as if it were one run: all their faults, and the sums of counts."""
    return [_pooled(rows) for rows in zip(*runs, strict=True)]


def _pooled(rows: Sequence[Row]) -> Row:
    lists = {name: [one for row in rows for one in row[name]] for name in ("faults", "problems")}
    counts = {name: sum(row[name] or 0 for row in rows) for name in ("records", "failed", "wrong", "log_lines")}
    by_name: Row = {name: Counter() for name in ("wrongs", "errors", "logged")}
    for row in rows:
        for name, found in by_name.items():
            found.update(row[name])
    return rows[0] | lists | counts | by_name


class _Quiet(Progress):
    """Says nothing: several clients run at once."""

    def __call__(self, news: str) -> None:
        return

    def progress(self, line: dict[str, Any]) -> None:
        return
