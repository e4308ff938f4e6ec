"""The entities that have client quotas, and the filters that select them (KIP-546)."""

from collections.abc import Mapping
from enum import IntEnum

import attrs

from ..argument_checks import check_mapping, check_text

__all__ = ("ClientQuotaEntity", "ClientQuotaFilter", "ClientQuotaFilterComponent", "ClientQuotaMatchType")

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"


def _sorted_parts(entries: Mapping[str, str | None]) -> tuple[tuple[str, str | None], ...]:
    """Return the items, sorted by type.

    Raises:
        UsageError: a type or a name is not valid.
    """
    check_mapping("the entries of a ClientQuotaEntity", entries, "{'user': 'alice'}")
    for kind, name in entries.items():
        check_text("the type of a ClientQuotaEntity", kind)
        if name is not None:
            check_text(f"the {kind} of a ClientQuotaEntity", name)
    return tuple(sorted(entries.items()))


@attrs.frozen(repr=False)
class ClientQuotaEntity:
    """The clients for which a quota is: ``ClientQuotaEntity({"user": "alice", "client-id": None})``.

    The types are "user", "client-id", both, or "ip". The name None means the default, for all users, client ids or
    addresses without a quota of their own.

    Raises:
        UsageError: a type or a name is not a string.
    """

    _parts: tuple[tuple[str, str | None], ...] = attrs.field(alias="entries", converter=_sorted_parts)

    @classmethod
    def user(cls, name: str | None) -> "ClientQuotaEntity":
        """Return the entity of a user, or of all other users for None."""
        return cls({_USER: name})

    @classmethod
    def client_id(cls, name: str | None) -> "ClientQuotaEntity":
        """Return the entity of a client id, or of all other client ids for None."""
        return cls({_CLIENT_ID: name})

    @classmethod
    def user_and_client_id(cls, user: str | None, client_id: str | None) -> "ClientQuotaEntity":
        """Return the entity of a user's clients with a client id; None means all other users or client ids."""
        return cls({_USER: user, _CLIENT_ID: client_id})

    @classmethod
    def ip(cls, address: str | None) -> "ClientQuotaEntity":
        """Return the entity of an IP address or host name, or of all other addresses for None (KIP-612)."""
        return cls({_IP: address})

    @property
    def entries(self) -> dict[str, str | None]:
        """The names by type; None means the default."""
        return dict(self._parts)

    def __repr__(self) -> str:
        return f"ClientQuotaEntity({self.entries})"

    def __str__(self) -> str:
        return ", ".join(f"default {kind}" if name is None else f"{kind} {name!r}" for kind, name in self._parts)


class ClientQuotaMatchType(IntEnum):
    """The entities of a type that a filter's component matches; the values are those of Kafka's requests."""

    EXACT = 0
    """The entity with the component's name."""
    DEFAULT = 1
    """The default entity."""
    ANY = 2
    """Every entity that has this type."""


@attrs.frozen
class ClientQuotaFilterComponent:
    """A condition on one type of an entity: "user", "client-id" or "ip"."""

    entity_type: str
    match_type: ClientQuotaMatchType
    match: str | None = None

    @classmethod
    def of_entity(cls, entity_type: str, entity_name: str) -> "ClientQuotaFilterComponent":
        """Return the condition that the entity has this name."""
        return cls(entity_type, ClientQuotaMatchType.EXACT, entity_name)

    @classmethod
    def of_default_entity(cls, entity_type: str) -> "ClientQuotaFilterComponent":
        """Return the condition that the entity is the default."""
        return cls(entity_type, ClientQuotaMatchType.DEFAULT)

    @classmethod
    def of_entity_type(cls, entity_type: str) -> "ClientQuotaFilterComponent":
        """Return the condition that the entity has this type, with any name or as the default."""
        return cls(entity_type, ClientQuotaMatchType.ANY)


@attrs.frozen
class ClientQuotaFilter:
    """A filter of entities, which must match all components; if ``strict``, they must have no other types."""

    components: tuple[ClientQuotaFilterComponent, ...] = ()
    strict: bool = False

    @classmethod
    def all(cls) -> "ClientQuotaFilter":
        """Return the filter that matches every entity."""
        return cls()

    @classmethod
    def contains(cls, *components: ClientQuotaFilterComponent) -> "ClientQuotaFilter":
        """Return the filter of entities that match the components, and may have other types too."""
        return cls(components)

    @classmethod
    def contains_only(cls, *components: ClientQuotaFilterComponent) -> "ClientQuotaFilter":
        """Return the strict filter: a user's own quotas, without those of the user's client ids."""
        return cls(components, strict=True)
