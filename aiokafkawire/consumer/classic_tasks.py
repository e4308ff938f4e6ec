"""A consumer's tasks in a classic group: builds the subscription, assigns as the leader, and applies assignments."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Literal

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..errors import KafkaError, RequestTimeout
from ..event_log import EventLog
from ..group.assignors import Assignor
from ..group.classic_membership import ClassicMembership
from ..group.client_side_assignment import ClientSideAssignment, partitions_of
from ..group.consumer_protocol import Partitions
from ..group.membership import ApplyAssignment, Assign, GroupState, MemberSettings, PrepareRejoin, Task
from ..types import TopicPartition
from .partition_changes import PartitionChanges
from .subscribed_topics import SubscribedTopics

__all__ = ("ClassicTasks",)

_log = EventLog("aiokafkawire.group")

_TOPICS_KNOWN_WITHIN: Final = 10.0
"""Seconds that a leader waits for the metadata of topics, and for the group's current assignment."""


class ClassicTasks:
    """The executor of a :class:`ClassicMembership`'s tasks, except for the loss of partitions.

    Args:
        cluster: has the metadata.
        settings: the member's settings.
        topics: the consumer's subscription.
        changes: changes the partitions.
        assignors: the assignors that the consumer supports.
        lane: names the connections to the coordinator.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: MemberSettings,
        topics: SubscribedTopics,
        changes: PartitionChanges,
        assignors: Sequence[Assignor],
        lane: str,
    ) -> None:
        self.machine: ClassicMembership = ClassicMembership(settings)
        self._assignment = ClientSideAssignment(assignors, settings.rack)
        self._cluster, self._topics, self._changes, self._lane = cluster, topics, changes, lane

    @property
    def protocol(self) -> Literal["classic", "consumer"]:
        """The group protocol."""
        return "classic"

    def subscribe(self) -> None:
        """Do nothing, since the next PrepareRejoin builds the subscription."""

    @property
    def watched(self) -> tuple[str, ...]:
        """The topics whose changes require another rebalance; none unless this member leads the group."""
        return self._assignment.watched

    def rejoin_reason(self, snapshot: Snapshot) -> str | None:
        """Return the reason for another rebalance, if there is one."""
        # Changes during a rebalance are noticed when the assignment is applied.
        if self.machine.state is not GroupState.STABLE or self.machine.task is not None:
            return None
        return self._rejoin_reason(snapshot)

    def _rejoin_reason(self, snapshot: Snapshot) -> str | None:
        if self._topics.are_outdated(snapshot):
            return f"the topics of {self._topics.subscription} have changed"
        watched = self.watched
        is_known = self._topics.are_known(snapshot, watched)
        if is_known and self._assignment.is_outdated(partitions_of(snapshot, watched)):
            return "topics or their partitions have changed"
        return None

    async def execute(self, task: Task) -> None:
        """Execute a task, and report its result to the machine."""
        machine = self.machine
        if isinstance(task, PrepareRejoin):
            machine.prepared(task, await self._prepare(task))
        elif isinstance(task, Assign):
            machine.assigned(task, await self._assign(task))
        elif isinstance(task, ApplyAssignment):
            machine.task_done(task, rejoin=await self._apply_assignment(task))

    async def _prepare(self, task: PrepareRejoin) -> Sequence[tuple[str, bytes]]:
        """Revoke the partitions that a member may not keep during a rejoin, after the user has finished their records.

        Return the protocols to join with, the preferred one first.
        """
        changes = self._changes
        async with changes.lock:
            topics = self._topics.choose()
            if task.lost:
                await changes.lose(task.reason)
            elif self._assignment.is_cooperative:
                await changes.revoke([at for at in changes.assigned if at.topic not in topics], task=task)
            else:
                await changes.revoke(changes.assigned, task=task)
            return self._assignment.protocols(self._topics.choose(), changes.assigned, self.machine.assigned_generation)

    async def _assign(self, task: Assign) -> Mapping[str, bytes]:
        """Return each member's encoded assignment, by member id; empty if the task says that it is ``decided``."""
        subscriptions = self._assignment.read(task.members)
        topics = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
        await self._fetch_metadata(topics)
        partitions = partitions_of(self._cluster.metadata.snapshot, topics)
        if task.decided:
            self._assignment.watch(subscriptions, await self._assigned_of(partitions))
            return {}
        return self._assignment.assign(task.protocol, subscriptions, partitions)

    async def _assigned_of(self, partitions: Partitions) -> Partitions:
        """Return those of ``partitions`` that are assigned in the group now; all of them if that is unknown.

        The last leader may have used older metadata, and so may not have assigned the newest partitions.
        """
        from ..group.described_assignment import assigned_in  # rarely needed

        group_id, deadline = self.machine.settings.group_id, self._cluster.deadline(_TOPICS_KNOWN_WITHIN)
        try:
            assigned = await assigned_in(self._cluster, group_id, deadline, self._lane)
        except KafkaError as error:
            message = "leading group %(group)r without its current assignment, DescribeGroups failed: %(error)s"
            _log.warning(message, group=group_id, error=error)
            return partitions
        if assigned is None:
            return partitions
        kept = {
            topic: [info for info in infos if TopicPartition(topic, info.partition) in assigned]
            for topic, infos in partitions.items()
        }
        return {topic: infos for topic, infos in kept.items() if infos}

    async def _fetch_metadata(self, topics: Sequence[str]) -> None:
        """Fetch the metadata of these topics, unless it is cached already."""
        deadline, metadata = self._cluster.deadline(_TOPICS_KNOWN_WITHIN), self._cluster.metadata
        metadata.track_topics(topics)
        try:
            while any(topic not in metadata.snapshot.topics for topic in topics):
                await metadata.refresh(metadata.snapshot, deadline)
        except RequestTimeout as error:
            message = "leading group %(group)r without the metadata of all its topics: %(error)s"
            _log.warning(message, group=self.machine.settings.group_id, error=error)

    async def _apply_assignment(self, task: ApplyAssignment) -> str | None:
        """Revoke the partitions that move to other members, and start reading the added ones.

        Return the reason to rejoin, if there is one.
        """
        async with self._changes.lock:
            assignment = self._assignment.decode(task)
            assigned = tuple(at for at in assignment.partitions if at.topic in self._topics.chosen)
            named = f"{self.machine.settings.named}, generation {task.generation}"
            # The assignor learns the assignment before the listener does, as in Java.
            learn = partial(self._assignment.on_assignment, task, assignment)
            revoked = await self._changes.change_to(assigned, task, named, on_revoked=learn)
            if revoked is None:
                return None
        return (
            "partitions were revoked for other members"
            if revoked
            else self._rejoin_reason(self._cluster.metadata.snapshot)
        )
