"""The features that a cluster has enabled, as ApiVersions reports them (KIP-584)."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...protocol.messages.metadata import ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey
from .releases import Release

__all__ = ("add_features",)

_EPOCH: Final = 1  # constant, since features never change here; in Apache Kafka an offset of the metadata log
_FROM_ZERO_SINCE: Final = 4  # of ApiVersions: older clients fail at a feature whose lowest version is 0


class _Feature(NamedTuple):
    name: str
    lowest: int
    highest: Mapping[str, int]
    """The highest supported level, by the first release that supports it."""
    finalized: Mapping[str, int]
    """The level that a new cluster has, by the first release that finalizes it."""


_METADATA: Final = {"4.0": 25, "4.1": 27, "4.2": 29, "4.3": 30, "4.4": 33}
_FEATURES: Final = (
    _Feature("group.version", 0, {"4.0": 1}, {"4.0": 1}),
    _Feature("kraft.version", 0, {"4.0": 1}, {}),
    _Feature("metadata.version", 7, _METADATA, _METADATA),
    _Feature("share.version", 0, {"4.1": 1, "4.4": 2}, {"4.2": 1, "4.4": 2}),
    _Feature("streams.version", 0, {"4.2": 1}, {"4.2": 1}),
    _Feature("transaction.version", 0, {"4.0": 2}, {"4.0": 2}),
    _Feature("eligible.leader.replicas.version", 0, {"4.0": 1}, {"4.1": 1}),
)


def add_features(answer: ApiVersionsResponse, release: Release, version: int) -> None:
    """Add the features of a release to ``answer``, the response to an ApiVersions request of ``version``."""
    supported, finalized = list[SupportedFeatureKey](), list[FinalizedFeatureKey]()
    for feature in _FEATURES:
        highest, level = _level(feature.highest, release), _level(feature.finalized, release)
        if highest is not None and (feature.lowest > 0 or version >= _FROM_ZERO_SINCE):
            supported.append(SupportedFeatureKey(name=feature.name, min_version=feature.lowest, max_version=highest))
        if level is not None:
            finalized.append(FinalizedFeatureKey(name=feature.name, max_version_level=level, min_version_level=level))
    if finalized:
        answer.supported_features, answer.finalized_features = supported, finalized
        answer.finalized_features_epoch = _EPOCH


def _level(levels: Mapping[str, int], release: Release) -> int | None:
    found = [level for since, level in levels.items() if release.since(since)]
    return found[-1] if found else None
