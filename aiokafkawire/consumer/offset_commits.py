"""Commits the offsets of one consumer: on request, and automatically those of finished records."""

import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import anyio

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import BrokerError, CommitFailed, ErrorCode, KafkaError, RequestTimeout, broker_error, copy_for_reraise
from ..group.classic_transitions import GroupState
from ..group.group_offsets import GroupOffsets
from ..group.member_actions import ApplyAssignment
from ..types import CoordinatorType, GroupMetadata, OffsetAndMetadata, TopicPartition, normalize_offsets
from .subscription_state import PartitionState, SubscriptionState, format_partitions

if TYPE_CHECKING:  # consumers with assign() join no group
    from ..group.membership_driver import MembershipDriver

__all__ = ("OffsetCommitter",)

_log = logging.getLogger("aiokafkawire.consumer")

_INCOMPLETE: Final = (GroupState.ASSIGNING, GroupState.SYNCING)
_RETRY_DELAY: Final = 0.02
"""Seconds between the attempts of a commit during a rebalance."""
_MIN_PATIENCE: Final = 1.0
"""The least seconds that an auto-commit waits for its response, before newer finished offsets are sent."""
_SOON: Final = 1 / 8
"""The fraction of the interval after which newly assigned partitions are first committed; it doubles from then on."""
_SILENT: Final = 0.2
"""Seconds after which the connection of an abandoned commit is not used again: its coordinator waits for replicas."""
_NOT_ENTITLED: Final = (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS)


_listening: Final[ContextVar[object]] = ContextVar("aiokafkawire_listening", default=None)


