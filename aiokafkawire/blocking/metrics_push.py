"""The blocking form of the methods about pushed metrics."""

from typing import TYPE_CHECKING
from uuid import UUID

from ..cluster.metrics_push import MetricsPush as AsyncMetricsPush
from ..loop_thread import LoopThread

if TYPE_CHECKING:
    from ..telemetry.application_metrics import ApplicationMetric

__all__ = ("MetricsPush",)


class MetricsPush:
    """Methods about the metrics that a client pushes to brokers (KIP-714, KIP-1076). A client has one set of them."""

    _loop: LoopThread
    _telemetry: AsyncMetricsPush

    def client_instance_id(self, *, timeout: float | None = None) -> UUID:
        """Return the id by which brokers know this client in its metrics."""
        return self._loop.call(self._telemetry.client_instance_id, timeout=timeout)

    def register_metric_for_subscription(self, metric: "ApplicationMetric") -> None:
        """Push a metric of the application with the client's own. Its function is called on the client's thread."""
        self._loop.call_sync(self._telemetry.register_metric_for_subscription, metric)

    def unregister_metric_from_subscription(self, metric: "ApplicationMetric") -> None:
        """Push this metric of the application no more."""
        self._loop.call_sync(self._telemetry.unregister_metric_from_subscription, metric)
