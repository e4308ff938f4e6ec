"""Drives a member of a classic group: asks its coordinator, and has the member do what its part is."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Node
from ..cluster.request_variants import in_newest_form
from ..cluster.retry import Deadline
from ..errors import (
    ErrorCode,
    KafkaError,
    RequestTimeout,
    UnsupportedVersion,
    as_kafka_error,
    broker_error,
    copy_for_reraise,
)
from ..protocol.schema import Request, Versions
from ..runtime import Worker, background_tasks
from ..types import CoordinatorType, GroupMetadata
from .classic import ClassicMembership
from .classic_transitions import GroupState, RequestKind
from .coordinator_probe import CoordinatorStatus, look_for_coordinator
from .member_log import MemberLog
from .member_tasks import ApplyAssignment, Assign, LosePartitions, PrepareRejoin, Resume, Task
from .membership_requests import CoordinatorRequest, MemberSettings, explained

if TYPE_CHECKING:  # few consumers have one
    from .background_heartbeats import BackgroundHeartbeats

__all__ = ("MembershipManager", "Polls", "Role")

_log = logging.getLogger("aiokafkawire.group")

_LATE: Final = 5.0
"""Seconds that a coordinator may take beyond the rebalance timeout to tell who has joined."""
_LEFT: Final = 1.0
"""Seconds for an answer to LeaveGroup: a coordinator that is silent has most likely read it, and waits for replicas."""


class Role(Protocol):
    """What a member does in a group of its kind.

    While it does something, it may turn out that it is not wanted any more: then
    :attr:`ClassicMembership.task` is another.
    """

    async def prepare(self, task: PrepareRejoin) -> Sequence[tuple[str, bytes]]:
        """Give up what has to be given up; the protocols to join with, the preferred one first."""

    async def assign(self, task: Assign) -> Mapping[str, bytes]:
        """Decide, as the leader, what each member is to know."""

    async def take(self, task: ApplyAssignment) -> str | None:
        """Take what was assigned; why to join again, if so."""

    async def give_up(self, task: LosePartitions) -> None:
        """It is out of the group: what it had is another's."""

    def can_resume(self) -> bool:
        """Whether it gave something up that nobody else can have been given before its JoinGroup is answered."""

    async def resume(self, task: Resume) -> None:
        """Go on with that, as far as nothing can be missed by it. It will have to be given up again."""


Polls = Callable[[], tuple[int, bool]]
"""How often the user has asked for more so far, and whether it waits for more now."""


