"""An Apache Kafka whose plug-in (`ReceivedTelemetry.java`) writes down the metrics that clients push."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from support.apache_kafka import ApacheKafka, resolve
from support.guarded_process import run_to_end

__all__ = ("CONTENT_TYPE", "ReceivedPush", "TelemetryPlugin", "apache_with_telemetry")

CONTENT_TYPE = "OTLP"
_SOURCE = Path(__file__).with_name("ReceivedTelemetry.java")


class ReceivedPush(NamedTuple):
    """A push as the plug-in got it."""

    instance_id: UUID
    client_id: str
    is_terminating: bool
    content_type: str
    data: MetricsData


class TelemetryPlugin:
    """What the plug-in of one server has received."""

    def __init__(self, kafka: ApacheKafka, file: Path) -> None:
        self.kafka, self._file = kafka, file

    def pushes(self, client_id: str) -> list[ReceivedPush]:
        """The pushes of a client so far."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return [push for push in map(_push, lines) if push.client_id == client_id]


def _push(line: str) -> ReceivedPush:
    instance_id, client_id, is_terminating, content_type, *data = line.split(" ")
    metrics = MetricsData()
    metrics.ParseFromString(base64.b64decode("".join(data)))
    number = UUID(bytes=base64.urlsafe_b64decode(f"{instance_id}=="))
    return ReceivedPush(number, client_id, is_terminating == "true", content_type, metrics)


@contextmanager
def apache_with_telemetry(version: str) -> Iterator[TelemetryPlugin]:
    """Compile the plug-in against the release's own jars, and boot a server with it."""
    with tempfile.TemporaryDirectory(prefix="aiokafkawire-plugin-") as folder:
        classes, file = Path(folder) / "classes", Path(folder) / "received"
        compiler = ["javac", "-cp", f"{resolve(version)}/*", "-d", str(classes), str(_SOURCE)]
        run_to_end(compiler, Path(folder) / "javac.log", 120.0, "compiling ReceivedTelemetry.java")
        settings = {"metric.reporters": "ReceivedTelemetry", "received.telemetry.file": str(file)}
        with ApacheKafka(version, properties=settings, classes=(classes,)) as kafka:
            yield TelemetryPlugin(kafka, file)
