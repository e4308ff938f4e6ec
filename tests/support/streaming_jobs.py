"""Streaming queries in processes of their own, to be killed: what they read, and what they have written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from support import spark as support

from aiokafkawire import blocking

__all__ = ("begin", "each_once", "fill", "kill", "rows", "run", "run_and_kill", "wait_for")

JOB = Path(__file__).parents[1] / "spark" / "streaming_job.py"


def begin(bootstrap: str, folder: Path, what: str = "table", *master: str) -> subprocess.Popen[bytes]:
    """The job, in a process group with its JVM and, without a cluster, its workers."""
    paths = [support.tree(), str(Path(support.__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(JOB), bootstrap, str(folder), what, *master]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=log)


def run(bootstrap: str, folder: Path, what: str = "table", *master: str) -> None:
    """The job to its end."""
    job = begin(bootstrap, folder, what, *master)
    try:
        assert job.wait(300) == 0, (folder / "log").read_text()[-3_000:]
    finally:
        kill(job)


def run_and_kill(bootstrap: str, folder: Path, batch: int, what: str = "table") -> None:
    """The job until Spark has committed a batch."""
    job = begin(bootstrap, folder, what)
    try:
        wait_for(folder / "checkpoint" / "commits" / str(batch), job)
    finally:
        kill(job)


def kill(job: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # all of it has ended
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def wait_for(path: Path, job: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    while not path.exists():
        assert job.poll() is None, "the job ended before it was to be killed"
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


def fill(kafka: blocking.Client, count: int) -> None:
    kafka.admin.create_topics({"flights": 2})
    with kafka.producer() as producer:
        for partition in (0, 1):
            values = [b"%d" % one for one in range(count)]
            producer.enqueue_many("flights", values, keys=values, partition=partition)


def each_once(count: int) -> list[tuple[int, int, bytes]]:
    """What `fill` has written, as `rows` returns it."""
    return [(index, offset, b"%d" % offset) for index in (0, 1) for offset in range(count)]


def rows(folder: Path) -> list[tuple[int, int, bytes]]:
    """What the sink's own log of batches says is in the table: files of batches that were cut off are not in it."""
    import pyarrow.parquet as pq

    found = []
    logs = sorted((folder / "out" / "_spark_metadata").iterdir())
    entries = [line for log in logs if not log.name.startswith(".") for line in log.read_text().splitlines()[1:]]
    for path in {json.loads(entry)["path"].removeprefix("file://") for entry in entries}:
        table = pq.read_table(path, columns=["partition", "offset", "value"])
        found += [(row["partition"], row["offset"], row["value"]) for row in table.to_pylist()]
    return sorted(found)
