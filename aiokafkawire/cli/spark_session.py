"""The demo's Spark: a session on this machine, and whether there is a Java for it."""

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
"""A module that Spark names when it starts Java, which does not start without it."""
_ANSWERS: Final = 60.0
"""Seconds for Java to tell its version."""


def check_java() -> None:
    """Look at the Java that Spark would take: that of JAVA_HOME, else the first on PATH.

    Raises:
        CommandFailed: there is none, it is too old, or it has been cut down.
    """
    needs = f"Spark needs Java {_OLDEST_JAVA} or later"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if java is None:
        where = f"JAVA_HOME is {home}, where there is no bin/java" if home else "there is no java on PATH"
        raise CommandFailed(f"{needs}, and {where}", MISSING)
    told = _ask(java, "-version").stderr
    release = java_release(told)
    if release is None:
        raise CommandFailed(f"{needs}, and {java} does not tell its version: {told[:200]}", MISSING)
    if release < _OLDEST_JAVA:
        hint = "set JAVA_HOME to another, or put it first on PATH"
        raise CommandFailed(f"{needs}, and {java} is Java {release}: {hint}", MISSING)
    if _ask(java, f"--add-modules={_VECTOR}", "-version").returncode:
        hint = "take one that is whole, such as your system's package"
        raise CommandFailed(f"Spark needs Java's module {_VECTOR}, and {java} has none: {hint}", MISSING)


def _ask(java: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    try:
        command = [java, *arguments]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_ANSWERS)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise CommandFailed(f"{java} does not run: {error}", MISSING) from error


def java_release(told: str) -> int | None:
    """The release in what ``java -version`` says: 17 for "17.0.15", 8 for "1.8.0_402". None if it says no version."""
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return None if found is None else int(found[1])


def check_pyspark() -> tuple[int, int]:
    """The release of Spark, such as (4, 3).

    Raises:
        CommandFailed: it is too old.
    """
    from pyspark import __version__ as version

    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < _OLDEST_SPARK:
        raise CommandFailed(
            f'the demo needs PySpark 4.0 or later, and here is {version}: pip install "pyspark>=4"', MISSING
        )
    return major, minor


@contextmanager
def running_spark() -> "Iterator[SparkSession]":
    """A session of two local cores that knows the data source, with this Python for its workers.

    Raises:
        CommandFailed: Spark has not started; the message has what it says.
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
        # It is over before the second compiler has paid for itself, which takes a third of all processor time.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        # A batch without rows would only forget old hours.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    try:
        builder = SparkSession.builder.master("local[2]").appName("aiokafkawire demo")
        for name, value in settings.items():
            builder = builder.config(name, value)
        # On another thread Ctrl-C finds no half-started Java, which would stay, and Spark makes the signal not its own.
        with ThreadPoolExecutor(1) as pool:
            spark = pool.submit(builder.getOrCreate).result()
    except Exception as error:  # of PySpark's, Py4J's or Java's kind: what they have in common is their text
        raise CommandFailed(f"Spark did not start: {str(error).strip().partition(chr(10))[0]}") from error
    try:
        spark.sparkContext.setLogLevel("ERROR")
        try:
            register(spark)
        except AnalysisException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # Spark 4.0 has found it by itself
                raise
        yield spark
    finally:
        spark.stop()
