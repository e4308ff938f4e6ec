"""Runs FastStream's own tests of Kafka brokers on ``aiokafkawire.faststream``; see ``--help``."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

from support.apache_kafka import ApacheKafka

from aiokafkawire.testing import BackgroundBroker

HERE = Path(__file__).parent
REPOSITORY = "https://github.com/ag2ai/faststream"
SETTINGS = """\
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
markers =
    all
    connected
    kafka
    slow
"""
HELP = f"""\
Run the tests of FastStream's Kafka broker on aiokafkawire.faststream, and print each outcome.

The tests, tests/brokers/kafka and those that they share with other brokers, are copied from a checkout of
{REPOSITORY} to a temporary folder; FastStream itself is the installed one, so check out its release.
They run on the in-process broker, on Apache Kafka (--kafka 4.3.1), or on the broker at --bootstrap, which must create
topics automatically. known.toml has the tests that fail for a known reason.

    PYTHONPATH=tests python -m foreign.faststream_suite --source ~/faststream
    PYTHONPATH=tests python -m foreign.faststream_suite --source ~/faststream test_consume.py -k batch

One module of them needs nats-py and aio-pika, and some need fastapi and dirty-equals.

Exit status: 0 if all tests passed, or failed as known.toml says; 1 if not; 2 for a wrong usage.
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="foreign.faststream_suite", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", help="the modules to run, such as test_consume.py; by default all")
    parser.add_argument("-k", metavar="WORDS", default="", help="only tests whose names match, as pytest's -k")
    parser.add_argument("--slow", action="store_true", help="also FastStream's slow tests, at localhost:9092")
    parser.add_argument("--source", type=Path, required=True, help="a checkout of FastStream")
    parser.add_argument("--bootstrap", help="a broker to use")
    parser.add_argument("--kafka", metavar="RELEASE", help="the release of Apache Kafka to start")
    asked = parser.parse_args()
    if not (asked.source / "tests" / "brokers" / "kafka").is_dir():
        parser.error(f"{asked.source} has no tests of FastStream: give a checkout of {REPOSITORY}")
    known = tomllib.loads((HERE / "known.toml").read_text())["differs"]
    with tempfile.TemporaryDirectory(prefix="faststream-suite-") as name, broker(asked) as bootstrap:
        folder = Path(name)
        shutil.copytree(asked.source / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        settings = folder / "tests" / "brokers" / "kafka" / "settings.py"
        settings.write_text(settings.read_text().replace("localhost:9092", bootstrap))
        outcomes = run(folder, asked.modules, asked.k, bootstrap, slow=asked.slow)
    return 1 if report(outcomes, known) or not outcomes else 0


@contextmanager
def broker(asked: argparse.Namespace) -> Iterator[str]:
    """Yield the address of a broker, which is started unless one was named."""
    if asked.bootstrap is not None:
        yield asked.bootstrap
    elif asked.kafka is not None:
        with ApacheKafka(asked.kafka) as kafka:
            yield kafka.bootstrap
    else:
        with BackgroundBroker(port=9092 if asked.slow else 0) as own:  # some of the slow tests name no broker
            yield own.bootstrap


def run(folder: Path, modules: list[str], words: str, bootstrap: str, *, slow: bool) -> dict[str, str]:
    """Run the modules by pytest; return each test's error, which is empty for one that passed."""
    results, tests = folder / "results.xml", folder / "tests" / "brokers" / "kafka"
    (folder / "pytest.ini").write_text(SETTINGS)
    paths = [str(path) for module in modules or ["test_*.py"] for path in sorted(tests.rglob(module))]
    environment = os.environ | {"SUITE_BOOTSTRAP": bootstrap}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parents[1]), str(HERE.parents[2])])
    options = [
        "-q",
        "--continue-on-collection-errors",
        "-p",
        "foreign.faststream_suite.plugin",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
    ]
    options += [
        "--timeout=90",
        "--tb=short",
        f"--junitxml={results}",
        "-k",
        words,
        *(() if slow else ("-m", "not slow")),
    ]
    subprocess.run([sys.executable, "-m", "pytest", *options, *paths], cwd=folder, env=environment, check=False)
    return dict(outcomes_in(results)) if results.exists() else {}


def outcomes_in(results: Path) -> Iterator[tuple[str, str]]:
    """Yield each test of pytest's report, which this program has had written, with its error."""
    for case in ET.parse(results).iter("testcase"):
        name = f"{case.get('classname', '').removeprefix('tests.brokers.kafka.')}.{case.get('name')}"
        failed = [child for child in case if child.tag in ("failure", "error")]
        if failed or case.find("skipped") is None:
            yield name, (failed[0].get("message") or "failed").splitlines()[0][:200] if failed else ""


def report(outcomes: dict[str, str], known: dict[str, str]) -> list[str]:
    """Print the tests that failed, and the counts; return the tests that failed for no known reason."""
    counts: Counter[str] = Counter()
    for name, error in sorted(outcomes.items()):
        outcome = "passed" if not error else "differs" if name in known else "failed"
        counts[outcome] += 1
        if error:
            print(f"{name:<110} {outcome:<8} {known.get(name, error)}")
    print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return [name for name, error in outcomes.items() if error and name not in known]


if __name__ == "__main__":
    sys.exit(main())
