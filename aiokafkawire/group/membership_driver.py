"""Drives a member of a group: sends its requests to the coordinator, and has its tasks executed."""

import math
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Node
from ..cluster.request_variants import in_newest_form
from ..cluster.retry import Deadline
from ..errors import (
    BrokerError,
    ErrorCode,
    FencedInstanceId,
    KafkaError,
    RequestTimeout,
    as_kafka_error,
    broker_error,
    copy_for_reraise,
)
from ..event_log import EventLog
from ..protocol.schema import Request, Versions
from ..runtime import Worker, background_tasks
from ..types import CoordinatorType, GroupMetadata
from .member_log import MemberLog
from .membership import CoordinatorRequest, GroupState, LosePartitions, Membership, RequestKind, Task

if TYPE_CHECKING:  # few consumers have a heartbeat thread
    from .background_heartbeats import BackgroundHeartbeats

__all__ = ("MembershipDriver", "Polls")

_log = EventLog("aiokafkawire.group")

_JOIN_MARGIN: Final = 5.0
"""Seconds beyond the rebalance timeout that a coordinator may take to complete a JoinGroup."""
_LEAVE_TIMEOUT: Final = 1.0
"""Seconds to wait for a response to LeaveGroup: a silent coordinator has probably read it, and waits for replicas."""


Polls: TypeAlias = Callable[[], tuple[int, bool]]
"""A function that returns how often the user has polled, and whether the user is waiting for records now."""


