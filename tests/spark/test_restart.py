"""A query whose driver is killed in mid-stream goes on from its checkpoint: no row is lost, and none is doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support import spark as support
from support.micro_batches import values_in
from support.needing import require

from aiokafkawire import blocking

JOB = Path(__file__).with_name("streaming_job.py")


def begin(bootstrap: str, folder: Path, what: str = "table") -> subprocess.Popen[bytes]:
    """The job, in a process group with its JVM and its workers."""
    paths = [support.tree(), str(Path(support.__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(JOB), bootstrap, str(folder), what]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=log)


def run(bootstrap: str, folder: Path, what: str = "table") -> None:
    """The job to its end."""
    job = begin(bootstrap, folder, what)
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


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_driver_that_is_killed_loses_and_doubles_nothing(
    kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    require(support.missing())
    fill(kafka, 1_000)
    for batch in (3, 9):
        run_and_kill(bootstrap, tmp_path, batch)
    run(bootstrap, tmp_path)
    assert rows(tmp_path) == each_once(1_000)


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_worker_that_is_killed_has_its_task_tried_again(
    kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    require(support.missing())
    fill(kafka, 300)
    run(bootstrap, tmp_path, "lossy table")
    assert (tmp_path / "killed").exists()
    assert rows(tmp_path) == each_once(300)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_topic_written_exactly_once_has_each_row_once_though_the_driver_is_killed(
    kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    require(support.missing())
    fill(kafka, 500)
    kafka.admin.create_topics({"copies": 3})
    run_and_kill(bootstrap, tmp_path, 2, "topic")
    run(bootstrap, tmp_path, "topic")
    assert values_in(bootstrap, "copies", 3) == sorted(2 * [b"%d" % one for one in range(500)])


def fill(kafka: blocking.Client, count: int) -> None:
    kafka.admin.create_topics({"flights": 2})
    with kafka.producer() as producer:
        for partition in (0, 1):
            values = [b"%d" % one for one in range(count)]
            producer.enqueue_many("flights", values, keys=values, partition=partition)


def each_once(count: int) -> list[tuple[int, int, bytes]]:
    """What `fill` has written, as `rows` tells it."""
    return [(index, offset, b"%d" % offset) for index in (0, 1) for offset in range(count)]


def rows(folder: Path) -> list[tuple[int, int, bytes]]:
    """What the sink's own log of batches says is in the table: files of batches that were cut off are not in it."""
    import json

    import pyarrow.parquet as pq

    found = []
    logs = sorted((folder / "out" / "_spark_metadata").iterdir())
    entries = [line for log in logs if not log.name.startswith(".") for line in log.read_text().splitlines()[1:]]
    for path in {json.loads(entry)["path"].removeprefix("file://") for entry in entries}:
        table = pq.read_table(path, columns=["partition", "offset", "value"])
        found += [(row["partition"], row["offset"], row["value"]) for row in table.to_pylist()]
    return sorted(found)
