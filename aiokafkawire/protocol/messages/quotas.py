"""Limits on what clients may use (KIP-546)."""

from ..api import ApiKey
from ..primitives import Array, Bool, Float64, Int8, Int16, Int32, String
from ..schema import Request, Response, field, message, nested

__all__ = (
    "AlterClientQuotasRequest",
    "AlterClientQuotasRequestEntryData",
    "AlterClientQuotasResponse",
    "AlterClientQuotasResponseEntryData",
    "ComponentData",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
    "DescribeClientQuotasResponseEntryData",
    "EntityData",
    "OpData",
    "ValueData",
)


@nested
class EntityData:
    """DOC(DescribeClientQuotasResponse.Entity)."""

    entity_type: String = field("0+")
    entity_name: String | None = field("0+", nullable="0+")


@nested
class ValueData:
    """DOC(DescribeClientQuotasResponse.Values)."""

    key: String = field("0+")
    value: Float64 = field("0+")


@nested
class DescribeClientQuotasResponseEntryData:
    """DOC(DescribeClientQuotasResponse.Entries)."""

    entity: Array[EntityData] = field("0+")
    values: Array[ValueData] = field("0+")


@message(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    entries: Array[DescribeClientQuotasResponseEntryData] | None = field("0+", nullable="0+")


@nested
class ComponentData:
    """DOC(DescribeClientQuotasRequest.Components)."""

    entity_type: String = field("0+")
    match_type: Int8 = field("0+")
    match: String | None = field("0+", nullable="0+")


@message(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(Request[DescribeClientQuotasResponse]):
    """DOC."""

    components: Array[ComponentData] = field("0+")
    strict: Bool = field("0+")


@nested
class AlterClientQuotasResponseEntryData:
    """DOC(AlterClientQuotasResponse.Entries)."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    entity: Array[EntityData] = field("0+")


@message(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    entries: Array[AlterClientQuotasResponseEntryData] = field("0+")


@nested
class OpData:
    """DOC(AlterClientQuotasRequest.Ops)."""

    key: String = field("0+")
    value: Float64 = field("0+")
    remove: Bool = field("0+")


@nested
class AlterClientQuotasRequestEntryData:
    """DOC(AlterClientQuotasRequest.Entries)."""

    entity: Array[EntityData] = field("0+")
    ops: Array[OpData] = field("0+")


@message(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Request[AlterClientQuotasResponse]):
    """DOC."""

    entries: Array[AlterClientQuotasRequestEntryData] = field("0+")
    validate_only: Bool = field("0+")
