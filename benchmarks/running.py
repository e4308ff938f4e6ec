"""The runner of cases: each measurement is a new process, contenders take turns, every other round runs backwards."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final

from aiokafkawire import KafkaError
from benchmarks.cases import Case, Row
from benchmarks.clients.measurement import Job
from benchmarks.cluster import Kafka, create_topics, delete_topics, records_in
from benchmarks.codec.program import Job as CodecJob
from benchmarks.contenders import CLIENTS, FILES, NO_LOOP, OURS, Contender
from benchmarks.machine import ROOT, has_module
from benchmarks.progress import tell
from benchmarks.rebalance.program import Job as RebalanceJob

JOBS: Final[Mapping[str, Any]] = {"rebalance": RebalanceJob, "messages": CodecJob}
"""The settings of the programs of a task; other tasks have those of `Job`."""
_PLACES: Final = ("bootstrap", "ca_file", "topic")
_GIVEN: Final = (*_PLACES, "way", "loop", "client", "records", "message", "direction", "tls", "samples", "group")
"""Settings that only cases and contenders determine."""
_READING: Final = ("consume", "share")
"""Tasks that read topics which are filled before."""
_FILLERS: Final = ("confluent", OURS)


class MeasurementFailed(Exception):
    """A measurement has no figures; the message has the cause."""


@dataclass(frozen=True)
class Wanted:
    """The settings of a run."""

    rounds: int
    records: int
    timeout: float
    """Seconds that one measurement may take."""
    warm_up: bool
    settings: Mapping[str, Any]
    """Settings of all cases that have them, instead of the cases' own."""


def settings_of(task: str) -> dict[str, Any]:
    """Return names and defaults of a task's settings."""
    return {one.name: one.default for one in fields(JOBS.get(task, Job)) if one.name not in _GIVEN}


