"""Commits for one consumer: what the user asks for, and by itself what the user has finished."""

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
from ..group.committed_offsets import GroupOffsets
from ..group.member_tasks import ApplyAssignment
from ..types import CoordinatorType, GroupMetadata, OffsetAndMetadata, TopicPartition, normalize_offsets
from .subscription_state import PartitionState, SubscriptionState, some_of

if TYPE_CHECKING:  # who assigns by hand joins no group
    from ..group.membership_manager import MembershipManager

__all__ = ("OffsetCommitter",)

_log = logging.getLogger("aiokafkawire.consumer")

_INCOMPLETE: Final = (GroupState.ASSIGNING, GroupState.SYNCING)
_REST: Final = 0.02
"""Seconds between the tries of a commit that meets a rebalance."""
_PATIENCE: Final = 1.0
"""Seconds that an automatic commit waits for its answer at least, before what is finished by then is sent."""
_SOON: Final = 1 / 8
"""After what part of the interval is committed first what was assigned anew; from then on it takes twice as long."""
_SILENT: Final = 0.2
"""Seconds after which a commit that was given up may have nothing else sent behind it: its coordinator waits."""
_NOT_ENTITLED: Final = (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS)


_listening: Final[ContextVar[object]] = ContextVar("aiokafkawire_listening", default=None)


