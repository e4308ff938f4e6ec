"""MetricsPush: the methods about pushed metrics that clients, producers, consumers and the admin share."""

from typing import TYPE_CHECKING

from ..argument_checks import check_seconds

if TYPE_CHECKING:
    from uuid import UUID

    from ..telemetry.application_metrics import ApplicationMetric
    from .cluster import Cluster

__all__ = ("MetricsPush",)


class MetricsPush:
    """Methods about the metrics that a client pushes to brokers (KIP-714, KIP-1076). A client has one set of them."""

    __slots__ = ()

    _cluster: "Cluster"

    async def client_instance_id(self, *, timeout: float | None = None) -> "UUID":
        """Return the id by which brokers know this client in its metrics (KIP-714, brokers since 3.7).

        A broker chooses the id at the first call or push; it stays the same while the client is open. The client's
        producers, consumers and admin share it.

        Raises:
            UnsupportedVersion: the brokers are too old, or have no plugin that receives metrics.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        check_seconds("timeout", timeout)
        allowed = self._cluster.config.default_api_timeout_ms / 1000 if timeout is None else timeout
        return await self._cluster.telemetry.client_instance_id(self._cluster.deadline(allowed))

    def register_metric_for_subscription(self, metric: "ApplicationMetric") -> None:
        """Push a metric of the application with the client's own, if brokers subscribe to it (KIP-1076).

        The metric belongs to the client, which pushes it until it is unregistered or the client is closed. Nothing is
        pushed unless the client has ``enable_metrics_push``.

        Raises:
            UsageError: this is no :class:`~aiokafkawire.metrics.ApplicationMetric`, or another metric with its group,
                name and attributes is registered.
        """
        self._cluster.telemetry.applications.register(metric)

    def unregister_metric_from_subscription(self, metric: "ApplicationMetric") -> None:
        """Push this metric of the application no more (KIP-1076). Ignore a metric that is not registered.

        Raises:
            UsageError: this is no :class:`~aiokafkawire.metrics.ApplicationMetric`.
        """
        self._cluster.telemetry.applications.unregister(metric)
