"""Limits on what clients may use (KIP-546).

A quota belongs to an entity: a user, a client id, both of them together, or an IP address (KIP-612). Its key says what
it limits, on each broker: ``producer_byte_rate`` and ``consumer_byte_rate`` bytes per second, ``request_percentage``
percent of one thread's time, ``connection_creation_rate`` connections per second from an IP address (KIP-612); and in
the whole cluster ``controller_mutation_rate`` partitions created and deleted per second (KIP-599).
"""

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
    """A part of an entity; a null name is the default for all that have no quota of their own."""

    entity_type: String = field("0+")  # "user", "client-id" or "ip"
    entity_name: String | None = field("0+", nullable="0+")


@nested
class ValueData:
    """A quota; its key says the unit."""

    key: String = field("0+")
    value: Float64 = field("0+")


@nested
class DescribeClientQuotasResponseEntryData:
    """An entity and the quotas set for it."""

    entity: Array[EntityData] = field("0+")
    values: Array[ValueData] = field("0+")


@message(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(Response):
    """The entities that match; null if the request failed."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    entries: Array[DescribeClientQuotasResponseEntryData] | None = field("0+", nullable="0+")


@nested
class ComponentData:
    """What an entity must have as its part of this type."""

    entity_type: String = field("0+")  # "user", "client-id" or "ip"
    match_type: Int8 = field("0+")  # 0: the name in match; 1: the default; 2: any
    match: String | None = field("0+", nullable="0+")  # null unless match_type is 0


@message(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(Request[DescribeClientQuotasResponse]):
    """The quotas of entities that have all these components; an empty list matches all. Any broker answers."""

    components: Array[ComponentData] = field("0+")
    strict: Bool = field("0+")  # leave out entities that have further parts


@nested
class AlterClientQuotasResponseEntryData:
    """How the change of one entity's quotas went."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    entity: Array[EntityData] = field("0+")


@message(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Response):
    """How each change went."""

    throttle_time_ms: Int32 = field("0+", default=0)
    entries: Array[AlterClientQuotasResponseEntryData] = field("0+")


@nested
class OpData:
    """A quota to set, or to remove, whatever the value."""

    key: String = field("0+")
    value: Float64 = field("0+")
    remove: Bool = field("0+")


@nested
class AlterClientQuotasRequestEntryData:
    """An entity and the changes to its quotas."""

    entity: Array[EntityData] = field("0+")
    ops: Array[OpData] = field("0+")


@message(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Request[AlterClientQuotasResponse]):
    """Quotas to set and remove. Any broker takes it."""

    entries: Array[AlterClientQuotasRequestEntryData] = field("0+")
    validate_only: Bool = field("0+")
