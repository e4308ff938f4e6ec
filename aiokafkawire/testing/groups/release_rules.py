"""The rules of group coordinators that differ between releases of Apache Kafka since 4.0."""

from typing import Final, Self

import attrs

from ..cluster.releases import Release

__all__ = ("RULES_OF_4_3", "ReleaseRules")


@attrs.frozen
class ReleaseRules:
    """The rules of one release. The defaults are those of 4.3."""

    first_epoch: int = 1
    """The epoch of a group that has had no member yet."""
    epoch_0_joins_again: bool = True
    """Whether a member may join again with epoch 0 at any time; otherwise 0 has to be its previous epoch."""
    unsubscribing_revokes: bool = True
    """Whether a member gives up the topics that it no longer subscribes to before the next target assignment."""
    revocation_keeps_epoch: bool = True
    """Whether a member that has revoked partitions and has to revoke others stays in its epoch."""
    unsubscribing_ends_epoch: bool = True
    """Whether the previous epoch of a member that gives up such topics is not accepted any more."""
    revoked_partitions_come_back: bool = True
    """Whether a member can take a partition that it is about to revoke; in 4.1 (4.1.1) it waits as for another's."""
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
            unsubscribing_revokes=release.since("4.2"),
            revocation_keeps_epoch=release.since("4.2"),
            unsubscribing_ends_epoch=release.since("4.3"),
            revoked_partitions_come_back=release.since("4.2") or not release.since("4.1"),
            last_leave_assigns=is_4_4,
            assignor_raises_epoch=is_4_4,
            static_members_fit=is_4_4,
            names_malformed_subscriptions=is_4_4,
        )


RULES_OF_4_3: Final = ReleaseRules()
