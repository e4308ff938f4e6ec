"""Keeps a membership while user code blocks the event loop: heartbeats from a loop on another thread, and a warning."""

import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from ..cluster.cluster import Cluster
from ..errors import UsageError
from ..event_log import EventLog
from ..loop_thread import LoopThread
from ..types import CoordinatorType
from .background_heartbeat_schedule import HeartbeatMember, HeartbeatReport
from .background_heartbeat_sender import HeartbeatSender
from .blocked_loop import BlockedLoop
from .membership import Membership

__all__ = ("BackgroundHeartbeats",)

_log = EventLog("aiokafkawire.group")


class BackgroundHeartbeats:
    """The thread that sends one member's heartbeats while the member's event loop is blocked.

    The membership driver calls :meth:`step` at each of its steps. The thread starts when the member first needs
    heartbeats. In a forked child, which has no such thread, no heartbeats are sent.
    """

    def __init__(self, cluster: Cluster, machine: Membership) -> None:
        self.machine: Membership = machine
        self._cluster = cluster
        self._reports: SimpleQueue[HeartbeatReport] = SimpleQueue()
        self._sender: HeartbeatSender | None = None
        self._loop = LoopThread("aiokafkawire-heartbeat")
        self._member: HeartbeatMember | None = None
        self._confirmed_at: float | None = None
        self._polled_at = float("-inf")
        self._closed = False
        self.lag: BlockedLoop = BlockedLoop(machine.settings.heartbeat_interval)
        """A watch that logs the code that blocks the member's event loop; the membership driver runs it."""

    def step(self, now: float, polled_at: float) -> None:
        """Pass the member's state to the thread, and the thread's reports to the machine."""
        machine = self.machine
        if self._sender is not None:
            if polled_at != self._polled_at:
                self._post(self._sender.record_poll)
            if machine.confirmed_at != self._confirmed_at:
                self._post(self._sender.record_heartbeat)
        self.take_reports(now)
        self._polled_at, self._confirmed_at = polled_at, machine.confirmed_at
        member = self.member()
        if member != self._member:
            self._member = member
            if self._sender is None and member is not None and not self._closed:
                self._start()
            if self._sender is not None:
                self._post(self._sender.set_member, member)

    def member(self) -> HeartbeatMember | None:
        """Return the member that needs heartbeats, if there is one and its coordinator is known."""
        machine, settings = self.machine, self.machine.settings
        node = self._cluster.known_coordinator(CoordinatorType.GROUP, settings.group_id)
        if node is None or not machine.sends_heartbeats:
            return None
        known = self._cluster.brokers.known(node.address)
        return HeartbeatMember(
            broker=node.address,
            request=machine.thread_heartbeat(),
            group_id=settings.group_id,
            generation_id=machine.group.generation_id,
            member_id=machine.group.member_id,
            group_instance_id=settings.group_instance_id,
            interval=machine.heartbeat_interval,
            request_timeout=machine.request_timeout,
            release=known.release if known is not None else None,
        )

    def close(self) -> None:
        """Stop the thread; wait for its end at most a second, as it may be resolving a name. May be called again."""
        self._closed, self._sender = True, None
        self._loop.stop(within=1.0)

    def take_reports(self, now: float) -> None:
        """Pass the thread's reports to the machine.

        The driver does so before each response to a heartbeat of the machine: after a block of the event loop, the
        response may be older than a report, and its assignment outdated.
        """
        while True:
            try:
                report = self._reports.get_nowait()
            except Empty:
                return
            # A heartbeat of the epoch before may have been accepted, and its response then has the current epoch.
            if report.member != self._member and report.epoch is None:
                continue
            if report.code is not None:
                # The loop may have been blocked since the response, which confirms the membership as of its arrival.
                ago = max(0.0, time.monotonic() - report.at)
                self.machine.on_thread_heartbeat(report.member.group, report.code, now - ago, report.epoch)
            else:
                self._cluster.invalidate_coordinator(CoordinatorType.GROUP, self.machine.settings.group_id)

    def _start(self) -> None:
        try:
            self._loop.start()
        except RuntimeError as cause:  # too many threads, or the interpreter is shutting down
            self._closed = True
            message = "group %(group)r: cannot start a thread for heartbeats, continuing without it: %(error)s"
            _log.warning(message, group=self.machine.settings.group_id, error=cause)
            return
        self._sender = self._loop.call_sync(self._make_sender)
        self._loop.begin(self._sender.run)

    def _make_sender(self) -> HeartbeatSender:
        """Make the sender on the loop that runs it."""
        return HeartbeatSender(
            self._cluster.config,
            self._cluster.brokers.dial_address,
            self._reports.put,
            max_poll_interval=self.machine.settings.max_poll_interval,
        )

    def _post(self, function: Callable[..., object], *args: object) -> None:
        try:
            self._loop.post(function, *args)
        except UsageError:  # a forked child, or the thread has ended
            self._sender = None
