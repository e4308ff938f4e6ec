"""Metrics that a broker asks its clients for (KIP-714).

A client asks one broker what is wanted, and pushes it there at every interval. When a push is answered with
UNKNOWN_SUBSCRIPTION_ID, it asks again.
"""

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
    """Which metrics the broker wants, how often, and in which form."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    client_instance_id: Uuid = field("0+")  # the one to use, where the request had none
    subscription_id: Int32 = field("0+")  # changes with what is wanted; pushes repeat it
    accepted_compression_types: Array[Int8] = field("0+")  # 0: none; 1: gzip; 2: snappy; 3: lz4; 4: zstd
    push_interval_ms: Int32 = field("0+")
    telemetry_max_bytes: Int32 = field("0+")  # of a push's metrics, compressed
    delta_temporality: Bool = field("0+")  # True: counters tell the growth since the last push; False: the total
    requested_metrics: Array[String] = field("0+")  # prefixes of names; empty: none; one * or empty string: all


@message(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(Request[GetTelemetrySubscriptionsResponse]):
    """Which metrics does the broker request from this client?"""

    client_instance_id: Uuid = field("0+")  # zero at first; then the same for as long as the client lives


@message(ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryResponse(Response):
    """Whether the broker took the metrics; THROTTLING_QUOTA_EXCEEDED where they came too early."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")


@message(ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryRequest(Request[PushTelemetryResponse]):
    """The client's metrics, in the form that GetTelemetrySubscriptions asked for."""

    client_instance_id: Uuid = field("0+")
    subscription_id: Int32 = field("0+")
    terminating: Bool = field("0+")  # True: the last push, which need not wait for the interval
    compression_type: Int8 = field("0+")  # 0: none; 1: gzip; 2: snappy; 3: lz4; 4: zstd
    metrics: Bytes = field("0+")  # MetricsData v1 of OpenTelemetry, in Protobuf, compressed
