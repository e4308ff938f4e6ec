"""Metrics of a client, under the names of the Java client's metrics."""

from ..telemetry.application_metrics import ApplicationMetric
from .metric import Metric

__all__ = ("ApplicationMetric", "Metric")
