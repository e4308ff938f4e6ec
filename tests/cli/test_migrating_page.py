"""docs/migrating.md: its tables are those of the command, and its programs do the same before and after."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import anyio
import pytest
from support.migration_page import PAGE, page, programs

import aiokafkawire
from aiokafkawire import TopicPartition, blocking
from aiokafkawire.admin.admin import Admin
from aiokafkawire.cli.migrate.advice import Library, same
from aiokafkawire.cli.migrate.finding import PAGE as TITLE
from aiokafkawire.cli.migrate.libraries import LIBRARIES
from aiokafkawire.cli.migrate.rewriting import with_drop_in
from aiokafkawire.testing.background import BackgroundBroker

EACH = pytest.mark.parametrize("library", LIBRARIES.values(), ids=lambda library: library.distribution)
KAFKA_PYTHON_WARNS = pytest.mark.filterwarnings(r"ignore:(read|open)_text is deprecated:DeprecationWarning")
PACKAGES = ("__version__", "aiokafka", "blocking", "errors", "from_confluent", "protocol", "records", "schema_registry")
VALUES = [b"%d" % number for number in range(100)]


class Done(Exception):
    """The program has handled all records."""


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker() as broker:
        with blocking.Client(broker.bootstrap) as kafka:
            kafka.admin.create_topics({"orders": 1})
        yield broker


def run(program: str, broker: BackgroundBroker) -> None:
    text = program.replace("localhost:9092", broker.bootstrap)
    assert text != program
    exec(compile(text, str(PAGE), "exec"), {"__name__": "__main__"})


def test_the_tables_are_those_of_the_command() -> None:
    # If not: PYTHONPATH=tests python tests/support/migration_page.py
    assert page(PAGE.read_text()) == PAGE.read_text()


@EACH
def test_findings_name_a_section_of_the_page(library: Library) -> None:
    assert PAGE.read_text().startswith(f"# {TITLE}\n")
    assert library.section in re.findall(r"^## (.*)$", PAGE.read_text(), re.MULTILINE)


@EACH
def test_what_the_tables_name_here_is_there(library: Library) -> None:
    for name, advice in library.names.items():
        text = f"{advice.ours} {advice.differs}"
        for method in re.findall(r"\badmin\.(\w+)\(", text):
            assert getattr(Admin, method), name
        for exported in re.findall(r"\baiokafkawire\.(\w+)", text):
            assert exported in PACKAGES, name
        if advice == same("a")["a"]:
            assert name in aiokafkawire.__all__, name


@KAFKA_PYTHON_WARNS
@EACH
@pytest.mark.parametrize("which", ["before", "after"])
def test_the_producers_send_the_same(library: Library, which: str, broker: BackgroundBroker) -> None:
    before, after = programs(library)["producer"]
    run(before if which == "before" else after, broker)
    with blocking.Client(broker.bootstrap) as kafka:
        found = [(record.key, record.value) for record in kafka.read_records("orders")]
    assert found == [(b"customer", value) for value in VALUES]


@KAFKA_PYTHON_WARNS
@EACH
@pytest.mark.parametrize("which", ["before", "after"])
def test_the_consumers_handle_the_same_and_commit_only_that(
    library: Library, which: str, broker: BackgroundBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    handled: list[Any] = []

    def handle(value: object) -> None:
        if value == b"50":
            raise Done
        handled.append(value)

    module = ModuleType("orders")
    module.handle = handle  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "orders", module)
    before, after = programs(library)["consumer"]
    with blocking.Client(broker.bootstrap) as kafka, kafka.producer() as producer:
        producer.send_many("orders", VALUES)
        with pytest.raises(Done):
            run(before if which == "before" else after, broker)
        committed = kafka.admin.list_consumer_group_offsets("billing")
    assert handled == VALUES[:50]
    at = committed.get(TopicPartition("orders", 0))
    assert at is None or at.offset <= 50


def test_a_program_on_the_drop_in_does_the_same_with_no_change_but_the_import(broker: BackgroundBroker) -> None:
    pytest.importorskip("aiokafkawire.aiokafka", reason="the drop-in is not in this package")
    before, _ = programs(LIBRARIES["aiokafka"])["producer"]
    changed = with_drop_in(before.encode()).decode()
    assert "from aiokafkawire.aiokafka import AIOKafkaProducer\n" in changed
    run(changed, broker)
    with blocking.Client(broker.bootstrap) as kafka:
        assert [record.value for record in kafka.read_records("orders")] == VALUES


def test_the_configuration_of_the_page_is_taken(broker: BackgroundBroker) -> None:
    (program,) = re.findall(
        r"```python\n(from aiokafkawire import Client, from_confluent\n.*?)```", PAGE.read_text(), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(compile(program.replace("localhost:9092", broker.bootstrap), str(PAGE), "exec"), names)
    assert names["settings"].consumer["group_id"] == "billing"
    anyio.run(names["main"])
