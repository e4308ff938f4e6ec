"""The command that runs a tool of Kafka's newest release, and starts fast: its classes lie in an archive (AppCDS)."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from aiokafkawire.testing import BackgroundBroker

from .apache_kafka import NEWEST, missing, resolve
from .needing import require
from .patience import PATIENCE

__all__ = ("java_command",)

_JVM: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_TYPICAL: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def java_command() -> list[str]:
    """The command that runs a tool of Kafka's newest release; skips the test where there is no Java, or no Maven."""
    require(missing())
    tools = resolve(NEWEST, "kafka-tools")
    jars = f"{tools}/*:{resolve(NEWEST)}/*"
    return ["java", f"-XX:SharedArchiveFile={_archive(tools, jars)}", *_JVM, "-cp", jars]


@cache
def _archive(tools: Path, jars: str) -> Path:
    """The archive of the classes that a tool loads, made once on this machine by a tool that lists groups.

    Java does without an archive that is not there, or that another release of Java has made.
    """
    archive = tools.parent / "classes.jsa"
    if not archive.exists():
        made = archive.with_suffix(f".{os.getpid()}")
        with BackgroundBroker() as broker:
            command = ["java", f"-XX:ArchiveClassesAtExit={made}", *_JVM, "-cp", jars, _TYPICAL]
            command += ["--bootstrap-server", broker.bootstrap, "--list"]
            subprocess.run(command, check=False, capture_output=True, timeout=PATIENCE * 4)
        if made.exists():
            made.replace(archive)
    return archive
