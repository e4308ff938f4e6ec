"""The transitions of a classic group from one generation to the next.

Empty -> PreparingRebalance:              the first member joins
Stable, CompletingRebalance -> Preparing: a member joins, changes, leaves or sends no heartbeats
PreparingRebalance -> Completing:         all members have joined, or the rebalance timeout has expired
PreparingRebalance -> Empty:              all members have left
CompletingRebalance -> Stable:            the leader has sent the assignment
any -> Dead:                              the group is deleted, or another broker coordinates it
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.group import JoinGroupResponse, SyncGroupResponse
from ..cluster.timers import Timers
from .group import ClassicGroup
from .members import MemberRecord, join_refusal, sync_refusal
from .settings import GroupSettings
from .states import CoordinatorState

__all__ = ("Rebalances", "assigned", "joined")

_NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""How long the JoinGroup of a new member may wait: the member cannot send heartbeats yet."""

_log = logging.getLogger(__name__)


class Rebalances:
    """The transitions of groups between states.

    ``clock`` returns ms since the epoch. ``write`` is called when a coordinator would write the group to its log; see
    :class:`GroupImage`.
    """

    def __init__(
        self,
        settings: GroupSettings,
        timers: Timers,
        clock: Callable[[], int],
        write: Callable[[ClassicGroup], None],
    ) -> None:
        self._settings = settings
        self._timers = timers
        self._clock = clock
        self.write = write

    # --- join phase ------------------------------------------------------------------------------------------------

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Start a rebalance: all members have to rejoin."""
        if group.state == CoordinatorState.COMPLETING_REBALANCE:
            self._distribute(group, {}, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
        is_initial = group.state == CoordinatorState.EMPTY
        group.go(CoordinatorState.PREPARING_REBALANCE)
        _log.info("group %s rebalances after generation %d: %s", group.group_id, group.generation, reason)
        if is_initial:
            # Members of a new group join one after the other; the delay saves rebalances.
            delay = self._settings.group_initial_rebalance_delay_ms
            left = max(group.rebalance_timeout_ms - delay, 0)
            self._join_timer(group, delay, partial(self._end_initial_delay, group, delay, left))
        elif group.all_have_joined:
            self._complete_join(group)
        else:
            self._join_timer(group, group.rebalance_timeout_ms, partial(self._complete_join, group))

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> None:
        """Start a rebalance; if the group is in the join phase already, call :meth:`maybe_complete_join` instead."""
        if group.state in (CoordinatorState.PREPARING_REBALANCE, CoordinatorState.DEAD):
            self.maybe_complete_join(group)
        else:
            self.prepare(group, reason)

    def maybe_complete_join(self, group: ClassicGroup) -> None:
        """End the join phase if all members have joined; a group's first join phase lasts for the initial delay."""
        preparing = group.state == CoordinatorState.PREPARING_REBALANCE
        if preparing and group.previous_state != CoordinatorState.EMPTY and group.all_have_joined:
            self._complete_join(group)

    def _end_initial_delay(self, group: ClassicGroup, delay: int, left: int) -> None:
        if not (group.new_member_added and left):
            self._complete_join(group)
            return
        group.new_member_added = False
        longer = min(self._settings.group_initial_rebalance_delay_ms, left)
        self._join_timer(group, longer, partial(self._end_initial_delay, group, longer, max(left - delay, 0)))

    def _complete_join(self, group: ClassicGroup) -> None:
        if group.join_timer is not None:
            group.join_timer.cancel()
        for member in list(group.members.values()):
            # Static members stay until their session expires.
            if member.awaiting_join is None and member.group_instance_id is None:
                _log.info(
                    "group %s removes %s: no JoinGroup within its rebalance timeout",
                    group.group_id,
                    member.member_id,
                )
                group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:
            again = max(group.rebalance_timeout_ms, 1)
            self._join_timer(group, again, partial(self._complete_join, group))
            return
        group.next_generation()
        if group.state == CoordinatorState.EMPTY:
            group.empty_since = self._clock()
            self.write(group)
            return
        for member in group.members.values():
            member.answer_join(joined(group, member))
            self.keep_alive(group, member)
            member.is_new = False
            group.pending_sync[member.member_id] = None
        group.sync_timer = self._timers.after(
            group.rebalance_timeout_ms / 1000, partial(self._expire_sync, group, group.generation)
        )

    def _join_timer(self, group: ClassicGroup, ms: int, function: Callable[[], None]) -> None:
        if group.join_timer is not None:
            group.join_timer.cancel()
        group.join_timer = self._timers.after(ms / 1000, function)

    # --- sync phase ------------------------------------------------------------------------------------------------

    def assign(self, group: ClassicGroup, assignment: Mapping[str, bytes]) -> None:
        """Send each member its part of the leader's assignment; a member without a part gets an empty one."""
        self._distribute(group, assignment, ErrorCode.NONE)
        group.go(CoordinatorState.STABLE)
        self.write(group)

    def refuse_assignment(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Answer all that wait for the leader's assignment with an error, and start another rebalance."""
        self._distribute(group, {}, error)
        self.prepare(group, f"the assignment is refused with {error.name}")

    def synced(self, group: ClassicGroup, member: MemberRecord) -> None:
        """Record that a member sent SyncGroup."""
        group.pending_sync.pop(member.member_id, None)
        if not group.pending_sync and group.sync_timer is not None:
            group.sync_timer.cancel()

    def _distribute(self, group: ClassicGroup, assignment: Mapping[str, bytes], error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = assignment.get(member.member_id, b"")
            response = sync_refusal(error)
            if error == ErrorCode.NONE:
                response = assigned(group, member)
            if member.answer_sync(response):
                self.keep_alive(group, member)

    def _expire_sync(self, group: ClassicGroup, generation: int) -> None:
        late = list(group.pending_sync)
        waits = group.state in (CoordinatorState.COMPLETING_REBALANCE, CoordinatorState.STABLE)
        if generation != group.generation or not waits or not late:
            return
        for member_id in late:
            group.remove(member_id)
        self.prepare(group, f"{', '.join(late)} sent no SyncGroup within the rebalance timeout")

    # --- sessions ----------------------------------------------------------------------------------------------

    def keep_alive(self, group: ClassicGroup, member: MemberRecord, ms: int | None = None) -> None:
        """Restart the member's session timer with ``ms``, by default the member's session timeout."""
        member.end_session()
        wait = member.session_timeout_ms if ms is None else ms
        member.session = self._timers.after(wait / 1000, partial(self._expire_session, group, member))

    def await_join(self, group: ClassicGroup, member: MemberRecord) -> None:
        """Mark a member as new and limit the time that its JoinGroup waits, since the client may be gone."""
        member.is_new = True
        self.keep_alive(group, member, _NEW_MEMBER_JOIN_TIMEOUT_MS)

    def await_pending(self, group: ClassicGroup, member_id: str, ms: int) -> None:
        """Add a pending member id, with which a client must join within ``ms`` (KIP-394)."""
        group.pending[member_id] = self._timers.after(ms / 1000, partial(self._expire_pending, group, member_id))

    def remove(self, group: ClassicGroup, member: MemberRecord) -> None:
        """Remove a member; its pending requests get UNKNOWN_MEMBER_ID, so that a live client rejoins."""
        member.answer_join(join_refusal(ErrorCode.UNKNOWN_MEMBER_ID))
        member.answer_sync(sync_refusal(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)

    def _expire_session(self, group: ClassicGroup, member: MemberRecord) -> None:
        if member.is_alive:
            return
        self.remove(group, member)
        if group.state in (CoordinatorState.STABLE, CoordinatorState.COMPLETING_REBALANCE):
            self.prepare(group, f"{member.member_id} has sent no heartbeat for {member.session_timeout_ms} ms")
        else:
            self._complete_without(group)

    def _expire_pending(self, group: ClassicGroup, member_id: str) -> None:
        group.remove(member_id)
        self._complete_without(group)

    def _complete_without(self, group: ClassicGroup) -> None:
        # Unlike maybe_complete_join, this may end a group's first rebalance before the initial delay, as in Kafka.
        if group.state == CoordinatorState.PREPARING_REBALANCE and group.all_have_joined:
            self._complete_join(group)


def joined(group: ClassicGroup, member: MemberRecord, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """Return the response to a successful JoinGroup; only the leader's response lists the members.

    ``skip_assignment`` means that the leader must not send a new assignment (KIP-814).
    """
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=group.roster() if group.leader == member.member_id else [],
    )


def assigned(group: ClassicGroup, member: MemberRecord) -> SyncGroupResponse:
    """Return the response to a successful SyncGroup."""
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )
