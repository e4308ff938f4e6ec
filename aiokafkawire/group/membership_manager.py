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
    again,
    as_kafka_error,
    broker_error,
)
from ..protocol.schema import Request, Versions
from ..runtime import Worker, background_tasks
from ..types import CoordinatorType, GroupMetadata
from .classic import ClassicMembership
from .classic_transitions import GroupState, RequestKind
from .coordinator_probe import CoordinatorStatus, probe_coordinator
from .member_log import MemberLog
from .member_tasks import ApplyAssignment, Assign, LosePartitions, PrepareRejoin, Resume, Task
from .membership_requests import CoordinatorRequest, MemberSettings, explained

if TYPE_CHECKING:  # few consumers have one
    from .background_heartbeats import BackgroundHeartbeats

__all__ = ("MembershipManager", "Polls", "Role")

_log = logging.getLogger("aiokafkawire.group")

_JOIN_MARGIN: Final = 5.0
"""Seconds that a coordinator may take beyond the rebalance timeout to tell who has joined."""
_LEAVE_TIMEOUT: Final = 1.0
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

    async def apply_assignment(self, task: ApplyAssignment) -> str | None:
        """Take what was assigned; why to join again, if so."""

    async def lose_partitions(self, task: LosePartitions) -> None:
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
        self._requests: dict[CoordinatorRequest, anyio.CancelScope] = {}
        self._working = False
        self._polled, self._polled_at = (-1, False), self._clock()
        self._leave_by: Deadline | None = None
        self._next_check = 0.0
        self._coordinator: Node | None = None
        # Whether a try has failed since the coordinator was last heard of, or looked for because of that.
        self._is_suspect = self._probing = False
        self._background = _make_background(cluster, self.machine) if heartbeat_thread else None
        self._worker = Worker(self._step, self.notify)

    async def run(self) -> None:
        """Take part until stopped."""
        if self._background is None:
            await self._worker.run()
            return
        async with background_tasks() as tasks:
            tasks.start_soon(self._background.lag.run)
            await self._worker.run()
            tasks.cancel_scope.cancel()

    async def stop(self) -> None:
        """Ask nothing more; the coordinator is not told. May be called again."""
        self._log.stopped()
        await self._worker.stop()
        if self._background is not None:
            with anyio.CancelScope(shield=True):
                await self._cluster.runtime.offload(self._background.close)
        await self._cluster.brokers.close_lanes(self.lane)
        await self._cluster.brokers.close_lanes(self._join_lane)

    @property
    def has_ended(self) -> bool:
        """Whether it was stopped."""
        return self._worker.ended.is_set()

    def request_rejoin(self, reason: str) -> None:
        """Join, or join again, for this reason."""
        self.machine.request_rejoin(reason)
        self._worker.wake()

    def wake(self) -> None:
        """The machine may have something to request."""
        self._worker.wake()

    def on_poll(self) -> None:
        """The user has asked for more: who left for being silent joins again, and so does who was refused.

        Raises:
            FencedInstanceId: that is for good.
        """
        if not self.overdue and self.machine.state is not GroupState.FAILED:
            return
        self.overdue = False
        self._polled_at = self._clock()
        if self.machine.state is GroupState.FAILED:
            self.machine.back_off(self._clock())
        self.request_rejoin("records are asked for again")
        if self.machine.state is GroupState.FAILED and self.machine.error is not None:
            raise again(self.machine.error)

    async def leave(self, reason: str, deadline: Deadline) -> None:
        """Leave the group, and have the coordinator know unless the deadline passes before."""
        self._leave_by = deadline
        self.machine.leave(reason)
        unanswered = [scope for request, scope in self._requests.items() if request.kind is RequestKind.HEARTBEAT]
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

    def notify(self) -> None:
        """Something has changed."""
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    # --- what is due -------------------------------------------------------------------------------------

    def _step(self, tasks: TaskGroup) -> float | None:
        now, machine = self._clock(), self.machine
        waits = [self._check_poll_interval(now)]
        if self._background is not None:
            self._background.step(now, self._polled_at)
        for request in machine.due(now):
            tasks.start_soon(self._ask, request)
        for request, scope in self._requests.items():
            if not machine.is_current(request):
                scope.cancel()
        if machine.task is not None and not self._working:
            self._working = True
            tasks.start_soon(self._work)
        may_resume = self._is_suspect and machine.may_resume and self._role.can_resume()
        if (may_resume or machine.resumed) and not self._probing:
            self._is_suspect, self._probing = False, True
            tasks.start_soon(self._probe_coordinator, machine.group)
        waits += [machine.wait(now), self._check_coordinator(tasks, now)]
        return min((wait for wait in waits if wait is not None), default=None)

    def _check_poll_interval(self, now: float) -> float | None:
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
        self.machine.poll_timeout(reason)
        self.notify()
        return None

    # --- asking ------------------------------------------------------------------------------------------

    async def _ask(self, request: CoordinatorRequest) -> None:
        machine = self.machine
        answer: Any = None
        refused: KafkaError | None = None
        with anyio.CancelScope() as scope:
            self._requests[request] = scope
            try:
                answer = await self._ask_newest(request)
            except UnsupportedVersion as error:
                refused = explained(request, self._settings, error)
            except Exception as error:
                refused = as_kafka_error(error, f"{request.kind.value} of {self._settings.named}")
        del self._requests[request]
        if scope.cancelled_caught and not request.kind.is_slow:
            pass  # it would not count, and nobody was heard
        elif scope.cancelled_caught:
            # Whatever comes next on that connection would be read when this is answered.
            await self._cluster.brokers.close_lanes(self._lane_of(request.kind))
            moved = RequestTimeout(
                f"{request.kind.value} of {self._settings.named}: another broker coordinates it by now"
            )
            machine.refused(request, moved, self._clock())
        elif refused is not None:
            self.on_coordinator_result(refused)
            if isinstance(refused, RequestTimeout):
                self._cluster.doubt_coordinator(CoordinatorType.GROUP, self._settings.group_id, refused)
                # Whatever came next on a connection that is silent would wait behind this.
                await self._cluster.brokers.close_lanes(self._lane_of(request.kind))
            machine.refused(request, refused, self._clock())
        else:
            self.on_coordinator_result(None)
            machine.answered(request, answer, self._clock())
        self.notify()
        self._worker.wake()

    async def _ask_newest(self, request: CoordinatorRequest) -> Any:
        deadline = self._deadline(request.kind)

        async def in_form(message: Request[Any], wanted: Versions) -> Any:
            return await self._cluster.ask_coordinator(
                CoordinatorType.GROUP,
                self._settings.group_id,
                message,
                deadline,
                lane=self._lane_of(request.kind),
                wanted=wanted,
                check=self._check,
                slow=request.kind.is_slow,
                failed=self.on_coordinator_result,
                patience=_LEAVE_TIMEOUT if request.kind is RequestKind.LEAVE else math.inf,
            )

        return await in_newest_form(request.forms, in_form)

    def _lane_of(self, kind: RequestKind) -> str:
        return self._join_lane if kind.is_slow else self.lane

    def _check(self, answer: Any) -> None:
        """Errors of the coordinator itself are tried again there or elsewhere; the others are the machine's."""
        code = answer.error_code
        if code != ErrorCode.NONE:
            error = broker_error(code, self._settings.named)
            if error.retriable:
                raise error

    def on_coordinator_result(self, error: KafkaError | None) -> None:
        """The coordinator could not be asked, for this reason; with None, it has answered."""
        self._is_suspect = error is not None
        self._set_trouble(error)
        self._worker.wake()

    def _set_trouble(self, error: KafkaError | None) -> None:
        self.trouble = error
        self.notify()

    def _deadline(self, kind: RequestKind) -> Deadline:
        settings = self._settings
        if kind is RequestKind.LEAVE and self._leave_by is not None:
            return self._leave_by
        if kind.is_slow:
            return self._cluster.deadline(settings.rebalance_timeout_ms / 1000 + _JOIN_MARGIN)
        # A coordinator that is silent for a part of the session may be one no more, and there is time to find another.
        return self._cluster.deadline(max(settings.heartbeat_interval, settings.session_timeout_ms / 1000 / 3))

    def _check_coordinator(self, tasks: TaskGroup, now: float) -> float | None:
        """JoinGroup may take minutes: see to it that it is not a broker that has hung which keeps it.

        How long until the next look.
        """
        if not any(request.kind.is_slow for request in self._requests):
            self._next_check = now + self._settings.session_timeout_ms / 1000 / 3
            # What is asked in this step begins after it.
            return None if self.machine.state is GroupState.OUTSIDE else self._next_check - now
        if now >= self._next_check:
            self._next_check = now + self._settings.session_timeout_ms / 1000 / 3
            tasks.start_soon(self._find_coordinator)
        return self._next_check - now

    async def _find_coordinator(self) -> None:
        kind, group_id = CoordinatorType.GROUP, self._settings.group_id
        # What was known before counts if the last look has found nobody.
        before = self._coordinator = self._cluster.known_coordinator(kind, group_id) or self._coordinator
        if before is not None:  # otherwise who asks is looking for it already
            self._cluster.doubt_coordinator(kind, group_id)
        try:
            found = await self._cluster.coordinator(kind, group_id, self._deadline(RequestKind.HEARTBEAT))
        except KafkaError as error:
            self.on_coordinator_result(error)
            return
        if before is not None and found != before:
            for request, scope in self._requests.items():
                if request.kind.is_slow:
                    scope.cancel()

    async def _probe_coordinator(self, group: GroupMetadata) -> None:
        """The JoinGroup of this membership may have nobody to answer it: then go on without, and look for somebody."""
        machine = self.machine
        try:
            found = await probe_coordinator(self._cluster, group.group_id, self.lane, self._set_trouble)
            if found is CoordinatorStatus.THERE:
                machine.coordinator_found()
            elif found is CoordinatorStatus.AWAY and machine.may_resume and self._role.can_resume():
                machine.resume(group, self._clock())
        finally:
            self._probing = False
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
                        machine.task_done(task)
                        raise
                    machine.task_failed(task, as_kafka_error(error, f"taking part in {self._settings.named}"))
                self.notify()
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
            machine.task_done(task, rejoin=await role.apply_assignment(task))
        elif isinstance(task, Resume):
            await role.resume(task)
            machine.task_done(task)
        else:
            await role.lose_partitions(task)
            machine.task_done(task)


def _make_background(cluster: Cluster, machine: ClassicMembership) -> "BackgroundHeartbeats":
    from .background_heartbeats import BackgroundHeartbeats

    return BackgroundHeartbeats(cluster, machine)
