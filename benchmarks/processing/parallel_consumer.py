"""Confluent's Parallel Consumer (Java): its jars, and the command of a program that uses it."""

from pathlib import Path
from typing import Final

from support.jars import by_maven

from benchmarks.java import compiled

PARALLEL_CONSUMER: Final = "parallel-consumer"
"""Its name in reports, and on command lines."""
VERSION: Final = "0.5.3.3"

PROGRAM: Final = Path(__file__).with_name("ParallelProcessing.java")
_WANTED: Final = (f"io.confluent.parallelconsumer:parallel-consumer-core:{VERSION}", "org.slf4j:slf4j-simple:2.0.13")
_UNWANTED: Final = ("io.stubbs.truth",)
"""What its own tests need, and Maven Central does not have."""


def parallel_consumer(folder: Path) -> list[str]:
    """Compile the program into the folder; return its command, which takes the arguments of `arguments`.

    :raises BootFailed: Maven failed.
    :raises CompilationFailed: the compiler refused the program.
    """
    return compiled(PROGRAM, folder, by_maven("parallel-consumer", VERSION, _WANTED, _UNWANTED))


def arguments(
    bootstrap: str, topic: str, group: str, *, records: int, handler_ms: float, concurrency: int, log: str = ""
) -> list[str]:
    """Return the program's arguments; with a ``log`` it handles records until it is ended."""
    given = [bootstrap, topic, group, str(records), str(handler_ms), str(concurrency)]
    return [*given, log] if log else given
