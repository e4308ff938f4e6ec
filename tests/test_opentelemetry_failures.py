"""Errors of OpenTelemetry, and brokers that know no headers: no record is lost, and no caller hangs."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor
from support.clusters import QUICK
from support.collected import Collected, attributes, parent_id, span_id
from support.log_watch import watched_log
from support.patience import SOON

from aiokafkawire import Client
from aiokafkawire.notes import ConnectionApi
from aiokafkawire.opentelemetry import instrument, process_span
from aiokafkawire.opentelemetry.meters import ClientMeters, Meters
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address

pytestmark = pytest.mark.anyio


class Refusing(SpanProcessor):
    """Fails for the spans with these words in their names, when they begin or end."""

    def __init__(self, *, begin: str = "-", end: str = "-") -> None:
        self.begin, self.end = begin, end

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if self.begin in span.name:
            raise LookupError("no exporter")

    def on_end(self, span: Any) -> None:
        if self.end in span.name:
            raise LookupError("no exporter")


@pytest.fixture
def collected() -> Iterator[Collected]:
    made = Collected()
    yield made
    made.close()


@asynccontextmanager
async def client(release: str | None = None) -> AsyncIterator[Client]:
    async with Broker(port=None, max_versions=release) as broker:
        broker.create_topic("a")
        async with Client(broker.bootstrap, connector=broker.connect, **QUICK) as kafka:
            with anyio.fail_after(SOON):
                yield kafka


async def test_records_are_acknowledged_though_their_spans_cannot_end(collected: Collected) -> None:
    collected.tracers.add_span_processor(Refusing(end="send"))
    with watched_log(logging.ERROR) as log:
        async with client() as kafka:
            instrument(kafka, collected.tracers, collected.meters)
            async with kafka.producer() as producer:
                assert [(await producer.send("a", b"1")).offset for _ in range(3)] == [0, 1, 2]
                await producer.enqueue_many("a", [b"2"] * 5)
                await producer.flush()
    assert len(log.of("opentelemetry")) == 1


async def test_a_span_that_cannot_end_is_not_the_parent_of_the_next_record(collected: Collected) -> None:
    async with client() as kafka:
        instrument(kafka, collected.tracers, collected.meters)
        async with kafka.producer() as producer:
            for value in (b"1", b"2"):
                await producer.send("a", value)
        refusing = Refusing(end="process")
        collected.tracers.add_span_processor(refusing)
        async with kafka.consumer("a", auto_offset_reset="earliest") as consumer:
            async for record in consumer:
                current: Any = trace.get_current_span()
                if record.value == b"2":
                    refusing.end = "-"
                    break
    sent = {attributes(span)["messaging.kafka.offset"]: span_id(span) for span in collected.spans("send a")}
    assert attributes(current)["messaging.kafka.offset"] == 1
    assert parent_id(current) == sent[1]


@pytest.mark.parametrize("refusing", [Refusing(begin="process"), Refusing(end="process")])
async def test_records_are_processed_without_a_span(collected: Collected, refusing: Refusing) -> None:
    async with client() as kafka:
        instrument(kafka, collected.tracers, collected.meters)
        async with kafka.producer() as producer:
            await producer.send("a", b"1")
        collected.tracers.add_span_processor(refusing)
        async with kafka.consumer("a", auto_offset_reset="earliest") as consumer:
            (record,) = await consumer.poll()
        done = []
        with process_span(record, tracer_provider=collected.tracers):
            done.append(record)
        seen: list[Any] = []

        def process(records: Any) -> list[Any]:
            seen.extend(records)
            return []

        await kafka.transform("a", process, group_id="g", transactional_id="t", until_end=True)
    assert len(seen) == len(done) == 1


async def test_brokers_without_headers_get_records_without_a_context(collected: Collected) -> None:
    async with client("0.10.2") as kafka:
        instrument(kafka, collected.tracers, collected.meters)
        async with kafka.producer(enable_idempotence=False) as producer:
            with collected.tracer.start_as_current_span("request"):
                assert (await producer.send("a", b"1")).offset == 0
        async with kafka.consumer("a", auto_offset_reset="earliest") as consumer:
            (record,) = await consumer.poll()
    assert record.headers == ()
    assert collected.span("send a").status.is_unset


async def test_meters_that_fail_are_logged_once() -> None:
    def fail(*_: Any) -> None:
        raise LookupError("no exporter")

    broken = SimpleNamespace(record=fail)
    meters = ClientMeters(cast("Meters", SimpleNamespace(operation_duration=broken, process_duration=broken)), "shop")
    kind = ConnectionApi("produce-1", "Produce", 1, Address("b", 1), {}, throttle_leads=True)
    with watched_log(logging.WARNING) as log:
        for second in range(3):
            meters.record_requests([(kind, 1, 1, 0.1, 0.0, None, float(second))])
    assert len(log.records) == 1
