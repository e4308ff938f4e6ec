"""UpdateFeatures: the levels of the cluster's features."""

from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.controller import UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse
from ..cluster.api_error import ApiError
from ..serving.call import ServerCall

__all__ = ("update_features",)

_SAFE_DOWNGRADE: Final = 2
_UPGRADE_TYPE_SINCE: Final = 1
_NO_RESULTS_SINCE: Final = 2  # KIP-1022


async def update_features(call: ServerCall, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Change the levels of features; v0 and v1 have a result for each feature."""
    cluster = call.cluster
    if call.version < _UPGRADE_TYPE_SINCE:
        for update in request.feature_updates:
            update.upgrade_type = _SAFE_DOWNGRADE if update.allow_downgrade else update.upgrade_type
    try:
        outcomes = cluster.features.update(
            request.feature_updates, cluster.controller_id, validate_only=request.validate_only
        )
    except ApiError as refused:
        return UpdateFeaturesResponse(error_code=refused.code, error_message=refused.message)
    results = [
        UpdatableFeatureResult(
            feature=name,
            error_code=ErrorCode.NONE if refused is None else refused.code,
            error_message=None if refused is None else refused.message,
        )
        for name, refused in outcomes.items()
    ]
    return UpdateFeaturesResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        results=results if call.version < _NO_RESULTS_SINCE else [],
    )
