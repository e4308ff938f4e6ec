"""The features that a cluster has enabled, as ApiVersions reports them (KIP-584)."""

from typing import Final, NamedTuple

from ...protocol.messages.metadata import ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey
from .releases import Release

__all__ = ("add_features",)

_EPOCH: Final = 1  # in Apache Kafka the end of the metadata log; the features of this broker never change
_FROM_ZERO_SINCE: Final = 4  # clients with older ApiVersions requests fail at a feature whose lowest version is 0


class _Feature(NamedTuple):
    name: str
    since: str
    """The first release that reports the feature with these levels."""
    lowest: int
    highest: int
    finalized: int | None


_FEATURES: Final = (
    _Feature("group.version", "4.0", 0, 1, 1),
    _Feature("kraft.version", "4.0", 0, 1, None),
    _Feature("metadata.version", "4.3", 7, 30, 30),
    _Feature("share.version", "4.2", 0, 1, 1),
    _Feature("streams.version", "4.2", 0, 1, 1),
    _Feature("transaction.version", "4.0", 0, 2, 2),
    _Feature("eligible.leader.replicas.version", "4.1", 0, 1, 1),
)


def add_features(answer: ApiVersionsResponse, release: Release, version: int) -> None:
    """Put the features of a release into an answer to ApiVersions in ``version``."""
    known = [feature for feature in _FEATURES if release.since(feature.since)]
    finalized = [
        FinalizedFeatureKey(name=feature.name, max_version_level=feature.finalized, min_version_level=feature.finalized)
        for feature in known
        if feature.finalized is not None
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
