"""A consumer's part in its group: takes partitions, gives them up, and commits what is finished."""

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
from ..group.classic import ClassicMembership
from ..group.classic_transitions import GroupState
from ..group.consumer_member import ConsumerMember, partitions_of
from ..group.consumer_protocol import Partitions
from ..group.coordinator_probe import is_nobody
from ..group.member_tasks import ApplyAssignment, Assign, LosePartitions, PrepareRejoin, Resume, Task
from ..group.membership_manager import MembershipManager, Polls
from ..group.membership_requests import MemberSettings
from ..types import TopicPartition
from .fetcher import Fetcher
from .offset_commits import OffsetCommitter
from .subscription_state import PartitionState, SubscriptionState, some_of
from .topic_subscription import Listener, RebalanceListeners, TopicSubscription

__all__ = ("ConsumerCoordinator",)

_log = logging.getLogger("aiokafkawire.group")

_GRACE: Final = 0.4
"""Seconds for a coordinator that moves: one that is away for longer is so for too long to wait with closing. One
that is silent has as long again, to hear that the member leaves."""
_FOR_LISTENERS: Final = 0.8
_TOPICS_KNOWN_WITHIN: Final = 10.0
"""Seconds that a leader waits to hear of topics that it has never asked for."""


class ConsumerCoordinator:
    """The part of one consumer.

    Args:
        cluster: where the group is.
        config: the consumer's.
        positions: what is read.
        fetcher: is woken when that changes.
        commits: for the group.
        assignors: who decides, if this consumer has to.
        lane: for the coordinator.
        polls: tells whether the user asks for records.
        report: has the user hear of an error.
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
        assert config.group_id is not None  # or there would be no group
        self.member: ConsumerMember = ConsumerMember(assignors, config.client_rack or None)
        self.membership: MembershipManager = MembershipManager(
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
        # One change at a time of what is read; and whether the last of them is due.
        self._turn = anyio.Lock()
        # What was given up for a rebalance, and in which generation: until that begins it is nobody else's.
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

    # --- what the user wants -----------------------------------------------------------------------------

    def open(self) -> None:
        """Begin in the background; nobody joins before there is a subscription."""
        self._cluster.owner.spawn(self.membership.run)
        self._cluster.owner.spawn(self._follow)

    def subscribe(self, subscription: TopicSubscription) -> None:
        """Take part in reading these topics, instead of those before."""
        before, self.subscription = self.subscription, subscription
        if subscription.pattern is not None and not self._watches_all:
            self._watches_all = True
            self._cluster.owner.spawn(self._watch_all_topics)
        self._cluster.use(subscription.topics)
        if any(topic not in self._cluster.snapshot.topics for topic in subscription.topics):
            self._cluster.outdated(self._cluster.snapshot)  # to hear soon which of them do not exist
        if before is None or before.topics != subscription.topics or before.pattern != subscription.pattern:
            self.membership.want(f"subscribed to {subscription}" if before is None else "the subscription has changed")

    async def close(self, deadline: Deadline) -> None:
        """Give everything up and leave, as far as that can be done in time."""
        self._following.cancel()
        try:
            await self.leave("the consumer was closed", deadline)
        finally:
            await self.membership.stop()

    async def unsubscribe(self, deadline: Deadline) -> None:
        """Leave, until there is another subscription."""
        await self.leave("the consumer has unsubscribed", deadline)
        self.subscription = None
        self.member.topics = ()
        self.membership.tell()

    async def leave(self, reason: str, deadline: Deadline) -> None:
        """Give everything up, and be no member any more; a coordinator that is away is not waited for."""
        self._leaving, self._resumable = True, []
        self.membership.tell()
        try:
            with anyio.move_on_after(deadline.left(self._cluster.runtime.now())) as waiting:
                with suppress(UsageError):  # the client is closed: nothing is waited for
                    self._cluster.owner.spawn(self._wait_for_nobody, waiting)
                # A listener that hangs does not keep the others from hearing of it.
                with anyio.move_on_after(deadline.left(self._cluster.runtime.now()) * _FOR_LISTENERS):
                    async with self._turn:
                        if self._machine.is_member:
                            await self._give_up(self.member.owned, reason=reason)
                await self.membership.leave(reason, deadline)
            if self._machine.state not in (GroupState.LEAVING, GroupState.OUTSIDE):
                # Who is silent may hear of it all the same: then the others need not wait for the end of a session.
                grace = 0.0 if is_nobody(self.membership.trouble) else _GRACE
                with anyio.move_on_after(min(grace, deadline.left(self._cluster.runtime.now()))):
                    await self.membership.leave(reason, deadline)
        finally:
            self._leaving = False
            self.membership.tell()

    async def _wait_for_nobody(self, waiting: anyio.CancelScope) -> None:
        membership = self.membership
        while self._leaving and not membership.has_ended:
            await membership.until(lambda: membership.trouble is not None or not self._leaving)
            with anyio.move_on_after(_GRACE) as away:
                await membership.until(lambda: membership.trouble is None or not self._leaving)
            if away.cancelled_caught:
                waiting.cancel()
                return

    # --- Role: what the membership asks for --------------------------------------------------------------

    async def prepare(self, task: PrepareRejoin) -> Sequence[tuple[str, bytes]]:
        """Give up what the protocol demands, with time for the user to commit."""
        async with self._turn:
            self._choose_topics()
            places = [place for where in self.member.owned if (place := self._positions.get(where)) is not None]
            partitions = self.member.to_give_up(lost=task.lost)
            if task.lost:
                await self._lose(partitions, task.reason)
                self._resumable = []
            else:
                await self._give_up(partitions, task=task)
                if places and not self.member.is_cooperative and not self.member.owned:
                    self._resumable, self._resumable_in = places, self._machine.generation
            self._choose_topics()
            return self.member.protocols()

    async def assign(self, task: Assign) -> Mapping[str, bytes]:
        """Decide as the leader."""
        subscriptions = self.member.read(task.members)
        topics = sorted({topic for one in subscriptions.values() for topic in one.topics})
        await self._learn(topics)
        partitions = partitions_of(self._cluster.snapshot, topics)
        if task.decided:
            self.member.watch(subscriptions, await self._shared_out_of(partitions))
            return {}
        return self.member.assign(task.protocol, subscriptions, partitions)

    async def _shared_out_of(self, partitions: Partitions) -> Partitions:
        """Those of them that members have: whoever decided may not have known of the others, as this one does."""
        from ..group.described_assignments import assigned_in  # few leaders come back to what they led

        group_id, deadline = self._machine.settings.group_id, self._cluster.deadline(_TOPICS_KNOWN_WITHIN)
        try:
            assigned = await assigned_in(self._cluster, group_id, deadline, self.membership.lane)
        except KafkaError as error:
            _log.warning("leading group %r without its current assignment, DescribeGroups failed: %s", group_id, error)
            return partitions
        if assigned is None:
            return partitions
        kept = {
            topic: [one for one in infos if TopicPartition(topic, one.partition) in assigned]
            for topic, infos in partitions.items()
        }
        return {topic: infos for topic, infos in kept.items() if infos}

    async def take(self, task: ApplyAssignment) -> str | None:
        """Give up what others get, and begin with what is new."""
        async with self._turn:
            change = self.member.change(task)
            await self._give_up(change.revoked, task=task)
            if task is not self._machine.task:
                if self._machine.is_member:
                    self.member.stayed(task)
                return None
            self._resumable = []
            self.member.took(task, change)
            told = "assigned in %s, generation %d: %s; %d partitions in all"
            _log.info(told, self._named, task.generation, some_of(change.added), len(self.member.owned))
            await self._begin(change.added)
        return "partitions were given up for others" if change.revoked else self._outdated(self._cluster.snapshot)

    def can_resume(self) -> bool:
        """Whether it gave something up for a rebalance, and is still a member as it was then."""
        return bool(self._resumable) and self._resumable_in == self._machine.generation

    async def resume(self, task: Resume) -> None:
        """Read on what was given up for a rebalance: from what is finished, where that is committed by itself, else as
        the next owner would, from what is committed. Where that is not known, the coordinator is asked once it is back.
        """
        async with self._turn:
            if task is not self._machine.task or not self.can_resume():
                return
            wanted = frozenset(self.member.topics)
            places = [place for place in self._resumable if place.where.topic in wanted]
            starts = {place.where: self._commits.start_of(place) for place in places}
            self._resumable = []
            _log.info("reading on in %s while it has no coordinator: %s", self._named, some_of(starts))
            self.member.took_back(starts)
            self._commits.begin(starts)
            self._positions.resume(starts)
            await self._hand_over(tuple(starts))

    async def _begin(self, partitions: Sequence[TopicPartition]) -> None:
        self._commits.begin(partitions)
        self._positions.add(partitions, withheld=True)
        await self._hand_over(partitions)

    async def _hand_over(self, partitions: Sequence[TopicPartition]) -> None:
        """Tell the user of partitions that are withheld, and read them."""
        # The user may seek before the first record comes.
        self._fetcher.wake()
        try:
            await self._tell(self._listeners.on_assigned, partitions)
        finally:
            for where in partitions:
                place = self._positions.get(where)
                if place is not None:
                    self._positions.withhold(place, False)
            self._fetcher.wake()
            self._fetcher.tell()

    async def give_up(self, task: LosePartitions) -> None:
        """Others have it already."""
        if self._machine.error is not None:
            self._report(self._machine.error)
        async with self._turn:
            self._resumable = []
            await self._lose(self.member.owned, task.reason)

    async def _lose(self, partitions: Sequence[TopicPartition], reason: str) -> None:
        """Stop reading partitions that others may read already, for this reason, and call the listener."""
        self._forget(partitions, reason, lost=True)
        listeners = self._listeners
        await self._tell(listeners.on_lost or listeners.on_revoked, partitions)

    async def _give_up(
        self, partitions: Sequence[TopicPartition], *, task: Task | None = None, reason: str = "they were revoked"
    ) -> None:
        """Stop reading these: the user finishes what it has in hand of them, that is committed, and listeners hear.

        With a ``task``, the waiting ends when that is no longer current; then nothing is given up yet.
        """
        if not partitions:
            return
        places = [place for where in partitions if (place := self._positions.get(where)) is not None]
        for place in places:
            self._positions.withhold(place, True)
        if task is not None:
            await self.membership.until(
                lambda: self._leaving or task is not self._machine.task or not any(place.is_in_hand for place in places)
            )
            if task is not self._machine.task:
                for place in places:
                    self._positions.withhold(place, False)
                self._fetcher.wake()
                return
        if self._config.enable_auto_commit:
            await self._commits.commit_finished(within=self._config.session_timeout_ms / 1000)
            self._commits.give_up(partitions)
        await self._tell(self._listeners.on_revoked, partitions)
        self._forget(partitions, reason)

    def _forget(self, partitions: Sequence[TopicPartition], reason: str, *, lost: bool = False) -> None:
        if partitions:
            _log.info("%s in %s: %s", "lost" if lost else "revoked", self._named, some_of(partitions))
        now = self._cluster.runtime.now()
        in_hand = self._positions.take_away(partitions, self._machine.last_group, reason, now)
        if in_hand and not self._leaving:
            _log.warning(
                "%s took %s away while records were being processed, since %s; those records are read again from the "
                "last commit, and commits of them fail",
                self._named,
                some_of([one.place.where for one in in_hand]),
                reason,
            )
        self.member.gave_up(partitions, lost=lost)
        self.membership.tell()
        self._fetcher.wake()
        self._fetcher.tell()

    @property
    def _listeners(self) -> RebalanceListeners:
        return self.subscription.listeners if self.subscription is not None else RebalanceListeners()

    async def _tell(self, listener: Listener | None, partitions: Sequence[TopicPartition]) -> None:
        """Call the user. What it raises is its own to hear of, and does not cost the membership."""
        if listener is None or not partitions:
            return
        try:
            with self._commits.listening():
                told = listener(tuple(partitions))
                if inspect.isawaitable(told):
                    await told
        except Exception as error:
            self._report(error)

    # --- topics ------------------------------------------------------------------------------------------

    def _choose_topics(self) -> None:
        if self.subscription is not None:
            self.member.topics = self.subscription.topics_in(self._cluster.snapshot)
            self._cluster.use(self.member.topics)

    async def _learn(self, topics: Sequence[str]) -> None:
        """Make sure that the snapshot says of each of these whether there is one."""
        deadline = self._cluster.deadline(_TOPICS_KNOWN_WITHIN)
        self._cluster.use(topics)
        try:
            while any(topic not in self._cluster.snapshot.topics for topic in topics):
                await self._cluster.refresh(self._cluster.snapshot, deadline)
        except RequestTimeout as error:
            _log.warning("leading %s without the metadata of all its topics: %s", self._named, error)

    async def _follow(self) -> None:
        """Rebalance when topics come and go, or get more partitions, as far as this member has to see to it."""
        snapshot = self._cluster.snapshot
        with self._following, self._cluster.following(lambda: self.topics, lambda: self.member.watched):
            while True:
                snapshot = await self._cluster.newer(snapshot)
                self._cluster.use(self.member.watched)
                # What changes meanwhile is seen when it takes what was assigned.
                if self._machine.state is GroupState.STABLE and self._machine.task is None:
                    reason = self._outdated(snapshot)
                    if reason is not None:
                        self.membership.want(reason)

    def _outdated(self, snapshot: Snapshot) -> str | None:
        """Why there has to be another rebalance, if so."""
        if self.subscription is not None and self.subscription.topics_in(snapshot) != self.member.topics:
            return f"the topics of {self.subscription} have changed"
        watched = self.member.watched
        # Of a topic that was forgotten nothing is known, which is no change.
        is_known = all(topic in snapshot.topics for topic in watched) or self._watches_all
        if is_known and self.member.is_outdated(partitions_of(snapshot, watched)):
            return "topics or their partitions have changed"
        return None

    async def _watch_all_topics(self) -> None:
        """Have the metadata of all topics until there is no pattern any more, or no membership."""
        with self._cluster.all_topics():
            await self.membership.until(lambda: self.subscription is None or self.subscription.pattern is None)
        self._watches_all = False
