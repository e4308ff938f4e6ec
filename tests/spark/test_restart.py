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

from aiokafkawire import blocking

JOB = Path(__file__).with_name("streaming_job.py")


def begin(bootstrap: str, folder: Path) -> subprocess.Popen[bytes]:
    """The job, in a process group with its JVM and its workers."""
    paths = [support.tree(), str(Path(support.__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(JOB), bootstrap, str(folder)]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=log)


def wait_for(path: Path, job: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 150
    while not path.exists():
        assert job.poll() is None, "the job ended before it was to be killed"
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_driver_that_is_killed_loses_and_doubles_nothing(
    kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    require(support.missing())
    kafka.admin.create_topics({"flights": 2})
    with kafka.producer() as producer:
        for partition in (0, 1):
            producer.enqueue_many("flights", [b"%d" % one for one in range(1_000)], partition=partition)
    for batch in (3, 9):
        job = begin(bootstrap, tmp_path)
        try:
            wait_for(tmp_path / "checkpoint" / "commits" / str(batch), job)
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    job = begin(bootstrap, tmp_path)
    assert job.wait(150) == 0, (tmp_path / "log").read_text()[-3_000:]
    assert rows(tmp_path) == [(index, offset, b"%d" % offset) for index in (0, 1) for offset in range(1_000)]


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
