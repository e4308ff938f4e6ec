"""The quotas that hold for a client: of all that match it, the most specific one (KIP-55, KIP-612)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from ...admin.client_quotas import ClientQuotaEntity

__all__ = ("EffectiveQuota", "effective_quotas")

_CLIENT_QUOTAS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
_ADDRESS_QUOTA: Final = "connection_creation_rate"

_Quotas: TypeAlias = Mapping[ClientQuotaEntity, Mapping[str, float]]


@attrs.frozen
class EffectiveQuota:
    """A quota that holds for a client, and the entity for which it is set; both None for a client without a limit."""

    key: str
    value: float | None = None
    entity: ClientQuotaEntity | None = None


def effective_quotas(
    quotas: _Quotas, *, user: str | None = None, client_id: str = "", ip: str | None = None
) -> list[EffectiveQuota]:
    """Return the quotas that hold for a client, each from the most specific entity that has it.

    Args:
        quotas: all quotas of the cluster.
        user: the user of the client; None to leave the quotas of users and client ids out.
        client_id: the client id; quotas of client ids do not hold for an empty one.
        ip: the address of the client; None to leave the quota of addresses out.
    """
    found = []
    if user is not None:
        found += [_first(key, quotas, _client_entities(user, client_id)) for key in _client_keys(quotas)]
    if ip is not None:
        entities = (ClientQuotaEntity.ip(ip), ClientQuotaEntity.ip(None))
        found.append(_first(_ADDRESS_QUOTA, quotas, entities))
    return found


def _client_keys(quotas: _Quotas) -> list[str]:
    """Return Kafka's quotas of clients, and those of newer brokers that are set."""
    others = {key for values in quotas.values() for key in values} - {*_CLIENT_QUOTAS, _ADDRESS_QUOTA}
    return [*_CLIENT_QUOTAS, *sorted(others)]


def _client_entities(user: str, client_id: str) -> Iterator[ClientQuotaEntity]:
    """Yield the entities that match a client, the most specific one first."""
    for name in (user, None):
        if client_id:
            yield ClientQuotaEntity.user_and_client_id(name, client_id)
            yield ClientQuotaEntity.user_and_client_id(name, None)
        yield ClientQuotaEntity.user(name)
    if client_id:
        yield ClientQuotaEntity.client_id(client_id)
        yield ClientQuotaEntity.client_id(None)


def _first(key: str, quotas: _Quotas, entities: Iterable[ClientQuotaEntity]) -> EffectiveQuota:
    for entity in entities:
        if key in quotas.get(entity, {}):
            return EffectiveQuota(key, quotas[entity][key], entity)
    return EffectiveQuota(key)
