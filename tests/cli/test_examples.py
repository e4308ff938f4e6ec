"""The examples run as they stand."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.apache_kafka import ApacheKafka
from support.examples import sampled

FOLDER = Path(__file__).parents[2] / "examples"
# Those of Spark start one, which takes half a minute: they are run by its own session.
_SPARK = "spark_"
EXAMPLES = [
    pytest.param(path.name, marks=pytest.mark.spark) if path.name.startswith(_SPARK) else path.name
    for path in sorted(FOLDER.glob("*.py"))
]
ON_A_CLUSTER = [
    *sampled(
        [name for name in EXAMPLES if isinstance(name, str) and not name.startswith("testing")],
        "exactly_once.py",
        "group.py",
    ),
    *(spark for spark in EXAMPLES if not isinstance(spark, str)),
]


def run(name: str, *argv: str) -> None:
    # Spark warns of a newer pandas than it knows.
    ignored = ("-W", "ignore::FutureWarning") if name.startswith(_SPARK) else ()
    command = [sys.executable, "-W", "error", *ignored, str(FOLDER / name), *argv]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" or name.startswith(_SPARK)  # which says there what it does
    assert done.stdout


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs_on_its_own_broker(name: str) -> None:
    run(name)


@pytest.mark.parametrize("name", ON_A_CLUSTER)
def test_it_runs_on_a_cluster(name: str, apache_kafka: ApacheKafka) -> None:
    run(name, apache_kafka.bootstrap)
