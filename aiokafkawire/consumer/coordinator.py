"""A consumer's coordinator: subscribes, executes the tasks of the membership, and leaves the group."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, Protocol

import anyio

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.retry import Deadline
from ..config import ConsumerConfig
from ..errors import BrokerError, ConnectionLost, ErrorCode, UnsupportedVersion, UsageError, broker_error
from ..event_log import EventLog
from ..group.assignors import Assignor
from ..group.membership import (
    GroupState,
    LosePartitions,
    MemberSettings,
    Membership,
    PrepareRejoin,
    Task,
    loses_partitions,
)
from ..group.membership_driver import MembershipDriver
from .auto_commit import AutoCommit
from .fetcher import Fetcher
from .offset_commits import OffsetCommitter
from .partition_changes import PartitionChanges
from .record_iteration import RecordIteration
from .subscribed_topics import SubscribedTopics
from .subscription_state import SubscriptionState
from .topic_subscription import RebalancePatience, TopicSubscription

__all__ = ("ConsumerCoordinator",)

_log = EventLog("aiokafkawire.group")

_GRACE: Final = 0.4
"""Seconds that leaving waits for an unreachable coordinator, which may only be moving to another broker; and seconds
that it waits for the response to a last LeaveGroup."""
_FOR_LISTENERS: Final = 0.8
_REFUSED: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION)
"""The errors of topics that a group assigns to nobody, however long its members wait."""


class GroupTasks(Protocol):
    """The tasks of a membership under one group protocol, and their executor."""

    @property
    def watched(self) -> tuple[str, ...]:
        """The topics that the member watches for the group."""

    @property
    def machine(self) -> Membership:
        """The state machine of the membership."""

    @property
    def protocol(self) -> Literal["classic", "consumer"]:
        """The group protocol."""

    def subscribe(self) -> None:
        """Take notice of another subscription."""

    def rejoin_reason(self, snapshot: Snapshot) -> str | None:
        """Return the reason for a rebalance after a change of the metadata, if there is one."""

    async def execute(self, task: Task) -> None:
        """Execute a task, and report its result to the machine; LosePartitions is left to the coordinator."""


class ConsumerCoordinator:
    """The coordinator of a consumer in a group: subscribes, applies assignments, revokes partitions, and leaves.

    The state machine ``machine`` has the current generation, and ``positions`` has the current assignment.

    Args:
        cluster: finds the group's coordinator.
        config: the consumer's settings.
        positions: the consumer's partitions.
        fetcher: is woken when the partitions change.
        iteration: shows whether the user polls and has finished its records, and raises errors to the user.
        commits: commits offsets on request.
        auto_commit: commits finished records before they are revoked; None to commit on request only.
        assignors: the assignors that the consumer supports in classic groups.
        lane: names the connections to the coordinator.
        patience: for how long a rebalance waits for this member; None for ``max_poll_interval_ms``.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: SubscriptionState,
        fetcher: Fetcher,
        iteration: RecordIteration[Any, Any],
        commits: OffsetCommitter,
        auto_commit: AutoCommit | None,
        assignors: Sequence[Assignor],
        lane: str,
        patience: RebalancePatience | None = None,
    ) -> None:
        self._cluster, self._report = cluster, iteration.report
        self.topics: SubscribedTopics = SubscribedTopics(cluster)
        self._config = config
        self._changes = PartitionChanges(
            cluster,
            positions,
            fetcher,
            self.topics,
            commits,
            auto_commit,
            iteration.report,
            None if patience is None else patience.for_user,
        )
        self._settings = _member_settings(cluster, config, patience)
        self._assignors, self._lane = assignors, f"group-{lane}"
        self._matches_on_brokers = config.group_protocol == "consumer"
        self._chooses = config.group_protocol == "auto"
        # Whether the protocol was just switched, so that the next join takes it as it is.
        self._switched = False
        self._tasks: GroupTasks = self._make_tasks("classic" if config.group_protocol == "classic" else "consumer")
        self.driver: MembershipDriver = MembershipDriver(
            cluster, self.machine, self._execute, lane, iteration.polls, heartbeat_thread=config.heartbeat_thread
        )
        iteration.on_release, iteration.on_poll = self.driver.notify, self.driver.on_poll
        commits.join(self.driver)
        if auto_commit is not None:
            auto_commit.driver = self.driver
        self._following = anyio.CancelScope()
        # The subscribed topics that the brokers refuse, with their errors.
        self._refused: Mapping[str, int] = {}

    @property
    def machine(self) -> Membership:
        """The state machine of the membership."""
        return self._tasks.machine

    # --- subscribing -----------------------------------------------------------------------------

    def open(self) -> None:
        """Start the background tasks; the consumer joins the group once there is a subscription."""
        self._cluster.owner.spawn(self.driver.run)
        self._cluster.owner.spawn(self._follow)
        self._cluster.owner.spawn(self._watch_losses)

    def subscribe(self, subscription: TopicSubscription) -> None:
        """Replace the subscription, and join or rejoin the group if it has changed."""
        if subscription.server_pattern is not None and not self._matches_on_brokers:
            raise UsageError("a SubscriptionPattern needs group_protocol='consumer'; otherwise subscribe(pattern=...)")
        is_first = self.topics.subscription is None
        if self.topics.replace(subscription):
            self._tasks.subscribe()
            self.driver.request_rejoin(f"subscribed to {subscription}" if is_first else "the subscription has changed")

    def enforce_rebalance(self, reason: str) -> None:
        """Rebalance the group; the coordinator of a consumer group does so by itself when it has to."""
        if self._tasks.protocol == "consumer":
            message = "group %(group)r: no rebalance is enforced (%(reason)s): the coordinator of its protocol decides"
            _log.warning(message, group=self._settings.group_id, reason=reason)
        else:
            self.driver.request_rejoin(reason)

    async def close(self, deadline: Deadline, *, stays: bool | None = None) -> None:
        """Revoke all partitions and leave the group, within the deadline; see :meth:`Membership.leave`."""
        self._following.cancel()
        self.topics.stop()
        try:
            await self.leave("the consumer was closed", deadline, stays=stays)
        finally:
            await self.driver.stop()

    async def unsubscribe(self, deadline: Deadline) -> None:
        """Revoke all partitions, and leave the group until there is another subscription."""
        before = self.topics.subscription
        await self.leave("the consumer has unsubscribed", deadline)
        if self.topics.subscription is before:
            self.topics.replace(None)
        else:
            self.driver.request_rejoin("subscribed while it was leaving")
        self.driver.notify()

    async def leave(self, reason: str, deadline: Deadline, *, stays: bool | None = None) -> None:
        """Revoke all partitions and leave the group; do not wait for an unreachable coordinator."""
        self._changes.leaving = True
        self.driver.notify()
        try:
            with anyio.move_on_after(deadline.left(self._cluster.runtime.now())) as waiting:
                with suppress(UsageError):  # the client is closed, and starts no more tasks
                    self._cluster.owner.spawn(self._watch_unreachable, waiting)
                try:
                    # The limit leaves time for the LeaveGroup if a listener hangs.
                    with anyio.move_on_after(deadline.left(self._cluster.runtime.now()) * _FOR_LISTENERS):
                        async with self._changes.lock:
                            if self.machine.is_member:
                                await self._changes.revoke(self._changes.assigned, reason=reason)
                            elif self._changes.assigned:
                                await self._changes.lose(reason)
                finally:
                    self._changes.abandon(reason)
                await self.driver.leave(reason, deadline, stays=stays)
            if self.machine.state not in (GroupState.LEAVING, GroupState.OUTSIDE):
                # A silent coordinator may still read a LeaveGroup: without, the group waits for the session timeout.
                grace = 0.0 if _is_unreachable(self.driver.trouble) else _GRACE
                with anyio.move_on_after(min(grace, deadline.left(self._cluster.runtime.now()))):
                    await self.driver.leave(reason, deadline, stays=stays)
        finally:
            self._changes.leaving = False
            self.driver.notify()

    async def _watch_unreachable(self, waiting: anyio.CancelScope) -> None:
        driver = self.driver
        while self._changes.leaving and not driver.has_ended:
            await driver.until(lambda: driver.trouble is not None or not self._changes.leaving)
            with anyio.move_on_after(_GRACE) as unreachable:
                await driver.until(lambda: driver.trouble is None or not self._changes.leaving)
            if unreachable.cancelled_caught:
                waiting.cancel()
                return

    # --- the tasks of the membership ---------------------------------------------------------------------

    async def _execute(self, task: Task) -> None:
        if isinstance(task, LosePartitions):
            await self._lose_all(task)
        elif isinstance(task, PrepareRejoin) and self._chooses and not self.machine.is_member:
            protocol = self._tasks.protocol if self._switched else await self._choose_protocol()
            self._switched = False
            if protocol == self._tasks.protocol:
                await self._tasks.execute(task)
            elif task is self.machine.task:
                if task.lost:
                    async with self._changes.lock:
                        await self._changes.lose(task.reason)
                self._switch_to(protocol, task.reason)
        else:
            await self._tasks.execute(task)

    async def _lose_all(self, task: LosePartitions) -> None:
        """Drop all partitions, which other members may have already, and report the membership's error, if any."""
        error, machine = self.machine.error, self.machine
        falls_back = self._chooses and isinstance(error, UnsupportedVersion) and self._tasks.protocol == "consumer"
        try:
            async with self._changes.lock:
                await self._changes.lose(task.reason)
        finally:
            machine.task_done(task)
            if error is not None and not falls_back:
                # Not before: the next poll() rejoins only once the partitions are lost.
                self._report(error)
        if falls_back and machine.state is GroupState.FAILED:
            self._switch_to("classic", str(error))

    async def _watch_losses(self) -> None:
        """Return no more records once the membership has ended, even if a listener delays the loss of partitions."""

        def has_ended() -> bool:
            return loses_partitions(self.machine.task)

        while not self.driver.has_ended:
            await self.driver.until(has_ended)
            self._changes.withhold_all()
            await self.driver.until(lambda: not has_ended())

    # --- the group protocol --------------------------------------------------------------------------------

    def _make_tasks(self, protocol: Literal["classic", "consumer"]) -> GroupTasks:
        self._changes.commit_timeout = self._commit_timeout(protocol)
        if protocol == "classic":
            from .classic_tasks import ClassicTasks

            return ClassicTasks(self._cluster, self._settings, self.topics, self._changes, self._assignors, self._lane)
        from .consumer_group_tasks import ConsumerGroupTasks

        return ConsumerGroupTasks(self._cluster, self._settings, self.topics, self._changes)

    def _commit_timeout(self, protocol: Literal["classic", "consumer"]) -> float:
        """Return the seconds that a commit before a revocation may take, so that the membership outlasts the commit."""
        if protocol == "classic":
            return self._config.session_timeout_ms / 1000
        # The coordinator waits for a revocation for max_poll_interval_ms, and heartbeats go on during that.
        return min(self._cluster.config.default_api_timeout_ms, self._config.max_poll_interval_ms / 2) / 1000

    async def _choose_protocol(self) -> Literal["classic", "consumer"]:
        from .protocol_choice import choose_protocol

        return await choose_protocol(self._cluster, self._settings.group_id, self._lane)

    def _switch_to(self, protocol: Literal["classic", "consumer"], reason: str) -> None:
        """Join the group under another protocol."""
        message = "group %(group)r: joining with the %(protocol)s protocol: %(reason)s"
        _log.info(message, group=self._settings.group_id, protocol=protocol, reason=reason)
        self._tasks, self._switched = self._make_tasks(protocol), True
        self._tasks.subscribe()
        self.driver.replace(self.machine)
        self.driver.request_rejoin(reason)

    async def _follow(self) -> None:
        """Rejoin when the subscribed topics change or, as the leader, when any member's topics or partitions change."""
        metadata = self._cluster.metadata
        snapshot = metadata.snapshot
        with self._following, metadata.following(lambda: self.topics.named, lambda: self._tasks.watched):
            while True:
                snapshot = await metadata.wait_for_update(snapshot)
                metadata.track_topics(self._tasks.watched)
                self._report_refused(snapshot)
                reason = self._tasks.rejoin_reason(snapshot)
                if reason is not None and not self._changes.leaving:
                    self.driver.request_rejoin(reason)
                else:
                    self.driver.wake()

    def _report_refused(self, snapshot: Snapshot) -> None:
        """Raise the error of each subscribed topic that the brokers refuse from now on.

        The coordinator of a consumer group does so by itself.
        """
        named = self.topics.named if self._tasks.protocol == "classic" else ()
        errors = {topic: snapshot.topic_error(topic) for topic in named}
        refused = {topic: code for topic, code in errors.items() if code in _REFUSED}
        for topic, code in refused.items():
            if topic not in self._refused:
                self._report(broker_error(code, f"topic {topic!r}"))
        self._refused = refused


def _member_settings(cluster: Cluster, config: ConsumerConfig, patience: RebalancePatience | None) -> MemberSettings:
    assert config.group_id is not None  # a consumer without group_id has no coordinator
    return MemberSettings(
        group_id=config.group_id,
        group_instance_id=config.group_instance_id,
        session_timeout_ms=config.session_timeout_ms,
        rebalance_timeout_ms=config.max_poll_interval_ms if patience is None else patience.timeout_ms,
        max_poll_interval_ms=config.max_poll_interval_ms,
        heartbeat_interval=config.heartbeat_interval_ms / 1000,
        retry_backoff=cluster.config.retry_backoff_ms / 1000,
        rack=config.client_rack or None,
        remote_assignor=config.group_remote_assignor,
    )


def _is_unreachable(error: BaseException | None) -> bool:
    """Return whether the error, or a cause of it, is a lost connection or an error that a broker returned."""
    while error is not None:
        if isinstance(error, ConnectionLost | BrokerError):
            return True
        error = error.__cause__
    return False
