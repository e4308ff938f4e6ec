"""A share group: its members, its epochs and its assignment."""

from collections.abc import Mapping
from enum import StrEnum

import attrs

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from ..cluster.timers import Timer
from .assignor import SharedPartition, assign
from .topic_partitions import SubscribedTopic

__all__ = ("ShareGroup", "ShareGroupMember", "ShareGroupState")


class ShareGroupState(StrEnum):
    """The state of a share group, as ListGroups and ShareGroupDescribe spell it."""

    EMPTY = "Empty"
    STABLE = "Stable"


@attrs.define(eq=False)
class ShareGroupMember:
    """A member: its subscription, and the assignment that it knows."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    topics: tuple[str, ...] = ()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: frozenset[SharedPartition] = frozenset()
    session: Timer | None = None

    def check_epoch(self, epoch: int) -> None:
        """Check the epoch of a heartbeat: the current one, or the previous one if a response was lost.

        Raises:
            ApiError: FENCED_MEMBER_EPOCH.
        """
        known = f"epoch ({epoch}) than the one known by the group coordinator ({self.epoch})"
        rejoin = "The member must abandon all its partitions and rejoin."
        if epoch > self.epoch:
            message = f"The share group member has a greater member {known}. {rejoin}"
        elif epoch < self.epoch and epoch not in (0, self.previous_epoch):
            before = f"and it does not match the previous member epoch ({self.previous_epoch})"
            message = f"The share group member has a smaller member {known}, {before}. {rejoin}"
        else:
            return
        raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, message)


@attrs.define(eq=False)
class ShareGroup:
    """A share group. ``epoch`` counts the changes of its members, subscriptions and topics."""

    group_id: str
    epoch: int = 1
    assignment_epoch: int = 1
    """The epoch for which the assignment was made."""
    assigned_at: float | None = None
    members: dict[str, ShareGroupMember] = attrs.field(factory=dict)
    topics: dict[str, SubscribedTopic] = attrs.field(factory=dict)
    """The existing topics that members subscribe to, by name."""
    begun: set[SharedPartition] = attrs.field(factory=set)
    """The partitions of topics that members have subscribed to, and those whose offsets were set."""
    targets: dict[str, frozenset[SharedPartition]] = attrs.field(factory=dict)

    @property
    def state(self) -> ShareGroupState:
        """Whether the group has members."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    def assign(self, now: float) -> None:
        """Make the assignment for the current epoch."""
        ids = {name: topic.topic_id for name, topic in self.topics.items()}
        subscriptions = {
            member.member_id: {ids[name] for name in member.topics if name in ids} for member in self.members.values()
        }
        self.targets = assign(subscriptions, {topic.topic_id: topic.partitions for topic in self.topics.values()})
        self.assignment_epoch, self.assigned_at = self.epoch, now

    def reconcile(self, member: ShareGroupMember) -> bool:
        """Give a member its part of the assignment; return whether that differs from the part that it had."""
        before = member.assigned
        if member.epoch != self.assignment_epoch:
            member.previous_epoch, member.epoch = member.epoch, self.assignment_epoch
        member.assigned = self.targets.get(member.member_id, frozenset())
        return member.assigned != before

    def refresh(self, existing: Mapping[str, SubscribedTopic]) -> bool:
        """Update the topics from those that exist; return whether they have changed."""
        names = sorted({name for member in self.members.values() for name in member.topics})
        found = {name: existing[name] for name in names if name in existing}
        changed, self.topics = found != self.topics, found
        for topic in found.values():
            self.begun |= {(topic.topic_id, index) for index in range(topic.partitions)}
        return changed
