"""A Spark session for tests, with workers that import this tree."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ("missing", "running_spark")

ROOT = Path(__file__).parent.parent.parent


def missing() -> str | None:
    """What this machine lacks for running Spark, as a sentence; None when nothing."""
    lacks = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    lacks += [] if shutil.which("java") else ["`java` on PATH"]
    return f"Spark tests need pyspark, pyarrow and Java 17: there is no {', '.join(lacks)}" if lacks else None


@contextmanager
def running_spark() -> Iterator[SparkSession]:
    """A session of two local cores. Its Python processes are this one's Python, with this tree in front."""
    from pyspark.sql import SparkSession

    # An editable install hides from Spark's search for packages; the folder that wheels get it from does not.
    tree = [str(ROOT), str(ROOT / "aiokafkawire" / "spark" / "auto")]
    os.environ["PYTHONPATH"] = os.pathsep.join([*tree, os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    }
    builder = SparkSession.builder.master("local[2]").appName("aiokafkawire")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
