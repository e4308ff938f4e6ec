"""The features that a cluster has enabled, as ApiVersions reports them (KIP-584)."""

from typing import Final, NamedTuple

from ...protocol.messages.metadata import ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey
from .releases import Release

__all__ = ("add_features",)

_EPOCH: Final = 1  # constant, since features never change here; in Apache Kafka an offset of the metadata log
_FROM_ZERO_SINCE: Final = 4  # of ApiVersions: older clients fail at a feature whose lowest version is 0


class _Feature(NamedTuple):
    name: str
    since: str
    """The first release that supports the feature with these levels."""
    lowest: int
    highest: int
    finalized: int | None
    finalized_since: str = ""
    """The first release that finalizes the feature by default, if it is later than ``since``."""


_FEATURES: Final = (
    _Feature("group.version", "4.0", 0, 1, 1),
    _Feature("kraft.version", "4.0", 0, 1, None),
    _Feature("metadata.version", "4.3", 7, 30, 30),
    _Feature("share.version", "4.1", 0, 1, 1, finalized_since="4.2"),
    _Feature("streams.version", "4.2", 0, 1, 1),
    _Feature("transaction.version", "4.0", 0, 2, 2),
    _Feature("eligible.leader.replicas.version", "4.1", 0, 1, 1),
)


def add_features(answer: ApiVersionsResponse, release: Release, version: int) -> None:
    """Add the features of a release to ``answer``, the response to an ApiVersions request of ``version``."""
    known = [feature for feature in _FEATURES if release.since(feature.since)]
    finalized = [
        FinalizedFeatureKey(name=feature.name, max_version_level=feature.finalized, min_version_level=feature.finalized)
        for feature in known
        if feature.finalized is not None and release.since(feature.finalized_since or feature.since)
    ]
    if not finalized:
        return
    answer.supported_features = [
        SupportedFeatureKey(name=feature.name, min_version=feature.lowest, max_version=feature.highest)
        for feature in known
        if feature.lowest > 0 or version >= _FROM_ZERO_SINCE
    ]
    answer.finalized_features = finalized
    answer.finalized_features_epoch = _EPOCH
