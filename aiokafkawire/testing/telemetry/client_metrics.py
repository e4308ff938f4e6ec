"""The clients that push metrics to one broker, as in Kafka's ClientMetricsManager."""

import re
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import attrs

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from ..configs.configs import Configs
from ..configs.types import ConfigKind
from .metrics_data import PushedMetric

__all__ = ("ALL_METRICS", "ClientInstance", "ClientInstances", "PushedMetrics")

ALL_METRICS: Final = "*"
_MOST_INSTANCES: Final = 16_384
_DEFAULT_INTERVAL_MS: Final = 300_000


@attrs.frozen
class PushedMetrics:
    """One push of a client's metrics."""

    node_id: int
    """The broker that got it."""
    client_id: str | None
    client_instance_id: UUID
    is_terminating: bool
    """Whether the client closes, so that this is its last push."""
    compression_type: str
    """The compression, such as ``"zstd"``; ``"none"`` without."""
    size: int
    """The size of the metrics as they were sent, in bytes."""
    metrics: tuple[PushedMetric, ...]


@attrs.define(eq=False)
class ClientInstance:
    """A client with the metrics to which the cluster's subscriptions add up for it."""

    subscriptions: Mapping[str, Mapping[str, str]]
    """The settings of all subscriptions when this was computed, by name."""
    subscription_id: int
    metrics: Sequence[str]
    interval_ms: int
    last_get_ms: int = 0
    last_push_ms: int = 0
    is_terminating: bool = False

    def may_get(self, now_ms: int) -> bool:
        """Return whether the client may request its subscription now; remember the request if it may."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) < self.interval_ms:
            return False
        self.last_get_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Return whether the client may push now; remember the push if it may. The first one may come early."""
        if self.last_get_ms <= self.last_push_ms and now_ms - self.last_push_ms < self.interval_ms:
            return False
        self.last_push_ms = now_ms
        return True


class ClientInstances:
    """The clients of one broker that push metrics, by client instance id."""

    def __init__(self) -> None:
        self._instances: OrderedDict[UUID, ClientInstance] = OrderedDict()
        self._of_connection: dict[int, UUID] = {}

    def instance(
        self, instance_id: UUID, client: Mapping[str, str], connection: int, configs: Configs
    ) -> ClientInstance:
        """Return a client, with the subscriptions that ``configs`` have now.

        ``client`` are the values by which subscriptions select clients, such as ``client_software_name``.
        """
        subscriptions = {
            name: configs.own(ConfigKind.CLIENT_METRICS, name) for name in configs.named(ConfigKind.CLIENT_METRICS)
        }
        known = self._instances.get(instance_id)
        if known is None or known.subscriptions != subscriptions:
            known = self._instances[instance_id] = _matched(instance_id, client, subscriptions)
            self._of_connection[connection] = instance_id
        self._instances.move_to_end(instance_id)
        if len(self._instances) > _MOST_INSTANCES:
            self._instances.popitem(last=False)
        return known

    def connection_closed(self, connection: int) -> None:
        """Forget the client of a connection that has ended."""
        instance_id = self._of_connection.pop(connection, None)
        if instance_id is not None:
            self._instances.pop(instance_id, None)

    def check_get(self, instance: ClientInstance, now_ms: int) -> None:
        """Check that a client may request its subscription now. Raises ApiError: THROTTLING_QUOTA_EXCEEDED."""
        if not instance.may_get(now_ms):
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def check_push(
        self, instance: ClientInstance, now_ms: int, subscription_id: int, codec: int, *, is_last: bool
    ) -> None:
        """Check that a client may push now.

        Raises:
            ApiError: INVALID_REQUEST, THROTTLING_QUOTA_EXCEEDED, UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE.
        """
        if instance.is_terminating:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if not instance.may_push(now_ms) and not is_last:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if subscription_id != instance.subscription_id:
            raise ApiError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if not 0 <= codec <= 4:
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


def _matched(
    instance_id: UUID, client: Mapping[str, str], subscriptions: Mapping[str, Mapping[str, str]]
) -> ClientInstance:
    metrics, interval = set[str](), _DEFAULT_INTERVAL_MS
    for settings in subscriptions.values():
        if _matches(settings.get("match", ""), client):
            metrics |= {name.strip() for name in settings.get("metrics", "").split(",") if name.strip()}
            interval = min(interval, int(settings.get("interval.ms", _DEFAULT_INTERVAL_MS)))
    requested = [ALL_METRICS] if ALL_METRICS in metrics else sorted(metrics)
    checksum = zlib.crc32(f"{requested}{interval}".encode()) ^ zlib.crc32(instance_id.bytes)
    return ClientInstance(subscriptions, checksum - 2**31, requested, interval)


def _matches(patterns: str, client: Mapping[str, str]) -> bool:
    for pattern in patterns.split(",") if patterns.strip() else ():
        key, _, expression = pattern.partition("=")
        value = client.get(key.strip())
        if value is None or not re.fullmatch(expression.strip(), value):
            return False
    return True
