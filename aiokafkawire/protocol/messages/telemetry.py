"""Metrics that a broker asks its clients for (KIP-714)."""

from ..api import ApiKey
from ..primitives import Array, Bool, Bytes, Int8, Int16, Int32, String, Uuid
from ..schema import Request, Response, field, message

__all__ = (
    "GetTelemetrySubscriptionsRequest",
    "GetTelemetrySubscriptionsResponse",
    "PushTelemetryRequest",
    "PushTelemetryResponse",
)


@message(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    client_instance_id: Uuid = field("0+")
    subscription_id: Int32 = field("0+")
    accepted_compression_types: Array[Int8] = field("0+")
    push_interval_ms: Int32 = field("0+")
    telemetry_max_bytes: Int32 = field("0+")
    delta_temporality: Bool = field("0+")
    requested_metrics: Array[String] = field("0+")


@message(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(Request[GetTelemetrySubscriptionsResponse]):
    """DOC."""

    client_instance_id: Uuid = field("0+")


@message(ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")


@message(ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryRequest(Request[PushTelemetryResponse]):
    """DOC."""

    client_instance_id: Uuid = field("0+")
    subscription_id: Int32 = field("0+")
    terminating: Bool = field("0+")
    compression_type: Int8 = field("0+")
    metrics: Bytes = field("0+")
