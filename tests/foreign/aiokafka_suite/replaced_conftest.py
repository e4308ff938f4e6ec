"""Replaces the conftest.py of aiokafka's tests: they get a broker that is there, and this project's client."""

import ast
import asyncio
import gc
import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BOOTSTRAP = os.environ["SUITE_BOOTSTRAP"]
HERE = Path(__file__).parent


class PrivateName(Exception):
    """A test has used a name of aiokafka's internals."""


class Placeholder:
    """Stands for a name that only aiokafka's internals have."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        raise PrivateName(self._name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise PrivateName(self._name)


def add_placeholders() -> None:
    """Give aiokafka's modules, as the tests import them, the names that this project does not have."""
    for path in HERE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "aiokafka":
                module = imported(node.module)
                for alias in node.names:
                    if not hasattr(module, alias.name):
                        setattr(module, alias.name, Placeholder(f"{node.module}.{alias.name}"))


def imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module = sys.modules[name] = ModuleType(name)
        module.__path__ = []
        parent, _, last = name.rpartition(".")
        setattr(imported(parent), last, module)
        return module


if os.environ["SUITE_CLIENT"] == "aiokafkawire":
    from aiokafkawire.aiokafka import install

    install()
    add_placeholders()

RESULTS: dict[str, dict[str, str]] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Keep the outcome of each test, and the first line of its error."""
    report = (yield).get_result()
    name = item.nodeid.removeprefix("tests/")
    if report.skipped:
        RESULTS[name] = {"outcome": "skipped", "error": str(report.longrepr[2])[:150]}
    elif report.failed:
        error = call.excinfo.value
        text = f"{report.when}: " if report.when != "call" else ""
        RESULTS[name] = {"outcome": "failed", "error": f"{text}{type(error).__name__}: {error}".splitlines()[0][:150]}
    elif report.when == "call":
        RESULTS[name] = {"outcome": "passed", "error": ""}


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        name = report.nodeid.removeprefix("tests/")
        RESULTS[name] = {"outcome": "failed", "error": "import: " + str(report.longrepr).splitlines()[-1][:150]}


def pytest_sessionfinish() -> None:
    Path(os.environ["SUITE_RESULTS"]).write_text(json.dumps(RESULTS))


@pytest.fixture(scope="class")
def loop() -> Any:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    if not loop.is_closed():
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
    gc.collect()
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def collect_garbage() -> Any:
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def need_certificates(request: Any) -> None:
    if request.node.get_closest_marker("ssl"):
        pytest.skip("needs a listener with TLS")


@pytest.fixture
def ssl_folder() -> None:
    pytest.skip("needs certificates")


@pytest.fixture(scope="class")
def setup_test_class_serverless(request: Any, loop: Any) -> None:
    request.cls.loop = loop


@pytest.fixture(scope="class")
def setup_test_class(request: Any, loop: Any) -> None:
    host, _, port = BOOTSTRAP.rpartition(":")
    request.cls.loop = loop
    request.cls.kafka_host, request.cls.kafka_port = host, int(port)
    request.cls.kafka_version = os.environ["SUITE_KAFKA"]
    request.cls.hosts = [BOOTSTRAP]
    request.cls.kafka_config = request.cls.acl_manager = request.cls.kerberos_utils = None