class OffsetCommitter:
    """Commits the offsets of one consumer, one commit at a time, so that no retry overtakes a later commit.

    Args:
        cluster: finds the coordinator.
        positions: the consumer's positions.
        offsets: sends the commits.
        every: the seconds between auto-commits.
    """

    def __init__(self, cluster: Cluster, positions: SubscriptionState, offsets: GroupOffsets, every: float) -> None:
        self._cluster, self._positions, self._offsets, self._every = cluster, positions, offsets, every
        cluster.log_coordinator(CoordinatorType.GROUP, offsets.group.group_id)
        self.membership: MembershipDriver | None = None
        """The membership that commits, if the consumer has joined a group; see :meth:`join`."""
        # The listener call in progress, if there is one.
        self._listening: object | None = None
        self._lock = anyio.Lock()
        self._last: dict[TopicPartition, tuple[PartitionState, OffsetAndMetadata]] = {}
        # The offsets acknowledged since each partition was assigned; None where the outcome is unknown.
        self._acknowledged: dict[TopicPartition, OffsetAndMetadata | None] = {}
        # The finished offsets of revoked partitions, whether or not auto-commit has succeeded.
        self._finished: dict[TopicPartition, OffsetAndMetadata] = {}
        self._commits_elsewhere = False
        # When the unanswered commit was sent: the one in flight, or an abandoned one.
        self._unanswered_since: float | None = None
        self._begun = anyio.Event()

    def join(self, membership: "MembershipDriver") -> None:
        """Commit as this member from now on."""
        self.membership = membership
        self._offsets.on_result = membership.on_coordinator_result

    @property
    def group(self) -> GroupMetadata:
        """The membership under which the unfinished records were handed out; without such records, the current one.

        A membership that has ended is still returned, so that the coordinator rejects the commit. Reading this property
        records that the caller may commit without this class, as transactions do.
        """
        self._commits_elsewhere = True
        for lost in self._positions.lost_in_hand.values():
            if lost.group is not None:
                return lost.group
        generation = self._become_member()
        last = self.membership.machine.last_group if self.membership is not None else None
        return last if generation < 0 and last is not None else self._offsets.group

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget earlier commits of these partitions: they are newly assigned."""
        for partition in partitions:
            self._acknowledged.pop(partition, None)
            self._finished.pop(partition, None)
        self._begun.set()

    def give_up(self, partitions: Collection[TopicPartition]) -> None:
        """Remember the finished offsets of these revoked partitions, to resume there if no other member gets them."""
        finished = self._positions.finished()
        self._finished.update((partition, finished[partition]) for partition in partitions if partition in finished)

    def start_of(self, state: PartitionState) -> OffsetAndMetadata | None:
        """Return the offset at which to resume a partition that no other member has owned since it was revoked.

        It is the finished offset that :meth:`give_up` remembered, else the committed one; None if only the coordinator
        knows it.
        """
        if self._commits_elsewhere:
            return None
        return self._finished.get(state.partition) or self._acknowledged.get(state.partition, state.begun)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        deadline: Deadline,
        *,
        retention_ms: int | None = None,
        skip_deleted: bool = False,
    ) -> None:
        """Commit these offsets, to be kept for ``retention_ms`` if given.

        With ``skip_deleted``, ignore partitions that have been deleted.

        A rebalance that leaves these partitions to this consumer only delays the commit. If they are revoked meanwhile,
        the commit is rejected, even if they are assigned to this consumer again.

        Raises:
            CommitFailed: the partitions may belong to another member, or were revoked while their records were being
                processed.
            RequestTimeout: the deadline passed; the message has the last cause.
            KafkaError: another error that is not retriable.
        """
        given = normalize_offsets(offsets)
        self._positions.require_not_lost(given)
        states = {partition: self._positions.get(partition) for partition in given}

        def kept() -> bool:
            return all(state is not None and self._positions.get(at) is state for at, state in states.items())

        def is_revoked() -> bool:
            return any(state is not None and self._positions.get(at) is not state for at, state in states.items())

        for partition in given:
            self._finished.pop(partition, None)  # from now on the user's offset counts
        await self._acquire(deadline)
        for partition in given:
            self._last.pop(partition, None)  # auto-commit has to commit the finished offset again
        try:
            while True:
                await self._wait_for_assignment(deadline)
                generation = self._become_member()
                if self.membership is not None and generation < 0:
                    if self.membership.machine.error is not None:
                        raise copy_for_reraise(self.membership.machine.error)
                    # A group without members accepts commits from any client, also from former members.
                    raise _failed(self._offsets.group.group_id, list(given), broker_error(ErrorCode.UNKNOWN_MEMBER_ID))
                if self.membership is not None and is_revoked():
                    # They may be assigned again in another generation, which could commit them.
                    raise _failed(self._offsets.group.group_id, list(given), broker_error(ErrorCode.ILLEGAL_GENERATION))
                try:
                    await self._send(given, deadline, retention_ms=retention_ms, skip_deleted=skip_deleted)
                except BrokerError as error:
                    if self.membership is None or error.code not in _NOT_ENTITLED:
                        raise
                    await self._wait_for_rebalance(error, deadline, kept)
                    if self.membership.machine.is_rebalancing and deadline.passed(self._cluster.runtime.now()):
                        raise RequestTimeout(f"the group rebalanced for longer than {deadline.allowed:g} s") from error
                    # A generation that was incomplete may be complete by now.
                    is_passing = error.code == ErrorCode.REBALANCE_IN_PROGRESS and not self.is_listening
                    if not kept() or (self.membership.machine.generation == generation and not is_passing):
                        raise _failed(self._offsets.group.group_id, list(given), error) from error
                    await anyio.sleep(min(_RETRY_DELAY, deadline.left(self._cluster.runtime.now())))
                else:
                    return
        finally:
            self._lock.release()

    async def _send(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        deadline: Deadline,
        *,
        retention_ms: int | None = None,
        skip_deleted: bool,
        newer: Callable[[], Mapping[TopicPartition, OffsetAndMetadata]] | None = None,
        patience: float = math.inf,
    ) -> None:
        """Commit these offsets, and record for each partition whether the coordinator has acknowledged the commit.

        ``newer`` and ``patience`` are as for :meth:`GroupOffsets.commit`.
        """
        generation = self._offsets.group.generation_id
        for partition in offsets:
            self._acknowledged[partition] = None
        is_certain = False
        try:
            await self._offsets.commit(
                offsets,
                deadline,
                retention_ms=retention_ms,
                skip_deleted=skip_deleted,
                newer=newer,
                patience=patience,
            )
            is_certain = True
        finally:
            # The coordinator accepts no commit of an ended membership.
            if self.membership is not None and self.membership.machine.generation == generation:
                self._acknowledged.update(offsets if is_certain else dict.fromkeys(offsets))

    async def commit_finished(self, *, within: float) -> None:
        """Commit the offsets finished since the last call, within ``within`` seconds.

        A retry sends the offsets finished by then. A coordinator that waits for its replicas responds late, but it has
        accepted the commits that it received: so newer offsets are sent before it responds, in case this process is
        killed. A failure is logged as a warning; the next auto-commit includes the offsets.
        """
        deadline = self._cluster.deadline(within)
        try:
            await self._acquire(deadline)
        except RequestTimeout:
            return  # the commit in progress reports its own result
        try:
            if self._become_member() < 0 and self.membership is not None:
                return
            finished = {
                partition: (self._positions.require(partition), at)
                for partition, at in self._positions.finished().items()
            }
            changed = {
                partition: at for partition, (state, at) in finished.items() if self._last.get(partition) != (state, at)
            }
            began, patience = self._cluster.runtime.now(), max(self._every, _MIN_PATIENCE)

            def newer() -> Mapping[TopicPartition, OffsetAndMetadata]:
                for partition, at in self._positions.finished().items():
                    if partition in changed and self._positions.get(partition) is finished[partition][0]:
                        changed[partition], finished[partition] = at, (finished[partition][0], at)
                return changed

            if changed:
                await self._reconnect_if_silent()
                await self._send(changed, deadline, skip_deleted=True, newer=newer, patience=patience)
                self._unanswered_since = None
            # An unanswered attempt might still take effect after the last one: then commit once more.
            self._last = finished if self._cluster.runtime.now() - began < patience else {}
        except KafkaError as error:
            if not isinstance(error, RequestTimeout):
                self._unanswered_since = None
            if self.membership is not None and isinstance(error, BrokerError) and error.code in _NOT_ENTITLED:
                self._notify_member(error)
            else:
                _log.warning("auto-commit of group %r failed: %s", self._offsets.group.group_id, error)
        finally:
            self._lock.release()

    async def _reconnect_if_silent(self) -> None:
        """Reconnect if an abandoned commit is unanswered: the coordinator reads no later request on its connection."""
        now = self._cluster.runtime.now()
        if self._unanswered_since is not None and now - self._unanswered_since >= _SILENT:
            await self._offsets.close()
        self._unanswered_since = now

    async def keep_committing(self) -> None:
        """Run auto-commits at their interval, and at once after an auto-commit that has taken longer.

        After an assignment the intervals are shorter at first: a new owner often has much to read at once, and the next
        rebalance may soon move its partitions to other members.
        """
        now, interval = self._cluster.runtime.now, self._every
        due = now() + interval
        while True:
            with anyio.move_on_after(max(0.0, due - now())):
                await self._begun.wait()
            if self._begun.is_set():
                self._begun, interval = anyio.Event(), self._every * _SOON
                due = min(due, now() + interval)
                continue
            interval = min(2 * interval, self._every)
            due = now() + interval
            await self.commit_finished(within=self._cluster.config.default_api_timeout_ms / 1000)

    async def _acquire(self, deadline: Deadline) -> None:
        with anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
            await self._lock.acquire()
            return
        raise RequestTimeout(f"a commit before this one took longer than {deadline.allowed:g} s")

    def _become_member(self) -> int:
        """Commit under the consumer's current membership; return its generation."""
        if self.membership is not None:
            self._offsets.group = self.membership.machine.group
        return self._offsets.group.generation_id

    def _notify_member(self, error: BrokerError) -> None:
        assert self.membership is not None
        self.membership.machine.commit_refused(self._offsets.group, error, self._cluster.runtime.now())
        self.membership.wake()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Mark calls by this task, and by tasks that it starts in this context, as calls by a listener."""
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
        membership = self.membership
        if membership is not None and not self.is_listening:
            with anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
                await membership.until(lambda: membership.machine.state not in _INCOMPLETE)

    async def _wait_for_rebalance(self, error: BrokerError, deadline: Deadline, kept: Callable[[], bool]) -> None:
        assert self.membership is not None
        self._notify_member(error)
        if self.is_listening:
            return
        machine = self.membership.machine

        def is_over() -> bool:
            # Applying an assignment may wait for the user to return from this commit.
            is_settled = machine.task is None or isinstance(machine.task, ApplyAssignment)
            return not kept() or (not machine.is_rebalancing and is_settled)

        with anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
            await self.membership.until(is_over)


def _failed(group_id: str, partitions: list[TopicPartition], error: BrokerError) -> CommitFailed:
    return CommitFailed(
        f"offsets of {format_partitions(partitions)} were not committed: group {group_id!r} has given the partitions "
        f"to other members ({type(error).__name__}), which read again from the last commit. If processing takes longer "
        "than max_poll_interval_ms, raise that; to commit before partitions are revoked, use on_revoked"
    )
