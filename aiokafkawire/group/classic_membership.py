"""The state machine of a classic group's member: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

The rules:

1. One JoinGroup, SyncGroup or LeaveGroup is in flight at a time, and at most one Heartbeat beside it. A response counts
   only if the state has not changed since the request.
2. Before a member joins, it revokes partitions as its rebalance protocol requires (:class:`PrepareRejoin`). It sends
   heartbeats until then, but none during the JoinGroup, which the coordinator counts as a heartbeat.
3. A member keeps its partitions until the coordinator ends the membership, even if the coordinator is unreachable.
4. When the membership ends, the member loses all partitions at once. It rejoins as a new member (LOSE), or under its id
   with a new generation (LOSE_GENERATION).
5. A static member (KIP-345) sends no LeaveGroup, unless asked to: it may rejoin before its session times out.
6. If a rejoin is requested during a rebalance or a leave, the member rejoins afterwards.
7. A rebalance often follows another: as its cooperative second round, or because more members join. So the first
   heartbeats after a rebalance have shorter intervals, which grow to the configured one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..errors import BrokerError, ErrorCode, FencedInstanceId, KafkaError, RequestTimeout, WireError, broker_error
from ..protocol.schema import Request
from ..types import GroupMetadata
from .classic_requests import THEN, ErrorAction, explained, heartbeat, join, leave, sync
from .membership import (
    ApplyAssignment,
    Assign,
    CoordinatorRequest,
    GroupState,
    JoinedMember,
    LosePartitions,
    MemberSettings,
    PrepareRejoin,
    RequestKind,
    Task,
)

__all__ = ("NEXT", "ClassicMembership")

_OUTSIDE, _PREPARING, _JOINING = GroupState.OUTSIDE, GroupState.PREPARING, GroupState.JOINING
_ASSIGNING, _SYNCING, _STABLE = GroupState.ASSIGNING, GroupState.SYNCING, GroupState.STABLE
_LEAVING, _FAILED = GroupState.LEAVING, GroupState.FAILED

NEXT: Final[Mapping[GroupState, tuple[GroupState, ...]]] = {
    _OUTSIDE: (_PREPARING,),
    _PREPARING: (_JOINING, _PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _JOINING: (_ASSIGNING, _SYNCING, _JOINING, _PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _ASSIGNING: (_SYNCING, _PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _SYNCING: (_STABLE, _PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _STABLE: (_PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _LEAVING: (_OUTSIDE,),
    _FAILED: (_PREPARING, _LEAVING, _OUTSIDE),
}
"""The allowed transitions between states."""

_MAX_BACK_OFF_FACTOR: Final = 10
_FIRST_INTERVAL: Final = 1 / 8
_HEARTBEAT_STATES: Final = (_PREPARING, _ASSIGNING, _SYNCING, _STABLE)
"""The states in which heartbeats are due if there is a generation; a JoinGroup counts as a heartbeat."""


class ClassicMembership:
    """The :class:`~.membership.Membership` of one member in a classic group.

    The executor of a :attr:`task` reports its result by :meth:`prepared`, :meth:`assigned` or :meth:`task_done`.
    """

    def __init__(self, settings: MemberSettings) -> None:
        self.settings: MemberSettings = settings
        self.state: GroupState = _OUTSIDE
        self.error: KafkaError | None = None
        self.task: Task | None = None
        self.member_id: str = ""
        self.generation: int = -1
        self.assigned_generation: int = -1
        """The generation that assigned the member's partitions; -1 without one."""
        self.protocol: str = ""
        self.last_group: GroupMetadata | None = None
        self.confirmed_at: float | None = None
        self.rebalances: int = 0
        self.reason: str = ""
        self.leads: bool = False
        self.heartbeat_interval: float = settings.heartbeat_interval
        self.is_in_consumer_group: bool = False
        self.generation_name: str = "generation"
        self.on_enter: Callable[[GroupState], None] = lambda before: None
        self._protocols: Sequence[tuple[str, bytes]] = ()
        self._assignments: Mapping[str, bytes] = {}
        self._rejoin_reason: str | None = None
        self._request: CoordinatorRequest | None = None
        self._heartbeat: CoordinatorRequest | None = None
        self._heartbeat_at = 0.0
        self._heartbeat_interval = settings.heartbeat_interval
        self._back_off_until = 0.0
        self._failures = 0

    @property
    def group(self) -> GroupMetadata:
        """The membership under which offsets are committed now."""
        settings = self.settings
        return GroupMetadata(settings.group_id, self.generation, self.member_id, settings.group_instance_id)

    @property
    def is_member(self) -> bool:
        """Whether the member has a generation that has not ended, as far as this client knows."""
        return self.generation >= 0

    @property
    def is_rebalancing(self) -> bool:
        """Whether a rebalance is in progress."""
        return self.state in (_PREPARING, _JOINING, _ASSIGNING, _SYNCING)

    # --- requests of the user -----------------------------------------------------------------------------

    def request_rejoin(self, reason: str) -> None:
        """Join or rejoin, now or after a rebalance or leave in progress; the coordinator gets ``reason`` (KIP-800)."""
        if self.state in (_OUTSIDE, _STABLE):
            self._prepare(reason)
        elif self.state is _FAILED:
            if not isinstance(self.error, FencedInstanceId):
                self._prepare(reason)
        elif self.state is _PREPARING:
            # PrepareRejoin builds the subscription at its end, which will include this change.
            self._rejoin_reason = None
        else:
            self._rejoin_reason = reason

    def back_off(self, now: float, seconds: float | None = None) -> None:
        """Back off: send only heartbeats for this time, by default ``retry_backoff``."""
        self._back_off_until = now + (self.settings.retry_backoff if seconds is None else seconds)

    def leave(self, reason: str, *, stays: bool | None = None) -> None:
        """Leave the group. The state is OUTSIDE once the member has left: at once without a LeaveGroup.

        A member that ``stays`` sends none, so that its partitions stay assigned for the session timeout (KIP-1092); by
        default these are the static members (KIP-345).
        """
        self._rejoin_reason = None
        if self.state in (_OUTSIDE, _LEAVING):
            return
        self.reason, self.task = reason, None
        if self.member_id and not (self.settings.group_instance_id is not None if stays is None else stays):
            self._enter(_LEAVING)
        else:
            self._enter(_OUTSIDE)
            self._reset(lose_id=True)

    def poll_timeout(self, reason: str) -> None:
        """Leave the group because poll() was not called in time, and lose all partitions."""
        self.leave(reason)
        self.task = LosePartitions(reason)

    # --- results of the tasks ----------------------------------------------------------------------------

    def prepared(self, task: Task, protocols: Sequence[tuple[str, bytes]]) -> None:
        """Send JoinGroup with these protocols and their metadata, now that :class:`PrepareRejoin` is done."""
        if task is self.task:
            self.task, self._protocols = None, protocols
            self._enter(_JOINING)

    def assigned(self, task: Task, assignments: Mapping[str, bytes]) -> None:
        """Send SyncGroup with these assignments by member id, now that :class:`Assign` is done."""
        if task is self.task:
            self.task, self._assignments = None, assignments
            self._enter(_SYNCING)

    def task_done(self, task: Task, *, rejoin: str | None = None) -> None:
        """End an :class:`ApplyAssignment` or a :class:`LosePartitions`; ``rejoin`` is a reason to rejoin, if any."""
        if task is not self.task:
            return
        self.task = None
        reason, self._rejoin_reason = rejoin or self._rejoin_reason, None
        if reason is not None:
            self.request_rejoin(reason)

    def task_failed(self, task: Task, error: KafkaError) -> None:
        """End the membership with this error, since the task has failed with it."""
        if task is self.task:
            # The coordinator does not know of the failure: the member keeps its id, to rejoin under it or to leave.
            self._fail(error, lose_id=False)

    # --- the requests ------------------------------------------------------------------------------------

    def due(self, now: float) -> list[CoordinatorRequest]:
        """Return the requests to send now; each is returned again only after its result was reported."""
        requests = []
        if self._request is None and now >= self._back_off_until:
            self._request = self._next_request()
            if self._request is not None:
                requests.append(self._request)
        if self.sends_heartbeats and self._heartbeat is None and now >= self._heartbeat_at:
            self._heartbeat_at = now + self._heartbeat_interval
            self._heartbeat_interval = min(2 * self._heartbeat_interval, self.settings.heartbeat_interval)
            self._heartbeat = heartbeat(self.group)
            requests.append(self._heartbeat)
        return requests

    def wait(self, now: float) -> float | None:
        """Return the seconds until the next request is due; None if only a call of another method makes one due."""
        moments = []
        if self._request is None and self.state in (_JOINING, _SYNCING, _LEAVING):
            moments.append(self._back_off_until)
        if self.sends_heartbeats and self._heartbeat is None:
            moments.append(self._heartbeat_at)
        return max(0.0, min(moments) - now) if moments else None

    @property
    def request_timeout(self) -> float:
        """The seconds that the coordinator may take to respond: a third of the session."""
        return max(self.settings.heartbeat_interval, self.settings.session_timeout_ms / 1000 / 3)

    @property
    def sends_heartbeats(self) -> bool:
        """Whether the member sends heartbeats: not before it has joined, nor during a JoinGroup."""
        return self.state in _HEARTBEAT_STATES and self.is_member

    def _next_request(self) -> CoordinatorRequest | None:
        settings = self.settings
        if self.state is _JOINING:
            return join(settings, self.member_id, self._protocols, self.reason)
        if self.state is _SYNCING:
            return sync(settings, self.group, self.protocol, self._assignments)
        if self.state is _LEAVING:
            return leave(settings, self.member_id, self.reason)
        return None

    def is_current(self, request: CoordinatorRequest) -> bool:
        """Return whether the response to this request still counts."""
        return request is self._request or request is self._heartbeat

    # --- the results ------------------------------------------------------------------------------------

    def answered(self, request: CoordinatorRequest, response: Any, now: float) -> None:
        """Handle the coordinator's response, with or without an error."""
        if not self.is_current(request):
            return
        self._request_done(request)
        if request.kind is RequestKind.LEAVE:
            self._left()
        elif response.error_code == ErrorCode.NONE:
            self._confirm(now)
            if request.kind is RequestKind.JOIN:
                self._joined(response)
            elif request.kind is RequestKind.SYNC:
                self._synced(response, now)
        else:
            error = broker_error(response.error_code, f"{request.name} of {self.settings.named}")
            self._handle_error(request.kind, error, now, getattr(response, "member_id", ""))

    def refused(self, request: CoordinatorRequest, error: KafkaError, now: float) -> None:
        """Handle a request that failed, after all its retries."""
        if not self.is_current(request):
            return
        self._request_done(request)
        if request.kind is RequestKind.LEAVE:
            self._left()
        elif isinstance(error, RequestTimeout):
            if request.kind is RequestKind.SYNC:
                self._prepare("the coordinator did not answer SyncGroup")
            elif request.kind is RequestKind.HEARTBEAT:
                self._heartbeat_at = now
            # A JoinGroup that timed out is sent again: the coordinator still waits for other members.
        elif isinstance(error, BrokerError):
            self._handle_error(request.kind, error, now)
        else:
            self._fail(explained(request, self.settings, error))

    def commit_refused(self, group: GroupMetadata, error: BrokerError, now: float) -> None:
        """Handle the error of a commit under ``group``: it may be the first sign that this membership has ended."""
        if group == self.group and (RequestKind.COMMIT, error.code) in THEN and self.state in (_STABLE, _PREPARING):
            self._handle_error(RequestKind.COMMIT, error, now)

    def thread_heartbeat(self) -> Request[Any]:
        """Build the heartbeat that the heartbeat thread sends while the event loop is blocked."""
        return heartbeat(self.group).forms[0].request

    def on_thread_heartbeat(self, group: GroupMetadata, code: int, now: float, epoch: int | None = None) -> None:
        """Handle the result of a heartbeat that the heartbeat thread has sent for this member."""
        if group != self.group or not self.sends_heartbeats:
            return
        if code == ErrorCode.NONE:
            self._confirm(now)
            self._heartbeat_at = now + self.settings.heartbeat_interval
        else:
            self._handle_error(RequestKind.HEARTBEAT, broker_error(code, f"Heartbeat of {self.settings.named}"), now)

    def _request_done(self, request: CoordinatorRequest) -> None:
        if request is self._request:
            self._request = None
        else:
            self._heartbeat = None

    def _confirm(self, now: float) -> None:
        self.confirmed_at = now if self.confirmed_at is None else max(now, self.confirmed_at)

    def _joined(self, response: Any) -> None:
        names = [name for name, _ in self._protocols]
        if response.protocol_name not in names or response.generation_id < 0 or not response.member_id:
            message = f"protocol {response.protocol_name!r}, generation {response.generation_id}"
            self._fail(WireError(f"JoinGroup of {self.settings.named} returned {message}, expected one of {names}"))
            return
        self.member_id, self.generation = response.member_id, response.generation_id
        self.protocol = response.protocol_name
        self.last_group = self.group
        self.leads = response.leader == response.member_id
        self._assignments = {}
        if self.leads:
            members = [
                JoinedMember(member.member_id, member.group_instance_id, bytes(member.metadata))
                for member in response.members
            ]
            self.task = Assign(self.protocol, members, decided=response.skip_assignment)
            self._enter(_ASSIGNING)
        else:
            self._enter(_SYNCING)

    def _synced(self, response: Any, now: float) -> None:
        if response.protocol_name not in (None, "", self.protocol):
            message = f"SyncGroup of {self.settings.named} returned protocol {response.protocol_name!r}"
            self._fail(WireError(f"{message}, expected {self.protocol!r}"))
            return
        self.rebalances += 1
        self._failures = 0
        self.assigned_generation = self.generation
        self._heartbeat_interval = self.settings.heartbeat_interval * _FIRST_INTERVAL
        self._heartbeat_at = min(self._heartbeat_at, now + self._heartbeat_interval)
        self.task = ApplyAssignment(self.protocol, self.generation, bytes(response.assignment), self.leads)
        self._enter(_STABLE)

    def _handle_error(self, kind: RequestKind, error: BrokerError, now: float, member_id: str = "") -> None:
        action = THEN.get((kind, error.code), ErrorAction.FAIL)
        if kind in (RequestKind.JOIN, RequestKind.SYNC) and action is not ErrorAction.FAIL:
            # One error of these is normal; if they repeat, each backoff is longer.
            self._failures += 1
            self._back_off_until = now + self.settings.retry_backoff * min(self._failures - 1, _MAX_BACK_OFF_FACTOR)
        if action is ErrorAction.JOIN_WITH_ID:
            self.member_id = member_id or self.member_id
        elif action is ErrorAction.REJOIN:
            self._confirm(now)
            # In other states the SyncGroup response will report the rebalance.
            if self.state is _STABLE or kind is RequestKind.SYNC:
                self._prepare("the group is rebalancing")
        elif action in (ErrorAction.LOSE, ErrorAction.LOSE_GENERATION):
            self._reset(lose_id=action is ErrorAction.LOSE)
            self._prepare(_lost_because(action, error))
        elif action is ErrorAction.FAIL:
            self._fail(error)

    def _prepare(self, reason: str) -> None:
        self.error, self.reason, self._rejoin_reason = None, reason, None
        self._enter(_PREPARING)
        self.task = PrepareRejoin(lost=not self.is_member, reason=reason)

    def _left(self) -> None:
        self._enter(_OUTSIDE)
        self._reset(lose_id=True)
        # If there is a task, the member rejoins when it is done.
        if self._rejoin_reason is not None and self.task is None:
            self.request_rejoin(self._rejoin_reason)

    def _fail(self, error: KafkaError, *, lose_id: bool = True) -> None:
        self.error = error
        self._enter(_FAILED)
        self._reset(lose_id=lose_id)
        self.task = LosePartitions(str(error))

    def _reset(self, *, lose_id: bool) -> None:
        self.generation = self.assigned_generation = -1
        self.leads = False
        if lose_id:
            self.member_id = ""

    def _enter(self, state: GroupState) -> None:
        assert state in NEXT[self.state], f"{self.state.name} to {state.name}"
        before, self.state = self.state, state
        # A request of the previous state no longer counts.
        self._request = None
        if state not in _HEARTBEAT_STATES:
            self._heartbeat = None
        self.on_enter(before)


def _lost_because(action: ErrorAction, error: BrokerError) -> str:
    if action is ErrorAction.LOSE:
        why = "no heartbeat reached it within session_timeout_ms, or the member was removed"
    else:
        why = "the group has rebalanced without it"
    return f"the coordinator refused the membership with {type(error).__name__}: {why}"