class OffsetCommitter:
    """One commit goes after the other, so that none that was tried again overtakes what was committed later.

    Args:
        cluster: of the coordinator.
        positions: what there is to commit.
        offsets: commits them.
        every: seconds between the automatic commits.
    """

    def __init__(self, cluster: Cluster, positions: SubscriptionState, offsets: GroupOffsets, every: float) -> None:
        self._cluster, self._positions, self._offsets, self._every = cluster, positions, offsets, every
        cluster.log_coordinator(CoordinatorType.GROUP, offsets.group.group_id)
        self.membership: MembershipManager | None = None
        """Who commits, of a consumer that takes part in its group; see :meth:`join`."""
        # The call of a listener of the user's that is going on, if one is.
        self._listening: object | None = None
        self._turn = anyio.Lock()
        self._last: dict[TopicPartition, tuple[PartitionState, OffsetAndMetadata]] = {}
        # What was committed since each partition was assigned, and acknowledged; None where the outcome is unknown.
        self._acknowledged: dict[TopicPartition, OffsetAndMetadata | None] = {}
        # What was finished of partitions that were given up, whether or not it could be committed by itself.
        self._finished: dict[TopicPartition, OffsetAndMetadata] = {}
        self._commits_elsewhere = False
        # Since when a commit has been unanswered: the one under way, or one that was given up.
        self._unanswered_since: float | None = None
        self._begun = anyio.Event()

    def join(self, membership: "MembershipManager") -> None:
        """Commit as this member from now on."""
        self.membership = membership
        self._offsets.heard = membership.heard

    @property
    def group(self) -> GroupMetadata:
        """The membership under which the records in hand were handed out; without any, the present one.

        After the end of a membership it is still that member, so that the coordinator refuses it. The caller may commit
        by itself, as transactions do.
        """
        self._commits_elsewhere = True
        for lost in self._positions.lost_in_hand.values():
            if lost.group is not None:
                return lost.group
        generation = self._become_member()
        last = self.membership.machine.last_group if self.membership is not None else None
        return last if generation < 0 and last is not None else self._offsets.group

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """These are assigned anew: nothing was committed for them since."""
        for where in partitions:
            self._acknowledged.pop(where, None)
            self._finished.pop(where, None)
        self._begun.set()

    def give_up(self, partitions: Collection[TopicPartition]) -> None:
        """These are given up, after :meth:`commit_finished`: should they come back, then from there in any case."""
        finished = self._positions.finished()
        self._finished.update((where, finished[where]) for where in partitions if where in finished)

    def start_of(self, place: PartitionState) -> OffsetAndMetadata | None:
        """Where to go on in a place that was given up, and has been nobody else's since: at what the group has
        committed, or would have, had the coordinator taken what is finished; None if only the coordinator knows.
        """
        if self._commits_elsewhere:
            return None
        return self._finished.get(place.where) or self._acknowledged.get(place.where, place.begun)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        deadline: Deadline,
        *,
        retention_ms: int | None = None,
        skip_deleted: bool = False,
    ) -> None:
        """Commit these, to be kept for ``retention_ms`` where that is given.

        With ``skip_deleted`` partitions that there are no more are left out.

        A rebalance that leaves this consumer their partitions only makes it take longer. What counts is the assignment
        of this moment: should the partitions go and come back while the commit waits, it is refused.

        Raises:
            CommitFailed: the partitions are another's by now, or may be; or they were, while their records were in
                hand.
            RequestTimeout: not in time; the message has the last cause.
            KafkaError: another error that no retry mends.
        """
        given = normalize_offsets(offsets)
        self._positions.require_in_hand(given)
        places = {where: self._positions.get(where) for where in given}

        def kept() -> bool:
            return all(place is not None and self._positions.get(at) is place for at, place in places.items())

        def taken_away() -> bool:
            return any(place is not None and self._positions.get(at) is not place for at, place in places.items())

        for where in given:
            self._finished.pop(where, None)  # from now on it is the user's word that counts
        await self._take_turn(deadline)
        for where in given:
            self._last.pop(where, None)  # what is finished is to be committed by itself again, even if it was before
        try:
            while True:
                await self._wait_for_assignment(deadline)
                generation = self._become_member()
                if self.membership is not None and generation < 0:
                    if self.membership.machine.error is not None:
                        raise copy_for_reraise(self.membership.machine.error)
                    # A group without members would take it from anybody, however long ago this was one.
                    raise _failed(self._offsets.group.group_id, list(given), broker_error(ErrorCode.UNKNOWN_MEMBER_ID))
                if self.membership is not None and taken_away():
                    # They may be assigned again, under another generation, which would be allowed to commit them.
                    raise _failed(self._offsets.group.group_id, list(given), broker_error(ErrorCode.ILLEGAL_GENERATION))
                try:
                    await self._send(given, deadline, retention_ms=retention_ms, skip_deleted=skip_deleted)
                except BrokerError as error:
                    if self.membership is None or error.code not in _NOT_ENTITLED:
                        raise
                    await self._wait_for_rebalance(error, deadline, kept)
                    if self.membership.machine.is_rebalancing and deadline.passed(self._cluster.runtime.now()):
                        raise RequestTimeout(f"the group rebalanced for longer than {deadline.allowed:g} s") from error
                    # A generation that was not complete yet may be by now.
                    is_passing = error.code == ErrorCode.REBALANCE_IN_PROGRESS and not self.is_listening
                    if not kept() or (self.membership.machine.generation == generation and not is_passing):
                        raise _failed(self._offsets.group.group_id, list(given), error) from error
                    await anyio.sleep(min(_REST, deadline.left(self._cluster.runtime.now())))
                else:
                    return
        finally:
            self._turn.release()

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
        """Commit, and know of each partition whether that is certain. ``newer`` brings ``offsets`` up to date."""
        generation = self._offsets.group.generation_id
        for where in offsets:
            self._acknowledged[where] = None
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
            # Of a membership that is over, nothing is taken any more.
            if self.membership is not None and self.membership.machine.generation == generation:
                self._acknowledged.update(offsets if is_certain else dict.fromkeys(offsets))

    async def commit_finished(self, *, within: float) -> None:
        """Commit what the user has finished since the last time, in so many seconds; when it is tried again, what is
        finished by then.

        A coordinator that waits for its replicas answers late. Should this member be killed meanwhile, what it has
        sent will count: so it is sent again and again. What fails is told by a warning: the next one commits it as
        well.
        """
        deadline = self._cluster.deadline(within)
        try:
            await self._take_turn(deadline)
        except RequestTimeout:
            return  # another commit is under way, and will tell
        try:
            if self._become_member() < 0 and self.membership is not None:
                return
            finished = {where: (self._positions.require(where), at) for where, at in self._positions.finished().items()}
            news = {where: at for where, (place, at) in finished.items() if self._last.get(where) != (place, at)}
            began, patience = self._cluster.runtime.now(), max(self._every, _PATIENCE)

            def newer() -> Mapping[TopicPartition, OffsetAndMetadata]:
                for where, at in self._positions.finished().items():
                    if where in news and self._positions.get(where) is finished[where][0]:
                        news[where], finished[where] = at, (finished[where][0], at)
                return news

            if news:
                await self._open_anew_if_silent()
                await self._send(news, deadline, skip_deleted=True, newer=newer, patience=patience)
                self._unanswered_since = None
            # A try that was left unanswered might still have its effect after the last one: then commit once more.
            self._last = finished if self._cluster.runtime.now() - began < patience else {}
        except KafkaError as error:
            if not isinstance(error, RequestTimeout):
                self._unanswered_since = None
            if self.membership is not None and isinstance(error, BrokerError) and error.code in _NOT_ENTITLED:
                self._tell_member(error)
            else:
                _log.warning("auto-commit of group %r failed: %s", self._offsets.group.group_id, error)
        finally:
            self._turn.release()

    async def _open_anew_if_silent(self) -> None:
        """Send nothing behind a commit that was given up unanswered: it would not be read before that is answered."""
        now = self._cluster.runtime.now()
        if self._unanswered_since is not None and now - self._unanswered_since >= _SILENT:
            await self._offsets.close()
        self._unanswered_since = now

    async def keep_committing(self) -> None:
        """Commit what is finished, at the intervals; at once after a commit that has taken longer.

        After an assignment they are shorter at first: whoever takes partitions over often has much to read at once, and
        in troubled times others will have to take them over from it.
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

    async def _take_turn(self, deadline: Deadline) -> None:
        with anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
            await self._turn.acquire()
            return
        raise RequestTimeout(f"a commit before this one took longer than {deadline.allowed:g} s")

    def _become_member(self) -> int:
        """Commit as who the consumer is in its group now; its generation."""
        if self.membership is not None:
            self._offsets.group = self.membership.machine.group
        return self._offsets.group.generation_id

    def _tell_member(self, error: BrokerError) -> None:
        assert self.membership is not None
        self.membership.machine.commit_refused(self._offsets.group, error, self._cluster.runtime.now())
        self.membership.wake()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Meanwhile, have calls of this task, and of those that it starts, count as a listener's."""
        call = self._listening = object()
        before = _listening.set(call)
        try:
            yield
        finally:
            self._listening = None
            _listening.reset(before)

    @property
    def is_listening(self) -> bool:
        """Whether a listener calls, for which the rebalance waits: so it cannot wait for the rebalance."""
        return self._listening is not None and _listening.get() is self._listening

    async def _wait_for_assignment(self, deadline: Deadline) -> None:
        """Between the JoinGroup and the SyncGroup of a generation nobody can commit."""
        membership = self.membership
        if membership is not None and not self.is_listening:
            with anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
                await membership.until(lambda: membership.machine.state not in _INCOMPLETE)

    async def _wait_for_rebalance(self, error: BrokerError, deadline: Deadline, kept: Callable[[], bool]) -> None:
        assert self.membership is not None
        self._tell_member(error)
        if self.is_listening:
            return
        machine = self.membership.machine

        def is_over() -> bool:
            # What is taken may wait for the user to come back from this commit.
            is_settled = machine.task is None or isinstance(machine.task, ApplyAssignment)
            return not kept() or (not machine.is_rebalancing and is_settled)

        with anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
            await self.membership.until(is_over)


def _failed(group_id: str, partitions: list[TopicPartition], error: BrokerError) -> CommitFailed:
    return CommitFailed(
        f"offsets of {some_of(partitions)} were not committed: group {group_id!r} has given the partitions to others "
        f"since ({type(error).__name__}), who read again from what was committed before. Where records take longer "
        "than max_poll_interval_ms, raise that; to commit before partitions go, use on_revoked"
    )
