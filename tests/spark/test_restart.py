"""A query whose driver is killed in mid-stream goes on from its checkpoint: no row is lost, and none is doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import spark as support
from support.needing import require

from aiokafkawire import OffsetSpec, TopicPartition, blocking

JOB = Path(__file__).with_name("streaming_job.py")


def begin(bootstrap: str, folder: Path, what: str = "table") -> subprocess.Popen[bytes]:
    """The job, in a process group with its JVM and its workers."""
    paths = [support.tree(), str(Path(support.__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(JOB), bootstrap, str(folder), what]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=log)


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
        job = begin(bootstrap, tmp_path)
        try:
            wait_for(tmp_path / "checkpoint" / "commits" / str(batch), job)
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    job = begin(bootstrap, tmp_path)
    assert job.wait(300) == 0, (tmp_path / "log").read_text()[-3_000:]
    assert rows(tmp_path) == [(index, offset, b"%d" % offset) for index in (0, 1) for offset in range(1_000)]


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_worker_that_is_killed_has_its_task_tried_again(
    kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    require(support.missing())
    fill(kafka, 300)
    job = begin(bootstrap, tmp_path, "lossy table")
    assert job.wait(300) == 0, (tmp_path / "log").read_text()[-3_000:]
    assert (tmp_path / "killed").exists()
    assert rows(tmp_path) == [(index, offset, b"%d" % offset) for index in (0, 1) for offset in range(300)]


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_topic_written_exactly_once_has_each_row_once_though_the_driver_is_killed(
    kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    require(support.missing())
    fill(kafka, 500)
    kafka.admin.create_topics({"copies": 3})
    job = begin(bootstrap, tmp_path, "topic")
    try:
        wait_for(tmp_path / "checkpoint" / "commits" / "2", job)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    job = begin(bootstrap, tmp_path, "topic")
    assert job.wait(300) == 0, (tmp_path / "log").read_text()[-3_000:]
    assert committed(bootstrap, "copies", 3) == sorted(2 * [b"%d" % one for one in range(500)])


def fill(kafka: blocking.Client, count: int) -> None:
    kafka.admin.create_topics({"flights": 2})
    with kafka.producer() as producer:
        for partition in (0, 1):
            values = [b"%d" % one for one in range(count)]
            producer.enqueue_many("flights", values, keys=values, partition=partition)


def committed(bootstrap: str, topic: str, partitions: int) -> list[bytes | None]:
    """The values that readers of committed records see, sorted."""
    where = [TopicPartition(topic, index) for index in range(partitions)]
    found: list[bytes | None] = []
    with blocking.Client(bootstrap) as kafka, kafka.consumer(isolation_level="read_committed") as consumer:
        ends = {at: end.offset for at, end in consumer.offsets(dict.fromkeys(where, OffsetSpec.LATEST)).items() if end}
        consumer.assign(dict.fromkeys(where, OffsetSpec.EARLIEST))
        while any((consumer.position(at) or 0) < end for at, end in ends.items()):
            found += [record.value for record in consumer.poll(timeout=0.05)]
    return sorted(found, key=lambda value: value or b"")


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
