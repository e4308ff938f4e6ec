"""What every test may use: the real Apache Kafka, and the event loops the client runs on."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import anyio.lowlevel
import pytest
import sniffio
from support.apache_kafka import NEEDS, ApacheKafka, missing
from support.authorizing import Authorizing, apache_with_acls
from support.command_line import is_selective
from support.dialling import over_tcp
from support.examples import register_profiles
from support.log_scan import LogScan
from support.needing import require
from support.virtual_time import VIRTUAL, virtual_backend

from aiokafkawire.network.connector import connect_tcp
from aiokafkawire.protocol import compiler
from aiokafkawire.records import batch

if TYPE_CHECKING:  # only tests of pushed metrics need OpenTelemetry
    from support.telemetry_plugin import TelemetryPlugin

pytest_plugins = ["support.loops", "support.quick_run", "support.release_choice"]

register_profiles()

_BOOTED = pytest.StashKey[str]()
_LOG_SCAN = pytest.StashKey[LogScan]()
_SCANNED = pytest.StashKey[list[int]]()
_ON_APACHE_KAFKA = {"apache_kafka", "apache_kafka_with_acls", "apache_kafka_with_telemetry", "zookeeper"}


@pytest.fixture(scope="session")
def apache_kafka(request: pytest.FixtureRequest) -> Iterator[ApacheKafka]:
    """The running Apache Kafka all tests of the session share, booted at first use.

    Without Java or Maven its tests are skipped, or fail when ``AIOKAFKAWIRE_REQUIRE_KAFKA=1`` is in the environment.
    """
    require(missing())
    with ApacheKafka(request.config.option.kafka) as kafka:
        _tell(request.config, f"{kafka.version}, booted in {kafka.boot_seconds:.1f} s")
        yield kafka


@pytest.fixture(scope="session")
def apache_kafka_with_acls(request: pytest.FixtureRequest) -> Iterator[Authorizing]:
    """A running Apache Kafka with an authorizer, which all tests of the session share."""
    require(missing())
    with apache_with_acls(request.config.option.kafka) as kafka:
        address = kafka.addresses["GUARDED"]
        yield Authorizing(address, connect_tcp, partial(over_tcp, address))


@pytest.fixture(scope="session")
def apache_kafka_with_telemetry(request: pytest.FixtureRequest) -> Iterator[TelemetryPlugin]:
    """A running Apache Kafka with a plug-in that receives clients' metrics, which all tests of the session share."""
    from support.telemetry_plugin import apache_with_telemetry

    require(missing())
    with apache_with_telemetry(request.config.option.kafka) as plugin:
        yield plugin


def _tell(config: pytest.Config, booted: str) -> None:
    """Keep it for the summary, which with xdist another process writes."""
    config.stash[_BOOTED] = booted
    if hasattr(config, "workeroutput"):
        config.workeroutput["apache_kafka"] = booted


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})  # a worker that crashed has none
    booted = output.get("apache_kafka")
    if booted:
        node.config.stash[_BOOTED] = booted
    _add_scanned(node.config, output.get("log_scan", [0, 0]))


def pytest_sessionfinish(session: pytest.Session) -> None:
    scan = session.config.stash[_LOG_SCAN]
    scanned = [scan.count, len(scan.secrets)]
    _add_scanned(session.config, scanned)
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["log_scan"] = scanned


def _add_scanned(config: pytest.Config, scanned: list[int]) -> None:
    before = config.stash.get(_SCANNED, [0, 0])
    config.stash[_SCANNED] = [one + other for one, other in zip(before, scanned, strict=True)]


def _backend(backend: object, name: str, *, needs: str) -> Any:
    absent = pytest.mark.skipif(find_spec(needs) is None, reason=f"{needs} is not installed")
    return pytest.param(backend, id=name, marks=absent)


# Function scope, though anyio's own has module scope: there, an async fixture of a module that does not ask for
# `anyio_backend` by name keeps its loop running when the backend changes, and the tests named "uvloop" and "trio" run
# on asyncio and pass. Here such a fixture is refused (ScopeMismatch). `apache_kafka` is sync: it serves every backend.
@pytest.fixture(
    params=[
        _backend(("asyncio", {"use_uvloop": False}), "asyncio", needs="asyncio"),
        _backend(("asyncio", {"use_uvloop": True}), "uvloop", needs="uvloop"),
        _backend(("trio", {}), "trio", needs="trio"),
    ],
)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """The event loop of an anyio test: asyncio, asyncio on uvloop, and trio, one after the other."""
    backend: tuple[str, dict[str, Any]] = request.param
    return virtual_backend() if request.param == VIRTUAL else backend


