"""The Spark to measure in, with the jars of its own Kafka source, and what the operating system says that it used."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support import spark as support

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def connector(folder: Path) -> tuple[list[Path], str]:
    """Return the jars of Spark's own source for the installed PySpark, and their versions.

    :raises SystemExit: Maven cannot resolve them.
    """
    try:
        jars = support.jvm_source(folder)
    except (OSError, subprocess.SubprocessError) as error:
        raise SystemExit(f"the jars of Spark's own Kafka source cannot be resolved by Maven: {error}") from error
    return jars, ", ".join(jar.stem for jar in jars)


@contextmanager
def session(jars: list[Path]) -> Iterator["SparkSession"]:
    """Open a session of two local cores with these jars; its Python processes import this tree."""
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.memory": "4g",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    with support.local_session(settings) as spark:
        yield spark


def versions() -> str:
    """Return the versions of PySpark and pyarrow."""
    return f"pyspark {version('pyspark')}, pyarrow {version('pyarrow')}"


def jvm_pid(spark: Any) -> int:
    """Return the process of the driver's JVM, the parent of Python's workers."""
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())


def cpu_seconds(root: int) -> float:
    """Return the CPU time of a process and its descendants, those that have ended and were waited for included."""
    parents, used = {}, {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            text = (folder / "stat").read_text()
        except OSError:  # it has ended meanwhile
            continue
        # The name, in parentheses, may have anything in it.
        fields = re.sub(r"^.*\) ", "", text, flags=re.DOTALL).split()
        pid = int(folder.name)
        parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    under = {root}
    while more := {pid for pid, parent in parents.items() if parent in under} - under:
        under |= more
    return sum(used.get(pid, 0) for pid in under) / _TICKS
