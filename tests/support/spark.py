"""A Spark session for tests, with workers that import this tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ("jvm_source", "limits", "local_session", "missing", "running_spark", "tree", "writes_streams")

ROOT = Path(__file__).parent.parent.parent
_JVM_SOURCE = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)


def missing() -> str | None:
    """What this machine lacks for running Spark, as a sentence; None when nothing."""
    lacks = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    lacks += [] if shutil.which("java") else ["`java` on PATH"]
    return f"Spark tests need pyspark, pyarrow and Java 17: there is no {', '.join(lacks)}" if lacks else None


def limits() -> bool:
    """Whether this Spark asks sources how much a micro-batch has, which 4.2 and later do."""
    return _release() >= (4, 2)


def writes_streams() -> bool:
    """Whether this Spark has streaming sinks that take Arrow, which 4.1 and later have."""
    return _release() >= (4, 1)


def filters() -> bool:
    """Whether this Spark passes the conditions of a query to Python sources, which 4.1 and later do."""
    return _release() >= (4, 1)


def _release() -> tuple[int, ...]:
    return tuple(map(int, version("pyspark").split(".")[:2]))


def tree() -> str:
    """What PYTHONPATH has to begin with for Spark's Python processes to import this tree.

    An editable install hides the package from Spark's search; the folder that wheels get it from does not.
    """
    return os.pathsep.join([str(ROOT), str(ROOT / "aiokafkawire" / "spark" / "auto")])


def jvm_source(folder: Path) -> list[Path]:
    """The jars of Spark's own Kafka source, by Maven: the newest that are all to be had.

    :raises subprocess.CalledProcessError: they cannot be resolved.
    """
    one = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    wanted = "".join(one.format(*coordinates.split(":"), alone) for coordinates in _JVM_SOURCE)
    head = "<modelVersion>4.0.0</modelVersion><groupId>aiokafkawire.tests</groupId><artifactId>spark</artifactId>"
    pom = f"<project>{head}<version>1</version><dependencies>{wanted}</dependencies></project>"
    (folder / "pom.xml").write_text(pom)
    maven = ["mvn", "-B", "-q", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
    subprocess.run([*maven, f"-DoutputDirectory={folder / 'jars'}"], check=True, timeout=300)
    return sorted((folder / "jars").glob("*.jar"))


@contextmanager
def running_spark(master: str = "local[2]") -> Iterator[SparkSession]:
    """A session of two local cores for tests.

    With ``local[2,3]`` a task is tried three times, where it is once otherwise.
    """
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.stage.maxConsecutiveAttempts": "1",  # which an exactly-once sink needs on a cluster
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    }
    with local_session(settings, master) as session:
        yield session


@contextmanager
def local_session(settings: Mapping[str, str], master: str = "local[2]") -> Iterator[SparkSession]:
    """A session on this machine alone. Its Python processes are this one's Python, with this tree in front."""
    from pyspark.sql import SparkSession

    os.environ["PYTHONPATH"] = os.pathsep.join([tree(), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    common = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = SparkSession.builder.master(master).appName("aiokafkawire")
    for name, value in {**common, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
