"""Metrics of a client, under the names of the Java client's metrics, and metrics of the application."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ..telemetry.application_metrics import ApplicationMetric
    from .metric import Metric

__all__ = ("ApplicationMetric", "Metric")

_MODULES = {"ApplicationMetric": "..telemetry.application_metrics", "Metric": ".metric"}
__getattr__: Callable[[str], object] = lazy_exports(__name__, _MODULES)
