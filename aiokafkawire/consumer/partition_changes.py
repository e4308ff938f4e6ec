"""The changes of a group member's partitions: revokes them when the user is done, loses them, and starts reading."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final
from uuid import UUID

import anyio

from ..cluster.cluster import Cluster
from ..event_log import EventLog
from ..group.membership import PrepareRejoin, Task, loses_partitions
from ..group.membership_driver import MembershipDriver
from ..observe import PartitionsLost, RebalanceEnded
from ..runtime import is_being_cancelled, stray_cancellation
from ..types import TopicPartition
from .auto_commit import AutoCommit
from .fetcher import Fetcher
from .offset_commits import OffsetCommitter
from .recreated_topics import is_of_old_topic
from .subscribed_topics import SubscribedTopics
from .subscription_state import PartitionState, SubscriptionState, format_partitions
from .topic_subscription import Listener

__all__ = ("PartitionChanges",)

_log = EventLog("aiokafkawire.group")

_NO_IDS: Final[Mapping[str, UUID]] = MappingProxyType({})


class PartitionChanges:
    """The executor of changes of the assignment, one at a time.

    Args:
        cluster: has the clock.
        positions: has the assignment.
        fetcher: is woken when the partitions change.
        topics: has the user's listeners.
        commits: marks the calls of listeners.
        auto_commit: commits finished records before they are revoked; None to commit on request only.
        report: raises an error to the user.
        patience: how many seconds a rebalance waits until the user has finished the records of revoked partitions; None
            for no limit but the rebalance's own.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: SubscriptionState,
        fetcher: Fetcher,
        topics: SubscribedTopics,
        commits: OffsetCommitter,
        auto_commit: AutoCommit | None,
        report: Callable[[Exception], None],
        patience: float | None = None,
    ) -> None:
        self._cluster, self._positions, self._fetcher, self._topics = cluster, positions, fetcher, topics
        self._commits, self._auto_commit, self._report = commits, auto_commit, report
        self._patience = patience
        self.commit_timeout: float = 0.0
        """The seconds that a commit before a revocation may take."""
        self.lock: anyio.Lock = anyio.Lock()
        """Held during a change."""
        self._revoked: list[TopicPartition] = []
        self.leaving: bool = False
        """Whether the consumer is leaving its group, and no longer waits for the user."""

    @property
    def assigned(self) -> tuple[TopicPartition, ...]:
        """The member's partitions."""
        return self._positions.assigned

    @property
    def _driver(self) -> MembershipDriver:
        assert self._commits.driver is not None  # the driver joins the committer first
        return self._commits.driver

    @property
    def vanished(self) -> Collection[UUID]:
        """The ids of topics that were deleted and created again, under other ids."""
        return self._positions.vanished

    def reappeared(self, topic_ids: Iterable[UUID]) -> None:
        """Take notice that these topics exist: another id came from a broker that lagged behind."""
        self._positions.vanished.difference_update(topic_ids)

    def of_old_topics(self) -> list[TopicPartition]:
        """Return the member's partitions whose topics were deleted and created again, as the metadata shows."""
        snapshot, positions = self._cluster.metadata.snapshot, self._positions
        old = [state for state in positions if is_of_old_topic(positions, state, snapshot)]
        positions.vanished |= {state.assigned_id for state in old if state.assigned_id is not None}
        return [state.partition for state in old]

    def assigned_ids(self) -> list[tuple[UUID, int]]:
        """Return the topic id and the index of each of the member's partitions that are assigned by id."""
        return [(state.assigned_id, state.partition.partition) for state in self._positions if state.assigned_id]

    async def change_to(
        self,
        partitions: Sequence[TopicPartition],
        task: Task,
        named: str,
        *,
        ids: Mapping[str, UUID] = _NO_IDS,
        on_revoked: Callable[[], None] | None = None,
    ) -> bool | None:
        """Revoke the partitions that are not among these, and start reading those that are new.

        Return whether partitions were revoked; None if the task was obsolete, and nothing has changed.

        Args:
            partitions: the partitions that the member has from now on.
            task: the task that this is part of.
            named: names the group and its generation in log lines.
            ids: the ids of the topics, if the assignment has ids.
            on_revoked: called between the two, unless the task is obsolete.
        """
        revoked, added = self._positions.changes_to(partitions)
        await self.revoke(revoked, task=task)
        if task is not self._driver.machine.task:
            return None
        if on_revoked is not None:
            on_revoked()
        self._positions.add(added, withheld=True, ids=ids)
        _log.info(
            "assigned in %(named)s: %(partitions)s; %(count)d partitions in all",
            text={"named": named},
            group=self._driver.machine.settings.group_id,
            partitions=format_partitions(added),
            count=len(self._positions.assigned),
        )
        self._report_rebalance(added)
        if self._auto_commit is not None:
            self._auto_commit.on_assigned()
        await self._start_reading(added)
        return bool(revoked)

    def _report_rebalance(self, added: Sequence[TopicPartition]) -> None:
        """Report the changes of a rebalance to the observers."""
        revoked, self._revoked = self._revoked, []
        notify = self._cluster.observers.rebalance_ended
        if notify is None:
            return
        machine, now = self._driver.machine, self._cluster.runtime.now()
        began = self._driver.rebalancing_since
        notify(
            RebalanceEnded(
                group=machine.settings.group_id,
                member_id=machine.group.member_id,
                generation=machine.group.generation_id,
                reason=machine.reason,
                seconds=0.0 if began is None else now - began,
                assigned=tuple(added),
                revoked=tuple(revoked),
                partitions=len(self._positions.assigned),
            )
        )

    async def _start_reading(self, partitions: Sequence[TopicPartition]) -> None:
        """Call on_assigned for withheld partitions, and then let their records be handed out."""
        # Look up the positions, but withhold the records until the listener has returned, since it may seek.
        self._fetcher.wake()
        try:
            await self._call_listener(self._topics.listeners.on_assigned, partitions)
        finally:
            self._release(state for partition in partitions if (state := self._positions.get(partition)) is not None)
            self._fetcher.notify()

    def _release(self, states: Iterable[PartitionState]) -> None:
        """Release the withheld records of these partitions, unless the membership has ended meanwhile."""
        if not loses_partitions(self._driver.machine.task):
            for state in states:
                self._positions.withhold(state, False)
        self._fetcher.wake()

    def withhold_all(self) -> None:
        """Return no more records of any partition, since other members may read them already; see :meth:`lose`."""
        for partition in self._positions.assigned:
            self._positions.withhold(self._positions.require(partition), True)

    async def lose(self, reason: str, lost: Sequence[TopicPartition] | None = None) -> None:
        """Stop reading these partitions, by default all, and call the user's listener.

        Other members may read the partitions already, or their topics no longer exist.
        """
        partitions, listeners = self._positions.assigned if lost is None else tuple(lost), self._topics.listeners
        self._drop(partitions, reason, lost=True)
        await self._call_listener(listeners.on_lost or listeners.on_revoked, partitions)

    async def revoke(
        self, partitions: Sequence[TopicPartition], *, task: Task | None = None, reason: str = "they were revoked"
    ) -> None:
        """Commit the finished records of these partitions, call the user's listener, and drop the partitions.

        With a ``task``, first wait until the user has finished the records; if the task is obsolete by then, return.
        """
        if not partitions:
            if isinstance(task, PrepareRejoin):
                await self._call_listener(self._topics.listeners.on_revoked, partitions)
            return
        driver = self._driver
        states = [state for partition in partitions if (state := self._positions.get(partition)) is not None]
        for state in states:
            self._positions.withhold(state, True)
        if task is not None:
            driver.notify()
            with anyio.move_on_after(self._patience):
                await driver.until(
                    lambda: (
                        self.leaving or task is not driver.machine.task or not any(state.is_in_hand for state in states)
                    )
                )
            if task is not driver.machine.task:
                self._release(states)
                return
        try:
            if self._auto_commit is not None:
                await self._auto_commit.commit_last(within=self.commit_timeout)
            await self._call_listener(self._topics.listeners.on_revoked, partitions)
        finally:  # also if the commit or the listener is cut off in the middle, as close() and unsubscribe() do
            self._drop(partitions, reason)

    def abandon(self, reason: str) -> None:
        """Drop the partitions that are left without calling the user's listener, since another one may hang."""
        if self._positions.assigned:
            self._drop(self._positions.assigned, reason)

    def _drop(self, partitions: Sequence[TopicPartition], reason: str, *, lost: bool = False) -> None:
        machine = self._driver.machine
        group = machine.settings.group_id
        if partitions:
            message = (
                "lost in group %(group)r: %(partitions)s" if lost else "revoked in group %(group)r: %(partitions)s"
            )
            _log.info(message, group=group, partitions=format_partitions(partitions), reason=reason)
        if not lost:
            self._revoked += partitions
        elif partitions and (notify := self._cluster.observers.partitions_lost) is not None:
            notify(PartitionsLost(group=group, partitions=tuple(partitions), reason=reason))
        in_hand = self._positions.revoke(partitions, machine.last_group, reason, self._cluster.runtime.now())
        if in_hand and not self.leaving:
            _log.warning(
                "group %(group)r revoked %(partitions)s while records were being processed, since %(reason)s; those "
                "records are read again from the last commit, and commits of them fail",
                group=group,
                partitions=format_partitions([lost.state.partition for lost in in_hand]),
                reason=reason,
            )
        self._driver.notify()
        self._fetcher.wake()
        self._fetcher.notify()

    async def _call_listener(self, listener: Listener | None, partitions: Sequence[TopicPartition]) -> None:
        """Call the user's listener; its exceptions are raised by the iteration, and do not end the membership."""
        if listener is None or not (partitions or self._topics.listeners.called_if_empty):
            return
        try:
            with self._commits.listening():
                result = listener(tuple(partitions))
                if inspect.isawaitable(result):
                    await result
        except Exception as error:
            self._report(error)
        except anyio.get_cancelled_exc_class() as cancelled:
            if is_being_cancelled():
                raise
            # Such as of a task that the listener has cancelled and awaits: it would end the change halfway.
            self._report(stray_cancellation("a rebalance listener", cancelled))
