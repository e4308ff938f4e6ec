"""The service of examples/prometheus_service.py with OpenTelemetry's metrics, from its exporter for Prometheus.

python -m support.opentelemetry_service --port 9400 --seconds 60
"""

from __future__ import annotations

import runpy
from collections.abc import Iterable
from pathlib import Path

import anyio
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import Metric

from aiokafkawire import Client
from aiokafkawire.opentelemetry import instrument

__all__ = ("Instrumented",)

_EXAMPLE = Path(__file__).parents[2] / "examples" / "prometheus_service.py"


class Instrumented:
    """A collector without metrics of its own: the reader is another one, in the same registry."""

    def __init__(self, kafka: Client) -> None:
        instrument(kafka, meter_provider=MeterProvider([PrometheusMetricReader()]))

    def collect(self) -> Iterable[Metric]:
        return ()


if __name__ == "__main__":
    main = runpy.run_path(str(_EXAMPLE))["main"]
    main.__globals__["KafkaCollector"] = Instrumented
    anyio.run(main)
