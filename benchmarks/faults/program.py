"""The program of a client in a run under fault, its topic, and its progress."""

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from support.kafka_cluster import KafkaCluster

from benchmarks.aiokafka_api.program import command_on
from benchmarks.contenders import FILES
from benchmarks.faults.journal import Job, command_of
from benchmarks.faults.judge import QUIET
from benchmarks.machine import ROOT

_READY = 60.0
_PATIENCE = 180.0
"""Seconds that a client has for its remaining records when its time is over."""


class ClientFailed(Exception):
    """A client's program did not start; the message has its output."""


def prepare(cluster: KafkaCluster, job: Job) -> None:
    """Create the topic, and the brokers' topic of transactions, so that no client has to wait for it."""
    # Their logs are discarded: brokers come and go.
    admin = AdminClient({"bootstrap.servers": job.bootstrap}, logger=QUIET)
    wanted = NewTopic(job.topic, job.partitions, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([wanted])[job.topic].result(60)
    if job.transactions:
        settings = {"bootstrap.servers": job.bootstrap, "transactional.id": "warm-up"}
        Producer(settings, logger=QUIET).init_transactions(60)
    cluster.wait_whole()


class Program:
    """One client's process, from its start to its end; it does not outlive the ``with`` block.

    ``within`` is the beginning of a command that runs it elsewhere, as in another network.
    """

    def __init__(self, client: str, job: Job, errors: Path, tell: "Progress", within: Sequence[str] = ()) -> None:
        self.figures: dict[str, Any] = {}
        self.handed = 0
        self.ended = threading.Event()
        self._command = [*within, *command_on(client, f"benchmarks.faults.{FILES[client]}"), *command_of(job)]
        self._errors, self._tell = errors, tell
        self._ready: queue.Queue[bool] = queue.Queue()

    def __enter__(self) -> "Program":
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


class Progress:
    """Progress on standard error: events at once, counts every five seconds."""

    def __init__(self, client: str, seconds: float) -> None:
        self._client, self._seconds, self._next = client, seconds, 5.0
        self.began: float | None = None
        """When the client's clock has started, by `time.monotonic`."""

    def begin(self) -> None:
        """Note that the client's clock has started."""
        self.began = time.monotonic()

    @property
    def at(self) -> float:
        """Seconds since then."""
        return 0.0 if self.began is None else time.monotonic() - self.began

    def __call__(self, news: str) -> None:
        self._print(news)

    def progress(self, line: dict[str, Any]) -> None:
        if line["at"] >= self._next:
            self._next = line["at"] + 5
            self._print(self.counts(line))

    def counts(self, line: dict[str, Any]) -> str:
        """Return the counts in a line that the program printed."""
        return ", ".join(f"{line[name]:,} {name}" for name in ("handed", "acknowledged", "failed"))

    def _print(self, text: str) -> None:
        print(f"{self._client:<9} {self.at:4.0f}/{self._seconds:.0f} s  {text}", file=sys.stderr, flush=True)
