"""What a collector gets: the SDK's exporters of OTLP over HTTP send to a server of the test."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio.to_thread
import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import NoOpMeterProvider, set_meter_provider
from opentelemetry.metrics._internal import _ProxyMeterProvider
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.util._once import Once

from aiokafkawire import Client
from aiokafkawire.errors import UsageError
from aiokafkawire.observe import PartitionStalled, StallEnded
from aiokafkawire.opentelemetry import instrument

pytestmark = pytest.mark.anyio


class Collector(ThreadingHTTPServer):
    """Keeps what is sent to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def bodies(self, path: str) -> list[bytes]:
        return [body for where, body in self.received if where == path]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.received.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def test_new_clients_are_instrumented_once() -> None:
    first = instrument(meter_provider=NoOpMeterProvider())
    try:
        with pytest.raises(UsageError, match="new clients are instrumented already"):
            instrument(meter_provider=NoOpMeterProvider())
    finally:
        first.uninstrument()
    instrument(meter_provider=NoOpMeterProvider()).uninstrument()


async def test_clients_before_and_after_the_global_provider_is_set_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As by a library that instruments its client when it is imported, and a program that does so later."""
    internal = "opentelemetry.metrics._internal"
    monkeypatch.setattr(f"{internal}._PROXY_METER_PROVIDER", _ProxyMeterProvider())
    monkeypatch.setattr(f"{internal}._METER_PROVIDER", None)
    monkeypatch.setattr(f"{internal}._METER_PROVIDER_SET_ONCE", Once())
    before, after = Client("localhost:1", client_id="before"), Client("localhost:1", client_id="after")
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    made = [instrument(before)]
    set_meter_provider(provider)
    made.append(instrument(after))
    data = reader.get_metrics_data()
    assert data is not None
    clients = {
        (point.attributes or {})["messaging.client.id"]
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
        if metric.name == "aiokafkawire.connections"
    }
    for each in made:
        each.uninstrument()
    provider.shutdown()
    assert clients == {"before", "after"}


async def test_stalls_are_events_of_their_client(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = LoggerProvider(shutdown_on_exit=False)
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    logs.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    monkeypatch.setattr("opentelemetry._logs._internal._LOGGER_PROVIDER", logs)
    client = Client("localhost:1", client_id="shop")
    made = instrument(client, meter_provider=NoOpMeterProvider())
    stalled, ended = client._cluster.observers.partition_stalled, client._cluster.observers.stall_ended
    assert stalled is not None
    assert ended is not None
    stalled(PartitionStalled(lane="produce-1", topic="t", partition=3, seconds=30.0, records=1, reason="no leader"))
    ended(StallEnded(lane="produce-1", topic="t", partition=3, seconds=40.0))
    made.uninstrument()
    assert client._cluster.observers.partition_stalled is None
    began, over = (each.log_record for each in exporter.get_finished_logs())
    assert began.event_name == "aiokafkawire.partition.stalled"
    assert over.event_name == "aiokafkawire.partition.stall_ended"
    assert began.body == "produce-1: t-3 is stalled: no leader"
    assert dict(began.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.client.id": "shop",
        "messaging.destination.name": "t",
        "messaging.destination.partition.id": "3",
        "aiokafkawire.stall.duration": 30.0,
        "aiokafkawire.stall.lane": "produce-1",
    }
    logs.shutdown()


async def test_a_collector_gets_the_spans_and_metrics(kafka: Client, topic: str, collector: Collector) -> None:
    tracers = TracerProvider()
    tracers.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(f"{collector.url}/v1/traces", compression=Compression.Gzip))
    )
    exporter = OTLPMetricExporter(f"{collector.url}/v1/metrics")
    meters = MeterProvider([PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)])
    made = instrument(kafka, tracers, meters)
    async with kafka.producer() as producer, kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        await producer.send(topic, b"value")
        async for _ in consumer:
            break
        await anyio.to_thread.run_sync(meters.shutdown)
    await anyio.to_thread.run_sync(tracers.shutdown)
    made.uninstrument()
    spans = [
        span
        for body in collector.bodies("/v1/traces")
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    sent, processed = sorted(spans, key=lambda span: -len(span.name) + 2 * ("send" in span.name), reverse=True)
    assert (sent.name, processed.name) == (f"send {topic}", f"process {topic}")
    assert processed.parent_span_id == sent.span_id
    assert [link.span_id for link in processed.links] == [sent.span_id]
    assert {each.key: each.value.string_value for each in sent.attributes}["messaging.system"] == "kafka"
    metrics = {
        metric.name: metric
        for body in collector.bodies("/v1/metrics")
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert metrics["messaging.client.sent.messages"].sum.data_points[0].as_int == 1
    assert metrics["messaging.client.operation.duration"].histogram.data_points
    assert metrics["aiokafkawire.connections"].gauge.data_points
