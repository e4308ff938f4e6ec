"""What keeps a membership while user code blocks the event loop: a thread for heartbeats, and a look at what blocks."""

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
    """The threads of one membership; its driver calls at every step."""

    def __init__(self, cluster: Cluster, machine: ClassicMembership) -> None:
        settings = machine.settings
        self._cluster, self._machine = cluster, machine
        way = BlockingConnector(cluster.config, cluster.brokers.dial_address)
        self._thread = HeartbeatThread(
            max_poll_interval=settings.rebalance_timeout_ms / 1000, connect=way.connect, log_in=way.log_in
        )
        self._heard_at: float | None = None
        self._polled_at = float("-inf")
        self.lag: LoopLag = LoopLag(settings.heartbeat_interval)
        """To be run while there is a membership to lose."""

    def step(self, now: float, polled_at: float) -> None:
        """Tell the thread whom to keep, and the machine what the thread has heard."""
        machine, thread = self._machine, self._thread
        if polled_at != self._polled_at:
            self._polled_at = polled_at
            thread.polled()
        if machine.heard_at != self._heard_at:
            thread.beat()
        for report in thread.reports():
            if report.heard is HeartbeatResult.ANSWER:
                # The loop may have been blocked since: what was heard then is no sign of life of now.
                ago = max(0.0, time.monotonic() - report.at)
                machine.heard_beside(report.member.group, report.code, now - ago)
            elif report.error is not None:
                self._cluster.invalidate_coordinator(CoordinatorType.GROUP, machine.settings.group_id)
        self._heard_at = machine.heard_at
        thread.keep(self._member())

    def _member(self) -> HeartbeatMember | None:
        machine, settings = self._machine, self._machine.settings
        node = self._cluster.known_coordinator(CoordinatorType.GROUP, settings.group_id)
        if node is None or not machine.beats:
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
        """End the thread. It may take a second, on a thread of its own."""
        self._thread.close()
