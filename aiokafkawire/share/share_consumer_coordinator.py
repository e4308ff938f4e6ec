"""A share consumer's membership in its group: joins, takes its assignment, and leaves."""

from collections.abc import Sequence
from uuid import UUID

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..config import ShareConsumerConfig
from ..event_log import EventLog
from ..group.consumer_group_membership import ConsumerGroupMembership
from ..group.consumer_group_requests import ServerSubscription
from ..group.membership import GroupState, LosePartitions, MemberSettings, PrepareRejoin, Reconcile, Task
from ..group.membership_driver import MembershipDriver, Polls
from ..group.share_group_requests import SHARE_GROUP
from ..observe import PartitionsLost, RebalanceEnded
from ..types import TopicPartition
from .share_fetch_session import PartitionKey
from .share_fetcher import ShareFetcher

__all__ = ("ShareConsumerCoordinator",)

_log = EventLog("aiokafkawire.group")


class ShareConsumerCoordinator:
    """The member of a share group. The coordinator assigns partitions; several members may have the same one.

    Args:
        cluster: finds the group's coordinator, and has the topics' ids.
        config: the consumer's settings.
        lane: names the connections to the coordinator.
        member_id: the member's id.
        fetcher: reads the assigned partitions, and raises errors to the user.
        polls: shows whether the user still polls.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ShareConsumerConfig,
        lane: str,
        member_id: str,
        fetcher: ShareFetcher,
        polls: Polls,
    ) -> None:
        self._cluster, self._fetcher = cluster, fetcher
        settings = MemberSettings(
            group_id=config.group_id or "",
            protocol_type="share",
            rebalance_timeout_ms=config.max_poll_interval_ms,
            retry_backoff=cluster.config.retry_backoff_ms / 1000,
            rack=config.client_rack or None,
        )
        self.machine: ConsumerGroupMembership = ConsumerGroupMembership(settings, member_id, SHARE_GROUP)
        self.driver: MembershipDriver = MembershipDriver(cluster, self.machine, self._execute, lane, polls)
        self._topics: tuple[str, ...] = ()
        # The number of calls of leave() that wait.
        self._leaves = 0

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to these topics, instead of those before."""
        if set(topics) == set(self._topics) and self.machine.state is not GroupState.OUTSIDE:
            return
        self._topics = tuple(topics)
        self._cluster.metadata.track_topics(self._topics)
        self.machine.subscribe(ServerSubscription(self._topics))
        if not self._leaves:
            self.driver.request_rejoin(f"subscribed to {', '.join(self._topics)}")

    async def run(self) -> None:
        """Take part in the group until :meth:`close`."""
        metadata = self._cluster.metadata
        with metadata.on_update(self._on_metadata), metadata.following(lambda: self._topics, self._assigned_topics):
            await self.driver.run()

    async def leave(self, reason: str, deadline: Deadline) -> None:
        """Leave the group, within the deadline; join again if there was a :meth:`subscribe` meanwhile."""
        self._topics = ()
        self._fetcher.assign({})
        self._leaves += 1
        try:
            await self.driver.leave(reason, deadline)
        finally:
            self._leaves -= 1
            if self._topics and not self._leaves:
                self.driver.request_rejoin("subscribed while it was leaving")

    def _assigned_topics(self) -> set[str]:
        return {partition.topic for partition in self._fetcher.assigned}

    def _on_metadata(self) -> None:
        self.machine.reconcile_again()
        self.driver.wake()

    async def _execute(self, task: Task) -> None:
        if isinstance(task, PrepareRejoin):
            if task.lost:
                self._lose(task.reason)
            self.machine.prepared(task)
        elif isinstance(task, Reconcile):
            self._take(task)
        elif isinstance(task, LosePartitions):
            if self.machine.error is not None:
                self._fetcher.report(self.machine.error)
            self._lose(task.reason)
            self.machine.task_done(task)

    def _lose(self, reason: str) -> None:
        """Read no more partitions, since the membership has ended."""
        lost = tuple(sorted(self._fetcher.assigned))
        self._fetcher.assign({})
        if lost and (notify := self._cluster.observers.partitions_lost) is not None:
            notify(PartitionsLost(group=self.machine.settings.group_id, partitions=lost, reason=reason))

    def _take(self, task: Reconcile) -> None:
        """Read the assigned partitions, as far as their topics are known."""
        metadata = self._cluster.metadata
        names = metadata.snapshot.topic_names
        partitions: dict[PartitionKey, TopicPartition] = {
            (topic_id, index): TopicPartition(names[topic_id], index)
            for topic_id, indexes in task.assignment.items()
            if topic_id in names
            for index in indexes
        }
        if any(topic_id not in names for topic_id in task.assignment):
            metadata.mark_stale(metadata.snapshot)
            message = "share group %(group)r: waiting for the metadata of assigned topics"
            _log.debug(message, group=self.machine.settings.group_id)
        before = self._fetcher.assigned
        self._fetcher.assign(partitions)
        self._report_rebalance(before)
        owned: dict[UUID, list[int]] = {}
        for topic_id, index in partitions:
            owned.setdefault(topic_id, []).append(index)
        self.machine.reconciled(task, owned)

    def _report_rebalance(self, before: frozenset[TopicPartition]) -> None:
        """Report the changes of the assignment to the observers, if there are any."""
        notify, now = self._cluster.observers.rebalance_ended, self._fetcher.assigned
        if notify is None or now == before:
            return
        machine, began = self.machine, self.driver.rebalancing_since
        notify(
            RebalanceEnded(
                group=machine.settings.group_id,
                member_id=machine.group.member_id,
                generation=machine.group.generation_id,
                reason=machine.reason,
                seconds=0.0 if began is None else self._cluster.runtime.now() - began,
                assigned=tuple(sorted(now - before)),
                revoked=tuple(sorted(before - now)),
                partitions=len(now),
            )
        )
