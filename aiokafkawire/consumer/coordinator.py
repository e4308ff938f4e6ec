"""A consumer's coordinator: applies assignments, and revokes partitions after committing their finished records."""

import inspect
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import anyio

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.retry import Deadline
from ..config import ConsumerConfig
from ..errors import BrokerError, ConnectionLost, KafkaError, RequestTimeout, UsageError
from ..group.assignors import Assignor
from ..group.classic_membership import ClassicMembership
from ..group.client_side_assignment import ClientSideAssignment, partitions_of
from ..group.consumer_protocol import Partitions
from ..group.membership import (
    ApplyAssignment,
    Assign,
    GroupState,
    LosePartitions,
    MemberSettings,
    PrepareRejoin,
    Task,
)
from ..group.membership_driver import MembershipDriver
from ..types import TopicPartition
from .auto_commit import AutoCommit
from .fetcher import Fetcher
from .offset_commits import OffsetCommitter
from .record_iteration import RecordIteration
from .subscription_state import SubscriptionState, format_partitions
from .topic_subscription import Listener, RebalanceListeners, TopicSubscription

__all__ = ("ConsumerCoordinator",)

_log = logging.getLogger("aiokafkawire.group")

_GRACE: Final = 0.4
"""Seconds that leaving waits for an unreachable coordinator, which may only be moving to another broker; and seconds
that it waits for the response to a last LeaveGroup."""
_FOR_LISTENERS: Final = 0.8
_TOPICS_KNOWN_WITHIN: Final = 10.0
"""Seconds that a leader waits for the metadata of topics, and for the group's current assignment."""


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
        assignors: the assignors that the consumer supports.
        lane: names the connections to the coordinator.
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
    ) -> None:
        assert config.group_id is not None  # a consumer without group_id has no coordinator
        settings = MemberSettings(
            group_id=config.group_id,
            group_instance_id=config.group_instance_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            heartbeat_interval=config.heartbeat_interval_ms / 1000,
            retry_backoff=cluster.config.retry_backoff_ms / 1000,
        )
        self.machine: ClassicMembership = ClassicMembership(settings)
        self.driver: MembershipDriver = MembershipDriver(
            cluster, self.machine, self._execute, lane, iteration.polls, heartbeat_thread=config.heartbeat_thread
        )
        self.subscription: TopicSubscription | None = None
        self._assignors = ClientSideAssignment(assignors, config.client_rack or None)
        # The subscribed topics, or those that match the subscribed pattern, as of the last JoinGroup.
        self._topics: tuple[str, ...] = ()
        self._cluster, self._config, self._positions, self._fetcher = cluster, config, positions, fetcher
        self._commits, self._auto_commit, self._report = commits, auto_commit, iteration.report
        iteration.on_release, iteration.on_poll = self.driver.notify, self.driver.on_poll
        commits.join(self.driver)
        if auto_commit is not None:
            auto_commit.driver = self.driver
        self._following = anyio.CancelScope()
        self._watches_all = False
        # Held during a change of the assignment.
        self._lock = anyio.Lock()
        self._leaving = False

    @property
    def _named(self) -> str:
        return self.machine.settings.named

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that the consumer subscribes to by name; empty with a pattern."""
        return self.subscription.topics if self.subscription is not None else ()

    # --- subscribing -----------------------------------------------------------------------------

    def open(self) -> None:
        """Start the background tasks; the consumer joins the group once there is a subscription."""
        self._cluster.owner.spawn(self.driver.run)
        self._cluster.owner.spawn(self._follow)

    def subscribe(self, subscription: TopicSubscription) -> None:
        """Replace the subscription, and join or rejoin the group if it has changed."""
        before, self.subscription = self.subscription, subscription
        if subscription.pattern is not None and not self._watches_all:
            self._watches_all = True
            self._cluster.owner.spawn(self._watch_all_topics)
        self._cluster.metadata.track_topics(subscription.topics)
        if any(topic not in self._cluster.metadata.snapshot.topics for topic in subscription.topics):
            # To know soon which of the topics do not exist.
            self._cluster.metadata.mark_stale(self._cluster.metadata.snapshot)
        if before is None or before.topics != subscription.topics or before.pattern != subscription.pattern:
            self.driver.request_rejoin(
                f"subscribed to {subscription}" if before is None else "the subscription has changed"
            )

    async def close(self, deadline: Deadline) -> None:
        """Revoke all partitions and leave the group, within the deadline."""
        self._following.cancel()
        try:
            await self.leave("the consumer was closed", deadline)
        finally:
            await self.driver.stop()

    async def unsubscribe(self, deadline: Deadline) -> None:
        """Revoke all partitions, and leave the group until there is another subscription."""
        await self.leave("the consumer has unsubscribed", deadline)
        self.subscription = None
        self._topics = ()
        self.driver.notify()

    async def leave(self, reason: str, deadline: Deadline) -> None:
        """Revoke all partitions and leave the group; do not wait for an unreachable coordinator."""
        self._leaving = True
        self.driver.notify()
        try:
            with anyio.move_on_after(deadline.left(self._cluster.runtime.now())) as waiting:
                with suppress(UsageError):  # the client is closed, and starts no more tasks
                    self._cluster.owner.spawn(self._watch_unreachable, waiting)
                # The limit leaves time for the LeaveGroup if a listener hangs.
                with anyio.move_on_after(deadline.left(self._cluster.runtime.now()) * _FOR_LISTENERS):
                    async with self._lock:
                        if self.machine.is_member:
                            await self._revoke(self._positions.assigned, reason=reason)
                await self.driver.leave(reason, deadline)
            if self.machine.state not in (GroupState.LEAVING, GroupState.OUTSIDE):
                # A silent coordinator may still read a LeaveGroup: without, the group waits for the session timeout.
                grace = 0.0 if _is_unreachable(self.driver.trouble) else _GRACE
                with anyio.move_on_after(min(grace, deadline.left(self._cluster.runtime.now()))):
                    await self.driver.leave(reason, deadline)
        finally:
            self._leaving = False
            self.driver.notify()

    async def _watch_unreachable(self, waiting: anyio.CancelScope) -> None:
        driver = self.driver
        while self._leaving and not driver.has_ended:
            await driver.until(lambda: driver.trouble is not None or not self._leaving)
            with anyio.move_on_after(_GRACE) as unreachable:
                await driver.until(lambda: driver.trouble is None or not self._leaving)
            if unreachable.cancelled_caught:
                waiting.cancel()
                return

    # --- the tasks of the membership ---------------------------------------------------------------------

    async def _execute(self, task: Task) -> None:
        machine = self.machine
        if isinstance(task, PrepareRejoin):
            machine.prepared(task, await self._prepare(task))
        elif isinstance(task, Assign):
            machine.assigned(task, await self._assign(task))
        elif isinstance(task, ApplyAssignment):
            machine.task_done(task, rejoin=await self._apply_assignment(task))
        else:
            try:
                await self._lose_all(task)
            finally:
                machine.task_done(task)

    async def _prepare(self, task: PrepareRejoin) -> Sequence[tuple[str, bytes]]:
        """Revoke the partitions that a member may not keep during a rejoin, after the user has finished their records.

        Return the protocols to join with, the preferred one first.
        """
        async with self._lock:
            self._choose_topics()
            if task.lost:
                await self._lose(self._positions.assigned, task.reason)
            elif self._assignors.is_cooperative:
                unsubscribed = [at for at in self._positions.assigned if at.topic not in self._topics]
                await self._revoke(unsubscribed, task=task)
            else:
                await self._revoke(self._positions.assigned, task=task)
            self._choose_topics()
            owned, generation = self._positions.assigned, self.machine.assigned_generation
            return self._assignors.protocols(self._topics, owned, generation)

    async def _assign(self, task: Assign) -> Mapping[str, bytes]:
        """Return each member's encoded assignment, by member id; empty if the task says that it is ``decided``."""
        subscriptions = self._assignors.read(task.members)
        topics = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
        await self._fetch_metadata(topics)
        partitions = partitions_of(self._cluster.metadata.snapshot, topics)
        if task.decided:
            self._assignors.watch(subscriptions, await self._assigned_of(partitions))
            return {}
        return self._assignors.assign(task.protocol, subscriptions, partitions)

    async def _assigned_of(self, partitions: Partitions) -> Partitions:
        """Return those of ``partitions`` that are assigned in the group now; all of them if that is unknown.

        The last leader may have used older metadata, and so may not have assigned the newest partitions.
        """
        from ..group.described_assignment import assigned_in  # rarely needed

        group_id, deadline = self.machine.settings.group_id, self._cluster.deadline(_TOPICS_KNOWN_WITHIN)
        try:
            assigned = await assigned_in(self._cluster, group_id, deadline, self.driver.lane)
        except KafkaError as error:
            _log.warning("leading group %r without its current assignment, DescribeGroups failed: %s", group_id, error)
            return partitions
        if assigned is None:
            return partitions
        kept = {
            topic: [info for info in infos if TopicPartition(topic, info.partition) in assigned]
            for topic, infos in partitions.items()
        }
        return {topic: infos for topic, infos in kept.items() if infos}

    async def _apply_assignment(self, task: ApplyAssignment) -> str | None:
        """Revoke the partitions that move to other members, and start reading the added ones.

        Return the reason to rejoin, if there is one.
        """
        async with self._lock:
            assignment = self._assignors.decode(task)
            assigned = tuple(at for at in assignment.partitions if at.topic in self._topics)
            revoked, added = self._positions.changes_to(assigned)
            await self._revoke(revoked, task=task)
            if task is not self.machine.task:
                return None
            self._assignors.on_assignment(task, assignment)
            self._positions.add(added, withheld=True)
            message, count = "assigned in %s, generation %d: %s; %d partitions in all", len(self._positions.assigned)
            _log.info(message, self._named, task.generation, format_partitions(added), count)
            if self._auto_commit is not None:
                self._auto_commit.on_assigned()
            await self._start_reading(added)
        return (
            "partitions were revoked for other members"
            if revoked
            else self._rejoin_reason(self._cluster.metadata.snapshot)
        )

    async def _start_reading(self, partitions: Sequence[TopicPartition]) -> None:
        """Call on_assigned for withheld partitions, and then let their records be handed out."""
        # Look up the positions, but withhold the records until the listener has returned, since it may seek.
        self._fetcher.wake()
        try:
            await self._call_listener(self._listeners.on_assigned, partitions)
        finally:
            for partition in partitions:
                state = self._positions.get(partition)
                if state is not None:
                    self._positions.withhold(state, False)
            self._fetcher.wake()
            self._fetcher.notify()

    async def _lose_all(self, task: LosePartitions) -> None:
        """Drop all partitions, which other members may own already; report the membership's error, if there is one."""
        if self.machine.error is not None:
            self._report(self.machine.error)
        async with self._lock:
            await self._lose(self._positions.assigned, task.reason)

    async def _lose(self, partitions: Sequence[TopicPartition], reason: str) -> None:
        """Stop reading partitions that other members may read already, and call the user's listener."""
        self._drop(partitions, reason, lost=True)
        listeners = self._listeners
        await self._call_listener(listeners.on_lost or listeners.on_revoked, partitions)

    async def _revoke(
        self, partitions: Sequence[TopicPartition], *, task: Task | None = None, reason: str = "they were revoked"
    ) -> None:
        """Commit the finished records of these partitions, call the user's listener, and drop the partitions.

        With a ``task``, first wait until the user has finished the records; if the task is obsolete by then, return.
        """
        if not partitions:
            return
        states = [state for partition in partitions if (state := self._positions.get(partition)) is not None]
        for state in states:
            self._positions.withhold(state, True)
        if task is not None:
            await self.driver.until(
                lambda: self._leaving or task is not self.machine.task or not any(state.is_in_hand for state in states)
            )
            if task is not self.machine.task:
                for state in states:
                    self._positions.withhold(state, False)
                self._fetcher.wake()
                return
        if self._auto_commit is not None:
            await self._auto_commit.commit_finished(within=self._config.session_timeout_ms / 1000)
        await self._call_listener(self._listeners.on_revoked, partitions)
        self._drop(partitions, reason)

    def _drop(self, partitions: Sequence[TopicPartition], reason: str, *, lost: bool = False) -> None:
        if partitions:
            _log.info("%s in %s: %s", "lost" if lost else "revoked", self._named, format_partitions(partitions))
        now = self._cluster.runtime.now()
        in_hand = self._positions.revoke(partitions, self.machine.last_group, reason, now)
        if in_hand and not self._leaving:
            _log.warning(
                "%s revoked %s while records were being processed, since %s; those records are read again from the "
                "last commit, and commits of them fail",
                self._named,
                format_partitions([lost.state.partition for lost in in_hand]),
                reason,
            )
        self.driver.notify()
        self._fetcher.wake()
        self._fetcher.notify()

    @property
    def _listeners(self) -> RebalanceListeners:
        return self.subscription.listeners if self.subscription is not None else RebalanceListeners()

    async def _call_listener(self, listener: Listener | None, partitions: Sequence[TopicPartition]) -> None:
        """Call the user's listener; its exceptions are raised by the iteration, and do not end the membership."""
        if listener is None or not partitions:
            return
        try:
            with self._commits.listening():
                result = listener(tuple(partitions))
                if inspect.isawaitable(result):
                    await result
        except Exception as error:
            self._report(error)

    # --- topics ------------------------------------------------------------------------------------------

    def _choose_topics(self) -> None:
        if self.subscription is not None:
            self._topics = self.subscription.topics_in(self._cluster.metadata.snapshot)
            self._cluster.metadata.track_topics(self._topics)

    async def _fetch_metadata(self, topics: Sequence[str]) -> None:
        """Fetch the metadata of these topics, unless it is cached already."""
        deadline = self._cluster.deadline(_TOPICS_KNOWN_WITHIN)
        self._cluster.metadata.track_topics(topics)
        try:
            while any(topic not in self._cluster.metadata.snapshot.topics for topic in topics):
                await self._cluster.metadata.refresh(self._cluster.metadata.snapshot, deadline)
        except RequestTimeout as error:
            _log.warning("leading %s without the metadata of all its topics: %s", self._named, error)

    async def _follow(self) -> None:
        """Rejoin when the subscribed topics change or, as the leader, when any member's topics or partitions change."""
        snapshot = self._cluster.metadata.snapshot
        with self._following, self._cluster.metadata.following(lambda: self.topics, lambda: self._assignors.watched):
            while True:
                snapshot = await self._cluster.metadata.wait_for_update(snapshot)
                self._cluster.metadata.track_topics(self._assignors.watched)
                # Changes during a rebalance are noticed when the assignment is applied.
                if self.machine.state is GroupState.STABLE and self.machine.task is None:
                    reason = self._rejoin_reason(snapshot)
                    if reason is not None:
                        self.driver.request_rejoin(reason)

    def _rejoin_reason(self, snapshot: Snapshot) -> str | None:
        """Return the reason for another rebalance, if there is one."""
        if self.subscription is not None and self.subscription.topics_in(snapshot) != self._topics:
            return f"the topics of {self.subscription} have changed"
        watched = self._assignors.watched
        # A topic whose metadata was evicted has not changed.
        is_known = all(topic in snapshot.topics for topic in watched) or self._watches_all
        if is_known and self._assignors.is_outdated(partitions_of(snapshot, watched)):
            return "topics or their partitions have changed"
        return None

    async def _watch_all_topics(self) -> None:
        """Keep the metadata of all topics up to date as long as the subscription is a pattern."""
        with self._cluster.metadata.all_topics():
            await self.driver.until(lambda: self.subscription is None or self.subscription.pattern is None)
        self._watches_all = False


def _is_unreachable(error: BaseException | None) -> bool:
    """Return whether the error, or a cause of it, is a lost connection or an error that a broker returned."""
    while error is not None:
        if isinstance(error, ConnectionLost | BrokerError):
            return True
        error = error.__cause__
    return False
