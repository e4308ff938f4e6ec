"""How far a member of a classic group is, and what it has to ask next: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

The rules:

1. One of JoinGroup, SyncGroup and LeaveGroup is under way at a time, and at most one Heartbeat beside it. An answer
   counts only while the member is where it was when it asked.
2. Before it joins, a member gives up what its protocol demands (:class:`PrepareRejoin`); heartbeats go on meanwhile,
   and end with the JoinGroup, which the coordinator takes for a sign of life.
3. A member keeps what it has until somebody says otherwise: a coordinator that is silent, or away, says nothing.
4. What ends a membership ends it at once: the member has nothing any more, and joins as a new one (LOSE), or under its
   id with a new generation (LOSE_GENERATION).
5. A static member (KIP-345) does not leave: it may be back before its session is over.
6. Whoever wants to join while a rebalance goes on does so after it, and so does a member that leaves.
7. While there is nobody to answer its JoinGroup, a member may be the one that it was (:class:`Resume`), as it would be
   had it not asked: rule 3. Whoever coordinates next hears its heartbeats, and says whether that is over. What it
   wished to join for waits until somebody does.
8. One rebalance is often followed by another: by the second round of a cooperative one, or as more members come. So the
   first heartbeats after it come soon, and hear of that; then they are as far apart as is set.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..errors import BrokerError, ErrorCode, FencedInstanceId, KafkaError, RequestTimeout, WireError, broker_error
from ..types import GroupMetadata
from .classic_transitions import NEXT, THEN, ErrorAction, GroupState, RequestKind
from .member_tasks import ApplyAssignment, Assign, JoinedMember, LosePartitions, PrepareRejoin, Resume, Task
from .membership_requests import CoordinatorRequest, MemberSettings, heartbeat, join, leave, sync

__all__ = ("ClassicMembership",)

_OUTSIDE, _PREPARING, _JOINING = GroupState.OUTSIDE, GroupState.PREPARING, GroupState.JOINING
_ASSIGNING, _SYNCING, _STABLE = GroupState.ASSIGNING, GroupState.SYNCING, GroupState.STABLE
_LEAVING, _FAILED = GroupState.LEAVING, GroupState.FAILED

_MOST_RESTS: Final = 10
_SOON: Final = 1 / 8
_BEATING: Final = (_PREPARING, _ASSIGNING, _SYNCING, _STABLE)
"""When heartbeats are due, if there is a generation: a JoinGroup is a sign of life by itself."""


class ClassicMembership:
    """The membership of one member.

    Whoever drives it asks the coordinator for what is :meth:`due` and tells of the end by :meth:`answered` or
    :meth:`refused`; and does its :attr:`task`, whose end it tells by :meth:`prepared`, :meth:`assigned`,
    :meth:`taken` or :meth:`task_failed`. Times are in seconds.
    """

    def __init__(self, settings: MemberSettings) -> None:
        self.settings: MemberSettings = settings
        self.state: GroupState = _OUTSIDE
        self.error: KafkaError | None = None
        """Why it is refused, in FAILED."""
        self.task: Task | None = None
        """What the member itself has to do now."""
        self.member_id: str = ""
        self.generation: int = -1
        self.protocol: str = ""
        """The protocol that the group has chosen, once it is known."""
        self.last_group: GroupMetadata | None = None
        """The membership that it has, or had last: as who it is fenced when others may have its partitions."""
        self.heard_at: float | None = None
        """When the coordinator last confirmed the membership."""
        self.rebalances: int = 0
        """How many generations it has joined."""
        self.resumed: bool = False
        """Whether it is the member that it was because there is no coordinator, or was none when it last looked."""
        self.reason: str = ""
        """Why the member last joined or left."""
        self.leads: bool = False
        """Whether the member leads its generation."""
        self.on_enter: Callable[[GroupState], None] = lambda before: None
        """Called after every change of the state, with the state before."""
        self._protocols: Sequence[tuple[str, bytes]] = ()
        self._assignments: Mapping[str, bytes] = {}
        self._again: str | None = None
        # Whether the rebalance is its own wish, and not only what it has heard of.
        self._own = False
        # Why to join again once there is a coordinator, for who has resumed.
        self._wish: str | None = None
        self._asked: CoordinatorRequest | None = None
        self._beating: CoordinatorRequest | None = None
        self._beat_at = 0.0
        self._interval = settings.heartbeat_interval
        self._rest_until = 0.0
        self._failures = 0

    @property
    def group(self) -> GroupMetadata:
        """Who commits offsets now."""
        settings = self.settings
        return GroupMetadata(settings.group_id, self.generation, self.member_id, settings.group_instance_id)

    @property
    def is_member(self) -> bool:
        """Whether it has a generation that it has not heard the end of."""
        return self.generation >= 0

    @property
    def is_rebalancing(self) -> bool:
        """Whether it is on its way to another generation."""
        return self.state in (_PREPARING, _JOINING, _ASSIGNING, _SYNCING)

    # --- what the user does ------------------------------------------------------------------------------

    def want(self, reason: str) -> None:
        """Join, or join again, for this reason (KIP-800); while a rebalance goes on, or it leaves, after that.

        Who has resumed does so once there is a coordinator.
        """
        if self.resumed:
            self._wish = reason
        elif self.state in (_OUTSIDE, _STABLE):
            self._own = True
            self._prepare(reason)
        elif self.state is _FAILED:
            if not isinstance(self.error, FencedInstanceId):
                self.error, self._own = None, True
                self._prepare(reason)
        elif self.state is _PREPARING:
            # What it joins with is made when it has prepared: nothing is missed.
            self._again, self._own = None, True
        else:
            self._again = reason

    @property
    def may_resume(self) -> bool:
        """Whether it waits for its JoinGroup as a member whose generation nobody has ended."""
        return self.state is _JOINING and self.is_member

    def resume(self, group: GroupMetadata, now: float) -> None:
        """There is no coordinator to answer the JoinGroup of ``group``: be the member that it was until there is one.

        One that takes over knows nothing of a rebalance that was not at its end. It knows the generation before that,
        and answers the heartbeat that is due at once.
        """
        if not self.may_resume or group != self.group:
            return
        self._wish = self.reason if self._own else self._again
        self._again, self.resumed = None, True
        self._enter(_STABLE)
        self.task = Resume()
        self._beat_at = now

    def found(self) -> None:
        """There is a coordinator again: who has resumed may join for what it wishes."""
        self.resumed, wish, self._wish = False, self._wish, None
        if wish is not None:
            self.want(wish)

    def rest(self, now: float) -> None:
        """Ask for nothing but heartbeats for a while: who was refused and tries again may be refused again."""
        self._rest_until = now + self.settings.retry_backoff

    def leave(self, reason: str) -> None:
        """Leave the group. The state is OUTSIDE when that is over; a static member is there at once (KIP-345)."""
        self._again = self._wish = None
        self._own = self.resumed = False
        if self.state in (_OUTSIDE, _LEAVING):
            return
        self.reason, self.task = reason, None
        if self.settings.group_instance_id is None and self.member_id:
            self._enter(_LEAVING)
        else:
            self._enter(_OUTSIDE)
            self._reset(lose_id=True)

    def expelled(self, reason: str) -> None:
        """The member gives up its place, since ``reason``; once it wants to join again it does so as a new one."""
        self.leave(reason)
        self.task = LosePartitions(reason)

    # --- what the member has done ------------------------------------------------------------------------

    def prepared(self, task: Task, protocols: Sequence[tuple[str, bytes]]) -> None:
        """:class:`PrepareRejoin` is done: join with these, each a protocol's name and what to tell its leader."""
        if task is self.task:
            self.task, self._protocols = None, protocols
            self._enter(_JOINING)

    def assigned(self, task: Task, assignments: Mapping[str, bytes]) -> None:
        """:class:`Assign` is done: what each member is to know, by its id."""
        if task is self.task:
            self.task, self._assignments = None, assignments
            self._enter(_SYNCING)

    def taken(self, task: Task, *, rejoin: str | None = None) -> None:
        """Go on after :class:`ApplyAssignment`, :class:`Resume` or :class:`LosePartitions`.

        ``rejoin`` says why to join again, if it has to.
        """
        if task is not self.task:
            return
        self.task = None
        reason, self._again = rejoin or self._again, None
        if reason is not None:
            self.want(reason)

    def task_failed(self, task: Task, error: KafkaError) -> None:
        """The task cannot be done."""
        if task is self.task:
            # The coordinator knows nothing of it: the member joins again under its id, or leaves.
            self._fail(error, lose_id=False)

    # --- what to ask -------------------------------------------------------------------------------------

    def due(self, now: float) -> list[CoordinatorRequest]:
        """What to ask the coordinator now; nothing of it is due again before its end was told."""
        asks = []
        if self._asked is None and now >= self._rest_until:
            self._asked = self._next_ask()
            if self._asked is not None:
                asks.append(self._asked)
        if self.beats and self._beating is None and now >= self._beat_at:
            self._beat_at = now + self._interval
            self._interval = min(2 * self._interval, self.settings.heartbeat_interval)
            self._beating = heartbeat(self.group)
            asks.append(self._beating)
        return asks

    def wait(self, now: float) -> float | None:
        """How long nothing else will be due, in seconds; None until something happens."""
        moments = []
        if self._asked is None and self.state in (_JOINING, _SYNCING, _LEAVING):
            moments.append(self._rest_until)
        if self.beats and self._beating is None:
            moments.append(self._beat_at)
        return max(0.0, min(moments) - now) if moments else None

    @property
    def beats(self) -> bool:
        """Whether it sends heartbeats; it has no use for them before it has joined, nor while it joins again."""
        return self.state in _BEATING and self.is_member

    def _next_ask(self) -> CoordinatorRequest | None:
        settings = self.settings
        if self.state is _JOINING:
            return join(settings, self.member_id, self._protocols, self.reason)
        if self.state is _SYNCING:
            return sync(settings, self.group, self.protocol, self._assignments)
        if self.state is _LEAVING:
            return leave(settings, self.member_id, self.reason)
        return None

    def is_current(self, ask: CoordinatorRequest) -> bool:
        """Whether its answer would count."""
        return ask is self._asked or ask is self._beating

    # --- what came of it ---------------------------------------------------------------------------------

    def answered(self, ask: CoordinatorRequest, response: Any, now: float) -> None:
        """The coordinator has answered, with an error or not."""
        if not self.is_current(ask):
            return
        self._over(ask)
        if ask.kind is RequestKind.LEAVE:
            self._left()
        elif response.error_code == ErrorCode.NONE:
            self._heard(now)
            if ask.kind is RequestKind.JOIN:
                self._joined(response)
            elif ask.kind is RequestKind.SYNC:
                self._synced(response, now)
        else:
            error = broker_error(response.error_code, f"{ask.kind.value} of {self.settings.named}")
            self._told(ask.kind, error, now, getattr(response, "member_id", ""))

    def refused(self, ask: CoordinatorRequest, error: KafkaError, now: float) -> None:
        """There was no answer, whatever was tried."""
        if not self.is_current(ask):
            return
        self._over(ask)
        if ask.kind is RequestKind.LEAVE:
            self._left()
        elif isinstance(error, RequestTimeout):
            if ask.kind is RequestKind.SYNC:
                self._prepare("the coordinator did not answer SyncGroup")
            elif ask.kind is RequestKind.HEARTBEAT:
                self._beat_at = now
            # A JoinGroup is due again: whoever waits for the others waits on.
        elif isinstance(error, BrokerError):
            self._told(ask.kind, error, now)
        else:
            self._fail(error)

    def commit_refused(self, group: GroupMetadata, error: BrokerError, now: float) -> None:
        """A commit was refused to ``group``: that may be the first to be heard of the end of a membership."""
        if group == self.group and (RequestKind.COMMIT, error.code) in THEN and self.state in (_STABLE, _PREPARING):
            self._told(RequestKind.COMMIT, error, now)

    def heard_beside(self, group: GroupMetadata, code: int, now: float) -> None:
        """Another has sent a heartbeat for this member, and this is what it was answered."""
        if group != self.group or not self.beats:
            return
        if code == ErrorCode.NONE:
            self._heard(now)
            self._beat_at = now + self.settings.heartbeat_interval
        else:
            self._told(RequestKind.HEARTBEAT, broker_error(code, f"Heartbeat of {self.settings.named}"), now)

    def _over(self, ask: CoordinatorRequest) -> None:
        if ask is self._asked:
            self._asked = None
        else:
            self._beating = None

    def _heard(self, now: float) -> None:
        self.heard_at = now if self.heard_at is None else max(now, self.heard_at)

    def _joined(self, response: Any) -> None:
        names = [name for name, _ in self._protocols]
        if response.protocol_name not in names or response.generation_id < 0 or not response.member_id:
            told = f"protocol {response.protocol_name!r}, generation {response.generation_id}"
            self._fail(WireError(f"JoinGroup of {self.settings.named} was answered with {told}; asked were {names}"))
            return
        self.member_id, self.generation = response.member_id, response.generation_id
        self.protocol = response.protocol_name
        self.last_group = self.group
        self.leads = response.leader == response.member_id
        self._assignments = {}
        if self.leads:
            members = [
                JoinedMember(one.member_id, one.group_instance_id, bytes(one.metadata)) for one in response.members
            ]
            self.task = Assign(self.protocol, members, decided=response.skip_assignment)
            self._enter(_ASSIGNING)
        else:
            self._enter(_SYNCING)

    def _synced(self, response: Any, now: float) -> None:
        if response.protocol_name not in (None, "", self.protocol):
            told = f"SyncGroup of {self.settings.named} was answered for protocol {response.protocol_name!r}"
            self._fail(WireError(f"{told}, but the group has {self.protocol!r}"))
            return
        self.rebalances += 1
        self._failures = 0
        self._own = False
        self._interval = self.settings.heartbeat_interval * _SOON
        self._beat_at = min(self._beat_at, now + self._interval)
        self.task = ApplyAssignment(self.protocol, self.generation, bytes(response.assignment), self.leads)
        self._enter(_STABLE)

    def _told(self, kind: RequestKind, error: BrokerError, now: float, member_id: str = "") -> None:
        then = THEN.get((kind, error.code), ErrorAction.FAIL)
        if kind in (RequestKind.JOIN, RequestKind.SYNC) and then is not ErrorAction.FAIL:
            # The first is in the nature of things; a coordinator that goes on like this is not asked in a tight loop.
            self._failures += 1
            self._rest_until = now + self.settings.retry_backoff * min(self._failures - 1, _MOST_RESTS)
        if then is ErrorAction.JOIN_WITH_ID:
            self.member_id = member_id or self.member_id
        elif then is ErrorAction.REJOIN:
            self._heard(now)
            # Before, the answer to SyncGroup will tell.
            if self.state is _STABLE or kind is RequestKind.SYNC:
                self._prepare("the group is rebalancing")
        elif then in (ErrorAction.LOSE, ErrorAction.LOSE_GENERATION):
            self._reset(lose_id=then is ErrorAction.LOSE)
            self._prepare(_lost_because(then, error))
        elif then is ErrorAction.FAIL:
            self._fail(error)

    def _prepare(self, reason: str) -> None:
        self.reason = reason
        self._own |= self._again is not None or self._wish is not None
        self._again = self._wish = None
        self.resumed = False
        self._enter(_PREPARING)
        self.task = PrepareRejoin(lost=not self.is_member, reason=reason)

    def _left(self) -> None:
        self._enter(_OUTSIDE)
        self._reset(lose_id=True)
        # With a task, this is for its end.
        if self._again is not None and self.task is None:
            self.want(self._again)

    def _fail(self, error: KafkaError, *, lose_id: bool = True) -> None:
        self.error = error
        self._enter(_FAILED)
        self._reset(lose_id=lose_id)
        self.task = LosePartitions(str(error))

    def _reset(self, *, lose_id: bool) -> None:
        self.generation, self.leads = -1, False
        self.resumed, self._wish = False, None
        if lose_id:
            self.member_id = ""

    def _enter(self, state: GroupState) -> None:
        assert state in NEXT[self.state], f"{self.state.name} to {state.name}"
        before, self.state = self.state, state
        # What was asked where the member was before counts no more.
        self._asked = None
        if state not in _BEATING:
            self._beating = None
        self.on_enter(before)


def _lost_because(then: ErrorAction, error: BrokerError) -> str:
    if then is ErrorAction.LOSE:
        why = "no heartbeat reached it within session_timeout_ms, or the member was removed"
    else:
        why = "the group has rebalanced without it"
    return f"the coordinator refused the membership with {type(error).__name__}: {why}"
