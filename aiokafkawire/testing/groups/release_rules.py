"""The rules of group coordinators that differ between releases of Apache Kafka since 4.0."""

from typing import Self

import attrs

from ..cluster.releases import Release

__all__ = ("ReleaseRules",)


@attrs.frozen
class ReleaseRules:
    """The rules of one release. The defaults are those of 4.3."""

    first_epoch: int = 1
    """The epoch of a group that has had no member yet."""
    epoch_0_joins_again: bool = True
    """Whether a member may join again with epoch 0 at any time; otherwise 0 has to be its previous epoch."""
    last_leave_assigns: bool = False
    """Whether the leave of the last member ends with an empty assignment of the new epoch."""
    assignor_raises_epoch: bool = False
    """Whether a change of the assignor that most members prefer raises the epoch of a consumer group."""
    static_members_fit: bool = False
    """Whether a full consumer group accepts a member in the place of a static one."""
    names_malformed_subscriptions: bool = False
    """Whether a malformed subscription of a classic member is INCONSISTENT_GROUP_PROTOCOL."""

    @classmethod
    def of(cls, release: Release) -> Self:
        """Return the rules of a release."""
        is_4_4 = release.since("4.4")
        return cls(
            first_epoch=1 if release.since("4.3") else 0,
            epoch_0_joins_again=release.since("4.2"),
            last_leave_assigns=is_4_4,
            assignor_raises_epoch=is_4_4,
            static_members_fit=is_4_4,
            names_malformed_subscriptions=is_4_4,
        )
