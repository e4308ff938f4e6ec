"""What the demo with Spark says where there is no Java for it, or no Spark: one line that tells what to do."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import spark
from support.needing import require

from aiokafkawire.cli import spark_pipeline
from aiokafkawire.cli.exit_status import CommandFailed
from aiokafkawire.cli.main import main
from aiokafkawire.cli.spark_session import check_java, check_pyspark, java_release, running_spark

WHOLE = "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2"
CUT_DOWN = f'case "$1" in --add-modules*) exit 1;; esac; {WHOLE}'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A JAVA_HOME, still without Java."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return tmp_path


def install(home: Path, script: str) -> None:
    (home / "bin").mkdir()
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)


@pytest.mark.parametrize(
    ("told", "release"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('NOTE: Picked up JDK_JAVA_OPTIONS: -Xmx1g\nopenjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_402"', 8),
        ("java: not here", None),
    ],
)
def test_java_tells_its_release(told: str, release: int | None) -> None:
    assert java_release(told) == release


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "Spark needs Java 17 or later, but {} is Java 11: set JAVA_HOME to"),
        ("echo 'java version \"1.8.0_402\"' >&2", "Spark needs Java 17 or later, but {} is Java 8: set JAVA_HOME to"),
        ("echo no >&2; exit 1", "Spark needs Java 17 or later, but {} does not print its version: no"),
        (CUT_DOWN, "Spark needs Java's module jdk.incubator.vector, which {} lacks: use a complete Java"),
    ],
)
def test_a_java_that_will_not_do_is_named_with_what_it_lacks(home: Path, script: str, told: str) -> None:
    install(home, script)
    with pytest.raises(CommandFailed) as raised:
        check_java()
    assert str(raised.value).startswith(told.format(home / "bin" / "java"))
    assert raised.value.status == 2


def test_a_whole_java_will_do(home: Path) -> None:
    install(home, WHOLE)
    check_java()


def test_no_java_is_one_line_and_the_status_of_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("aiokafkawire.cli.plain_verbs.find_spec", lambda name: SimpleNamespace())
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["demo", "--spark"]) == 2
    told = f"aiokafkawire: Spark needs Java 17 or later, but JAVA_HOME is {tmp_path}, which has no bin/java\n"
    assert capsys.readouterr() == ("", told)
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["demo", "--spark"]) == 2
    told = "aiokafkawire: Spark needs Java 17 or later, but there is no java on PATH\n"
    assert capsys.readouterr() == ("", told)


def test_a_spark_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__="3.5.7"))
    with pytest.raises(CommandFailed, match=r"needs PySpark 4\.0 or later, but 3\.5\.7 is installed: pip install"):
        check_pyspark()
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__="4.2.0.dev1"))
    assert check_pyspark() == (4, 2)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # PySpark leaves the pipe to its Java open
def test_a_spark_that_does_not_start_says_why(home: Path) -> None:
    require(spark.missing())
    install(home, "echo 'Out of luck' >&2; exit 1")
    with pytest.raises(CommandFailed, match=r"Spark did not start: .*JAVA_GATEWAY_EXITED"), running_spark():
        pass


@pytest.mark.spark
def test_a_spark_that_is_meant_to_be_elsewhere_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    require(spark.missing())
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:1")
    with pytest.raises(CommandFailed, match=r"Spark did not start: .*Spark Connect"), running_spark():
        pass


class Query:
    """One that never has read all, until it is stopped."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        assert self._stopped.wait(30)

    def stop(self) -> None:
        self._stopped.set()


@pytest.mark.spark
def test_a_spark_that_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    require(spark.missing())
    monkeypatch.setattr(spark_pipeline, "_PATIENCE", 0.01)
    query: Any = Query()
    with pytest.raises(CommandFailed, match="Spark has not read all flights within"):
        spark_pipeline._wait_for(query)


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        (("--topic", "flights"), "--spark creates its own topics: leave --topic out"),
        (("--backend", "trio"), "--spark runs without an event loop: leave --backend out"),
    ],
)
def test_what_means_nothing_with_spark_is_refused(
    argument: tuple[str, str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("aiokafkawire.cli.plain_verbs.find_spec", lambda name: SimpleNamespace())
    assert main(["demo", "--spark", *argument]) == 2
    assert capsys.readouterr().err == f"aiokafkawire: {told}\n"