class MembershipDriver:
    """The driver of one group member: sends the member's requests, and has its tasks executed.

    Args:
        cluster: finds the coordinator.
        machine: decides what the member does.
        execute: executes a task of the machine, and reports its result to the machine.
        lane: names the member's own connections, since a JoinGroup delays all later requests on its connection.
        polls: shows whether the user still polls.
        heartbeat_thread: whether a thread sends heartbeats while the event loop is blocked.
    """

    def __init__(
        self,
        cluster: Cluster,
        machine: Membership,
        execute: Callable[[Task], Awaitable[None]],
        lane: str,
        polls: Polls,
        *,
        heartbeat_thread: bool = False,
    ) -> None:
        self.machine: Membership = machine
        self._log = MemberLog(machine, cluster.runtime.now, cluster.config.client_id)
        self.lane: str = f"group-{lane}"
        self.trouble: KafkaError | None = None
        """The error of the last request to the coordinator; None if the coordinator has responded."""
        self.overdue: bool = False
        """Whether the member has left the group because poll() was not called in time."""
        self.rebalancing_since: float | None = None
        """When the rebalance in progress began; None if there is none."""
        self._join_lane = f"join-{lane}"
        self._cluster, self._settings, self._execute, self._polls = cluster, machine.settings, execute, polls
        self._clock = cluster.runtime.now
        self._waiting: dict[anyio.Event, Callable[[], bool]] = {}
        self._requests: dict[CoordinatorRequest, anyio.CancelScope] = {}
        self._working = False
        self._polled, self._polled_at = (-1, False), self._clock()
        self._leave_by: Deadline | None = None
        self._refusals = cluster.backoff()
        self._next_check = 0.0
        self._coordinator: Node | None = None
        self._background = _make_background(cluster, self.machine) if heartbeat_thread else None
        self._worker = Worker(self._step, self.notify)

    async def run(self) -> None:
        """Drive the member until :meth:`stop`."""
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
        """Whether the driver was stopped."""
        return self._worker.ended.is_set()

    def replace(self, machine: Membership) -> None:
        """Drive another machine from now on, since this one is outside its group."""
        self.machine = machine
        self._log = MemberLog(machine, self._clock, self._cluster.config.client_id)
        if self._background is not None:
            self._background.machine = machine

    def request_rejoin(self, reason: str) -> None:
        """Join or rejoin the group; see :meth:`Membership.request_rejoin`."""
        if self.machine.state is GroupState.OUTSIDE and not self.overdue:
            self._polled_at = self._clock()  # the time outside of the group does not count
        self.machine.request_rejoin(reason)
        self._worker.wake()

    def commit_refused(self, group: GroupMetadata, error: BrokerError) -> None:
        """Pass on the error of a commit under ``group``; see :meth:`Membership.commit_refused`."""
        self.machine.commit_refused(group, error, self._clock())
        self._worker.wake()

    def explained(self, group: GroupMetadata, error: BrokerError) -> BrokerError:
        """Return the error of a commit under ``group`` as it concerns this member.

        FENCED_INSTANCE_ID says that another member id has the ``group_instance_id``. If that is this member's own new
        id, since it has rejoined or is about to, ``group`` has ended, and no other consumer has the name.
        """
        machine = self.machine
        if not isinstance(error, FencedInstanceId) or isinstance(machine.error, FencedInstanceId):
            return error
        if group.member_id == machine.group.member_id:
            return error
        return broker_error(ErrorCode.UNKNOWN_MEMBER_ID, f"a commit of group {group.group_id!r} under its former id")

    @property
    def fetching_group(self) -> GroupMetadata | None:
        """The membership under which offsets are fetched; None outside of a consumer group (KIP-848)."""
        machine = self.machine
        return machine.group if machine.is_member and machine.is_in_consumer_group else None

    async def wait_for_heartbeat(self, group: GroupMetadata, error: BrokerError, deadline: Deadline) -> None:
        """Send a heartbeat after an OffsetFetch under ``group`` was refused, and wait for its result."""
        self.commit_refused(group, error)
        with anyio.move_on_after(deadline.left(self._clock())):
            await self.until(lambda: self.machine.group != group or not self.machine.is_rebalancing)

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
        if self.machine.state is GroupState.FAILED and self.machine.task is not None:
            return  # this poll raises the error, once the partitions are lost; the next one rejoins
        self.overdue = False
        self._polled_at = self._clock()
        if self.machine.state is GroupState.FAILED:
            self.machine.back_off(self._clock(), self._refusals.next())
        self.request_rejoin("poll() was called again")
        if self.machine.state is GroupState.FAILED and self.machine.error is not None:
            raise copy_for_reraise(self.machine.error)

    async def leave(self, reason: str, deadline: Deadline, *, stays: bool | None = None) -> None:
        """Leave the group, within the deadline; see :meth:`Membership.leave`."""
        self._leave_by, self.overdue = deadline, False
        self.machine.leave(reason, stays=stays)
        heartbeats = [scope for request, scope in self._requests.items() if request.kind is RequestKind.HEARTBEAT]
        if heartbeats:
            # A coordinator that waits for replicas delays all requests on this connection.
            for scope in heartbeats:
                scope.cancel()
            await self._cluster.brokers.close_lanes(self.lane)
        self._worker.wake()
        try:
            with anyio.move_on_after(deadline.left(self._clock())):
                await self.until(lambda: self.machine.state is GroupState.OUTSIDE)
        finally:
            self._leave_by = None  # later leaves, as after a poll timeout, have deadlines of their own

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until ``reached`` returns True; it is called again at each :meth:`notify`, and when requests are due."""
        while not (reached() or self._worker.ended.is_set()):
            changed = anyio.Event()
            self._waiting[changed] = reached
            try:
                await changed.wait()
            finally:
                del self._waiting[changed]

    def notify(self) -> None:
        """Check the conditions of :meth:`until` again, and wake only the tasks whose condition holds."""
        for changed, reached in self._waiting.items():
            if reached() or self._worker.ended.is_set():
                changed.set()

    # --- what is due -------------------------------------------------------------------------------------

    def _step(self, tasks: TaskGroup) -> float | None:
        now, machine = self._clock(), self.machine
        self.notify()
        if machine.state is GroupState.STABLE:
            self._refusals.reset()
        if not machine.is_rebalancing and machine.task is None:
            self.rebalancing_since = None
        elif self.rebalancing_since is None:
            self.rebalancing_since = now
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
        waits += [machine.wait(now), self._check_coordinator(tasks, now)]
        return min((wait for wait in waits if wait is not None), default=None)

    def _check_poll_interval(self, now: float) -> float | None:
        """Leave the group if poll() was not called in time; return the seconds left, or None outside the group."""
        polls = self._polls()
        if polls[1] or polls != self._polled:
            self._polled, self._polled_at = polls, now
        if self.machine.state in (GroupState.OUTSIDE, GroupState.LEAVING, GroupState.FAILED):
            return None
        limit = self._settings.max_poll_interval
        left = self._polled_at + limit - now
        if left > 0:  # the same value decides and is waited for, so rounding cannot lead to endless waits of 0 s
            return left
        self.overdue = True
        reason = f"poll() was not called for {limit:g} s (max_poll_interval_ms)"
        message = "leaving group %(group)r: %(reason)s; the consumer rejoins on the next poll"
        _log.warning(message, group=self._settings.group_id, reason=reason)
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
            except Exception as error:
                refused = as_kafka_error(error, f"{request.name} of {self._settings.named}")
        del self._requests[request]
        if scope.cancelled_caught and not request.kind.is_slow:
            pass  # the request is obsolete, and the coordinator has not responded
        elif scope.cancelled_caught:
            # A later request on this connection would wait for this response.
            await self._cluster.brokers.close_lanes(self._lane_of(request.kind))
            moved = RequestTimeout(f"{request.name} of {self._settings.named}: another broker has become coordinator")
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
            if self._background is not None:
                self._background.take_reports(self._clock())
            machine.answered(request, answer, self._clock())
        self.notify()
        self._worker.wake()

    async def _ask_newest(self, request: CoordinatorRequest) -> Any:
        deadline = self._deadline(request.kind)

        async def in_form(message: Request[Any], wanted: Versions) -> Any:
            attempts = chain([message], repeat(request.again or message))
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
                newer=partial(next, attempts),
                patience=_LEAVE_TIMEOUT if request.kind is RequestKind.LEAVE else math.inf,
            )

        return await in_newest_form(request.forms, in_form)

    def _lane_of(self, kind: RequestKind) -> str:
        return self._join_lane if kind.is_slow else self.lane

    def _check(self, answer: Any) -> None:
        """Raise the response's error if it is retriable, to cause a retry; ``machine`` handles all other errors."""
        code = answer.error_code
        if code != ErrorCode.NONE:
            error = broker_error(code, self._settings.named)
            if error.retriable:
                raise error

    def on_coordinator_result(self, error: KafkaError | None) -> None:
        """Record the error of a request to the coordinator; None if the coordinator has responded."""
        self.trouble = error
        self.notify()

    def _deadline(self, kind: RequestKind) -> Deadline:
        settings = self._settings
        if kind is RequestKind.LEAVE and self._leave_by is not None:
            return self._leave_by
        if kind.is_slow:
            return self._cluster.deadline(settings.rebalance_timeout_ms / 1000 + _JOIN_MARGIN)
        return self._cluster.deadline(self.machine.request_timeout)

    def _check_coordinator(self, tasks: TaskGroup, now: float) -> float | None:
        """Check during a JoinGroup, which may take minutes, whether another broker has become coordinator.

        Return the seconds until the next check.
        """
        if not any(request.kind.is_slow for request in self._requests):
            self._next_check = now + self.machine.request_timeout
            # A JoinGroup or SyncGroup of this step begins after the step.
            return None if self.machine.state is GroupState.OUTSIDE else self._next_check - now
        if now >= self._next_check:
            self._next_check = now + self.machine.request_timeout
            tasks.start_soon(self._find_coordinator)
        return self._next_check - now

    async def _find_coordinator(self) -> None:
        kind, group_id = CoordinatorType.GROUP, self._settings.group_id
        # If the last lookup has found no coordinator, compare with the one found before.
        before = self._coordinator = self._cluster.known_coordinator(kind, group_id) or self._coordinator
        if before is not None:  # otherwise the request in flight is looking for a coordinator already
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

    # --- what the member does ----------------------------------------------------------------------------

    async def _work(self) -> None:
        try:
            while (task := self.machine.task) is not None:
                machine = self.machine
                try:
                    await self._execute(task)
                except Exception as error:
                    if isinstance(task, LosePartitions):
                        raise
                    machine.task_failed(task, as_kafka_error(error, f"taking part in {self._settings.named}"))
                self.notify()
                self._worker.wake()
        finally:
            self._working = False


def _make_background(cluster: Cluster, machine: Membership) -> "BackgroundHeartbeats":
    from .background_heartbeats import BackgroundHeartbeats

    return BackgroundHeartbeats(cluster, machine)
