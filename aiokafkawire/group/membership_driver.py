"""Drives a member of a classic group: sends its requests to the coordinator and executes its tasks."""

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
from .classic_membership import ClassicMembership
from .classic_transitions import GroupState, RequestKind
from .coordinator_probe import CoordinatorStatus, probe_coordinator
from .member_actions import ApplyAssignment, Assign, LosePartitions, PrepareRejoin, Resume, Task
from .member_log import MemberLog
from .membership_requests import CoordinatorRequest, MemberSettings, explained

if TYPE_CHECKING:  # few consumers have a heartbeat thread
    from .background_heartbeats import BackgroundHeartbeats

__all__ = ("MembershipDriver", "Polls", "Role")

_log = logging.getLogger("aiokafkawire.group")

_JOIN_MARGIN: Final = 5.0
"""Seconds beyond the rebalance timeout that a coordinator may take to complete a JoinGroup."""
_LEAVE_TIMEOUT: Final = 1.0
"""Seconds to wait for a response to LeaveGroup: a silent coordinator has probably read it, and waits for replicas."""


class Role(Protocol):
    """The executor of a membership's tasks, such as :class:`ConsumerCoordinator`.

    A task may become obsolete during its execution: then :attr:`ClassicMembership.task` is a different one.
    """

    async def prepare(self, task: PrepareRejoin) -> Sequence[tuple[str, bytes]]:
        """Revoke partitions before a rejoin; return the protocols to join with, the preferred one first."""

    async def assign(self, task: Assign) -> Mapping[str, bytes]:
        """Return the encoded assignment of each member, as the group's leader."""

    async def apply_assignment(self, task: ApplyAssignment) -> str | None:
        """Apply the assignment; return the reason to rejoin, if there is one."""

    async def lose_partitions(self, task: LosePartitions) -> None:
        """Drop all partitions: the membership has ended."""

    def can_resume(self) -> bool:
        """Return whether there are partitions that were revoked for a JoinGroup that is not answered yet."""

    async def resume(self, task: Resume) -> None:
        """Resume reading the partitions revoked for the JoinGroup, until a later rebalance revokes them again."""


Polls = Callable[[], tuple[int, bool]]
"""Returns how often the user has polled so far, and whether it is waiting for records now."""


