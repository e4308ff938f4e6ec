"""A consumer's coordinator: applies assignments, and revokes partitions after committing their finished records."""

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import anyio

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.retry import Deadline
from ..config import ConsumerConfig
from ..errors import KafkaError, RequestTimeout, UsageError
from ..group.assignors import Assignor
from ..group.classic_consumer import ClassicConsumer, partitions_of
from ..group.classic_membership import ClassicMembership
from ..group.classic_transitions import GroupState
from ..group.consumer_protocol import Partitions
from ..group.coordinator_probe import is_unreachable
from ..group.member_actions import ApplyAssignment, Assign, LosePartitions, PrepareRejoin, Resume, Task
from ..group.membership_driver import MembershipDriver, Polls
from ..group.membership_requests import MemberSettings
from ..types import TopicPartition
from .fetcher import Fetcher
from .offset_commits import OffsetCommitter
from .subscription_state import PartitionState, SubscriptionState, format_partitions
from .topic_subscription import Listener, RebalanceListeners, TopicSubscription

__all__ = ("ConsumerCoordinator",)

_log = logging.getLogger("aiokafkawire.group")

_GRACE: Final = 0.4
"""Seconds that closing waits for an unreachable coordinator, which may only be moving; and then the seconds that it
waits for the response to LeaveGroup."""
_FOR_LISTENERS: Final = 0.8
_TOPICS_KNOWN_WITHIN: Final = 10.0
"""Seconds that a leader waits for the metadata of topics."""


