"""Java programs that use Kafka's own consumer: compiled against the kafka-clients of Apache Kafka's newest release."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from support.apache_kafka import NEWEST, missing, resolve

JAVA: Final = "java"
"""The name of Java's client in reports, and on command lines."""

_COMPILATION: Final = 120.0
_JVM: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


class CompilationFailed(Exception):
    """A program was not compiled; the message has the compiler's output."""


def missing_java() -> str | None:
    """Return what this machine lacks for a Java program, as a sentence; None if nothing."""
    return missing() or (None if shutil.which("javac") else "Java's client needs the Java compiler: no `javac` on PATH")


def compiled(source: Path, folder: Path, libraries: Path | None = None) -> list[str]:
    """Compile a program into the folder; return the command that runs it.

    :param libraries: the folder with the jars that it needs; by default those of Apache Kafka's newest release.
    :raises CompilationFailed: the compiler refused it.
    """
    jars = f"{libraries or resolve(NEWEST)}/*"
    command = ["javac", "-cp", jars, "-d", str(folder), str(source)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_COMPILATION)
    if done.returncode != 0:
        raise CompilationFailed(f"{source.name} was not compiled:\n{done.stderr}")
    return ["java", *_JVM, "-cp", f"{folder}:{jars}", source.stem]
