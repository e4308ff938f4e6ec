"""The requests of members that use the classic protocol in a consumer group (KIP-848).

JoinGroup, SyncGroup and Heartbeat lead such a member to its part of the target assignment: a heartbeat makes it rejoin,
JoinGroup reconciles it, and SyncGroup returns what it has.
"""

from functools import partial

import attrs

from ...errors import ErrorCode, WireError
from ...protocol.messages.group import HeartbeatRequest, JoinGroupResponse, SyncGroupRequest, SyncGroupResponse
from ..cluster.api_error import ApiError
from ..cluster.timers import Timer, Timers
from .consumer_group import ConsumerGroup
from .consumer_groups import ConsumerGroups
from .consumer_member import ClassicMember, ConsumerMember, MemberState
from .consumer_protocol import MemberSubscription, read_subscription, write_assignment
from .group import CONSUMER
from .join_group import MEMBER_ID_REQUIRED_SINCE, JoinAttempt
from .settings import GroupSettings

__all__ = ("ClassicMembers",)


class ClassicMembers:
    """The handling of classic requests to consumer groups."""

    def __init__(self, settings: GroupSettings, timers: Timers, groups: ConsumerGroups) -> None:
        self._settings = settings
        self._timers = timers
        self._groups = groups

    # --- JoinGroup -------------------------------------------------------------------------------------------------

    def join(self, group: ConsumerGroup, asked: JoinAttempt) -> None:
        """Handle a JoinGroup and set ``asked.answer``.

        Raises:
            ApiError: INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        if self._settings.group_consumer_migration_policy == "disabled" or not _supports(group, asked):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        member_id = asked.member_id or self._groups.new_member_id()
        self._groups.check_size(group, member_id, asked.group_instance_id)
        if asked.version >= MEMBER_ID_REQUIRED_SINCE and not asked.member_id and asked.group_instance_id is None:
            asked.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)
            return
        try:
            subscription = read_subscription(asked.protocols[0][1])
        except WireError:
            is_named = self._groups.rules.names_malformed_subscriptions
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL if is_named else ErrorCode.UNKNOWN_SERVER_ERROR
            raise ApiError(code) from None
        before, replaced = self._member(group, asked, member_id)
        downgrade = replaced is not None and replaced.classic is None and self._groups.may_downgrade(group, [replaced])
        if replaced is not None:
            before = group.replace(replaced, member_id)
        after = self._update(group, before, asked, subscription, assign=not downgrade)
        if downgrade:
            self._groups.downgrade(group, rebalance=group.assignment_epoch < group.epoch)
        else:
            self._await(group.joins, member_id, None)
            self._groups.keep_alive(group, after)
            self._await(group.syncs, member_id, self._limit(group, after))
        asked.answer.keep(
            JoinGroupResponse(
                error_code=ErrorCode.NONE,
                generation_id=after.epoch,
                protocol_type=CONSUMER,
                protocol_name=asked.protocols[0][0],
                leader="",
                member_id=member_id,
                members=[],
            )
        )

    def _member(
        self, group: ConsumerGroup, asked: JoinAttempt, member_id: str
    ) -> tuple[ConsumerMember, ConsumerMember | None]:
        """Return the member as it was or a new one, and the static member that it replaces."""
        known = group.members.get(member_id) or ConsumerMember(member_id)
        if asked.group_instance_id is None:
            return known, None
        if asked.member_id:
            return group.check_static(member_id, asked.group_instance_id), None
        return known, group.static_member(asked.group_instance_id)

    def _update(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        asked: JoinAttempt,
        subscription: MemberSubscription,
        *,
        assign: bool,
    ) -> ConsumerMember:
        after = attrs.evolve(
            before,
            group_instance_id=asked.group_instance_id or before.group_instance_id,
            rack_id=subscription.rack_id or before.rack_id,
            rebalance_timeout_ms=asked.rebalance_timeout_ms,
            topic_names=subscription.topics,
            topic_regex="",
            client_id=asked.client_id,
            client_host=asked.client_host,
            classic=ClassicMember(asked.session_timeout_ms, asked.protocols),
        )
        owned = set(self._groups.by_id(subscription.owned))
        return self._groups.update(group, before, after, owned, assign=assign)

    # --- SyncGroup and Heartbeat -----------------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
        """Return a member's assignment.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
                REBALANCE_IN_PROGRESS.
        """
        member, classic = _known(group, request.member_id, request.group_instance_id, request.generation_id)
        name, metadata = classic.protocols[0]
        if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, name):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._await_join(group, member)
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._await(group.syncs, member.member_id, None)
        self._groups.keep_alive(group, member)
        return SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(self._groups.by_name(member.assigned), read_subscription(metadata).version),
        )

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> None:
        """Handle a member's heartbeat.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION; REBALANCE_IN_PROGRESS, the member must
                rejoin.
        """
        member, _ = _known(group, request.member_id, request.group_instance_id, request.generation_id)
        self._groups.keep_alive(group, member)
        if member.epoch < group.assignment_epoch or _can_go_on(group, member):
            self._await_join(group, member)
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    # --- LeaveGroup ------------------------------------------------------------------------------------------------

    def leave(self, group: ConsumerGroup, leaving: list[tuple[str, str | None]]) -> list[ErrorCode]:
        """Remove members, each named by its member id or only by its instance id; return an error code for each."""
        errors, found = [], dict[str, ConsumerMember]()
        for member_id, group_instance_id in leaving:
            try:
                member = _leaving(group, member_id, group_instance_id)
            except ApiError as refused:
                errors.append(refused.code)
            else:
                errors.append(ErrorCode.NONE)
                found[member.member_id] = member
        if found:
            self._groups.fence(group, list(found.values()))
        return errors

    # --- timers ----------------------------------------------------------------------------------------------------

    def _await_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        if member.member_id not in group.joins:
            self._await(group.joins, member.member_id, self._limit(group, member))

    def _await(self, timers: dict[str, Timer], member_id: str, timer: Timer | None) -> None:
        previous = timers.pop(member_id, None)
        if previous is not None:
            previous.cancel()
        if timer is not None:
            timers[member_id] = timer

    def _limit(self, group: ConsumerGroup, member: ConsumerMember) -> Timer:
        expire = partial(self._groups.expire, group, member.member_id, "it rejoins too slowly")
        return self._timers.after(member.rebalance_timeout_ms / 1000, expire)


def _supports(group: ConsumerGroup, asked: JoinAttempt) -> bool:
    """Return whether a member may join: it is a consumer, and all classic members support one of its protocols."""
    others = [dict(member.classic.protocols) for member in group.members.values() if member.classic is not None]
    common = any(all(name in names for names in others) for name, _ in asked.protocols)
    return asked.protocol_type == CONSUMER and common


def _known(
    group: ConsumerGroup, member_id: str, group_instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicMember]:
    member = group.check_member(member_id, group_instance_id)
    if member.classic is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation != member.epoch:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def _leaving(group: ConsumerGroup, member_id: str, group_instance_id: str | None) -> ConsumerMember:
    if group_instance_id is None or member_id:
        return group.check_member(member_id, group_instance_id)
    member = group.static_member(group_instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def _can_go_on(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether a rejoin brings the member further: it has to revoke, or may take what others have released."""
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        missing = group.targets.get(member.member_id, frozenset()) - member.assigned.keys()
        return missing.isdisjoint(group.held_by_others(member.member_id))
    return member.state is MemberState.UNREVOKED_PARTITIONS
