"""The admin's requests about client quotas, which any broker takes."""

from collections.abc import Mapping
from typing import Final

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..protocol.messages.quotas import AlterClientQuotasRequest
from .client_quotas import ClientQuotaEntity, ClientQuotaFilter
from .outcomes import Outcomes, ask_for_each, results_of
from .quota_messages import alter_request, altered, describe_request, described
from .response_errors import explain_unsupported

__all__ = ("alter_client_quotas", "describe_client_quotas")

_LANE: Final = "admin"
_NEEDS: Final = "client quotas need brokers since 2.6 (KIP-546)"


async def describe_client_quotas(
    cluster: Cluster, quota_filter: ClientQuotaFilter, deadline: Deadline
) -> dict[ClientQuotaEntity, dict[str, float]]:
    """Return the quotas of each entity that matches. Raise as :meth:`Admin.describe_client_quotas`."""
    with explain_unsupported(_NEEDS):
        response = await cluster.ask(cluster.least_loaded, describe_request(quota_filter), deadline, lane=_LANE)
    return described(response)


async def alter_client_quotas(
    cluster: Cluster,
    alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
    deadline: Deadline,
    *,
    validate_only: bool,
) -> None:
    """Set and remove quotas of each entity. Raise as :meth:`Admin.alter_client_quotas`."""

    def request(entities: list[ClientQuotaEntity]) -> AlterClientQuotasRequest:
        return alter_request(alterations, entities, validate_only=validate_only)

    with explain_unsupported(_NEEDS):
        found: Outcomes[ClientQuotaEntity, None] = await ask_for_each(
            cluster, cluster.least_loaded, alterations, deadline, request=request, outcomes=altered
        )
    results_of("changing client quotas", found)
