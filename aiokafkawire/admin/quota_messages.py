"""The requests about client quotas, and the outcomes in their responses (KIP-546)."""

from collections.abc import Iterable, Mapping, Sequence

from .._printable import printable
from ..errors import KafkaError, UsageError, WireError
from ..protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    OpData,
)
from .client_quotas import ClientQuotaEntity, ClientQuotaFilter
from .response_errors import error_of, raise_for

__all__ = ("alter_request", "altered", "described", "describe_request")


def describe_request(quota_filter: ClientQuotaFilter) -> DescribeClientQuotasRequest:
    """Return the request for the quotas of the entities that match."""
    return DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=component.entity_type, match_type=component.match_type, match=component.match)
            for component in quota_filter.components
        ],
        strict=quota_filter.strict,
    )


def described(response: DescribeClientQuotasResponse) -> dict[ClientQuotaEntity, dict[str, float]]:
    """Return the quotas of each entity.

    Raises:
        BrokerError: the broker rejected the filter.
        WireError: the response has an entity that cannot be.
    """
    raise_for(response.error_code, "DescribeClientQuotas", response.error_message)
    return {
        _entity(entry.entity): {quota.key: quota.value for quota in entry.values} for entry in response.entries or ()
    }


def alter_request(
    alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
    entities: Iterable[ClientQuotaEntity],
    *,
    validate_only: bool,
) -> AlterClientQuotasRequest:
    """Return the request that changes the quotas of some of the entities."""
    return AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.entries.items()],
                ops=[
                    OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
                    for key, value in alterations[entity].items()
                ],
            )
            for entity in entities
        ],
        validate_only=validate_only,
    )


def altered(response: AlterClientQuotasResponse) -> Mapping[ClientQuotaEntity, KafkaError | None]:
    """Return None for each entity whose quotas were changed, or the entity's error."""
    found: dict[ClientQuotaEntity, KafkaError | None] = {}
    for entry in response.entries:
        entity = _entity(entry.entity)
        found[entity] = error_of(entry.error_code, f"changing the quotas of {entity}", entry.error_message)
    return found


def _entity(parts: Sequence[EntityData]) -> ClientQuotaEntity:
    """Return the entity of an answer's entry. Raise WireError if it has a type or a name that is no entity's."""
    try:
        return ClientQuotaEntity({part.entity_type: part.entity_name for part in parts})
    except UsageError as error:
        raise WireError(f"a response has an entity of quotas that cannot be: {printable(str(error))}") from error