class MembershipDriver:
    """A group member, from its first JoinGroup to its LeaveGroup.

    Args:
        cluster: finds the coordinator.
        settings: the member's settings.
        role: executes the member's tasks.
        lane: names the member's own connections, since a JoinGroup delays all later requests on its connection.
        polls: shows whether the user still polls.
        heartbeat_thread: whether a thread sends heartbeats while the event loop is blocked.
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
        """The error of the last request to the coordinator; None if the coordinator has responded."""
        self.overdue: bool = False
        """Whether the member has left the group because poll() was not called in time."""
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
        # Whether an attempt has failed since the coordinator last responded or was last probed.
        self._is_suspect = self._probing = False
        self._background = _make_background(cluster, self.machine) if heartbeat_thread else None
        self._worker = Worker(self._step, self.notify)

    async def run(self) -> None:
        """Run until stopped."""
        if self._background is None:
            await self._worker.run()
            return
        async with background_tasks() as tasks:
            tasks.start_soon(self._background.lag.run)
            await self._worker.run()
            tasks.cancel_scope.cancel()

    async def stop(self) -> None:
        """Stop without a LeaveGroup. May be called again."""
        self._log.stopped()
        await self._worker.stop()
        if self._background is not None:
            with anyio.CancelScope(shield=True):
                await self._cluster.runtime.offload(self._background.close)
        await self._cluster.brokers.close_lanes(self.lane)
        await self._cluster.brokers.close_lanes(self._join_lane)

    @property
    def has_ended(self) -> bool:
        """Whether the manager was stopped."""
        return self._worker.ended.is_set()

    def request_rejoin(self, reason: str) -> None:
        """Join or rejoin the group; see :meth:`ClassicMembership.request_rejoin`."""
        self.machine.request_rejoin(reason)
        self._worker.wake()

    def wake(self) -> None:
        """Send the requests that have become due."""
        self._worker.wake()

    def on_poll(self) -> None:
        """Rejoin on poll() after a poll timeout, or after the coordinator has refused the member.

        Raises:
            FencedInstanceId: another member has the same ``group_instance_id``, so this member cannot rejoin.
        """
        if not self.overdue and self.machine.state is not GroupState.FAILED:
            return
        self.overdue = False
        self._polled_at = self._clock()
        if self.machine.state is GroupState.FAILED:
            self.machine.back_off(self._clock())
        self.request_rejoin("poll() was called again")
        if self.machine.state is GroupState.FAILED and self.machine.error is not None:
            raise copy_for_reraise(self.machine.error)

    async def leave(self, reason: str, deadline: Deadline) -> None:
        """Leave the group with a LeaveGroup, within the deadline."""
        self._leave_by = deadline
        self.machine.leave(reason)
        heartbeats = [scope for request, scope in self._requests.items() if request.kind is RequestKind.HEARTBEAT]
        if heartbeats:
            # A coordinator that waits for replicas delays all requests on this connection.
            for scope in heartbeats:
                scope.cancel()
            await self._cluster.brokers.close_lanes(self.lane)
        self._worker.wake()
        with anyio.move_on_after(deadline.left(self._clock())):
            await self.until(lambda: self.machine.state is GroupState.OUTSIDE)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until ``reached`` returns True; it is called again after each :meth:`notify`."""
        while not (reached() or self._worker.ended.is_set()):
            await self._changed.wait()

    def notify(self) -> None:
        """Check the conditions of :meth:`until` again."""
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
        """Leave the group if poll() was not called in time; return the seconds that the user still has to call it."""
        polls = self._polls()
        if polls[1] or polls != self._polled:
            self._polled, self._polled_at = polls, now
        if self.machine.state in (GroupState.OUTSIDE, GroupState.LEAVING, GroupState.FAILED):
            return None
        limit = self._settings.rebalance_timeout_ms / 1000
        left = self._polled_at + limit - now
        if left > 0:  # the same value decides and is waited for, so rounding cannot lead to endless waits of 0 s
            return left
        self.overdue = True
        reason = f"poll() was not called for {limit:g} s (max_poll_interval_ms)"
        _log.warning("leaving %s: %s; the consumer rejoins on the next poll", self._settings.named, reason)
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
            pass  # the request is obsolete, and the coordinator has not responded
        elif scope.cancelled_caught:
            # A later request on this connection would wait for this response.
            await self._cluster.brokers.close_lanes(self._lane_of(request.kind))
            moved = RequestTimeout(
                f"{request.kind.value} of {self._settings.named}: another broker has become coordinator"
            )
            machine.refused(request, moved, self._clock())
        elif refused is not None:
            self.on_coordinator_result(refused)
            if isinstance(refused, RequestTimeout):
                self._cluster.invalidate_coordinator(CoordinatorType.GROUP, self._settings.group_id, refused)
                # A later request on a silent connection would wait for this response.
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
        """Raise retriable errors, which concern the coordinator; ClassicMembership handles the others."""
        code = answer.error_code
        if code != ErrorCode.NONE:
            error = broker_error(code, self._settings.named)
            if error.retriable:
                raise error

    def on_coordinator_result(self, error: KafkaError | None) -> None:
        """Record the error of a request to the coordinator; None if the coordinator has responded."""
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
        # A coordinator that is silent for a third of the session may be gone; then there is time to find another.
        return self._cluster.deadline(max(settings.heartbeat_interval, settings.session_timeout_ms / 1000 / 3))

    def _check_coordinator(self, tasks: TaskGroup, now: float) -> float | None:
        """Check during a JoinGroup, which may take minutes, whether another broker has become coordinator.

        Return the seconds until the next check.
        """
        if not any(request.kind.is_slow for request in self._requests):
            self._next_check = now + self._settings.session_timeout_ms / 1000 / 3
            # Requests of this step begin after it.
            return None if self.machine.state is GroupState.OUTSIDE else self._next_check - now
        if now >= self._next_check:
            self._next_check = now + self._settings.session_timeout_ms / 1000 / 3
            tasks.start_soon(self._find_coordinator)
        return self._next_check - now

    async def _find_coordinator(self) -> None:
        kind, group_id = CoordinatorType.GROUP, self._settings.group_id
        # The previous coordinator counts if the last lookup has found none.
        before = self._coordinator = self._cluster.known_coordinator(kind, group_id) or self._coordinator
        if before is not None:  # otherwise the request in flight is looking for it already
            self._cluster.invalidate_coordinator(kind, group_id)
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
        """Probe the coordinator; if there is none for the JoinGroup of this membership, resume until there is one."""
        machine = self.machine
        try:
            found = await probe_coordinator(self._cluster, group.group_id, self.lane, self._set_trouble)
            if found is CoordinatorStatus.AVAILABLE:
                machine.coordinator_found()
            elif found is CoordinatorStatus.UNAVAILABLE and machine.may_resume and self._role.can_resume():
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
