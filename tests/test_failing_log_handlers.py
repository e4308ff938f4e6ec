"""Handlers and filters of the program's log that fail: the client works on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from support.clusters import QUICK
from support.patience import SOON

from aiokafkawire import Client
from aiokafkawire.event_log import EventLog
from aiokafkawire.testing.broker import Broker


class Failing(logging.Handler):
    """A handler whose sink is away, and which catches no errors, as logging's own handlers do."""

    def __init__(self) -> None:
        super().__init__()
        self.failed = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.failed += 1
        raise LookupError("no sink")


@pytest.fixture
def failing() -> Iterator[Failing]:
    handler = Failing()
    loggers = [logging.getLogger(f"aiokafkawire.{area}") for area in ("cluster", "group", "network", "producer")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield handler
    for logger in loggers:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


@pytest.mark.anyio
async def test_records_are_written_and_read(failing: Failing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    options: dict[str, Any] = {**QUICK, "allow_auto_create_topics": True}
    with anyio.fail_after(SOON):
        async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect, **options) as kafka:
            async with kafka.producer() as producer:
                await producer.send("t", b"1")
                for _, connection in kafka._cluster.brokers.in_use():
                    await connection.close()
                await producer.send("t", b"2")
            async with kafka.consumer("t", group_id="g", auto_offset_reset="earliest") as consumer:
                assert [(await anext(consumer)).value for _ in range(2)] == [b"1", b"2"]
                await consumer.commit()
    assert failing.failed


@pytest.mark.parametrize("prints", [True, False])
def test_the_error_is_printed_as_logging_prints_those_of_its_handlers(
    failing: Failing, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], prints: bool
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", prints)
    EventLog("aiokafkawire.network").warning("%(broker)s is away", broker="b:1")
    assert failing.failed == 1
    assert ("LookupError: no sink" in capsys.readouterr().err) is prints
