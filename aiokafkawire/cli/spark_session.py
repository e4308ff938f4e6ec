"""The demo's local Spark session, and checks of Java and PySpark."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .exit_status import MISSING, CommandFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ("check_java", "check_pyspark", "java_release", "running_spark")

_OLDEST_JAVA: Final = 17
_OLDEST_SPARK: Final = (4, 0)
_VECTOR: Final = "jdk.incubator.vector"
"""A Java module that Spark requires: a Java that lacks this module cannot run Spark."""
_TIMEOUT: Final = 60.0
"""The timeout in seconds for Java to print its version."""


def check_java() -> None:
    """Check the Java that Spark would use: that of JAVA_HOME, else the first on PATH.

    Raises:
        CommandFailed: Java is missing, too old, or lacks a module.
    """
    needs = f"Spark needs Java {_OLDEST_JAVA} or later"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if java is None:
        why = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on PATH"
        raise CommandFailed(f"{needs}, but {why}", MISSING)
    output = _run(java, "-version").stderr
    release = java_release(output)
    if release is None:
        raise CommandFailed(f"{needs}, but {java} does not print its version: {output[:200]}", MISSING)
    if release < _OLDEST_JAVA:
        hint = "set JAVA_HOME to a newer Java, or put it first on PATH"
        raise CommandFailed(f"{needs}, but {java} is Java {release}: {hint}", MISSING)
    if _run(java, f"--add-modules={_VECTOR}", "-version").returncode:
        hint = "use a complete Java, such as your system's package"
        raise CommandFailed(f"Spark needs Java's module {_VECTOR}, which {java} lacks: {hint}", MISSING)


def _run(java: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    try:
        command = [java, *arguments]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise CommandFailed(f"{java} does not run: {error}", MISSING) from error


def java_release(output: str) -> int | None:
    """Return Java's release from ``java -version``, such as 17 for "17.0.15" or 8 for "1.8.0_402"; None if absent."""
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return None if found is None else int(found[1])


def check_pyspark() -> tuple[int, int]:
    """Return the release of Spark, such as (4, 3); raise CommandFailed if this release is too old."""
    from pyspark import __version__ as version

    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < _OLDEST_SPARK:
        raise CommandFailed(
            f'the demo needs PySpark 4.0 or later, but {version} is installed: pip install "pyspark>=4"', MISSING
        )
    return major, minor


@contextmanager
def running_spark() -> "Iterator[SparkSession]":
    """Run a local Spark session on two cores, with the data source registered and this Python for the workers.

    Raises:
        CommandFailed: Spark did not start; the message has Spark's error.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import SparkSession

    from ..spark.source import register

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # The demo is too short for the second JIT compiler, which takes a third of all processor time.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        # A micro-batch without rows would only drop old hours from Spark's state.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    try:
        builder = SparkSession.builder.master("local[2]").appName("aiokafkawire demo")
        for name, value in settings.items():
            builder = builder.config(name, value)
        # On another thread, Ctrl-C does not leave a half-started Java behind, and Spark cannot handle SIGINT itself.
        with ThreadPoolExecutor(1) as pool:
            spark = pool.submit(builder.getOrCreate).result()
    except Exception as error:  # errors of PySpark, Py4J or Java
        raise CommandFailed(f"Spark did not start: {str(error).strip().partition(chr(10))[0]}") from error
    try:
        spark.sparkContext.setLogLevel("ERROR")
        try:
            register(spark)
        except AnalysisException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # Spark 4.0 registers the source itself
                raise
        yield spark
    finally:
        spark.stop()
