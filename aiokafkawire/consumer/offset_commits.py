"""Commits the offsets of one consumer on request."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final
from uuid import UUID

import anyio

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import BrokerError, CommitFailed, ErrorCode, KafkaError, RequestTimeout, broker_error, copy_for_reraise
from ..group.group_offsets import NOT_ENTITLED, GroupOffsets
from ..group.membership import ApplyAssignment, GroupState, Reconcile
from ..observe import CommitEnded
from ..types import CoordinatorType, GroupMetadata, OffsetAndMetadata, TopicPartition, normalize_offsets
from .recreated_topics import is_of_old_topic
from .subscription_state import PartitionState, SubscriptionState, format_partitions, known_ids

if TYPE_CHECKING:  # consumers with assign() join no group
    from ..group.membership_driver import MembershipDriver

__all__ = ("OffsetCommitter", "report_commit")

_INCOMPLETE: Final = (GroupState.ASSIGNING, GroupState.SYNCING)
_RETRY_DELAY: Final = 0.02
"""Seconds between the attempts of a commit during a rebalance."""


_listening: Final[ContextVar[object]] = ContextVar("aiokafkawire_listening", default=None)


class OffsetCommitter:
    """The committer of one consumer's offsets: one commit at a time, so that no retry overtakes a later commit.

    Args:
        cluster: finds the coordinator.
        positions: the consumer's positions.
        offsets: sends the commits.
    """

    def __init__(self, cluster: Cluster, positions: SubscriptionState, offsets: GroupOffsets) -> None:
        self._cluster, self._positions, self._offsets = cluster, positions, offsets
        cluster.log_coordinator(CoordinatorType.GROUP, offsets.group_id)
        self.driver: MembershipDriver | None = None
        """The driver of the membership that commits, if the consumer has joined a group; see :meth:`join`."""
        # An object for the call of a listener in progress, if there is one.
        self._listening: object | None = None

    def join(self, driver: "MembershipDriver") -> None:
        """Commit under the membership of ``driver`` from now on."""
        self.driver = driver
        self._offsets.on_result, self._offsets.member = driver.on_coordinator_result, driver

    @property
    def group(self) -> GroupMetadata:
        """The consumer's current membership; one without a member id if it has joined no group."""
        return self.driver.machine.group if self.driver is not None else GroupMetadata(self._offsets.group_id)

    @property
    def group_in_hand(self) -> GroupMetadata:
        """The membership under which the unfinished records were handed out; without such records, the current one.

        A membership that has ended is still returned, so that the coordinator rejects the commit.
        """
        for lost in self._positions.lost_in_hand.values():
            if lost.group is not None:
                return lost.group
        last = self.driver.machine.last_group if self.driver is not None else None
        return last if last is not None and self.group.generation_id < 0 else self.group

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        deadline: Deadline,
        *,
        retention_ms: int | None = None,
        all_positions: bool = False,
        skip_deleted: bool = False,
    ) -> frozenset[TopicPartition]:
        """Commit these offsets, to be kept for ``retention_ms`` if given; return the partitions that were left out.

        During a rebalance the commit waits, and succeeds if this consumer keeps the partitions. If one of them is
        revoked meanwhile, the commit fails, even if that partition is assigned to this consumer again. But if the
        offsets are ``all_positions``, which the user did not choose, it leaves out partitions that are deleted, or that
        are revoked while the user has none of their records. With ``skip_deleted`` it leaves out deleted ones alone.

        Raises:
            CommitFailed: the partitions may belong to another member, or were revoked while their records were being
                processed.
            RequestTimeout: the deadline passed; the message has the last cause.
            KafkaError: another error that is not retriable.
        """
        given = dict(normalize_offsets(offsets))
        wanted = frozenset(given)
        began = self._cluster.runtime.now()
        try:
            skip_deleted = skip_deleted or all_positions
            await self._commit(
                given, deadline, retention_ms=retention_ms, all_positions=all_positions, skip_deleted=skip_deleted
            )
        except KafkaError as error:
            report_commit(self._cluster, self._offsets.group_id, given, began, error)
            raise
        report_commit(self._cluster, self._offsets.group_id, given, began, None)
        return wanted - given.keys()

    async def _commit(
        self,
        given: dict[TopicPartition, OffsetAndMetadata],
        deadline: Deadline,
        *,
        retention_ms: int | None,
        all_positions: bool,
        skip_deleted: bool,
    ) -> None:
        """Commit as :meth:`commit`; drop the partitions that are left out from ``given``."""
        self._positions.require_not_lost(given)
        states = {partition: self._positions.get(partition) for partition in given}
        topic_ids = {partition: state.topic_id for partition, state in states.items() if state is not None}
        known = known_ids(states.values())

        def revoked() -> list[TopicPartition]:
            return [at for at, state in states.items() if state is None or self._positions.get(at) is not state]

        def kept() -> bool:
            return not revoked()

        await self._offsets.acquire(deadline)
        for state in states.values():
            if state is not None:
                state.auto_committed = None
        try:
            while True:
                await self._wait_for_assignment(deadline)
                group = self.group
                if skip_deleted:
                    for partition in self._of_old_topics(states, topic_ids):
                        del given[partition], states[partition]
                    if not given:
                        return
                if all_positions and group.generation_id >= 0 and (gone := revoked()):
                    self._positions.require_not_lost(gone)
                    for partition in gone:
                        del given[partition], states[partition]
                    if not given:
                        return
                self._require_member(group, states)
                try:
                    left_out = await self._offsets.commit(
                        given,
                        deadline,
                        group=group,
                        retention_ms=retention_ms,
                        skip_deleted=skip_deleted,
                        topic_ids=known,
                    )
                except BrokerError as refusal:
                    error = refusal if self.driver is None else self.driver.explained(group, refusal)
                    if self.driver is None or error.code not in NOT_ENTITLED:
                        raise
                    await self._wait_for_rebalance(group, error, deadline, kept)
                    if self.driver.machine.is_rebalancing and deadline.passed(self._cluster.runtime.now()):
                        raise RequestTimeout(f"the group rebalanced for longer than {deadline.allowed:g} s") from error
                    # A generation that was incomplete may be complete by now.
                    is_passing = error.code == ErrorCode.REBALANCE_IN_PROGRESS and not self.is_listening
                    has_changed = self.group.generation_id not in (group.generation_id, -1) or is_passing
                    # The next attempt leaves out what was revoked.
                    may_leave_out = all_positions and self.group.generation_id >= 0
                    if not (has_changed if kept() else may_leave_out):
                        raise _failed(group.group_id, list(given), error) from error
                    await anyio.sleep(min(_RETRY_DELAY, deadline.left(self._cluster.runtime.now())))
                else:
                    for partition in left_out:
                        del given[partition]
                    return
        finally:
            self._offsets.release()

    def _of_old_topics(
        self, states: Mapping[TopicPartition, PartitionState | None], topic_ids: Mapping[TopicPartition, UUID | None]
    ) -> list[TopicPartition]:
        """Return the partitions whose topics were deleted and created again since their records were read."""
        positions, snapshot = self._positions, self._cluster.metadata.snapshot
        return [
            partition
            for partition, state in states.items()
            if topic_ids.get(partition) in positions.vanished
            or (state is not None and is_of_old_topic(positions, state, snapshot))
        ]

    def _require_member(self, group: GroupMetadata, states: Mapping[TopicPartition, PartitionState | None]) -> None:
        """Raise unless this consumer may commit offsets of these partitions.

        If it joins a group, it has to be a member now, and to have kept the partitions; otherwise it may always commit.
        """
        if self.driver is None:
            return
        if group.generation_id < 0:
            if self.driver.machine.error is not None:
                raise copy_for_reraise(self.driver.machine.error)
            # A group without members accepts commits from any client, also from former members.
            raise _failed(group.group_id, list(states), broker_error(ErrorCode.UNKNOWN_MEMBER_ID))
        if any(state is not None and self._positions.get(at) is not state for at, state in states.items()):
            # The partitions may be assigned again, in a generation whose commits would be accepted.
            raise _failed(group.group_id, list(states), broker_error(ErrorCode.ILLEGAL_GENERATION))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Mark calls made in this context, and by tasks that are started in it, as calls by a rebalance listener."""
        call = self._listening = object()
        before = _listening.set(call)
        try:
            yield
        finally:
            self._listening = None
            _listening.reset(before)

    @property
    def is_listening(self) -> bool:
        """Whether the caller is a listener, which must not wait for the rebalance, since the rebalance waits for it."""
        return self._listening is not None and _listening.get() is self._listening

    async def _wait_for_assignment(self, deadline: Deadline) -> None:
        """Wait while a rebalance is between JoinGroup and SyncGroup, when no member can commit."""
        driver = self.driver
        if driver is not None and not self.is_listening:
            with anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
                await driver.until(lambda: driver.machine.state not in _INCOMPLETE)

    async def _wait_for_rebalance(
        self, group: GroupMetadata, error: BrokerError, deadline: Deadline, kept: Callable[[], bool]
    ) -> None:
        assert self.driver is not None
        self.driver.commit_refused(group, error)
        if self.is_listening:
            return
        machine = self.driver.machine

        def is_over() -> bool:
            # Applying an assignment may wait for the user to return from this commit.
            is_settled = machine.task is None or isinstance(machine.task, ApplyAssignment | Reconcile)
            # Once the membership has ended, the partitions are about to be lost. But that may wait for this commit: a
            # listener or an auto-commit comes before, and there is one commit at a time.
            is_awaited = self._listening is not None or self._offsets.is_awaited
            has_ended = not machine.is_member and is_awaited
            return has_ended or not kept() or (not machine.is_rebalancing and is_settled)

        with anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
            await self.driver.until(is_over)


def report_commit(
    cluster: Cluster, group_id: str, offsets: Collection[TopicPartition], began: float, error: KafkaError | None
) -> None:
    """Report a commit to the observers."""
    if offsets and (notify := cluster.observers.commit_ended) is not None:
        seconds = cluster.runtime.now() - began
        notify(CommitEnded(group=group_id, partitions=len(offsets), seconds=seconds, error=error))


def _failed(group_id: str, partitions: list[TopicPartition], error: BrokerError) -> CommitFailed:
    return CommitFailed(
        f"offsets of {format_partitions(partitions)} were not committed: group {group_id!r} has given the partitions "
        f"to other members ({type(error).__name__}), which read again from the last commit. If processing takes longer "
        "than max_poll_interval_ms, raise that; to commit before partitions are revoked, use on_revoked"
    )
