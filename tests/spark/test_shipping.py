"""The ways in which executors get the package, as docs/spark.md describes them, on a cluster that does not have it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import spark as support
from support.micro_batches import values_in
from support.needing import require
from support.spark_cluster import SparkCluster, running_cluster
from support.spark_environments import Environments, environment

from aiokafkawire import blocking

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="executors are found in /proc, which Linux has"),
]

JOB = Path(__file__).parent / "shipped_job.py"
ALL = ["batch 100", "written", "stream 100"]


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Environments:
    require(support.missing())
    return Environments(tmp_path_factory.mktemp("environments"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, environments: Environments) -> Iterator[SparkCluster]:
    with running_cluster(tmp_path_factory.mktemp("spark") / "cluster", workers=1, imports=()) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def topics(kafka: blocking.Client) -> None:
    kafka.admin.create_topics({"flights": 2, "copies": 1})
    with kafka.producer() as producer:
        producer.enqueue_many("flights", [b"%d" % number for number in range(100)])


def ended(
    environments: Environments,
    cluster: SparkCluster,
    bootstrap: str,
    folder: Path,
    tasks: str,
    *settings: str,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """The job, run by the Python that has the package."""
    return subprocess.run(
        [str(environments.full), str(JOB), cluster.master, bootstrap, tasks, *settings],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_executors_run_the_driver_s_python_unless_the_source_is_registered(
    environments: Environments, cluster: SparkCluster, bootstrap: str, tmp_path: Path
) -> None:
    drivers = environments.noting("drivers", environments.full)
    executors = environments.noting("executors", environments.full)
    pythons = {"PYSPARK_PYTHON": str(executors), "PYSPARK_DRIVER_PYTHON": str(drivers)}
    worker = "-m pyspark.daemon pyspark.worker"
    found = ended(environments, cluster, bootstrap, tmp_path, "batch", **pythons)
    assert found.stdout.splitlines() == ["batch 100"], found.stderr[-3_000:]
    assert f"drivers {worker}" in environments.starts()
    assert f"executors {worker}" not in environments.starts()
    found = ended(environments, cluster, bootstrap, tmp_path, "register,batch", **pythons)
    assert found.stdout.splitlines() == ["batch 100"], found.stderr[-3_000:]
    assert f"executors {worker}" in environments.starts()


def test_an_archive_serves_all_once_the_driver_has_a_link(
    environments: Environments, cluster: SparkCluster, bootstrap: str, kafka: blocking.Client, tmp_path: Path
) -> None:
    (tmp_path / "environment").symlink_to(environments.full.parent.parent)
    shipped = f"spark.archives={environments.archive()}#environment"
    python = {"PYSPARK_PYTHON": "./environment/bin/python"}
    tasks = "register,batch,write,stream"
    found = ended(environments, cluster, bootstrap, tmp_path, tasks, shipped, **python)
    assert found.stdout.splitlines() == ALL, found.stderr[-3_000:]
    assert values_in(bootstrap, "copies", 1) == [b"%d" % number for number in range(10)]


def test_executors_without_the_package_say_so(
    environments: Environments, cluster: SparkCluster, bootstrap: str, tmp_path: Path
) -> None:
    found = ended(environments, cluster, bootstrap, tmp_path, "register,batch", PYSPARK_PYTHON=str(environments.bare))
    assert found.returncode
    assert "No module named 'aiokafkawire'" in found.stderr


def test_a_zip_serves_batches_and_no_streams(
    environments: Environments, cluster: SparkCluster, bootstrap: str, tmp_path: Path
) -> None:
    shipped = f"spark.submit.pyFiles={environments.zipped()}"
    python = {"PYSPARK_PYTHON": str(environments.bare)}
    found = ended(environments, cluster, bootstrap, tmp_path, "register,batch,write,stream", shipped, **python)
    assert found.stdout.splitlines() == ALL[:2], found.stderr[-3_000:]
    assert "No module named 'aiokafkawire'" in found.stderr
