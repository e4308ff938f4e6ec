"""The admin's requests about features."""

from collections.abc import Mapping
from typing import Final

from ..cluster.cluster import Cluster, controller
from ..cluster.request_variants import RequestVariant, in_newest_form
from ..cluster.retry import Deadline
from ..errors import ErrorCode, NotController
from ..network.connection import versions_request
from ..protocol.messages.controller import UpdateFeaturesResponse
from ..protocol.messages.metadata import ApiVersionsResponse
from ..protocol.schema import Request, Versions
from .cluster_descriptions import FeatureMetadata, FeatureUpdate
from .cluster_messages import described_features, update_features_request, updated_features
from .outcomes import results_of
from .response_errors import explain_unsupported
from .routes import to_broker

__all__ = ("describe_features", "update_features")

_LANE: Final = "admin"
_BY_UPGRADE_TYPE: Final = Versions.parse("1+")  # KIP-778
_BY_FLAG: Final = Versions.parse("0")


async def describe_features(cluster: Cluster, node_id: int | None, deadline: Deadline) -> FeatureMetadata:
    """Return the features of the cluster. Raise as :meth:`Admin.describe_features`."""

    def check(response: ApiVersionsResponse) -> None:
        described_features(response)

    route = await to_broker(cluster, node_id, deadline)
    return described_features(await cluster.ask(route, versions_request(), deadline, lane=_LANE, check=check))


async def update_features(
    cluster: Cluster, updates: Mapping[str, FeatureUpdate], deadline: Deadline, *, validate_only: bool
) -> None:
    """Update features. Raise as :meth:`Admin.update_features`."""
    timeout_ms = cluster.broker_timeout_ms(deadline)

    async def ask(request: Request[UpdateFeaturesResponse], wanted: Versions) -> UpdateFeaturesResponse:
        return await cluster.ask(
            controller, request, deadline, lane=_LANE, wanted=wanted, check=_raise_if_not_controller
        )

    forms = [
        RequestVariant(
            update_features_request(updates, validate_only=validate_only, timeout_ms=timeout_ms), _BY_UPGRADE_TYPE
        )
    ]
    if not validate_only:
        older = update_features_request(updates, validate_only=False, timeout_ms=timeout_ms, by_upgrade_type=False)
        forms.append(RequestVariant(older, _BY_FLAG))
    with explain_unsupported("updating features needs brokers since 2.7 (KIP-584), and validate_only 3.3 (KIP-778)"):
        response = await in_newest_form(forms, ask)
    results_of("updating features", updated_features(updates, response))


def _raise_if_not_controller(response: UpdateFeaturesResponse) -> None:
    """Raise NotController, the only error that a retry can solve."""
    if response.error_code == ErrorCode.NOT_CONTROLLER:
        raise NotController("updating features")
