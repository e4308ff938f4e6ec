"""The changes of consumer groups: new epochs and targets, members that are fenced, and their timers (KIP-848)."""

import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from uuid import UUID

from ...errors import ErrorCode
from ...types import TopicPartition
from ..cluster.api_error import ApiError
from ..cluster.timers import Timers
from ..cluster.topics import TopicStore
from ..configs.configs import Configs
from .consumer_group import ConsumerGroup, TopicMetadata
from .consumer_member import ConsumerMember, MemberState, TopicIdPartition
from .current_assignment import Reconciliation, reconcile
from .group import CONSUMER, ClassicGroup
from .migration import downgraded, upgraded
from .release_rules import ReleaseRules
from .settings import GroupSettings
from .store import GroupStore
from .topic_regex import compile_regex

__all__ = ("ConsumerGroups",)

_log = logging.getLogger(__name__)


class ConsumerGroups:
    """The consumer groups of a cluster. ``clock`` returns ms since the epoch, ``new_id`` a UUID.

    ``rules`` are those of the emulated release.
    """

    def __init__(
        self,
        settings: GroupSettings,
        timers: Timers,
        clock: Callable[[], int],
        store: GroupStore,
        topics: TopicStore,
        configs: Configs,
        new_id: Callable[[], str],
        rules: ReleaseRules,
    ) -> None:
        self.store = store
        self._settings = settings
        self._timers = timers
        self._clock = clock
        self._topics = topics
        self._configs = configs
        self._new_id = new_id
        self.rules: ReleaseRules = rules
        store.on_load = self.loaded

    def new_member_id(self) -> str:
        """Return a new member id: a UUID as Kafka writes it."""
        return urlsafe_b64encode(UUID(self._new_id()).bytes).rstrip(b"=").decode()

    def config(self, group_id: str, name: str) -> int:
        """Return the value of a group's setting, such as ``consumer.session.timeout.ms``."""
        return int(self._configs.group(group_id, name))

    # --- groups ------------------------------------------------------------------------------------------------

    def get(self, group_id: str, missing: str = "Group {} not found.") -> ConsumerGroup:
        """Return the consumer group with this id; ``missing`` is the message if there is no group.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND.
        """
        group = self.store.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, missing.format(group_id))
        if not isinstance(group, ConsumerGroup):
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return group

    def to_join(self, group_id: str) -> ConsumerGroup:
        """Return the consumer group with this id, or a new one that is not stored yet: an empty one, or one with the
        members of the classic group with this id.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND, a classic group has this id and cannot become a consumer group.
        """
        group = self.store.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None or group.is_empty:
            return ConsumerGroup(group_id, epoch=self.rules.first_epoch)
        self._check_upgrade(group)
        new = upgraded(group, self.by_id)
        new.metadata = frozenset(self._existing(new.subscribed_topics))
        return new

    def _check_upgrade(self, group: ClassicGroup) -> None:
        fault = None
        if self._settings.group_consumer_migration_policy not in ("upgrade", "bidirectional"):
            fault = "online upgrade is disabled"
        elif group.protocol_type != CONSUMER:
            fault = "the group does not use the consumer embedded protocol"
        elif len(group.members) > self._settings.group_consumer_max_size:
            fault = "the group size exceeds the consumer group maximum size"
        if fault is not None:
            message = f"Cannot upgrade classic group {group.group_id} to consumer group because {fault}."
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def check_size(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
        """Check that the group has room for a member.

        Raises:
            ApiError: GROUP_MAX_SIZE_REACHED.
        """
        if self.rules.static_members_fit and group.static_member(instance_id) is not None:
            return
        most = self._settings.group_consumer_max_size
        if len(group.members) >= most and member_id not in group.members:
            message = f"The consumer group has reached its maximum capacity of {most} members."
            raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)

    # --- members -----------------------------------------------------------------------------------------------

    def update(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        after: ConsumerMember,
        owned: AbstractSet[TopicIdPartition] | None,
        *,
        assign: bool = True,
    ) -> ConsumerMember:
        """Store a member's new fields, raise the epoch and assign if needed, and reconcile the member; return it.

        Without ``assign``, only a member with a part of the target assignment of the group's epoch is reconciled.
        """
        default = self._settings.group_consumer_assignors[0]
        assignor = group.assignor or default
        group.members[after.member_id] = after
        group.forget_regexes()
        assignor_changed = self.rules.assignor_raises_epoch and assignor != (group.assignor or default)
        regex_changed = after.topic_regex != before.topic_regex
        is_resolved = not after.topic_regex or after.topic_regex in group.resolved
        names_changed = after.topic_names != before.topic_names
        is_new = group.epoch == 0  # as the epoch begins in releases before 4.3
        self._raise_epoch(group, always=is_new or names_changed or assignor_changed or (regex_changed and is_resolved))
        if assign:
            self._assign(group)
        elif group.assignment_epoch < group.epoch:
            return after
        changed = names_changed or regex_changed
        if changed or not after.is_reconciled(group.assignment_epoch):
            after = self._reconcile(group, after, owned, changed=changed)
        return after

    def fence(self, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> None:
        """Remove members, which raises the group's epoch.

        If all other members use the classic protocol, the group becomes a classic group.
        """
        downgrade = len(members) < len(group.members) and self.may_downgrade(group, members)
        for member in members:
            group.remove(member.member_id)
        if downgrade:
            self.downgrade(group, rebalance=True)
        else:
            self._raise_epoch(group, always=True)
            if self.rules.last_leave_assigns and not group.members:
                group.assignment_epoch, group.assigned_at = group.epoch, None

    def may_downgrade(self, group: ConsumerGroup, leaving: Sequence[ConsumerMember]) -> bool:
        """Return whether the group may become a classic group without these members."""
        rest = [member for member in group.members.values() if member not in leaving]
        policy = self._settings.group_consumer_migration_policy
        allowed = policy in ("downgrade", "bidirectional") and len(rest) <= self._settings.group_max_size
        return allowed and all(member.classic is not None for member in rest)

    def downgrade(self, group: ConsumerGroup, *, rebalance: bool) -> None:
        """Make a classic group of a consumer group whose members all use the classic protocol."""
        new = downgraded(group, self.by_name)
        self.store.downgrade(new)
        if rebalance:
            self.store.rebalances.prepare(new, "it was a consumer group")

    def keep_alive(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Restart a member's session timer."""
        timer = group.sessions.pop(member.member_id, None)
        if timer is not None:
            timer.cancel()
        wait = (
            self.config(group.group_id, "consumer.session.timeout.ms")
            if member.classic is None
            else member.classic.session_timeout_ms
        )
        group.sessions[member.member_id] = self._timers.after(
            wait / 1000, partial(self.expire, group, member.member_id, f"no heartbeat for {wait} ms")
        )

    def loaded(self, group: ConsumerGroup) -> None:
        """Start the timers of a group that a new coordinator has loaded."""
        for member in group.members.values():
            self.keep_alive(group, member)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._await_revocation(group, member)

    def expire(self, group: ConsumerGroup, member_id: str, reason: str) -> None:
        """Remove a member that has been too slow, if it is still there."""
        member = group.members.get(member_id)
        if member is not None:
            _log.info("group %s removes %s: %s", group.group_id, member_id, reason)
            self.fence(group, [member])

    def _reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        owned: AbstractSet[TopicIdPartition] | None,
        *,
        changed: bool,
    ) -> ConsumerMember:
        given = Reconciliation(
            group.assignment_epoch,
            group.targets.get(member.member_id, frozenset()),
            {topic.topic_id for topic in self._existing(group.topics_of(member))},
            group.held_by_others(member.member_id),
            owned,
            changed,
            self.rules,
        )
        moved = reconcile(member, given)
        group.members[member.member_id] = moved
        if moved is not member and member.classic is None:
            if moved.state is MemberState.UNREVOKED_PARTITIONS:
                self._await_revocation(group, moved)
            else:
                self.end_rebalance(group, member.member_id)
        return moved

    def _await_revocation(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        def expire() -> None:
            if group.members[member.member_id].epoch == member.epoch:
                self.expire(group, member.member_id, f"it revokes too slowly in epoch {member.epoch}")

        self.end_rebalance(group, member.member_id)
        group.rebalances[member.member_id] = self._timers.after(member.rebalance_timeout_ms / 1000, expire)

    def end_rebalance(self, group: ConsumerGroup, member_id: str) -> None:
        """Cancel the timer of a member's part in a rebalance."""
        timer = group.rebalances.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    # --- epochs ------------------------------------------------------------------------------------------------

    def _raise_epoch(self, group: ConsumerGroup, *, always: bool) -> None:
        """Raise the group's epoch if the metadata of subscribed topics has changed, or ``always``."""
        metadata = frozenset(self._existing(group.subscribed_topics))
        if always or metadata != group.metadata:
            group.epoch, group.metadata = group.epoch + 1, metadata

    def _assign(self, group: ConsumerGroup) -> None:
        """Make the target assignment of the group's epoch, unless the last one is too young (KIP-1263)."""
        if group.epoch <= group.assignment_epoch:
            return
        interval, now = self.config(group.group_id, "consumer.assignment.interval.ms"), self._clock()
        if group.assigned_at is None or not interval or now >= group.assigned_at + interval:
            topics = {topic.name: topic for topic in self._existing(group.subscribed_topics)}
            group.assign(topics, self._settings.group_consumer_assignors[0], now)

    def _existing(self, names: Iterable[str]) -> list[TopicMetadata]:
        found = (self._topics.get(name) for name in sorted(names))
        return [
            TopicMetadata(topic.name, topic.topic_id, len(topic.partitions)) for topic in found if topic is not None
        ]

    def by_id(self, partitions: Iterable[TopicPartition]) -> list[TopicIdPartition]:
        """Return the partitions of existing topics, by the ids of the topics."""
        found = ((self._topics.get(partition.topic), partition.partition) for partition in partitions)
        return [TopicIdPartition(topic.topic_id, index) for topic, index in found if topic is not None]

    def by_name(self, partitions: Iterable[TopicIdPartition]) -> list[TopicPartition]:
        """Return the partitions of existing topics, by the names of the topics."""
        found = ((self._topics.by_id(partition.topic_id), partition.partition) for partition in sorted(partitions))
        return [TopicPartition(topic.name, index) for topic, index in found if topic is not None]

    # --- regular expressions -----------------------------------------------------------------------------------

    def refresh_regexes(self, group: ConsumerGroup) -> None:
        """Resolve the regular expressions of a group soon if their topics have changed; the response does not wait."""
        if group.regexes and self._resolved(group) != group.resolved:
            self._timers.after(0, partial(self._resolve, group))

    def _resolve(self, group: ConsumerGroup) -> None:
        if self.store.get(group.group_id) is not group:
            return
        resolved = self._resolved(group)
        if resolved == group.resolved:
            return
        changed = any(topics != group.resolved.get(regex, frozenset()) for regex, topics in resolved.items())
        group.resolved = resolved
        self._raise_epoch(group, always=changed)

    def _resolved(self, group: ConsumerGroup) -> dict[str, frozenset[str]]:
        names = [topic.name for topic in self._topics if group.may_describe(topic.name)]
        patterns = {regex: compile_regex(regex) for regex in group.regexes}
        return {
            regex: frozenset(name for name in names if pattern.fullmatch(name)) for regex, pattern in patterns.items()
        }
