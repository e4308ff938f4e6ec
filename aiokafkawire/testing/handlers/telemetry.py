"""GetTelemetrySubscriptions and PushTelemetry: the metrics of clients (KIP-714)."""

import logging
from typing import Final
from uuid import UUID

from ...errors import CorruptBatch, ErrorCode
from ...protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from ...protocol.primitives import ZERO_UUID
from ...records.compression import Codec, decompress
from ..cluster.api_error import ApiError
from ..serving.call import ServerCall
from ..telemetry.client_metrics import ClientInstance, PushedMetrics
from ..telemetry.metrics_data import MalformedMetrics, decode_metrics_data

__all__ = ("get_telemetry_subscriptions", "push_telemetry")

_log = logging.getLogger(__name__)
_ACCEPTED: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
_RESERVED: Final = (ZERO_UUID, UUID(int=1))
_MOST_BYTES: Final = 64 * 1024 * 1024
"""The largest size of metrics after decompression."""


async def get_telemetry_subscriptions(
    call: ServerCall, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Return which metrics the client is to push; choose its id if it has none."""
    instance_id = request.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = call.cluster.new_uuid()
    instance = _instance(call, instance_id)
    try:
        call.node.client_metrics.check_get(instance, call.cluster.clock())
    except ApiError as refused:
        return GetTelemetrySubscriptionsResponse(
            error_code=refused.code,
            client_instance_id=ZERO_UUID,
            subscription_id=0,
            accepted_compression_types=[],
            push_interval_ms=0,
            telemetry_max_bytes=0,
            delta_temporality=False,
            requested_metrics=[],
        )
    return GetTelemetrySubscriptionsResponse(
        error_code=ErrorCode.NONE,
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=[*_ACCEPTED],
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=_max_bytes(call),
        delta_temporality=True,
        requested_metrics=[*instance.metrics],
    )


async def push_telemetry(call: ServerCall, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Store a client's metrics for the test."""
    if request.client_instance_id in _RESERVED:
        return PushTelemetryResponse(error_code=ErrorCode.INVALID_REQUEST)
    instance = _instance(call, request.client_instance_id)
    now, is_last = call.cluster.clock(), request.terminating
    try:
        call.node.client_metrics.check_push(
            instance, now, request.subscription_id, request.compression_type, is_last=is_last
        )
        if len(request.metrics) > _max_bytes(call):
            raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE)
    except ApiError as refused:
        return PushTelemetryResponse(error_code=refused.code)
    finally:
        instance.is_terminating = is_last
    try:
        pushed = _pushed(call, request)
    except (CorruptBatch, MalformedMetrics) as error:
        _log.info("node %d refuses the metrics of %s: %s", call.node.node_id, call.peer.name, error)
        return PushTelemetryResponse(error_code=ErrorCode.INVALID_RECORD)
    call.cluster.pushed_metrics.append(pushed)
    return PushTelemetryResponse(error_code=ErrorCode.NONE)


def _instance(call: ServerCall, instance_id: UUID) -> ClientInstance:
    client = {
        "client_instance_id": str(instance_id),
        "client_id": call.client_id,
        "client_software_name": call.peer.software_name,
        "client_software_version": call.peer.software_version,
        "client_source_address": call.peer.host,
        "client_source_port": call.peer.name.rpartition(":")[2],
    }
    known = {name: value for name, value in client.items() if value is not None}
    return call.node.client_metrics.instance(instance_id, known, call.peer.number, call.cluster.configs)


def _pushed(call: ServerCall, request: PushTelemetryRequest) -> PushedMetrics:
    data = bytes(request.metrics)
    plain = decompress(request.compression_type, memoryview(data), limit=_MOST_BYTES) if data else b""
    return PushedMetrics(
        node_id=call.node.node_id,
        client_id=call.client_id,
        client_instance_id=request.client_instance_id,
        is_terminating=request.terminating,
        compression_type=Codec(request.compression_type).name.lower(),
        size=len(data),
        metrics=tuple(decode_metrics_data(bytes(plain))),
    )


def _max_bytes(call: ServerCall) -> int:
    return int(call.cluster.configs.broker("telemetry.max.bytes", call.node.node_id))
