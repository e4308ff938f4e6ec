"""Instrumentation that was written for aiokafka traces this package after install(), in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from support.patience import PATIENCE

PROGRAM = """
from aiokafkawire.aiokafka import install

install()

import asyncio
import json

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from opentelemetry.instrumentation.aiokafka import AIOKafkaInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aiokafkawire.testing import Broker


async def main():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    AIOKafkaInstrumentor().instrument(tracer_provider=provider)
    async with Broker() as broker:
        broker.create_topic("orders")
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, client_id="shop") as producer:
            await producer.send_and_wait("orders", b"1", key=b"EWR")
        async with AIOKafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap, group_id="billing", auto_offset_reset="earliest"
        ) as consumer:
            message = await anext(consumer)  # `async for` reads by getone(), which is replaced
            assert [name for name, _ in message.headers] == ["traceparent"]
    spans = [
        {
            "name": span.name,
            "kind": span.kind.name,
            "trace": span.context.trace_id,
            "id": span.context.span_id,
            "parent": span.parent and span.parent.span_id,
            "links": [link.context.span_id for link in span.links],
            "attributes": dict(span.attributes),
        }
        for span in exporter.get_finished_spans()
    ]
    print(json.dumps(spans))


asyncio.run(main())
"""


def test_opentelemetrys_instrumentation_of_aiokafka_connects_what_is_sent_with_what_is_received() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    sent, received = json.loads(run.stdout)
    assert (sent["name"], sent["kind"], sent["parent"]) == ("orders send", "PRODUCER", None)
    assert (received["name"], received["kind"], received["parent"]) == ("orders receive", "CONSUMER", sent["id"])
    assert received["trace"] == sent["trace"]
    of_send: dict[str, Any] = sent["attributes"]
    assert of_send["messaging.client.id"] == "shop"
    assert of_send["messaging.destination.partition.id"] == "0"
    of_receive: dict[str, Any] = received["attributes"]
    assert of_receive["messaging.consumer.group.name"] == "billing"
    assert of_receive["messaging.message.id"] == "orders.0.0"
