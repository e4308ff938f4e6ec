"""Runs aiokafka's own tests on ``aiokafkawire.aiokafka``; see ``--help``."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPOSITORY = "https://github.com/aio-libs/aiokafka"
RELEASE = "v0.14.0"
INTERNAL = re.compile(r"PrivateName|AttributeError: .*attribute '_|AttributeError: .*ClusterMetadata")
"""The errors of tests that use names of aiokafka's internals."""
HELP = f"""\
Run the tests of aiokafka {RELEASE[1:]} on aiokafkawire.aiokafka, against a real Kafka broker, and print each outcome.

The tests are copied from a checkout of {REPOSITORY} to a temporary folder. Their conftest.py, which starts Kafka in
Docker, is replaced: the tests get the broker at --bootstrap, or an Apache Kafka that this command starts (Java, Maven).
Names of aiokafka's internals that the tests import are replaced by placeholders; a test that fails at one, or at an
attribute with an underscore, is "private". known.toml lists the modules and tests of internals that are
not run, and every test that fails for a known reason.

    PYTHONPATH=tests python -m foreign.aiokafka_suite                      # clones the tests, starts a broker
    PYTHONPATH=tests python -m foreign.aiokafka_suite --source ~/aiokafka --bootstrap localhost:9092
    PYTHONPATH=tests python -m foreign.aiokafka_suite --client aiokafka    # the same tests on aiokafka itself
    PYTHONPATH=tests python -m foreign.aiokafka_suite test_producer.py -k compression

Exit status: 0 if all tests passed, or failed as known.toml says; 1 if not; 2 for a wrong usage.
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="foreign.aiokafka_suite", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", help="the modules to run, such as test_producer.py; by default all")
    parser.add_argument("-k", metavar="WORDS", help="only tests whose names match, as pytest's -k")
    parser.add_argument("--source", type=Path, help=f"a checkout of aiokafka {RELEASE}; by default it is cloned")
    parser.add_argument("--bootstrap", help="a broker with num.partitions=2 that creates topics automatically")
    parser.add_argument("--kafka", default="4.3.1", metavar="RELEASE", help="the release to start (default: 4.3.1)")
    parser.add_argument("--client", choices=("aiokafkawire", "aiokafka"), default="aiokafkawire")
    asked = parser.parse_args()
    known = tomllib.loads((HERE / "known.toml").read_text())
    with tempfile.TemporaryDirectory(prefix="aiokafka-suite-") as name, broker(asked) as bootstrap:
        folder = Path(name)
        prepare(asked.source or clone(folder / "checkout"), folder)
        modules = asked.modules or [path.name for path in sorted((folder / "tests").rglob("test_*.py"))]
        chosen = [one for one in modules if one not in known["private_modules"]]
        outcomes = run(folder, chosen, known, bootstrap, asked)
    unknown = report(outcomes, known, own=asked.client == "aiokafkawire")
    return 1 if unknown or not outcomes else 0


@contextmanager
def broker(asked: argparse.Namespace) -> Iterator[str]:
    """Yield the address of a broker, which is started unless one was named."""
    if asked.bootstrap is not None:
        yield asked.bootstrap
        return
    from support.apache_kafka import ApacheKafka

    with ApacheKafka(asked.kafka, properties={"num.partitions": "2"}) as kafka:
        yield kafka.bootstrap


def clone(to: Path) -> Path:
    """Clone the release of aiokafka."""
    subprocess.run(["git", "clone", "-q", "--depth", "1", "--branch", RELEASE, REPOSITORY, str(to)], check=True)
    return to


def prepare(source: Path, folder: Path) -> None:
    """Copy the tests, without aiokafka itself, and replace their conftest.py."""
    if not (source / "tests" / "_testutil.py").is_file():
        sys.exit(f"{source} has no tests of aiokafka: give a checkout of {REPOSITORY}")
    shutil.copytree(source / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "replaced_conftest.py", folder / "tests" / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\nmarkers =\n    ssl: needs certificates\n")


def run(
    folder: Path, modules: list[str], known: dict[str, Any], bootstrap: str, asked: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Run the modules by pytest; return each test's outcome and its error."""
    if not modules:
        sys.exit("nothing to run: known.toml lists these modules as tests of internals")
    paths = [str(path) for one in modules for path in (folder / "tests").rglob(Path(one).name)]
    results = folder / "results.json"
    environment = os.environ | {
        "SUITE_BOOTSTRAP": bootstrap,
        "SUITE_CLIENT": asked.client,
        "SUITE_RESULTS": str(results),
        "SUITE_KAFKA": asked.kafka,
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--timeout",
        "150",
        "--continue-on-collection-errors",
    ]
    if asked.k:
        command += ["-k", asked.k]
    if asked.client == "aiokafkawire":
        command += [f"--deselect=tests/{name}" for name in known["private"]]
    subprocess.run([*command, *paths], cwd=folder, env=environment, check=False)
    found: dict[str, dict[str, Any]] = json.loads(results.read_text()) if results.exists() else {}
    return found


def report(outcomes: dict[str, dict[str, Any]], known: dict[str, Any], *, own: bool) -> list[str]:
    """Print the table and the counts; return the tests that failed for no known reason, or passed against one."""
    counts: Counter[str] = Counter()
    unknown = []
    print(f"\n{'test':<110} outcome")
    for name, found in sorted(outcomes.items()):
        reason = reason_for(name, known) if own else None
        outcome = found["outcome"]
        if own and outcome == "failed" and INTERNAL.match(found["error"]):
            outcome = "private"
        elif outcome == "failed" and reason is not None:
            outcome = reason[0]
        elif outcome == "failed":
            unknown.append(name)
        counts[outcome] += 1
        text = reason[1] if reason is not None and outcome != "passed" else found["error"]
        print(f"{name:<110} {outcome:<10} {text}")
    for name, why in {**known["private"], **known["private_modules"]}.items():
        print(f"{name:<110} {'private':<10} not run: {why}")
    print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    if unknown:
        print(f"{len(unknown)} failed for a reason that known.toml does not have: {', '.join(unknown)}")
    return unknown


def reason_for(name: str, known: dict[str, Any]) -> tuple[str, str] | None:
    """Return the kind of failure, and the reason, that known.toml has for a test."""
    for kind in ("differs", "broker", "missing"):
        if name in known.get(kind, {}):
            return kind, known[kind][name]
    return None


if __name__ == "__main__":
    sys.exit(main())
