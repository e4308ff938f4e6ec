"""Client quotas: their values, the entities to which they apply, and filters that select entities (KIP-546)."""

import ipaddress
import math
import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from ...errors import ErrorCode
from ..cluster.api_error import ApiError

__all__ = ("ClientQuotas", "Component", "Entity", "Limit", "Match", "QuotaOperation", "entity_of")

Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""The parts of an entity with quotas, as type and name, ordered by type; the name None means the default entity."""

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

_KEYS: Final[Mapping[str, float]] = {  # the largest value of each quota; finite for integer quotas
    "producer_byte_rate": 2**63 - 1,
    "consumer_byte_rate": 2**63 - 1,
    "request_percentage": math.inf,
    "controller_mutation_rate": math.inf,
}
_IP_KEYS: Final[Mapping[str, float]] = {"connection_creation_rate": 2**31 - 1}
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


class Match(IntEnum):
    """The match types of a filter: one name, the default entity (without a name), or all entities of the type."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class Component(NamedTuple):
    """A filter on one part of an entity, such as the user; ``match`` is the client's match type, known or unknown."""

    entity_type: str
    match: int
    name: str | None


class QuotaOperation(NamedTuple):
    """A quota to set; None as the value removes the quota."""

    key: str
    value: float | None


class Limit(NamedTuple):
    """A quota for a client; all users share it if ``user`` is empty, all clients share it if ``client_id`` is empty."""

    value: float
    user: str
    client_id: str


def entity_of(parts: Sequence[tuple[str, str | None]]) -> Entity:
    """Return the entity with these parts; of several parts with the same type, the last one counts."""
    return tuple(sorted(dict(parts).items()))


class ClientQuotas:
    """The quotas that requests have set, by entity."""

    def __init__(self) -> None:
        self._quotas: dict[Entity, dict[str, float]] = {}

    def alter(self, entity: Entity, operations: Sequence[QuotaOperation], *, validate_only: bool = False) -> None:
        """Change the quotas of one entity, or only check the changes; if one change is invalid, none is applied.

        Raises:
            ApiError: INVALID_REQUEST, the entity, a key or a value is invalid.
        """
        keys = _keys_of(entity)
        for key, value in operations:
            if value is not None:
                _check(keys, key, value)
        if validate_only:
            return
        quotas = dict(self._quotas.get(entity, {}))
        for key, value in operations:
            if value is None:
                quotas.pop(key, None)
            else:
                quotas[key] = value
        if quotas:
            self._quotas[entity] = quotas
        else:
            self._quotas.pop(entity, None)

    def describe(self, components: Sequence[Component], strict: bool) -> list[tuple[Entity, dict[str, float]]]:
        """Return the entities that match all ``components``, with their quotas; ``strict`` excludes further parts.

        Raises:
            ApiError: INVALID_REQUEST or UNSUPPORTED_VERSION, a component is invalid.
        """
        _check_components(components)
        found = []
        for entity, quotas in self._quotas.items():
            parts = dict(entity)
            if strict and len(parts) != len(components):
                continue
            if all(_matches(parts, component) for component in components):
                found.append((entity, dict(quotas)))
        return found

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """Return the most specific quota ``key`` for a user's client (KIP-55); None if none is set."""
        for user_part, client_part in (
            (user, client_id),
            (user, None),
            (user, ""),
            (None, client_id),
            (None, None),
            (None, ""),
            ("", client_id),
            ("", None),
        ):
            if client_part != "" and not client_id:
                continue  # quotas of client ids do not hold for an empty one
            parts = [(USER, user_part)] if user_part != "" else []
            if client_part != "":
                parts.append((CLIENT_ID, client_part))
            value = self._quotas.get(entity_of(parts), {}).get(key)
            if value is not None:
                return Limit(value, "" if user_part == "" else user, "" if client_part == "" else client_id)
        return None

    def connection_rate(self, host: str) -> float | None:
        """Return the connections per second that an address may open (KIP-612); None if no quota is set."""
        for name in (host, None):
            rate = self._quotas.get(((IP, name),), {}).get("connection_creation_rate")
            if rate is not None:
                return rate
        return None

    @property
    def any(self) -> bool:
        """Whether any quota is set."""
        return bool(self._quotas)


def _keys_of(entity: Entity) -> Mapping[str, float]:
    parts = dict(entity)
    if not parts:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP not in parts:
        return _KEYS
    if len(parts) > 1:
        raise _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    if not _is_host(parts[IP]):
        raise _invalid(f"{parts[IP]} is not a valid IP or resolvable host.")
    return _IP_KEYS


def _is_host(name: str | None) -> bool:
    """Return whether ``name`` is an IP address or looks like a host name, without resolving it."""
    if name is None or _HOST.fullmatch(name):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _check(keys: Mapping[str, float], key: str, value: float) -> None:
    most = keys.get(key)
    if most is None:
        raise _invalid(f"Invalid configuration key {key}")
    if not value > 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    if value > most:
        raise _invalid(f"Proposed value for {key} is too large for {'a LONG' if most > 2**31 else 'an INT'}.")
    if most < math.inf and value % 1 > 1e-6:
        raise _invalid(f"{key} cannot be a fractional value.")


def _check_components(components: Sequence[Component]) -> None:
    seen: list[str] = []
    for kind, match, name in components:
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in seen:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        seen.append(kind)
        if match not in tuple(Match):
            raise _invalid(f"Unknown match type {match}")
        if match == Match.EXACT and name is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if match != Match.EXACT and name is not None:
            fault = f"Request specified MATCH_TYPE_{Match(match).name}, but also specified a match string."
            raise _invalid(fault)
    if IP in seen and len(seen) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )


def _matches(parts: Mapping[str, str | None], component: Component) -> bool:
    if component.entity_type not in parts:
        return False
    # A DEFAULT component has no name, and matches the entity without a name.
    return component.match == Match.SPECIFIED or parts[component.entity_type] == component.name


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
