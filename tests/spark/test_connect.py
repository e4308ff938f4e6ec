"""Spark Connect: the source is found by itself, and reads, writes and streams as in a session of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support import spark as support
from support.needing import require

from aiokafkawire import blocking

SCRIPT = Path(__file__).with_name("connect_job.py")


def missing() -> str | None:
    lacks = [name for name in ("grpc", "grpc_status", "zstandard") if find_spec(name) is None]
    return support.missing() or (
        f"Spark Connect needs {', '.join(lacks)}: pip install pyspark[connect]" if lacks else None
    )


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_client_of_spark_connect_reads_writes_and_streams(
    kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    require(missing())
    kafka.admin.create_topics({"flights": 2, "copies": 2, "once": 2})
    with kafka.producer() as producer:
        for partition in (0, 1):
            producer.enqueue_many("flights", [b"%d" % one for one in range(100)], partition=partition)
    paths = [support.tree(), str(Path(support.__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(SCRIPT), bootstrap, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr[-5_000:]
    told = [line for line in done.stdout.splitlines() if line.startswith(("read", "written", "streamed", "once"))]
    assert told == ["read 200", "written 200", "streamed 200", "once 200"]
