"""The entities of ``quotas`` as users name them by options, and as rows show them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from ...admin.client_quotas import ClientQuotaEntity, ClientQuotaFilter, ClientQuotaFilterComponent
from ..exit_status import MISSING, CommandFailed
from .limits import quota_text

__all__ = ("DEFAULT", "EntityOptions", "entity_fields", "quota_rows")

DEFAULT: Final = "(default)"
"""The default entity of a type in a table."""

_KEYS: Final = {"user": "user", "client-id": "client_id", "ip": "ip"}
"""The keys of rows by Kafka's types of entities."""


@attrs.frozen(kw_only=True)
class EntityOptions:
    """The options that name an entity; None and False for those that are not given."""

    user: str | None = None
    user_default: bool = False
    client_id: str | None = None
    client_id_default: bool = False
    ip: str | None = None
    ip_default: bool = False

    @property
    def parts(self) -> dict[str, str | None]:
        """The names by Kafka's types; None stands for the default.

        Raises:
            CommandFailed: options contradict each other (exit status 2).
        """
        found: dict[str, str | None] = {}
        for kind, name, default in (
            ("user", self.user, self.user_default),
            ("client-id", self.client_id, self.client_id_default),
            ("ip", self.ip, self.ip_default),
        ):
            if name is not None and default:
                raise CommandFailed(f"--{kind} and --{kind}-default cannot be combined", MISSING)
            if name == "":
                raise CommandFailed(f"--{kind} must not be empty; --{kind}-default means all without a quota", MISSING)
            if name is not None or default:
                found[kind] = name
        if "ip" in found and len(found) > 1:
            raise CommandFailed("a quota of an IP address has no user and no client id", MISSING)
        return found

    @property
    def entity(self) -> ClientQuotaEntity:
        """The entity.

        Raises:
            CommandFailed: no option names it, or options contradict each other (exit status 2).
        """
        if not self.parts:
            raise CommandFailed("whose quotas? Give --user, --client-id, both, or --ip; or their -default", MISSING)
        return ClientQuotaEntity(self.parts)

    def filter(self, *, exact: bool = False) -> ClientQuotaFilter:
        """Return the filter of the entities that have these parts; ``exact`` excludes those with other parts, too."""
        components = [
            ClientQuotaFilterComponent.of_default_entity(kind)
            if name is None
            else ClientQuotaFilterComponent.of_entity(kind, name)
            for kind, name in self.parts.items()
        ]
        return ClientQuotaFilter(tuple(components), strict=exact)


def entity_fields(entity: ClientQuotaEntity, *, json: bool) -> dict[str, Any]:
    """Return the fields of an entity in a row.

    In JSON this is an object that has the entity's parts alone, in which null means the default. In a table each part
    is a column.
    """
    parts = {key: entity.entries[kind] for kind, key in _KEYS.items() if kind in entity.entries}
    if json:
        return {"entity": parts}
    cells = {key: DEFAULT if name is None else name for key, name in parts.items()}
    return {key: cells.get(key) for key in _KEYS.values()}


def quota_rows(quotas: Mapping[ClientQuotaEntity, Mapping[str, float]], *, json: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each quota: in the order of the entities' types and names, defaults last."""
    for entity in sorted(quotas, key=_order):
        for key, value in sorted(quotas[entity].items()):
            shown = value if json else quota_text(value)
            yield {**entity_fields(entity, json=json), "quota": key, "value": shown}


def _order(entity: ClientQuotaEntity) -> list[tuple[int, bool, str]]:
    return [
        (index, entity.entries[kind] is None, entity.entries[kind] or "")
        for index, kind in enumerate(_KEYS)
        if kind in entity.entries
    ]