class ConsumerCoordinator:
    """Executes the tasks of a consumer's group membership.

    Args:
        cluster: finds the group's coordinator.
        config: the consumer's settings.
        positions: the consumer's partitions.
        fetcher: is woken when the partitions change.
        commits: commits the group's offsets.
        assignors: the assignors that the consumer supports.
        lane: names the connections to the coordinator.
        polls: shows whether the user still polls.
        report: passes an error to the user.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: SubscriptionState,
        fetcher: Fetcher,
        commits: OffsetCommitter,
        assignors: Sequence[Assignor],
        lane: str,
        polls: Polls,
        report: Callable[[Exception], None],
    ) -> None:
        assert config.group_id is not None  # a consumer without group_id has no coordinator
        self.member: ClassicConsumer = ClassicConsumer(assignors, config.client_rack or None)
        self.membership: MembershipDriver = MembershipDriver(
            cluster,
            MemberSettings(
                group_id=config.group_id,
                group_instance_id=config.group_instance_id,
                session_timeout_ms=config.session_timeout_ms,
                rebalance_timeout_ms=config.max_poll_interval_ms,
                heartbeat_interval=config.heartbeat_interval_ms / 1000,
                retry_backoff=cluster.config.retry_backoff_ms / 1000,
            ),
            self,
            lane,
            polls,
            heartbeat_thread=config.heartbeat_thread,
        )
        self.subscription: TopicSubscription | None = None
        self._cluster, self._config, self._positions, self._fetcher = cluster, config, positions, fetcher
        self._commits, self._report = commits, report
        commits.join(self.membership)
        self._following = anyio.CancelScope()
        self._watches_all = False
        # Held during a change of the assignment.
        self._lock = anyio.Lock()
        # The partitions that were revoked for a rebalance, and their generation: until the next generation no other
        # member can own them.
        self._resumable: list[PartitionState] = []
        self._resumable_in = -1
        self._leaving = False

    @property
    def _machine(self) -> ClassicMembership:
        return self.membership.machine

    @property
    def _named(self) -> str:
        return self._machine.settings.named

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that are subscribed to by name."""
        return self.subscription.topics if self.subscription is not None else ()

    # --- subscribing -----------------------------------------------------------------------------

    def open(self) -> None:
        """Start the background tasks; the consumer joins the group once there is a subscription."""
        self._cluster.owner.spawn(self.membership.run)
        self._cluster.owner.spawn(self._follow)

    def subscribe(self, subscription: TopicSubscription) -> None:
        """Replace the subscription, and join or rejoin if it has changed."""
        before, self.subscription = self.subscription, subscription
        if subscription.pattern is not None and not self._watches_all:
            self._watches_all = True
            self._cluster.owner.spawn(self._watch_all_topics)
        self._cluster.track_topics(subscription.topics)
        if any(topic not in self._cluster.snapshot.topics for topic in subscription.topics):
            self._cluster.mark_stale(self._cluster.snapshot)  # to learn soon which of them do not exist
        if before is None or before.topics != subscription.topics or before.pattern != subscription.pattern:
            self.membership.request_rejoin(
                f"subscribed to {subscription}" if before is None else "the subscription has changed"
            )

    async def close(self, deadline: Deadline) -> None:
        """Revoke all partitions and leave the group, within the deadline."""
        self._following.cancel()
        try:
            await self.leave("the consumer was closed", deadline)
        finally:
            await self.membership.stop()

    async def unsubscribe(self, deadline: Deadline) -> None:
        """Leave the group until there is another subscription."""
        await self.leave("the consumer has unsubscribed", deadline)
        self.subscription = None
        self.member.topics = ()
        self.membership.notify()

    async def leave(self, reason: str, deadline: Deadline) -> None:
        """Revoke all partitions and leave the group; do not wait for an unreachable coordinator."""
        self._leaving, self._resumable = True, []
        self.membership.notify()
        try:
            with anyio.move_on_after(deadline.left(self._cluster.runtime.now())) as waiting:
                with suppress(UsageError):  # the client is closed: there is no time to wait
                    self._cluster.owner.spawn(self._watch_unreachable, waiting)
                # A listener that hangs leaves time for the LeaveGroup.
                with anyio.move_on_after(deadline.left(self._cluster.runtime.now()) * _FOR_LISTENERS):
                    async with self._lock:
                        if self._machine.is_member:
                            await self._give_up(self.member.owned, reason=reason)
                await self.membership.leave(reason, deadline)
            if self._machine.state not in (GroupState.LEAVING, GroupState.OUTSIDE):
                # A silent coordinator may still read it: then the other members need not wait for the session timeout.
                grace = 0.0 if is_unreachable(self.membership.trouble) else _GRACE
                with anyio.move_on_after(min(grace, deadline.left(self._cluster.runtime.now()))):
                    await self.membership.leave(reason, deadline)
        finally:
            self._leaving = False
            self.membership.notify()

    async def _watch_unreachable(self, waiting: anyio.CancelScope) -> None:
        membership = self.membership
        while self._leaving and not membership.has_ended:
            await membership.until(lambda: membership.trouble is not None or not self._leaving)
            with anyio.move_on_after(_GRACE) as unreachable:
                await membership.until(lambda: membership.trouble is None or not self._leaving)
            if unreachable.cancelled_caught:
                waiting.cancel()
                return

    # --- Role: the tasks of the membership --------------------------------------------------------------

    async def prepare(self, task: PrepareRejoin) -> Sequence[tuple[str, bytes]]:
        """Revoke the partitions that the protocol requires, after the user has finished their records."""
        async with self._lock:
            self._choose_topics()
            states = [state for partition in self.member.owned if (state := self._positions.get(partition)) is not None]
            partitions = self.member.partitions_to_revoke(lost=task.lost)
            if task.lost:
                await self._lose(partitions, task.reason)
                self._resumable = []
            else:
                await self._give_up(partitions, task=task)
                if states and not self.member.is_cooperative and not self.member.owned:
                    self._resumable, self._resumable_in = states, self._machine.generation
            self._choose_topics()
            return self.member.protocols()

    async def assign(self, task: Assign) -> Mapping[str, bytes]:
        """Compute the assignments of all members as the group's leader."""
        subscriptions = self.member.read(task.members)
        topics = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
        await self._fetch_metadata(topics)
        partitions = partitions_of(self._cluster.snapshot, topics)
        if task.decided:
            self.member.watch(subscriptions, await self._assigned_of(partitions))
            return {}
        return self.member.assign(task.protocol, subscriptions, partitions)

    async def _assigned_of(self, partitions: Partitions) -> Partitions:
        """Return the partitions that are already assigned; the previous leader may have used older metadata."""
        from ..group.previous_assignment import assigned_in  # rarely needed

        group_id, deadline = self._machine.settings.group_id, self._cluster.deadline(_TOPICS_KNOWN_WITHIN)
        try:
            assigned = await assigned_in(self._cluster, group_id, deadline, self.membership.lane)
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

    async def apply_assignment(self, task: ApplyAssignment) -> str | None:
        """Revoke the partitions that move to other members, and start reading the added ones."""
        async with self._lock:
            change = self.member.assignment_delta(task)
            await self._give_up(change.revoked, task=task)
            if task is not self._machine.task:
                if self._machine.is_member:
                    self.member.on_unchanged(task)
                return None
            self._resumable = []
            self.member.on_assigned(task, change)
            message = "assigned in %s, generation %d: %s; %d partitions in all"
            _log.info(message, self._named, task.generation, format_partitions(change.added), len(self.member.owned))
            await self._begin(change.added)
        return (
            "partitions were revoked for other members"
            if change.revoked
            else self._rejoin_reason(self._cluster.snapshot)
        )

    def can_resume(self) -> bool:
        """Return whether partitions were revoked for a rebalance and the generation has not changed since."""
        return bool(self._resumable) and self._resumable_in == self._machine.generation

    async def resume(self, task: Resume) -> None:
        """Resume reading the partitions that were revoked for a rebalance, as their next owner would.

        They continue after the finished records with auto-commit, else at the committed offsets. Unknown offsets are
        fetched once there is a coordinator.
        """
        async with self._lock:
            if task is not self._machine.task or not self.can_resume():
                return
            wanted = frozenset(self.member.topics)
            states = [state for state in self._resumable if state.partition.topic in wanted]
            starts = {state.partition: self._commits.start_of(state) for state in states}
            self._resumable = []
            _log.info("reading on in %s while it has no coordinator: %s", self._named, format_partitions(starts))
            self.member.on_resumed(starts)
            self._commits.begin(starts)
            self._positions.resume(starts)
            await self._start_reading(tuple(starts))

    async def _begin(self, partitions: Sequence[TopicPartition]) -> None:
        self._commits.begin(partitions)
        self._positions.add(partitions, withheld=True)
        await self._start_reading(partitions)

    async def _start_reading(self, partitions: Sequence[TopicPartition]) -> None:
        """Call on_assigned for withheld partitions, and then let their records be handed out."""
        # The listener may seek before the first record is handed out.
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

    async def lose_partitions(self, task: LosePartitions) -> None:
        """Drop all partitions, which other members may own already; raise the error to the user, if there is one."""
        if self._machine.error is not None:
            self._report(self._machine.error)
        async with self._lock:
            self._resumable = []
            await self._lose(self.member.owned, task.reason)

    async def _lose(self, partitions: Sequence[TopicPartition], reason: str) -> None:
        """Stop reading partitions that others may read already, and call the listener."""
        self._drop(partitions, reason, lost=True)
        listeners = self._listeners
        await self._call_listener(listeners.on_lost or listeners.on_revoked, partitions)

    async def _give_up(
        self, partitions: Sequence[TopicPartition], *, task: Task | None = None, reason: str = "they were revoked"
    ) -> None:
        """Revoke these partitions after the user has finished their records: commit the records, and call the listener.

        With a ``task``, stop waiting when the task is no longer current; then no partition is revoked.
        """
        if not partitions:
            return
        states = [state for partition in partitions if (state := self._positions.get(partition)) is not None]
        for state in states:
            self._positions.withhold(state, True)
        if task is not None:
            await self.membership.until(
                lambda: self._leaving or task is not self._machine.task or not any(state.is_in_hand for state in states)
            )
            if task is not self._machine.task:
                for state in states:
                    self._positions.withhold(state, False)
                self._fetcher.wake()
                return
        if self._config.enable_auto_commit:
            await self._commits.commit_finished(within=self._config.session_timeout_ms / 1000)
            self._commits.give_up(partitions)
        await self._call_listener(self._listeners.on_revoked, partitions)
        self._drop(partitions, reason)

    def _drop(self, partitions: Sequence[TopicPartition], reason: str, *, lost: bool = False) -> None:
        if partitions:
            _log.info("%s in %s: %s", "lost" if lost else "revoked", self._named, format_partitions(partitions))
        now = self._cluster.runtime.now()
        in_hand = self._positions.revoke(partitions, self._machine.last_group, reason, now)
        if in_hand and not self._leaving:
            _log.warning(
                "%s revoked %s while records were being processed, since %s; those records are read again from the "
                "last commit, and commits of them fail",
                self._named,
                format_partitions([lost.state.partition for lost in in_hand]),
                reason,
            )
        self.member.on_revoked(partitions, lost=lost)
        self.membership.notify()
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
            self.member.topics = self.subscription.topics_in(self._cluster.snapshot)
            self._cluster.track_topics(self.member.topics)

    async def _fetch_metadata(self, topics: Sequence[str]) -> None:
        """Fetch the metadata of these topics, unless the snapshot has it."""
        deadline = self._cluster.deadline(_TOPICS_KNOWN_WITHIN)
        self._cluster.track_topics(topics)
        try:
            while any(topic not in self._cluster.snapshot.topics for topic in topics):
                await self._cluster.refresh(self._cluster.snapshot, deadline)
        except RequestTimeout as error:
            _log.warning("leading %s without the metadata of all its topics: %s", self._named, error)

    async def _follow(self) -> None:
        """Rejoin when the subscribed topics or their partitions change, if this member has to start the rebalance."""
        snapshot = self._cluster.snapshot
        with self._following, self._cluster.following(lambda: self.topics, lambda: self.member.watched):
            while True:
                snapshot = await self._cluster.wait_for_update(snapshot)
                self._cluster.track_topics(self.member.watched)
                # Changes during a rebalance are noticed when the assignment is applied.
                if self._machine.state is GroupState.STABLE and self._machine.task is None:
                    reason = self._rejoin_reason(snapshot)
                    if reason is not None:
                        self.membership.request_rejoin(reason)

    def _rejoin_reason(self, snapshot: Snapshot) -> str | None:
        """Return the reason for another rebalance, if there is one."""
        if self.subscription is not None and self.subscription.topics_in(snapshot) != self.member.topics:
            return f"the topics of {self.subscription} have changed"
        watched = self.member.watched
        # A topic whose metadata was evicted has not changed.
        is_known = all(topic in snapshot.topics for topic in watched) or self._watches_all
        if is_known and self.member.is_outdated(partitions_of(snapshot, watched)):
            return "topics or their partitions have changed"
        return None

    async def _watch_all_topics(self) -> None:
        """Keep the metadata of all topics up to date as long as there is a pattern."""
        with self._cluster.all_topics():
            await self.membership.until(lambda: self.subscription is None or self.subscription.pattern is None)
        self._watches_all = False
