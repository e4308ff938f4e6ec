"""The health of a membership in a group, of consumers and of share consumers."""

import attrs

from ..cluster.cluster import Cluster
from ..errors import FencedInstanceId
from ..plain_values import error_text
from ..types import Address, CoordinatorType, GroupMetadata
from .membership import GroupState, Membership
from .membership_driver import MembershipDriver

__all__ = ("MemberHealth", "member_health")


@attrs.frozen
class MemberHealth:
    """The health of a consumer's membership in its group."""

    state: GroupState
    group: GroupMetadata
    protocol: str
    """The assignor that the group has chosen; empty until then."""
    coordinator: Address | None
    """The group's coordinator, if known."""
    last_heartbeat: float | None
    """When the coordinator last confirmed the membership, in seconds ago."""
    rebalances: int
    """The number of generations that the member has joined."""
    trouble: str | None
    """The error of the last request to the coordinator, or why the coordinator has refused the member."""
    overdue: bool
    """Whether the member has left the group because poll() was not called in time (``max_poll_interval_ms``)."""
    fenced: bool = False
    """Whether another member has taken its ``group_instance_id``, so that this one cannot join again."""
    subscribed: bool = True
    """Whether it subscribes to topics; after ``unsubscribe()`` it stays outside of the group."""

    @property
    def joined(self) -> bool:
        """Whether it is a member, or has been one and takes part in a rebalance."""
        if self.state in (GroupState.OUTSIDE, GroupState.LEAVING, GroupState.FAILED):
            return False
        return self.state is GroupState.STABLE or self.rebalances > 0


def member_health(
    cluster: Cluster, machine: Membership, driver: MembershipDriver, now: float, *, subscribed: bool
) -> MemberHealth:
    """Return the current health of a member that is ``subscribed``; ``now`` is in seconds of the runtime's clock."""
    node = cluster.known_coordinator(CoordinatorType.GROUP, machine.settings.group_id)
    return MemberHealth(
        state=machine.state,
        group=machine.group,
        protocol=machine.protocol,
        coordinator=node.address if node is not None else None,
        last_heartbeat=now - machine.confirmed_at if machine.confirmed_at is not None else None,
        rebalances=machine.rebalances,
        trouble=error_text(machine.error or driver.trouble),
        overdue=driver.overdue,
        fenced=machine.state is GroupState.FAILED and isinstance(machine.error, FencedInstanceId),
        subscribed=subscribed,
    )
