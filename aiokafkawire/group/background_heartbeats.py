"""Heartbeats from a thread while user code blocks the event loop, and warnings about that code."""

import time

from ..cluster.cluster import Cluster
from ..types import CoordinatorType
from .blocking_connection import BlockingConnector
from .classic import ClassicMembership
from .heartbeat_schedule import HeartbeatMember, HeartbeatResult
from .heartbeat_thread import HeartbeatThread
from .loop_lag import LoopLag

__all__ = ("BackgroundHeartbeats",)


class BackgroundHeartbeats:
    """The background threads of one membership. :class:`MembershipManager` calls :meth:`step`."""

    def __init__(self, cluster: Cluster, machine: ClassicMembership) -> None:
        settings = machine.settings
        self._cluster, self._machine = cluster, machine
        connector = BlockingConnector(cluster.config, cluster.brokers.dialled)
        self._thread = HeartbeatThread(
            max_poll_interval=settings.rebalance_timeout_ms / 1000, connect=connector.connect, log_in=connector.log_in
        )
        self._heard_at: float | None = None
        self._polled_at = float("-inf")
        self.lag: LoopLag = LoopLag(settings.heartbeat_interval)
        """A task that watches the event loop; run it as long as there is a membership."""

    def step(self, now: float, polled_at: float) -> None:
        """Give the member to the heartbeat thread, and the thread's results to the membership."""
        machine, thread = self._machine, self._thread
        if polled_at != self._polled_at:
            self._polled_at = polled_at
            thread.polled()
        if machine.confirmed_at != self._heard_at:
            thread.beat()
        for report in thread.reports():
            if report.result is HeartbeatResult.ANSWER:
                # The loop may have been blocked since the report: date it back.
                ago = max(0.0, time.monotonic() - report.at)
                machine.on_thread_heartbeat(report.member.group, report.code, now - ago)
            elif report.error is not None:
                self._cluster.doubt_coordinator(CoordinatorType.GROUP, machine.settings.group_id)
        self._heard_at = machine.confirmed_at
        thread.keep(self._member())

    def _member(self) -> HeartbeatMember | None:
        machine, settings = self._machine, self._machine.settings
        node = self._cluster.known_coordinator(CoordinatorType.GROUP, settings.group_id)
        if node is None or not machine.sends_heartbeats:
            return None
        known = self._cluster.brokers.known(node.address)
        return HeartbeatMember(
            broker=node.address,
            group_id=settings.group_id,
            generation_id=machine.generation,
            member_id=machine.member_id,
            group_instance_id=settings.group_instance_id,
            interval=settings.heartbeat_interval,
            request_timeout=max(settings.heartbeat_interval, settings.session_timeout_ms / 1000 / 3),
            client_id=self._cluster.config.client_id,
            release=known.release if known is not None else None,
        )

    def close(self) -> None:
        """End the thread; blocks for up to a second."""
        self._thread.close()
