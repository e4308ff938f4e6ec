"""Streams on a cluster of Spark whose executor, worker and driver are killed: no row is lost, and none is doubled."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import spark as support
from support.micro_batches import values_in
from support.needing import require
from support.spark_cluster import SparkCluster, running_cluster
from support.streaming_jobs import begin, each_once, fill, kill, rows, run, wait_for

from aiokafkawire import blocking

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="executors are found in /proc, which Linux has"),
]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    require(support.missing())
    with running_cluster(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.mark.parametrize("what", ["table", "topic"])
def test_kills_lose_and_double_nothing(
    kafka: blocking.Client, bootstrap: str, tmp_path: Path, cluster: SparkCluster, what: str
) -> None:
    fill(kafka, 1_000)
    kafka.admin.create_topics({"copies": 3})
    worker = cluster.add_worker()
    commits = tmp_path / "checkpoint" / "commits"
    job = begin(bootstrap, tmp_path, what, cluster.master)
    try:
        wait_for(commits / "2", job)
        os.kill(cluster.executors()[0], signal.SIGKILL)
        wait_for(commits / "5", job)
        cluster.kill(worker)
        wait_for(commits / "8", job)
    finally:
        kill(job)  # the driver, in mid-stream
    run(bootstrap, tmp_path, what, cluster.master)
    if what == "table":
        assert rows(tmp_path) == each_once(1_000)
    else:
        assert values_in(bootstrap, "copies", 3) == sorted(2 * [b"%d" % one for one in range(1_000)])
