"""A consumer group: members, epochs and the target assignment (KIP-848). Heartbeats change it, see heartbeats.py."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import ClassVar
from uuid import UUID

import attrs

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from ..cluster.timers import Timer
from .consumer_member import ConsumerMember, TopicIdPartition
from .target_assignment import ASSIGNORS, Subscriber, Target

__all__ = ("ConsumerGroup", "ConsumerGroupState", "TopicMetadata", "everyone")


class ConsumerGroupState(StrEnum):
    """The state of a consumer group, as ConsumerGroupDescribe and ListGroups spell it."""

    EMPTY = "Empty"
    """The group has no members; it may have offsets."""
    ASSIGNING = "Assigning"
    """The target assignment of the group's epoch is not made yet."""
    RECONCILING = "Reconciling"
    """Some members do not have their part of the target assignment yet."""
    STABLE = "Stable"
    """All members have their part of the target assignment."""
    DEAD = "Dead"
    """There is no such group."""


@attrs.frozen
class TopicMetadata:
    """The properties of a topic on which an assignment depends."""

    name: str
    topic_id: UUID
    partitions: int


def everyone(topic: str) -> bool:
    """Return True: without an authorizer every client may describe every topic."""
    return True


@attrs.define(eq=False)
class ConsumerGroup:
    """A consumer group. Its members are in the order in which they joined.

    All of it except the timers is what a coordinator writes to its log.
    """

    kind: ClassVar[str] = "consumer"
    """The type of the group, as ListGroups spells it."""
    protocol_type: ClassVar[str] = "consumer"
    group_id: str
    epoch: int = 1
    """The group epoch, which rises when members, subscriptions or topics change."""
    assignment_epoch: int = 0
    """The group epoch for which the target assignment was made."""
    assigned_at: int | None = None
    """The time when the target assignment was made, in ms since the epoch."""
    members: dict[str, ConsumerMember] = attrs.field(factory=dict)
    targets: dict[str, Target] = attrs.field(factory=dict)
    resolved: dict[str, frozenset[str]] = attrs.field(factory=dict)
    """The topics of each regular expression to which members subscribe."""
    may_describe: Callable[[str], bool] = everyone
    """The function that returns whether the member that sent the last heartbeat may describe a topic."""
    metadata: frozenset[TopicMetadata] = frozenset()
    """The subscribed topics that exist, as they were when the epoch last rose."""
    sessions: dict[str, Timer] = attrs.field(factory=dict)
    rebalances: dict[str, Timer] = attrs.field(factory=dict)
    """The timers of members that have to acknowledge revocations."""
    joins: dict[str, Timer] = attrs.field(factory=dict)
    """The timers of members that have to send JoinGroup."""
    syncs: dict[str, Timer] = attrs.field(factory=dict)
    """The timers of members that have to send SyncGroup."""

    @property
    def state(self) -> ConsumerGroupState:
        """The state of the group."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    def stop(self) -> None:
        """Cancel all timers."""
        for timers in self._timers:
            for timer in timers.values():
                timer.cancel()
            timers.clear()

    @property
    def _timers(self) -> tuple[dict[str, Timer], ...]:
        return self.sessions, self.rebalances, self.joins, self.syncs

    # --- members -----------------------------------------------------------------------------------------------

    def member(self, member_id: str) -> ConsumerMember:
        """Return the member with this id.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID.
        """
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return member

    def static_member(self, group_instance_id: str | None) -> ConsumerMember | None:
        """Return the member with this instance id, or None."""
        if group_instance_id is None:
            return None
        return next((member for member in self.members.values() if member.group_instance_id == group_instance_id), None)

    def check_member(self, member_id: str, group_instance_id: str | None) -> ConsumerMember:
        """Return the member with this id, and with this instance id if one is given.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        if group_instance_id is None:
            return self.member(member_id)
        return self.check_static(member_id, group_instance_id)

    def check_static(self, member_id: str, group_instance_id: str) -> ConsumerMember:
        """Return the member with this instance id, which must have this member id.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        member = self.static_member(group_instance_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {group_instance_id} is unknown.")
        if member.member_id != member_id:
            message = (
                f"Static member {member_id} with instance id {group_instance_id} was fenced by member "
                f"{member.member_id}."
            )
            raise ApiError(ErrorCode.FENCED_INSTANCE_ID, message)
        return member

    def replace(self, member: ConsumerMember, member_id: str) -> ConsumerMember:
        """Give a returning static member a new id; it keeps its partitions and its target, and starts at epoch 0."""
        target = self.targets.get(member.member_id, frozenset())
        self.remove(member.member_id)
        new = attrs.evolve(member, member_id=member_id, epoch=0, previous_epoch=0)
        self.members[member_id], self.targets[member_id] = new, target
        return new

    def remove(self, member_id: str) -> None:
        """Remove a member, its target and its timers."""
        self.members.pop(member_id, None)
        self.targets.pop(member_id, None)
        for timers in self._timers:
            timer = timers.pop(member_id, None)
            if timer is not None:
                timer.cancel()
        self.forget_regexes()

    def held_by_others(self, member_id: str) -> set[TopicIdPartition]:
        """Return the partitions that members other than this one hold."""
        return {
            partition for member in self.members.values() if member.member_id != member_id for partition in member.held
        }

    # --- subscriptions -----------------------------------------------------------------------------------------

    @property
    def regexes(self) -> list[str]:
        """The regular expressions to which members subscribe."""
        return list(dict.fromkeys(member.topic_regex for member in self.members.values() if member.topic_regex))

    def forget_regexes(self) -> None:
        """Forget the topics of regular expressions to which no member subscribes any longer."""
        regexes = self.regexes
        self.resolved = {regex: topics for regex, topics in self.resolved.items() if regex in regexes}

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the names of the topics to which a member subscribes."""
        return member.topic_names | self.resolved.get(member.topic_regex, frozenset())

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """The names of the topics to which members subscribe."""
        return frozenset().union(*(self.topics_of(member) for member in self.members.values()))

    def reads(self, topic: str) -> bool:
        """Return whether any member subscribes to a topic."""
        return topic in self.subscribed_topics

    # --- assignment --------------------------------------------------------------------------------------------

    @property
    def assignor(self) -> str | None:
        """The assignor that most members prefer; None if no member prefers one."""
        wanted = [member.assignor for member in self.members.values() if member.assignor is not None]
        return max(dict.fromkeys(wanted), key=wanted.count, default=None)

    def assign(self, topics: Mapping[str, TopicMetadata], default_assignor: str, now: int) -> None:
        """Make the target assignment of the group's epoch. ``topics`` are the existing topics by name."""
        subscribers = {
            member.member_id: Subscriber(
                frozenset(topics[name].topic_id for name in self.topics_of(member) if name in topics),
                self.targets.get(member.member_id, frozenset()),
                member.group_instance_id,
            )
            for member in self.members.values()
        }
        counts = {topic.topic_id: topic.partitions for topic in topics.values()}
        self.targets = ASSIGNORS[self.assignor or default_assignor](subscribers, counts)
        self.assignment_epoch, self.assigned_at = self.epoch, now

    # --- offsets -----------------------------------------------------------------------------------------------

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Check that a client may fetch offsets: it names no member, or a member with its epoch.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION.
        """
        if member_id is None and epoch < 0:
            return
        member = self.member(member_id or "")
        if epoch != member.epoch:
            raise ApiError(_stale(member))

    def check_commit(
        self, member_id: str, epoch: int, partitions: Iterable[TopicIdPartition], *, relaxed: bool
    ) -> None:
        """Check that a member may commit offsets of these partitions in this epoch.

        If ``relaxed``, an older epoch is accepted as long as the member has had the partitions since then (KIP-1251).

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION.
        """
        member = self.member(member_id)
        if epoch == member.epoch:
            return
        if epoch > member.epoch or not relaxed:
            raise ApiError(_stale(member))
        since = {**member.revoking, **member.assigned}
        if any(epoch < since.get(partition, epoch + 1) for partition in partitions):
            raise ApiError(_stale(member))


def _stale(member: ConsumerMember) -> ErrorCode:
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
