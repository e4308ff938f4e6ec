"""The heartbeats of members of consumer groups: joining, reconciliation and leaving (KIP-848)."""

from collections.abc import Callable

import attrs

from ...protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from .consumer_group import ConsumerGroup, everyone
from .consumer_groups import ConsumerGroups
from .consumer_member import LEAVES, LEAVES_FOR_NOW, ConsumerMember, TopicIdPartition
from .heartbeat_checks import check_epoch, check_released, check_request
from .heartbeat_messages import assignment_of, owned_by
from .settings import GroupSettings
from .topic_regex import compile_regex

__all__ = ("HeartbeatAttempt", "Heartbeats")


@attrs.frozen
class HeartbeatAttempt:
    """A ConsumerGroupHeartbeat request and the client that sent it."""

    request: ConsumerGroupHeartbeatRequest
    version: int
    client_id: str
    client_host: str
    may_describe: Callable[[str], bool] = everyone
    """The function that returns whether the client may describe a topic."""

    @property
    def joins(self) -> bool:
        """Whether the member joins or joins again."""
        return self.request.member_epoch == 0

    @property
    def is_full(self) -> bool:
        """Whether the request has all fields, so that the response has the assignment."""
        request = self.request
        subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        return request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None

    def updated(self, member: ConsumerMember) -> ConsumerMember:
        """Return the member with the fields of the request; a null field leaves the member's value."""
        request = self.request
        names = request.subscribed_topic_names
        return attrs.evolve(
            member,
            group_instance_id=_or(request.instance_id, member.group_instance_id),
            rack_id=_or(request.rack_id, member.rack_id),
            rebalance_timeout_ms=(
                member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
            ),
            assignor=_or(request.server_assignor, member.assignor),
            topic_names=member.topic_names if names is None else frozenset(names),
            topic_regex=_or(request.subscribed_topic_regex, member.topic_regex) or "",
            client_id=self.client_id,
            client_host=self.client_host,
            classic=None,
        )


def _or(value: str | None, previous: str | None) -> str | None:
    return previous if value is None else value


class Heartbeats:
    """The handling of ConsumerGroupHeartbeat requests."""

    def __init__(self, settings: GroupSettings, groups: ConsumerGroups) -> None:
        self._settings = settings
        self._groups = groups

    def check(self, attempt: HeartbeatAttempt) -> None:
        """Check the fields of a request, before its coordinator is looked up. Raises ApiError: see the checks."""
        check_request(attempt.request, attempt.version, self._settings.group_consumer_assignors)

    def heartbeat(self, attempt: HeartbeatAttempt) -> ConsumerGroupHeartbeatResponse:
        """Handle a request.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID,
                UNRELEASED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, INVALID_REGULAR_EXPRESSION.
        """
        request = attempt.request
        if request.member_epoch in (LEAVES, LEAVES_FOR_NOW):
            return self._leave(request)
        if attempt.joins:
            group = self._groups.to_join(request.group_id)
        else:
            group = self._groups.get(request.group_id, "Consumer group {} not found.")
        self._groups.check_size(group, request.member_id, request.instance_id)
        owned = owned_by(request)
        member_id = request.member_id or self._groups.new_member_id()
        before = self._member(group, attempt, member_id, owned)
        after = attempt.updated(before)
        if after.topic_regex and after.topic_regex not in group.regexes:
            compile_regex(after.topic_regex)
        group.may_describe = attempt.may_describe
        self._groups.store.add(group)
        if before.member_id != member_id or before.epoch == LEAVES_FOR_NOW:
            before = group.replace(before, member_id)
            after = attempt.updated(before)
        after = self._groups.update(group, before, after, owned)
        self._groups.keep_alive(group, after)
        self._groups.refresh_regexes(group)
        return ConsumerGroupHeartbeatResponse(
            error_code=0,
            member_id=member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self._groups.config(group.group_id, "consumer.heartbeat.interval.ms"),
            assignment=(
                assignment_of(after.assigned)
                if attempt.joins or attempt.is_full or after.assigned != before.assigned
                else None
            ),
        )

    def _member(
        self,
        group: ConsumerGroup,
        attempt: HeartbeatAttempt,
        member_id: str,
        owned: set[TopicIdPartition] | None,
    ) -> ConsumerMember:
        """Return the member as it was, a new one, or the static member that this one replaces."""
        request = attempt.request
        if request.instance_id is None:
            member = group.members.get(member_id) or ConsumerMember(member_id) if attempt.joins else None
            member = member or group.member(member_id)
            check_epoch(member, request.member_epoch, owned, self._groups.rules)
            return member
        if not attempt.joins:
            member = group.check_static(member_id, request.instance_id)
            check_epoch(member, request.member_epoch, owned, self._groups.rules)
            return member
        previous = group.static_member(request.instance_id)
        if previous is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if previous.classic is None:
            check_released(previous, member_id)
        return previous

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        group = self._groups.get(request.group_id)
        member = group.check_member(request.member_id, request.instance_id)
        if request.member_epoch == LEAVES_FOR_NOW:
            group.members[member.member_id] = attrs.evolve(
                member, epoch=LEAVES_FOR_NOW, revoking={}, assigned=dict.fromkeys(member.assigned, 0)
            )
        else:
            self._groups.fence(group, [member])
        return ConsumerGroupHeartbeatResponse(
            error_code=0, member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=0
        )