@pytest.fixture(autouse=True)
def no_task_is_left(request: pytest.FixtureRequest) -> None:
    """Every test on an event loop ends with the background tasks it began with."""
    if "anyio_backend" in request.fixturenames:
        request.getfixturevalue("_no_task_is_left")


@pytest.fixture
async def _no_task_is_left(anyio_backend: object) -> AsyncIterator[None]:
    before = _tasks()
    yield
    for _ in range(20):  # a task that has told of its end still has to return
        if not _tasks() - before:
            break
        await anyio.lowlevel.checkpoint()
    assert not {repr(task) for task in _tasks() - before}


def _tasks() -> set[Any]:
    """The tasks of the loop; on trio those outside all nurseries, as the others cannot be left."""
    if sniffio.current_async_library() == "asyncio":
        # The runner makes a task for every fixture and test.
        return {task for task in asyncio.all_tasks() if "TestRunner." not in repr(task.get_coro())}
    import trio

    root = trio.lowlevel.current_root_task()
    assert root is not None
    return {task for one in root.child_nurseries for each in one.child_tasks for task in (each, *_children(each))}


def _children(task: Any) -> set[Any]:
    return {child for nursery in task.child_nurseries for child in nursery.child_tasks}


@pytest.fixture
def nothing_fails_unheard(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No background task fails: nobody would hear of it but the log."""
    yield
    # By now `caplog.records` are those of the teardown.
    heard = [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert heard == []


@pytest.fixture(autouse=True)
def no_secret_is_logged(pytestconfig: pytest.Config) -> Iterator[None]:
    """No logger of any library says a password, key or token that this process has given to a client."""
    yield
    assert pytestconfig.stash[_LOG_SCAN].leaks() == []


def pytest_report_header() -> str:
    return f"twins in use: messages {compiler.IMPLEMENTATION}, records {batch.IMPLEMENTATION}"


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts background commands so
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_LOG_SCAN] = scan = LogScan()
    scan.begin()
    config.add_cleanup(scan.end)
    config.addinivalue_line("markers", "kafka: runs against a real Apache Kafka (set by using `apache_kafka`)")
    config.addinivalue_line("markers", "measures_process: measures memory or CPU, which sanitizers multiply")
    config.addinivalue_line("markers", "faults: kills brokers of a real cluster for minutes; run by `nox -s faults`")
    config.addinivalue_line("markers", "matrix: boots every release from 0.8.0 on, in minutes; run by `nox -s matrix`")
    config.addinivalue_line("markers", "brokers: brokers freeze, crash, move for minutes; run by `nox -s brokers`")
    config.addinivalue_line("markers", "networks: emulates networks that fail, as root; run by `nox -s networks`")
    config.addinivalue_line("markers", "soak: a group rebalances for hours, or what feels like them; `nox -s soak`")
    config.addinivalue_line("markers", "thorough: one of many seeds; run by `nox -s thorough`")
    config.addinivalue_line("markers", "spark: starts Spark, which takes half a minute; run by `nox -s spark`")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the options
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Share all tests out over the processors; a few of them start sooner, and show more, in one process.

    ``-n 4`` and ``-n 0`` say otherwise, and without xdist all runs in one process.
    """
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    option = config.option
    if option.numprocesses is None and not is_selective(config) and not option.usepdb and option.capture != "no":
        # One more than there are processors: the worker with the tests on Apache Kafka mostly waits.
        option.numprocesses = (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.option.dist != "load":
        return None  # somebody asked for another way
    from support.sharing_out import Sharing

    return Sharing(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is collected, which lives to the end, out of every garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:  # before -m selects by marker
        if not _ON_APACHE_KAFKA.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    booted = config.stash.get(_BOOTED, None)
    if booted is not None:
        terminalreporter.write_line(f"apache kafka: {booted}")
    logged, secrets = config.stash.get(_SCANNED, [0, 0])
    if secrets:
        terminalreporter.write_line(f"logs: {logged} records were looked into for {secrets} forms of secrets")
    skips = [_skip_reason(report) for report in terminalreporter.getreports("skipped")]
    reasons = [skip.partition(NEEDS)[2] for skip in skips if NEEDS in skip]
    if reasons:
        tests = "1 test" if len(reasons) == 1 else f"{len(reasons)} tests"
        terminalreporter.write_line(f"apache kafka: SKIPPED {tests}: {reasons[0]}", yellow=True, bold=True)


def _skip_reason(report: Any) -> str:
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