class Run:
    """The measurements of one run, and the topics made for them."""

    def __init__(self, kafka: Kafka | None, wanted: Wanted) -> None:
        self.rows: list[Row] = []
        self.failures: list[Row] = []
        self._kafka, self._wanted = kafka, wanted
        self._prefix = f"benchmark-{datetime.now(UTC).strftime('%Y%m%d%H%M%S%f')}"
        self._numbers = count(1)

    def measure(self, case: Case, contenders: Sequence[Contender]) -> Iterator[str]:
        """Run a case; before each measurement, yield its description."""
        try:
            with self._topics(case, contenders) as topics:
                if self._wanted.warm_up:
                    for one in {one.client: one for one in reversed(contenders)}.values():
                        tell(f"warming up: {case.full_name}, {one.label}")
                        self._try(case, one, topics, 0)
                for number in range(1, self._wanted.rounds + 1):
                    for one in contenders if number % 2 else reversed(contenders):
                        yield f"{case.full_name}, round {number}: {one.label}"
                        self._try(case, one, topics, number)
        except (MeasurementFailed, KafkaError) as failed:
            self._failed(case, contenders[0], 0, f"its topics could not be created: {failed}")

    def _try(self, case: Case, one: Contender, topics: Mapping[int, str], number: int) -> None:
        """Run one measurement. Keep a failed one as a failure, and continue. Round 0 only warms up."""
        try:
            figures = self._figures(case, one, topics)
        except (MeasurementFailed, KafkaError) as failed:
            self._failed(case, one, number, str(failed))
        else:
            if number:
                self.rows.append({**_who(case, one, number), **figures})

    def _failed(self, case: Case, one: Contender, number: int, error: str) -> None:
        tell(f"FAILED {case.full_name}, {one.label}: {error}")
        self.failures.append({**_who(case, one, number), "error": error})

    def _figures(self, case: Case, one: Contender, topics: Mapping[int, str]) -> Row:
        records = case.records(one.client, self._wanted.records)
        if case.task == "messages":
            return self._run(case, one, "", records)
        if case.task in _READING:
            return self._run(case, one, topics[records], records)
        if topics:
            return self._counted(case, one, topics[0], records)
        with self._new_topic(case) as topic:
            measure = self._run if case.task == "rebalance" else self._counted
            return measure(case, one, topic, records)

    def _counted(self, case: Case, one: Contender, topic: str, records: int) -> Row:
        """Run a measurement that writes, and compare the number of records with the brokers'."""
        job = self._job(case, topic)
        before = self._records_in(job)
        figures = self._run(case, one, topic, records)
        expected = before + records + len(job.places)
        if (found := self._records_in(job)) != expected:
            raise MeasurementFailed(f"the brokers hold {found} records, {expected} were sent")
        return figures

    # --- topics ---------------------------------------------------------------------------------------------

    @contextmanager
    def _topics(self, case: Case, contenders: Sequence[Contender]) -> Iterator[Mapping[int, str]]:
        """Yield the topics that a case's measurements share: filled ones by number of records, or one for all as 0."""
        numbers: set[int] = {0} if case.keeps_topic else set()
        if case.task in _READING:
            numbers = {case.records(one.client, self._wanted.records) for one in contenders}
        topics: dict[int, str] = {}
        try:
            for records in sorted(numbers):
                topics[records] = self._create(case)
                if records:
                    self._fill(case, topics[records], records)
            yield topics
        finally:
            for topic in topics.values():
                self._delete(case, topic)

    @contextmanager
    def _new_topic(self, case: Case) -> Iterator[str]:
        topic = self._create(case)
        try:
            yield topic
        finally:
            self._delete(case, topic)

    def _fill(self, case: Case, topic: str, records: int) -> None:
        filler = next(one for one in _FILLERS if has_module(CLIENTS[one]))
        tell(f"filling {case.full_name}: {records:,} records by {filler}")
        plain = {
            name: value for name, value in case.settings.items() if name not in ("tls", "consumers", "samples", "group")
        }
        filling = Case(case.benchmark, case.name, "consume", plain)
        self._run(filling, Contender(filler, "fill", "asyncio"), topic, records)
        if (found := self._records_in(self._job(case, topic))) != records:
            raise MeasurementFailed(f"the brokers hold {found} records, {records} were sent")

    def _create(self, case: Case) -> str:
        assert self._kafka is not None
        job = self._job(case, f"{self._prefix}-{next(self._numbers)}")
        create_topics(self._kafka.bootstrap, job.names, job.partitions)
        return job.topic

    def _delete(self, case: Case, topic: str) -> None:
        assert self._kafka is not None
        delete_topics(self._kafka.bootstrap, self._job(case, topic).names)

    def _records_in(self, job: Job) -> int:
        assert self._kafka is not None
        return records_in(self._kafka.bootstrap, job.names, job.partitions)

    def _job(self, case: Case, topic: str) -> Job:
        """Return the part of the job that names topics and partitions."""
        settings = self._settings(case)
        return Job(topic=topic, topics=settings.get("topics", 1), partitions=settings.get("partitions", 4))

    # --- processes ------------------------------------------------------------------------------------------

    def _settings(self, case: Case) -> dict[str, Any]:
        known = settings_of(case.task)
        return {**case.settings, **{name: value for name, value in self._wanted.settings.items() if name in known}}

    def _arguments(self, case: Case, one: Contender, topic: str, records: int) -> dict[str, Any]:
        """Return the arguments of a program."""
        settings: dict[str, Any] = {**self._settings(case), "client": one.client, "way": one.way, "topic": topic}
        settings |= {"loop": "asyncio" if one.loop == NO_LOOP else one.loop, "records": records}
        if self._kafka is not None:
            settings["bootstrap"] = self._kafka.bootstrap
            if settings.get("tls"):
                settings |= {"bootstrap": self._kafka.tls_bootstrap, "ca_file": self._kafka.ca_file}
        known = {one.name for one in fields(JOBS.get(case.task, Job))}
        return {name: value for name, value in settings.items() if name in known}

    def _run(self, case: Case, one: Contender, topic: str, records: int) -> Row:
        """Run one program to its end; the figures that it printed.

        :raises MeasurementFailed: it failed, took too long, or printed no figures.
        """
        argument = json.dumps(self._arguments(case, one, topic, records))
        command = [sys.executable, "-m", program_of(case.task, one.client), argument]
        limit = self._wanted.timeout
        try:
            done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            raise MeasurementFailed(f"it did not end within {limit:g} s (--timeout)") from None
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["it said nothing"]
            raise MeasurementFailed(f"status {done.returncode}: {said[-1].strip()}")
        try:
            figures: Row = json.loads(done.stdout.strip().splitlines()[-1])
        except (IndexError, ValueError):
            raise MeasurementFailed(f"it printed no figures but {done.stdout[-200:]!r}") from None
        return figures


def _who(case: Case, one: Contender, number: int) -> Row:
    about: Row = {"benchmark": case.benchmark, "case": case.name, "round": number}
    return about | {"client": one.client, "way": one.way, "loop": one.loop}


def program_of(task: str, client: str) -> str:
    """Return the module that measures a client."""
    if task == "share":
        return f"benchmarks.share.{FILES[client]}"
    shared = {"rebalance": "benchmarks.rebalance.program", "messages": "benchmarks.codec.program"}
    return shared.get(task) or f"benchmarks.clients.{FILES[client]}"
