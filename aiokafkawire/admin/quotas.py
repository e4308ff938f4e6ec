"""The admin's methods for client quotas.

The first call imports the message classes of quotas.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..argument_checks import check_flag, check_mapping, check_text, shown
from ..errors import UsageError
from .admin_base import AdminBase

if TYPE_CHECKING:
    from .client_quotas import ClientQuotaEntity, ClientQuotaFilter

__all__ = ("QuotaAdmin",)


class QuotaAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for client quotas."""

    async def describe_client_quotas(
        self, quota_filter: "ClientQuotaFilter | None" = None, *, timeout: float | None = None
    ) -> "dict[ClientQuotaEntity, dict[str, float]]":
        """Return the quotas of entities, by name: users, client ids, both together, and IP addresses (KIP-546).

        Quotas are per broker: ``producer_byte_rate`` and ``consumer_byte_rate`` in bytes per second,
        ``request_percentage`` in percent of a thread's time, ``connection_creation_rate`` in connections per second
        (KIP-612). ``controller_mutation_rate`` is per cluster, in partitions per second (KIP-599).

        Args:
            quota_filter: selects the entities, such as
                ``ClientQuotaFilter.contains(ClientQuotaFilterComponent.of_entity("user", "alice"))``; None for all.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            InvalidRequest, ...: the broker rejected the filter.
            UnsupportedVersion: the broker is older than 2.6.
            UsageError: the filter is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .client_quotas import ClientQuotaFilter
        from .quota_requests import describe_client_quotas

        checked = ClientQuotaFilter.all() if quota_filter is None else _checked_filter(quota_filter)
        return await describe_client_quotas(self._cluster, checked, self._deadline(timeout))

    async def alter_client_quotas(
        self,
        alterations: "Mapping[ClientQuotaEntity, Mapping[str, float | None]]",
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Set and remove quotas of entities (KIP-546, brokers since 2.6); other quotas stay.

        Each entity takes all of its changes or none.

        Args:
            alterations: for each entity the new values by the quotas' names; None removes a quota:
                ``{ClientQuotaEntity.user("alice"): {"producer_byte_rate": 1e6, "consumer_byte_rate": None}}``.
            validate_only: whether brokers only check the changes, without making them.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            InvalidRequest, ...: the broker rejected the only entity.
            AdminError: the broker rejected some of several entities; the others are changed.
            UnsupportedVersion: the broker is older than 2.6.
            UsageError: an entity or a value is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .quota_requests import alter_client_quotas

        check_flag("validate_only", validate_only)
        check_mapping("alterations", alterations, _ALTERATIONS)
        checked = {_checked_entity(entity): _checked_values(entity, ops) for entity, ops in alterations.items()}
        deadline = self._deadline(timeout)
        await alter_client_quotas(self._cluster, checked, deadline, validate_only=validate_only)


_VALUES: Final = "{'producer_byte_rate': 1e6}"
_ALTERATIONS: Final = f"{{ClientQuotaEntity.user('alice'): {_VALUES}}}"


def _checked_entity(entity: object) -> "ClientQuotaEntity":
    """Return a user's entity.

    Raises:
        UsageError: the argument is not an entity.
    """
    from .client_quotas import ClientQuotaEntity

    if not isinstance(entity, ClientQuotaEntity):
        raise UsageError(
            f"an entity must be a ClientQuotaEntity, such as ClientQuotaEntity.user('alice'); got {shown(entity)}"
        )
    if not entity.entries:
        raise UsageError("a ClientQuotaEntity needs a user, a client id or an IP address, such as {'user': 'alice'}")
    return entity


def _checked_values(entity: "ClientQuotaEntity", values: object) -> dict[str, float | None]:
    check_mapping(f"the quotas of {entity}", values, _VALUES)
    assert isinstance(values, Mapping)
    for key, value in values.items():
        check_text(f"the name of a quota of {entity}", key)
        if value is not None and not _is_finite(value):
            raise UsageError(f"{key} of {entity} must be a finite number, or None to remove it; got {shown(value)}")
    return dict(values)


def _is_finite(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def _checked_filter(given: object) -> "ClientQuotaFilter":
    """Return a user's filter.

    Raises:
        UsageError: the argument is not a filter.
    """
    from .client_quotas import ClientQuotaFilter, ClientQuotaFilterComponent, ClientQuotaMatchType

    if not isinstance(given, ClientQuotaFilter):
        raise UsageError(
            f"quota_filter must be a ClientQuotaFilter, such as ClientQuotaFilter.all(); got {shown(given)}"
        )
    check_flag("strict of a ClientQuotaFilter", given.strict)
    if not isinstance(given.components, tuple):
        raise UsageError(f"components of a ClientQuotaFilter must be a tuple, got {shown(given.components)}")
    for component in given.components:
        if not isinstance(component, ClientQuotaFilterComponent):
            known = "ClientQuotaFilterComponent.of_entity('user', 'alice')"
            raise UsageError(f"a component of a ClientQuotaFilter must be like {known}, got {shown(component)}")
        check_text("the entity_type of a filter's component", component.entity_type)
        if not isinstance(component.match_type, ClientQuotaMatchType):
            raise UsageError(f"match_type must be a ClientQuotaMatchType, got {shown(component.match_type)}")
        if component.match_type is ClientQuotaMatchType.EXACT:
            check_text(f"the {component.entity_type} of a filter's component", component.match)
        elif component.match is not None:
            raise UsageError(f"only a component of type EXACT has a name, got {shown(component.match)}")
    return given
