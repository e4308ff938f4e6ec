"""The features of a cluster: the levels that brokers support, and those in effect (KIP-584, KIP-1022).

Clients see the levels and can change them; the brokers behave as their release does at its own levels. Only
``kraft.version`` has an effect: from level 1 on, voters of the quorum can be changed (KIP-853).
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ...errors import ErrorCode
from ...protocol.messages.controller import FeatureUpdateKey
from ...protocol.messages.metadata import ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey
from .api_error import ApiError
from .releases import Release

__all__ = ("KRAFT_VERSION", "ClusterFeatures")

KRAFT_VERSION: Final = "kraft.version"
_METADATA_VERSION: Final = "metadata.version"
_FROM_ZERO_SINCE: Final = 4  # of ApiVersions: older clients fail at a feature whose lowest version is 0
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_ALL_OR_NONE_SINCE: Final = "4.0"


class _Feature(NamedTuple):
    name: str
    lowest: Mapping[str, int]
    """The lowest supported level, by the first release with this level."""
    highest: Mapping[str, int]
    """The highest supported level, by the first release that supports it."""
    finalized: Mapping[str, int]
    """The level that a new cluster has, by the first release that finalizes it."""


_METADATA: Final = {
    "3.3": 7,
    "3.4": 8,
    "3.5": 11,
    "3.6": 14,
    "3.7": 19,
    "3.8": 20,
    "3.9": 21,
    "4.0": 25,
    "4.1": 27,
    "4.2": 29,
    "4.3": 30,
    "4.4": 33,
}
_FEATURES: Final = (
    _Feature("group.version", {"4.0": 0}, {"4.0": 1}, {"4.0": 1}),
    _Feature(KRAFT_VERSION, {"3.9": 0}, {"3.9": 1}, {}),
    _Feature(_METADATA_VERSION, {"3.3": 1, "4.0": 7}, _METADATA, _METADATA),
    _Feature("share.version", {"4.1": 0}, {"4.1": 1, "4.4": 2}, {"4.2": 1, "4.4": 2}),
    _Feature("streams.version", {"4.2": 0}, {"4.2": 1}, {"4.2": 1}),
    _Feature("transaction.version", {"4.0": 0}, {"4.0": 2}, {"4.0": 2}),
    _Feature("eligible.leader.replicas.version", {"4.0": 0}, {"4.0": 1}, {"4.1": 1}),
)


class ClusterFeatures:
    """The features of a cluster of one release."""

    def __init__(self, release: Release) -> None:
        self._all_or_none = release.since(_ALL_OR_NONE_SINCE)
        self._epoch = 1  # in Apache Kafka an offset of the metadata log
        self._supported: dict[str, tuple[int, int]] = {}
        self._levels: dict[str, int] = {}
        for feature in _FEATURES:
            lowest, highest = _level(feature.lowest, release), _level(feature.highest, release)
            level = _level(feature.finalized, release)
            if lowest is not None and highest is not None:
                self._supported[feature.name] = lowest, highest
            if level is not None:
                self._levels[feature.name] = level

    def level(self, name: str) -> int:
        """Return the level of a feature that is in effect; 0 if the feature is disabled."""
        return self._levels.get(name, 0)

    def add_to(self, answer: ApiVersionsResponse, version: int) -> None:
        """Add the features to ``answer``, the response to an ApiVersions request of ``version``."""
        if not self._supported:
            return
        answer.supported_features = [
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in self._supported.items()
            if lowest > 0 or version >= _FROM_ZERO_SINCE
        ]
        answer.finalized_features = [
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in self._levels.items()
        ]
        answer.finalized_features_epoch = self._epoch

    def update(
        self, updates: Iterable[FeatureUpdateKey], controller_id: int, *, validate_only: bool
    ) -> dict[str, ApiError | None]:
        """Change the levels of features, and return the error of each, if any.

        Raises:
            ApiError: an update is refused, and so are all others; releases before 4.0 make the others.
        """
        outcomes: dict[str, ApiError | None] = {}
        levels = dict(self._levels)
        for update in updates:
            try:
                self._check(update, controller_id)
            except ApiError as refused:
                if self._all_or_none:
                    first = "The update failed for all features since the following feature had an error"
                    raise ApiError(refused.code, f"{first}: {refused.message}") from None
                outcomes[update.feature] = refused
                continue
            outcomes[update.feature] = None
            levels[update.feature] = update.max_version_level
        if not validate_only and any(refused is None for refused in outcomes.values()):
            self._levels = {name: level for name, level in levels.items() if level > 0}
            self._epoch += 1
        return outcomes

    def _check(self, update: FeatureUpdateKey, controller_id: int) -> None:
        """Raise ApiError if the controller refuses an update."""
        name, level = update.feature, update.max_version_level
        current = self.level(name)
        if update.upgrade_type not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
            raise _invalid(name, level, "The controller does not support the given upgrade type.")
        if level < 0:
            raise _invalid(name, level, "A feature version cannot be less than 0.")
        lowest, highest = self._supported.get(name, (0, 0))
        if not lowest <= level <= highest:
            known = f"only supports versions {lowest}-{highest}" if highest else "does not support this feature."
            raise _invalid(name, level, f"Local controller {controller_id} {known}")
        if level < current and update.upgrade_type == _UPGRADE:
            advice = "setting the upgrade type to either safe or unsafe downgrade."
            raise _invalid(name, level, f"Can't downgrade the version of this feature without {advice}")
        if level > current and update.upgrade_type != _UPGRADE:
            raise _invalid(name, level, "Can't downgrade to a newer version.")
        if level < current and name == _METADATA_VERSION:
            raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, _refused_downgrade(level, update.upgrade_type))
        if level < current and name == KRAFT_VERSION:
            raise _invalid(name, level, "Can't downgrade the version of this feature.")


def _refused_downgrade(level: int, upgrade_type: int) -> str:
    reason = "Refusing to perform the requested downgrade because it might delete metadata information."
    if upgrade_type == _UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    return f"Invalid metadata.version {level}. {reason}"


def _invalid(name: str, level: int, reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {reason}")


def _level(levels: Mapping[str, int], release: Release) -> int | None:
    found = [level for since, level in levels.items() if release.since(since)]
    return found[-1] if found else None
