"""A consumer's tasks in a consumer group (KIP-848): joins, and reconciles its partitions with its assignment."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal
from uuid import UUID

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..errors import KafkaError
from ..event_log import EventLog
from ..group.consumer_group_membership import ConsumerGroupMembership
from ..group.consumer_group_requests import ServerSubscription
from ..group.member_ids import new_member_id
from ..group.membership import MemberSettings, PrepareRejoin, Reconcile, Task
from ..types import TopicPartition
from .partition_changes import PartitionChanges
from .subscribed_topics import SubscribedTopics

__all__ = ("ConsumerGroupTasks",)

_log = EventLog("aiokafkawire.group")


class ConsumerGroupTasks:
    """The executor of a :class:`ConsumerGroupMembership`'s tasks, except for the loss of partitions.

    Args:
        cluster: has the topics' ids.
        settings: the member's settings.
        topics: the consumer's subscription.
        changes: changes the partitions.
    """

    def __init__(
        self, cluster: Cluster, settings: MemberSettings, topics: SubscribedTopics, changes: PartitionChanges
    ) -> None:
        self.machine: ConsumerGroupMembership = ConsumerGroupMembership(settings, new_member_id(cluster.runtime.chance))
        self._cluster, self._topics, self._changes = cluster, topics, changes
        # The names of topics that are assigned or owned: a deleted topic leaves the metadata before the assignment.
        self._names: dict[UUID, str] = {}

    @property
    def watched(self) -> tuple[str, ...]:
        """The topics that the coordinator has chosen by the subscribed pattern; none without a pattern."""
        return tuple(self._names.values()) if self._has_pattern else ()

    @property
    def _has_pattern(self) -> bool:
        return self._topics.subscription is not None and self._topics.subscription.server_pattern is not None

    @property
    def protocol(self) -> Literal["classic", "consumer"]:
        """The group protocol."""
        return "consumer"

    def subscribe(self) -> None:
        """Set the topics to subscribe to with the next heartbeat."""
        subscription = self._topics.subscription
        pattern = subscription.server_pattern if subscription is not None else None
        topics = tuple(self._topics.choose())
        self.machine.subscribe(ServerSubscription(topics, pattern.pattern if pattern is not None else None))

    def rejoin_reason(self, snapshot: Snapshot) -> str | None:
        """Return the reason for a heartbeat with another subscription, if there is one."""
        has_lost = bool(self._changes.of_old_topics())
        self.machine.reconcile_again(has_lost=has_lost)
        if self._topics.are_outdated(snapshot):
            self.subscribe()
            return f"the topics of {self._topics.subscription} have changed"
        return "topics were deleted and created again" if has_lost else None

    async def execute(self, task: Task) -> None:
        """Execute a task, and report its result to the machine."""
        if isinstance(task, PrepareRejoin):
            if task.lost:
                async with self._changes.lock:
                    await self._changes.lose(task.reason)
            self.subscribe()
            self.machine.prepared(task)
        elif isinstance(task, Reconcile):
            await self._reconcile(task)

    async def _reconcile(self, task: Reconcile) -> None:
        """Revoke the partitions that are not assigned, and start reading the added ones, as far as topics are known."""
        named = f"{self.machine.settings.named}, member epoch {task.epoch}"
        async with self._changes.lock:
            await self._lose_vanished()
            names = await self._find_names(task)
            assigned = [
                TopicPartition(names[topic_id], index)
                for topic_id, indexes in task.assignment.items()
                if topic_id in names
                for index in indexes
            ]
            ids = {name: topic_id for topic_id, name in names.items()}
            known = {topic_id: indexes for topic_id, indexes in task.assignment.items() if topic_id in names}
            take = partial(self.machine.taking, task, known)
            await self._changes.change_to(assigned, task, named, ids=ids, on_revoked=take)
            self.machine.reconciled(task, self._owned())
        if len(names) < len(task.assignment):
            message = "group %(group)r, member epoch %(generation)d: waiting for the metadata of %(count)d topics"
            group, count = self.machine.settings.group_id, len(task.assignment) - len(names)
            _log.debug(message, group=group, generation=task.epoch, count=count)

    async def _lose_vanished(self) -> None:
        """Lose the partitions of topics that were deleted and created again, as the metadata shows."""
        lost = self._changes.of_old_topics()
        if lost:
            topics = ", ".join(sorted({partition.topic for partition in lost}))
            reason = f"topics were deleted and created again: {topics}"
            _log.warning(
                "group %(group)r: %(reason)s", group=self.machine.settings.group_id, reason=reason, topics=topics
            )
            await self._changes.lose(reason, lost)
            self._cluster.metadata.mark_stale(self._cluster.metadata.snapshot)  # a broker may only have lagged behind

    async def _find_names(self, task: Reconcile) -> Mapping[UUID, str]:
        """Return the names of the assigned topics that exist; request new metadata if some are missing."""
        metadata, owned = self._cluster.metadata, {partition.topic for partition in self._changes.assigned}
        known = {**self._names, **metadata.snapshot.topic_names}
        # The topics that the member has are still its own while it waits to revoke them.
        self._names = {topic_id: name for topic_id, name in self._names.items() if name in owned}
        # The coordinator and the metadata agree that these exist.
        self._changes.reappeared(topic_id for topic_id in task.assignment if topic_id in metadata.snapshot.topic_names)
        assigned = [topic_id for topic_id in task.assignment if topic_id not in self._changes.vanished]
        names = {topic_id: known[topic_id] for topic_id in assigned if topic_id in known}
        if self._has_pattern and len(names) < len(assigned):
            names |= await self._look_up_names([topic_id for topic_id in assigned if topic_id not in names])
        self._names |= names
        metadata.track_topics(names.values())
        if len(names) < len(assigned) or any(name not in metadata.snapshot.topics for name in names.values()):
            metadata.mark_stale(metadata.snapshot)
        return names

    async def _look_up_names(self, topic_ids: Sequence[UUID]) -> dict[UUID, str]:
        """Ask a broker for topics by id, since the metadata has only topics that are known by name."""
        deadline = self._cluster.deadline(self._cluster.config.request_timeout_ms / 1000)
        try:
            return await self._cluster.find_topic_names(topic_ids, deadline)
        except KafkaError as error:
            message = "group %(group)r: cannot look up %(count)d topics by id: %(error)s"
            _log.debug(message, group=self.machine.settings.group_id, count=len(topic_ids), error=error)
            return {}

    def _owned(self) -> dict[UUID, list[int]]:
        owned: dict[UUID, list[int]] = {}
        for topic_id, index in self._changes.assigned_ids():
            owned.setdefault(topic_id, []).append(index)
        return owned
