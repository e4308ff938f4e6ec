"""Metrics of a client, under the names of the Java client's metrics."""

from .metric import Metric

__all__ = ("Metric",)