class MembershipManager:
    """One member, from its first JoinGroup to its LeaveGroup.

    Args:
        cluster: where the coordinator is found.
        settings: what the coordinator is told of it.
        role: what it does.
        lane: its requests go on connections of their own, for a JoinGroup holds up whatever is behind it.
        polls: tells whether the user is alive.
        heartbeat_thread: whether a thread keeps the membership while the event loop is blocked.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: MemberSettings,
        role: Role,
        lane: str,
        polls: Polls,
        *,
        heartbeat_thread: bool = False,
    ) -> None:
        self.machine: ClassicMembership = ClassicMembership(settings)
        self._log = MemberLog(self.machine)
        self.lane: str = f"group-{lane}"
        self.trouble: KafkaError | None = None
        """Why the coordinator could not be asked the last time; None since it has answered."""
        self.overdue: bool = False
        """Whether it has left the group because the user did not ask for more."""
        self._join_lane = f"join-{lane}"
        self._cluster, self._settings, self._role, self._polls = cluster, settings, role, polls
        self._clock = cluster.runtime.now
        self._changed = anyio.Event()
        self._asking: dict[CoordinatorRequest, anyio.CancelScope] = {}
        self._working = False
        self._polled, self._polled_at = (-1, False), self._clock()
        self._leave_by: Deadline | None = None
        self._look_at = 0.0
        self._coordinator: Node | None = None
        # Whether a try has failed since the coordinator was last heard of, or looked for because of that.
        self._in_doubt = self._doubting = False
        self._beside = _beside_loop(cluster, self.machine) if heartbeat_thread else None
        self._worker = Worker(self._step, self.tell)

    async def run(self) -> None:
        """Take part until stopped."""
        if self._beside is None:
            await self._worker.run()
            return
        async with background_tasks() as tasks:
            tasks.start_soon(self._beside.lag.run)
            await self._worker.run()
            tasks.cancel_scope.cancel()

    async def stop(self) -> None:
        """Ask nothing more; the coordinator is not told. May be called again."""
        self._log.stopped()
        await self._worker.stop()
        if self._beside is not None:
            with anyio.CancelScope(shield=True):
                await self._cluster.runtime.offload(self._beside.close)
        await self._cluster.brokers.close_lanes(self.lane)
        await self._cluster.brokers.close_lanes(self._join_lane)

    @property
    def has_ended(self) -> bool:
        """Whether it was stopped."""
        return self._worker.ended.is_set()

    def want(self, reason: str) -> None:
        """Join, or join again, for this reason."""
        self.machine.want(reason)
        self._worker.wake()

    def wake(self) -> None:
        """The machine may have something to ask."""
        self._worker.wake()

    def asked(self) -> None:
        """The user has asked for more: who left for being silent joins again, and so does who was refused.

        Raises:
            FencedInstanceId: that is for good.
        """
        if not self.overdue and self.machine.state is not GroupState.FAILED:
            return
        self.overdue = False
        self._polled_at = self._clock()
        if self.machine.state is GroupState.FAILED:
            self.machine.rest(self._clock())
        self.want("records are asked for again")
        if self.machine.state is GroupState.FAILED and self.machine.error is not None:
            raise copy_for_reraise(self.machine.error)

    async def leave(self, reason: str, deadline: Deadline) -> None:
        """Leave the group, and have the coordinator know unless the deadline passes before."""
        self._leave_by = deadline
        self.machine.leave(reason)
        unanswered = [scope for ask, scope in self._asking.items() if ask.kind is RequestKind.HEARTBEAT]
        if unanswered:
            # A coordinator that waits for its replicas keeps it, and would keep what comes behind it.
            for scope in unanswered:
                scope.cancel()
            await self._cluster.brokers.close_lanes(self.lane)
        self._worker.wake()
        with anyio.move_on_after(deadline.left(self._clock())):
            await self.until(lambda: self.machine.state is GroupState.OUTSIDE)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until it is so; who calls :meth:`tell` has it looked at."""
        while not (reached() or self._worker.ended.is_set()):
            await self._changed.wait()

    def tell(self) -> None:
        """Something has changed."""
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    # --- what is due -------------------------------------------------------------------------------------

    def _step(self, tasks: TaskGroup) -> float | None:
        now, machine = self._clock(), self.machine
        waits = [self._look_for_the_user(now)]
        if self._beside is not None:
            self._beside.step(now, self._polled_at)
        for ask in machine.due(now):
            tasks.start_soon(self._ask, ask)
        for ask, scope in self._asking.items():
            if not machine.is_current(ask):
                scope.cancel()
        if machine.task is not None and not self._working:
            self._working = True
            tasks.start_soon(self._work)
        may_resume = self._in_doubt and machine.may_resume and self._role.can_resume()
        if (may_resume or machine.resumed) and not self._doubting:
            self._in_doubt, self._doubting = False, True
            tasks.start_soon(self._doubt, machine.group)
        waits += [machine.wait(now), self._look_after_coordinator(tasks, now)]
        return min((wait for wait in waits if wait is not None), default=None)

    def _look_for_the_user(self, now: float) -> float | None:
        """Leave the group if the user seems to be gone. How long until it has to be looked for again."""
        polls = self._polls()
        if polls[1] or polls != self._polled:
            self._polled, self._polled_at = polls, now
        if self.machine.state in (GroupState.OUTSIDE, GroupState.LEAVING, GroupState.FAILED):
            return None
        limit = self._settings.rebalance_timeout_ms / 1000
        left = self._polled_at + limit - now
        if left > 0:  # decided by what is waited for: rounded otherwise, a wait of 0 s would have no end
            return left
        self.overdue = True
        reason = f"the consumer asked for no records for {limit:g} s (max_poll_interval_ms)"
        _log.warning("leaving %s: %s; it rejoins when it asks again", self._settings.named, reason)
        self.machine.expelled(reason)
        self.tell()
        return None

    # --- asking ------------------------------------------------------------------------------------------

    async def _ask(self, ask: CoordinatorRequest) -> None:
        machine = self.machine
        answer: Any = None
        refused: KafkaError | None = None
        with anyio.CancelScope() as scope:
            self._asking[ask] = scope
            try:
                answer = await self._ask_forms(ask)
            except UnsupportedVersion as error:
                refused = explained(ask, self._settings, error)
            except Exception as error:
                refused = as_kafka_error(error, f"{ask.kind.value} of {self._settings.named}")
        del self._asking[ask]
        if scope.cancelled_caught and not ask.kind.is_slow:
            pass  # it would not count, and nobody was heard
        elif scope.cancelled_caught:
            # Whatever comes next on that connection would be read when this is answered.
            await self._cluster.brokers.close_lanes(self._lane_of(ask.kind))
            moved = RequestTimeout(f"{ask.kind.value} of {self._settings.named}: another broker coordinates it by now")
            machine.refused(ask, moved, self._clock())
        elif refused is not None:
            self.heard(refused)
            if isinstance(refused, RequestTimeout):
                self._cluster.doubt_coordinator(CoordinatorType.GROUP, self._settings.group_id, refused)
                # Whatever came next on a connection that is silent would wait behind this.
                await self._cluster.brokers.close_lanes(self._lane_of(ask.kind))
            machine.refused(ask, refused, self._clock())
        else:
            self.heard(None)
            machine.answered(ask, answer, self._clock())
        self.tell()
        self._worker.wake()

    async def _ask_forms(self, ask: CoordinatorRequest) -> Any:
        deadline = self._deadline(ask.kind)

        async def in_form(request: Request[Any], wanted: Versions) -> Any:
            return await self._cluster.ask_coordinator(
                CoordinatorType.GROUP,
                self._settings.group_id,
                request,
                deadline,
                lane=self._lane_of(ask.kind),
                wanted=wanted,
                check=self._check,
                slow=ask.kind.is_slow,
                failed=self.heard,
                patience=_LEFT if ask.kind is RequestKind.LEAVE else math.inf,
            )

        return await in_newest_form(ask.forms, in_form)

    def _lane_of(self, kind: RequestKind) -> str:
        return self._join_lane if kind.is_slow else self.lane

    def _check(self, answer: Any) -> None:
        """Errors of the coordinator itself are tried again there or elsewhere; the others are the machine's."""
        code = answer.error_code
        if code != ErrorCode.NONE:
            error = broker_error(code, self._settings.named)
            if error.retriable:
                raise error

    def heard(self, error: KafkaError | None) -> None:
        """The coordinator could not be asked, for this reason; with None, it has answered."""
        self._in_doubt = error is not None
        self._note(error)
        self._worker.wake()

    def _note(self, error: KafkaError | None) -> None:
        self.trouble = error
        self.tell()

    def _deadline(self, kind: RequestKind) -> Deadline:
        settings = self._settings
        if kind is RequestKind.LEAVE and self._leave_by is not None:
            return self._leave_by
        if kind.is_slow:
            return self._cluster.deadline(settings.rebalance_timeout_ms / 1000 + _LATE)
        # A coordinator that is silent for a part of the session may be one no more, and there is time to find another.
        return self._cluster.deadline(max(settings.heartbeat_interval, settings.session_timeout_ms / 1000 / 3))

    def _look_after_coordinator(self, tasks: TaskGroup, now: float) -> float | None:
        """JoinGroup may take minutes: see to it that it is not a broker that has hung which keeps it.

        How long until the next look.
        """
        if not any(ask.kind.is_slow for ask in self._asking):
            self._look_at = now + self._settings.session_timeout_ms / 1000 / 3
            # What is asked in this step begins after it.
            return None if self.machine.state is GroupState.OUTSIDE else self._look_at - now
        if now >= self._look_at:
            self._look_at = now + self._settings.session_timeout_ms / 1000 / 3
            tasks.start_soon(self._find_coordinator)
        return self._look_at - now

    async def _find_coordinator(self) -> None:
        kind, group_id = CoordinatorType.GROUP, self._settings.group_id
        # What was known before counts if the last look has found nobody.
        before = self._coordinator = self._cluster.known_coordinator(kind, group_id) or self._coordinator
        if before is not None:  # otherwise who asks is looking for it already
            self._cluster.doubt_coordinator(kind, group_id)
        try:
            found = await self._cluster.coordinator(kind, group_id, self._deadline(RequestKind.HEARTBEAT))
        except KafkaError as error:
            self.heard(error)
            return
        if before is not None and found != before:
            for ask, scope in self._asking.items():
                if ask.kind.is_slow:
                    scope.cancel()

    async def _doubt(self, group: GroupMetadata) -> None:
        """The JoinGroup of this membership may have nobody to answer it: then go on without, and look for somebody."""
        machine = self.machine
        try:
            found = await look_for_coordinator(self._cluster, group.group_id, self.lane, self._note)
            if found is CoordinatorStatus.THERE:
                machine.found()
            elif found is CoordinatorStatus.AWAY and machine.may_resume and self._role.can_resume():
                machine.resume(group, self._clock())
        finally:
            self._doubting = False
            self._worker.wake()

    # --- what the member does ----------------------------------------------------------------------------

    async def _work(self) -> None:
        machine = self.machine
        try:
            while (task := machine.task) is not None:
                try:
                    await self._do(task)
                except Exception as error:
                    if isinstance(task, LosePartitions):
                        machine.taken(task)
                        raise
                    machine.task_failed(task, as_kafka_error(error, f"taking part in {self._settings.named}"))
                self.tell()
                self._worker.wake()
        finally:
            self._working = False

    async def _do(self, task: Task) -> None:
        machine, role = self.machine, self._role
        if isinstance(task, PrepareRejoin):
            machine.prepared(task, await role.prepare(task))
        elif isinstance(task, Assign):
            machine.assigned(task, await role.assign(task))
        elif isinstance(task, ApplyAssignment):
            machine.taken(task, rejoin=await role.take(task))
        elif isinstance(task, Resume):
            await role.resume(task)
            machine.taken(task)
        else:
            await role.give_up(task)
            machine.taken(task)


def _beside_loop(cluster: Cluster, machine: ClassicMembership) -> "BackgroundHeartbeats":
    from .background_heartbeats import BackgroundHeartbeats

    return BackgroundHeartbeats(cluster, machine)
