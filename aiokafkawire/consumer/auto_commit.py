"""Commits the offsets of finished records automatically: at intervals, before a revocation, and on close."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import anyio

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import BrokerError, KafkaError, RequestTimeout
from ..event_log import EventLog, TroubleLog
from ..group.group_offsets import NOT_ENTITLED, GroupOffsets
from ..group.membership import GroupState
from ..types import GroupMetadata, OffsetAndMetadata, TopicPartition
from .offset_commits import report_commit
from .recreated_topics import is_of_old_topic
from .subscription_state import SubscriptionState, known_ids

if TYPE_CHECKING:  # consumers with assign() join no group
    from ..group.membership_driver import MembershipDriver

__all__ = ("AutoCommit",)

_log = EventLog("aiokafkawire.consumer")

_MIN_PATIENCE: Final = 1.0
"""The minimum seconds that an auto-commit waits for a response, before it sends newer offsets on another connection."""
_SOON: Final = 1 / 8
"""The first interval after an assignment, as a fraction of the configured one; intervals then double up to it."""
_SILENT: Final = 0.2
"""The seconds after which an unanswered commit makes the next commit use a new connection."""
_JOINS: Final = (GroupState.JOINING, GroupState.ASSIGNING, GroupState.SYNCING)
"""The states in which a rebalance may have begun a generation that this member does not know yet."""


class AutoCommit:
    """The automatic commits of one consumer (``enable_auto_commit``).

    Args:
        cluster: has the clock and the settings.
        positions: the consumer's positions.
        offsets: sends the commits.
        every: the seconds between auto-commits.
    """

    def __init__(self, cluster: Cluster, positions: SubscriptionState, offsets: GroupOffsets, every: float) -> None:
        self._cluster, self._positions, self._offsets, self._every = cluster, positions, offsets, every
        self.driver: MembershipDriver | None = None
        """The driver of the membership that commits, if the consumer has joined a group."""
        # When the unanswered commit, in flight or abandoned, was sent; None if every commit was answered.
        self._unanswered_since: float | None = None
        self._assigned = anyio.Event()
        self._trouble = TroubleLog(_log, cluster.runtime.now)

    def on_assigned(self) -> None:
        """Make the next intervals shorter, since partitions were assigned; see :meth:`run`."""
        self._assigned.set()

    async def run(self) -> None:
        """Commit at intervals, and at once after an auto-commit that took longer than its interval.

        After an assignment the intervals are shorter at first: a new owner often has much to read at once, and the next
        rebalance may soon move its partitions to other members.
        """
        now, interval = self._cluster.runtime.now, self._every
        due = now() + interval
        while True:
            with anyio.move_on_after(max(0.0, due - now())):
                await self._assigned.wait()
            if self._assigned.is_set():
                self._assigned, interval = anyio.Event(), self._every * _SOON
                due = min(due, now() + interval)
                continue
            interval = min(2 * interval, self._every)
            due = now() + interval
            await self.commit_finished(within=self._cluster.config.default_api_timeout_ms / 1000)

    async def commit_last(self, *, within: float) -> None:
        """Commit as :meth:`commit_finished` before partitions are revoked.

        If the coordinator refuses that, since a rebalance was between JoinGroup and SyncGroup, commit once more when
        the member has joined.
        """
        driver, deadline = self.driver, self._cluster.deadline(within)
        if await self.commit_finished(within=within) or driver is None:
            return
        with anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
            await driver.until(lambda: driver.machine.state not in _JOINS)
        await self.commit_finished(within=deadline.left(self._cluster.runtime.now()))

    async def commit_finished(self, *, within: float) -> bool:
        """Commit the offsets of the records that were finished since the last call, within ``within`` seconds.

        Return False if the coordinator has refused the commit because of a rebalance, or after it.

        If the coordinator does not respond in time, a retry sends the newest finished offsets. The coordinator may only
        be waiting for its replicas; but if this process were killed before the response, newer offsets would be lost.
        A failed commit is logged as a warning, and its offsets are part of the next auto-commit.
        """
        deadline, driver = self._cluster.deadline(within), self.driver
        try:
            await self._offsets.acquire(deadline)
        except RequestTimeout as error:
            self._failed(self._group, error)
            return True
        group = self._group
        try:
            if driver is None or driver.machine.is_member:
                await self._commit_finished(group, deadline)
        except KafkaError as error:
            if not isinstance(error, RequestTimeout):
                self._unanswered_since = None
            if driver is not None and isinstance(error, BrokerError):
                refusal = driver.explained(group, error)
                if refusal.code in NOT_ENTITLED:
                    driver.commit_refused(group, refusal)
                    return False
            self._failed(group, error)
        finally:
            self._offsets.release()
        return True

    @property
    def _group(self) -> GroupMetadata:
        return self.driver.machine.group if self.driver is not None else GroupMetadata(self._offsets.group_id)

    def _failed(self, group: GroupMetadata, error: KafkaError) -> None:
        message = "auto-commit of group %(group)r failed, the next one has its offsets too: %(error)s"
        self._trouble.failed("commit", message, group=group.group_id, member_id=group.member_id or None, error=error)

    async def _commit_finished(self, group: GroupMetadata, deadline: Deadline) -> None:
        positions = self._positions
        snapshot = self._cluster.metadata.snapshot
        states = {state.partition: state for state in positions if not is_of_old_topic(positions, state, snapshot)}
        offsets = {partition: at for partition, at in positions.finished().items() if partition in states}
        changed = {partition: at for partition, at in offsets.items() if states[partition].auto_committed != at}
        began, patience = self._cluster.runtime.now(), max(self._every, _MIN_PATIENCE)
        left_out: Collection[TopicPartition] = ()

        def newer() -> Mapping[TopicPartition, OffsetAndMetadata]:
            for partition, at in positions.finished().items():
                if partition in changed and positions.get(partition) is states[partition]:
                    changed[partition] = at
            return changed

        if changed:
            ids = known_ids(states[partition] for partition in changed)
            await self._reconnect_if_silent()
            try:
                left_out = await self._offsets.commit(
                    changed, deadline, group=group, skip_deleted=True, newer=newer, patience=patience, topic_ids=ids
                )
            except KafkaError as error:
                report_commit(self._cluster, self._offsets.group_id, changed, began, error)
                raise
            committed = [partition for partition in changed if partition not in left_out]
            report_commit(self._cluster, self._offsets.group_id, committed, began, None)
            self._unanswered_since = None
            self._trouble.ended("commit", "auto-commit of group %(group)r works again", group=group.group_id)
        # After ``patience`` there were several attempts, and an earlier one may take effect last: commit all again. A
        # topic that only seemed to be deleted is committed again, too.
        is_certain = self._cluster.runtime.now() - began < patience
        for partition, at in offsets.items():
            is_committed = is_certain and partition not in left_out
            states[partition].auto_committed = changed.get(partition, at) if is_committed else None

    async def _reconnect_if_silent(self) -> None:
        """Reconnect if the last commit is unanswered: until its response, the coordinator reads no other request."""
        now = self._cluster.runtime.now()
        if self._unanswered_since is not None and now - self._unanswered_since >= _SILENT:
            await self._offsets.close()
        self._unanswered_since = now
