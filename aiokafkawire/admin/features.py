"""The admin's methods for the features of a cluster (KIP-584).

The first call imports the message classes.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..argument_checks import INT16, check_flag, check_integer, check_mapping, check_text, shown
from ..errors import UsageError
from .admin_base import AdminBase

if TYPE_CHECKING:
    from .cluster_descriptions import FeatureMetadata, FeatureUpdate

__all__ = ("FeatureAdmin",)

_UPDATES: Final = "{'transaction.version': FeatureUpdate(2)}"


class FeatureAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for features."""

    async def describe_features(self, *, broker: int | None = None, timeout: float | None = None) -> "FeatureMetadata":
        """Return the features that are in effect in the cluster, and those that a broker supports (KIP-584).

        Args:
            broker: the id of the broker whose supported features to return; None for any broker.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            BrokerNotAvailable: the broker is not in the cluster.
            UnsupportedVersion: the broker is older than 0.10.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .feature_requests import describe_features

        if broker is not None:
            check_integer("broker", broker)
        return await describe_features(self._cluster, broker, self._deadline(timeout))

    async def update_features(
        self,
        updates: "Mapping[str, int | FeatureUpdate]",
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Change the levels of features in the whole cluster (KIP-584, KIP-778).

        Brokers since 4.0 make all updates or none.

        Args:
            updates: the new level of each feature, as a number to upgrade to, or as a FeatureUpdate, which can be a
                downgrade: ``{"transaction.version": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)}``.
            validate_only: whether the controller only checks the updates, without making them (brokers since 3.3).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            InvalidUpdateVersion: a node does not support the level, a downgrade needs another upgrade type, or a
                feature needs another one.
            FeatureUpdateFailed, ClusterAuthorizationFailed: the controller rejected the updates.
            AdminError: a broker before 4.0 rejected some of several updates.
            UnsupportedVersion: the brokers are too old.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .feature_requests import update_features

        check_flag("validate_only", validate_only)
        check_mapping("updates", updates, _UPDATES)
        if not updates:
            raise UsageError(f"updates must name a feature, such as {_UPDATES}")
        checked = {name: _checked(name, update) for name, update in updates.items()}
        await update_features(self._cluster, checked, self._deadline(timeout), validate_only=validate_only)


def _checked(name: object, update: object) -> "FeatureUpdate":
    """Return a user's update of a feature.

    Raises:
        UsageError: the update is not valid.
    """
    from .cluster_descriptions import FeatureUpdate, UpgradeType

    check_text("a feature's name", name)
    if not isinstance(update, FeatureUpdate):
        check_integer(f"the level of {name}", update, 0, INT16)
        assert isinstance(update, int)
        update = FeatureUpdate(update)
    check_integer(f"the level of {name}", update.max_version_level, 0, INT16)
    if not isinstance(update.upgrade_type, UpgradeType):
        raise UsageError(f"the upgrade type of {name} must be an UpgradeType, got {shown(update.upgrade_type)}")
    if update.max_version_level == 0 and update.upgrade_type is UpgradeType.UPGRADE:
        raise UsageError(
            f"level 0 disables {name}: use FeatureUpdate(0, UpgradeType.SAFE_DOWNGRADE) or UNSAFE_DOWNGRADE"
        )
    return update
