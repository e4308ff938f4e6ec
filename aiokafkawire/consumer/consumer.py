"""The consumer: what users call."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, Self, TypeVar

import anyio

from ..argument_checks import INT64, check_integer, check_seconds, flattened, shown
from ..cluster.cluster import Cluster
from ..cluster.list_offsets import look_up_offsets
from ..cluster.retry import Deadline
from ..config import ConsumerConfig
from ..errors import UsageError
from ..other_clients_names import CONSUMER, add_hints, refuse_keywords
from ..records.batch import ConsumerRecord
from ..runtime import CLOSE_SECONDS, finish, opened_at, warn_unclosed
from ..types import (
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    TopicPartition,
    check_partition,
    check_start,
    check_topic_name,
    normalize_offsets,
    normalize_partitions,
    normalize_specs,
)
from .all_partitions import AllPartitions
from .fetcher import Fetcher
from .health import ConsumerHealth, look_at
from .offset_reset import reset_to
from .record_iteration import ConsumerBatch, RecordIteration
from .subscription_state import SubscriptionState

if TYPE_CHECKING:  # many a consumer has no group
    import re

    from ..group.assignors import Assignor
    from ..group.committed_offsets import GroupOffsets
    from .coordinator import ConsumerCoordinator
    from .offset_commits import OffsetCommitter
    from .topic_subscription import Listener

__all__ = ("Consumer", "ConsumerBatch")

K = TypeVar("K")
V = TypeVar("V")


class Consumer(RecordIteration[K, V]):
    """Reads records; made by :meth:`Client.consumer`, and used as ``async with``.

    Iterate it for records, or :meth:`batches` for whole batches. An error ends neither: enter the loop again, and
    it goes on where it was. One task takes records at a time: another that does so meanwhile, or while the first has
    some in hand, gets a UsageError.

    With a ``group_id`` and topics, or after :meth:`subscribe`, it shares the topics' partitions with the other members
    of the group: it has joined once :attr:`assignment` is not empty. What the user has finished is committed by itself
    (``enable_auto_commit``); finished is a record, or a batch, once the user comes for the next. A rebalance waits for
    what the user has in hand of partitions that have to be given up, up to ``max_poll_interval_ms``.

    With a ``group_id`` and :meth:`assign`, partitions begin at what the group has committed, but it joins no group.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        lane: str,
        topics: tuple[str, ...] = (),
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        assignors: Sequence["Assignor"] = (),
        *,
        joins: bool = True,
    ) -> None:
        for topic in topics:
            check_topic_name(topic)
        offsets = None
        if config.group_id is not None:
            from ..group.committed_offsets import GroupOffsets

            # A commit may wait for replicas, and heartbeats must not wait behind it.
            offsets = GroupOffsets(cluster, config.group_id, f"commit-{lane}")
        positions = SubscriptionState(reset_to(config.auto_offset_reset), in_group=offsets is not None)
        fetcher = Fetcher(cluster, config, positions, f"fetch-{lane}", offsets)
        super().__init__(cluster, config, positions, fetcher, key_deserializer, value_deserializer)
        self._topics, self._lane, self._assignors = topics, lane, assignors
        self._offsets, self._joins = offsets, joins
        self._commits = _commits(cluster, config, positions, offsets) if offsets is not None else None
        self._in_group: ConsumerCoordinator | None = None
        self._background = anyio.CancelScope()
        self._has_closed = anyio.Event()
        self._opened_at = ""

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise UsageError(f"this consumer is {self._state}: ask the client for another")
        self._cluster.owner.spawn(self._fetcher.run)
        self._state, self._opened_at = "open", opened_at()
        try:
            if self._commits is not None and self._config.enable_auto_commit:
                self._cluster.owner.spawn(self._keep_committing, self._commits)
            if self._topics and self._commits is not None and self._joins:
                self.subscribe(*self._topics)
            elif self._topics:
                whole = AllPartitions(self._cluster, self._positions, self._fetcher, self._topics)
                await whole.take(self._deadline(None))
                self._cluster.owner.spawn(self._follow, whole)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Commit what is finished (``enable_auto_commit``), leave the group, and stop. May be called again.

        It ends within ``timeout`` seconds, whatever the brokers do, and soon if the group's coordinator is away: what
        is not committed then is read again by others. To wait for that, :meth:`commit` before.

        A cancellation does not keep it from that: it is raised afterwards, and at most 5 seconds later. An iteration of
        another task ends, and a :meth:`poll` that waits there gives an empty list.

        Raises:
            UsageError: a listener of the consumer called it, or this is another event loop than the client's.
        """
        check_seconds("timeout", timeout, optional=False)
        if self._commits is not None and self._commits.is_listening:
            raise UsageError("a listener cannot close the consumer: the rebalance waits for the listener")
        if self._state == "open":
            if self._cluster.owner.has_lost_loop:
                self._state = "closed"
            self._cluster.owner.require_own_loop()
            # A listener that hears of it may still commit.
            self._state = "closing"
            self._marks.changes += 1
            self._fetcher.tell()
            await finish(self._close, timeout)
        elif self._state == "closing":
            await finish(self._has_closed.wait)

    async def _close(self, timeout: float) -> None:
        self._background.cancel()
        try:
            await self._finish(self._cluster.deadline(timeout))
        finally:
            self._state = "closed"
            try:
                self._decompression.close()
                await self._fetcher.close()
                if self._offsets is not None:
                    await self._offsets.close()
            finally:
                self._has_closed.set()

    def __del__(self) -> None:
        if getattr(self, "_state", "new") == "open" and not self._cluster.owner.has_closed:
            warn_unclosed(self, "consumer", self._opened_at)

    async def _finish(self, deadline: Deadline) -> None:
        if self._in_group is not None:
            await self._in_group.close(deadline)
        elif self._commits is not None and self._config.enable_auto_commit:
            await self._commits.commit_finished(within=deadline.left(self._cluster.runtime.now()))

    async def _keep_committing(self, commits: "OffsetCommitter") -> None:
        with self._background:
            await commits.keep_committing()

    async def _follow(self, whole: AllPartitions) -> None:
        with self._background:
            await whole.follow()

    # --- what to read ----------------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int | OffsetSpec]) -> None:
        """Read these partitions and no others.

        A mapping says where each begins: an offset or an OffsetSpec. Otherwise partitions that were assigned before
        keep their position, and new ones begin at what the group has committed, or where ``auto_offset_reset`` says.

        Raises:
            UsageError: the topics are given already, or what is given is no partition.
        """
        self._require_open()
        if self._in_group is not None:
            raise UsageError("the group decides what this consumer reads: make another to assign partitions by hand")
        if self._topics:
            raise UsageError("this consumer reads all partitions of its topics: make one without topics to assign")
        is_mapping = isinstance(partitions, Mapping)
        starts = dict(partitions) if is_mapping else dict.fromkeys(normalize_partitions(partitions))
        checked: dict[TopicPartition, int | OffsetSpec | None] = {}
        for given, start in starts.items():
            where = check_partition(given)
            if start is not None:
                check_start(where, start)
            checked[where] = start
        self._positions.assign(checked)
        self._fetcher.wake()

    def subscribe(
        self,
        *topics: str | Collection[str],
        pattern: "str | re.Pattern[str] | None" = None,
        on_assigned: "Listener | None" = None,
        on_revoked: "Listener | None" = None,
        on_lost: "Listener | None" = None,
        **unknown: Never,
    ) -> None:
        """Share the partitions of these topics with the other members of the group; instead of those before, if any.

        Args:
            topics: names, or one list of names; they need not exist yet.
            pattern: instead, a regular expression for the whole name; topics that come later are read from then on.
            on_assigned: is called with partitions that this consumer is to read, before it gets records of them: the
                place to :meth:`seek`.
            on_revoked: is called with partitions that go to others, once the user has come back from the records that
                it had of them: the last moment to :meth:`commit` for them.
            on_lost: is called with partitions that others may read already, since this consumer was not heard of in
                time; without it ``on_revoked`` is.

        The functions may be coroutine functions, which are awaited; heartbeats go on meanwhile. What they raise is
        raised by the iteration.

        Raises:
            UsageError: there is no ``group_id``, or partitions were assigned by hand, or what is given is no topic.
        """
        self._require_open()
        if self._commits is None:
            raise UsageError("who subscribes shares topics with a group: make the consumer with a group_id")
        if self._in_group is None and len(self._positions.assigned):
            raise UsageError("partitions are assigned by hand already: make another consumer to subscribe")
        if unknown:
            raise refuse_keywords("subscribe", unknown)
        from .topic_subscription import RebalanceListeners, subscription_to

        subscription = subscription_to(flattened(topics), pattern, RebalanceListeners(on_assigned, on_revoked, on_lost))
        if self._in_group is None:
            self._in_group = self._take_part(self._commits)
        self._in_group.subscribe(subscription)

    async def unsubscribe(self, timeout: float = 5.0) -> None:
        """Commit what is finished (``enable_auto_commit``) and leave the group, within ``timeout`` seconds.

        Then :meth:`subscribe` joins again.

        Raises:
            UsageError: a listener of the consumer called it.
        """
        check_seconds("timeout", timeout, optional=False)
        self._require_open()
        if self._commits is not None and self._commits.is_listening:
            raise UsageError("a listener cannot unsubscribe the consumer: the rebalance waits for the listener")
        if self._in_group is not None:
            await self._in_group.unsubscribe(self._deadline(timeout))

    def _take_part(self, commits: "OffsetCommitter") -> "ConsumerCoordinator":
        from ..group.consumer_member import make_assignors
        from .coordinator import ConsumerCoordinator

        assignors = self._assignors or make_assignors(self._config.partition_assignment_strategy)
        part = ConsumerCoordinator(
            self._cluster,
            self._config,
            self._positions,
            self._fetcher,
            commits,
            assignors,
            self._lane,
            self._polls,
            self._report,
        )
        part.open()
        self._on_release = part.membership.tell
        self._on_asked = part.membership.asked
        return part

    def _report(self, error: Exception) -> None:
        self._untold.append(error)
        self._fetcher.tell()

    def _polls(self) -> tuple[int, bool]:
        self._positions.settle()
        return self._marks.asked, self._waiting > 0

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """The partitions that are read."""
        return self._positions.assigned

    def seek(self, partition: TopicPartition, to: int | OffsetSpec) -> None:
        """Go on from an offset, or from where an OffsetSpec leads once it was looked up.

        Raises:
            UsageError: the partition is not assigned, or the offset is negative.
        """
        self._require_open()
        partition = check_partition(partition)
        check_start(partition, to)
        self._positions.seek(partition, to)
        self._fetcher.wake()

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset after the last record handed out; None while the first is being looked up.

        It is past what follows that record and is not for users, as soon as that is fetched: control records, records
        of aborted transactions (``read_committed``), and offsets that compaction has removed.

        Raises:
            UsageError: the partition is not assigned.
        """
        place = self._positions.require(check_partition(partition))
        self._pass_hidden_batches(self._fetcher.unread.get(place.where))
        return place.position

    def _fetch_until(self, where: TopicPartition, offset: int) -> None:
        """Fetch nothing of it from there on: for whoever reads a range, in this package."""
        self._positions.require(where).until = offset

    def pause(self, *partitions: TopicPartition | Collection[TopicPartition]) -> None:
        """Hand out no records of these partitions until :meth:`resume`; what was fetched is kept.

        Raises:
            UsageError: one is not assigned.
        """
        self._set_paused(partitions, paused=True)

    def resume(self, *partitions: TopicPartition | Collection[TopicPartition]) -> None:
        """Undo :meth:`pause`.

        Raises:
            UsageError: one is not assigned.
        """
        self._set_paused(partitions, paused=False)

    def _set_paused(self, partitions: tuple[object, ...], *, paused: bool) -> None:
        named = normalize_partitions(flattened(partitions))
        for place in [self._positions.require(partition) for partition in named]:
            self._positions.pause(place, paused)
        self._fetcher.wake()
        self._fetcher.tell()

    @property
    def paused(self) -> tuple[TopicPartition, ...]:
        """The partitions that :meth:`pause` named."""
        return tuple(place.where for place in self._positions if place.paused)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The end of the partition's log when it was last fetched; None before the first fetch.

        Raises:
            UsageError: the partition is not assigned.
        """
        return self._positions.require(check_partition(partition)).high_watermark

    async def offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look offsets up: the beginning, the end, or by time; None where no record is that late.

        ``timeout`` is in seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            RequestTimeout, TopicNotReady: not all were found in time.
            UsageError: a topic has no such partition.
        """
        asked = normalize_specs(specs)
        return await look_up_offsets(self._cluster, asked, self._deadline(timeout), self._config.isolation)

    def _deadline(self, timeout: float | None) -> Deadline:
        check_seconds("timeout", timeout)
        allowed = self._cluster.config.default_api_timeout_ms / 1000 if timeout is None else timeout
        return self._cluster.deadline(allowed)

    def health(self) -> ConsumerHealth:
        """How the consumer is: what it reads, how far it is, what its group says, and why nothing arrives."""
        self._pass_all_hidden_batches()
        topics = self._topics if self._in_group is None else ()
        return look_at(self._cluster, self._positions, self._fetcher, self._in_group, self._got_at, topics)

    def _pass_all_hidden_batches(self) -> None:
        self._positions.settle()
        for fetched in list(self._fetcher.unread.values()):
            self._pass_hidden_batches(fetched)

    # --- the group's offsets ---------------------------------------------------------------------------

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where to read on, after the last record handed out, to be committed as it is.

        Partitions whose position is still being looked up are not in it. Partitions that were taken away while their
        records were being processed are in it until more records are asked for: :meth:`commit` and the coordinator
        refuse them then.
        """
        self._pass_all_hidden_batches()
        return self._positions.to_commit()

    def group_metadata(self) -> GroupMetadata:
        """Return the membership that commits, for ``transaction.commit_offsets(offsets, group=...)`` (KIP-447).

        It is the one under which the records in hand were handed out: if the group has taken their partitions away
        since, the coordinator refuses it, even if this consumer has joined again meanwhile.

        Raises:
            UsageError: the consumer was made without a ``group_id``.
        """
        return self._committing().group

    def owns(self, record: ConsumerRecord[Any, Any] | ConsumerBatch[Any, Any]) -> bool:
        """Return whether a record, or a batch, that was handed out still counts.

        If not, the group has taken the partition away since, another consumer may process the record, and committing it
        fails. False for what this consumer has not handed out under its present assignment. Nothing is asked of the
        coordinator, so a member that was evicted a moment ago may not know of it yet: only a commit, or a transaction,
        is certain.
        """
        self._positions.settle()
        if isinstance(record, ConsumerBatch):
            offset = record.next_offset - 1
        elif all(hasattr(record, name) for name in ("topic", "partition", "offset")):
            offset = record.offset
        else:
            raise UsageError(f"owns() takes a record, or a batch, of this consumer; got {shown(record)}")
        place = self._positions.get(TopicPartition(record.topic, record.partition))
        if place is None or not place.has_handed_out(offset):
            return False
        return self._in_group is None or self._in_group.membership.machine.is_member

    def check_ownership(self, *, since: float | None = None) -> None:
        """Raise if the group took partitions away while their records were being processed.

        They are in hand until more records are asked for. :meth:`commit` and ``transaction.commit_offsets(consumer)``
        begin with this check.

        Args:
            since: raise also if the group took partitions away after this moment, in seconds of the event loop's clock,
                whose records were handed out after it, even if more records were asked for since.

        Raises:
            CommitFailed: it has; the message says why.
            UsageError: ``since`` is no number.
        """
        check_seconds("since", since)
        self._positions.settle()
        self._positions.require_in_hand()
        if since is not None:
            self._positions.require_taken_since(since)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        retention_ms: int | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets for the group: where it reads on, once this consumer is gone.

        Args:
            offsets: of the next record to read; without them :meth:`positions`.
            retention_ms: for how long the broker keeps them, whatever ``offsets.retention.minutes`` says; brokers know
                this from 0.9 on. Such a commit goes in an older form, without leader epochs (OffsetCommit v2-4).
            timeout: in seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            RequestTimeout: not in time; the message has the last cause.
            CommitFailed: the group has taken the partitions away while their records were being processed; nothing is
                committed, and what was done with the records is to be discarded.
            UnknownMemberId: the group has members, and this consumer is none.
            OffsetMetadataTooLarge, GroupAuthorizationFailed, ...: what the broker answers; some may be committed.
            UnsupportedVersion: the broker takes no ``retention_ms``.
            UsageError: the consumer was made without a ``group_id``, or what is given is no offset, or there are no
                ``offsets`` and another task takes the records.
        """
        if retention_ms is not None:
            check_integer("retention_ms", retention_ms, 0, INT64)
        commits = self._committing()
        if offsets is None:
            self.check_ownership()
            if not commits.is_listening:
                self._user.require_commit()
        given = self.positions() if offsets is None else normalize_offsets(offsets)
        if given:
            await commits.commit(
                given, self._deadline(timeout), retention_ms=retention_ms, skip_deleted=offsets is None
            )
        if offsets is None:
            self._finish_in_hand()

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for these partitions; None where that is nothing.

        An offset that an open transaction commits is waited for (KIP-447), on brokers from 2.5 on. ``timeout`` is in
        seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            RequestTimeout: not in time; the message has the last cause.
            GroupAuthorizationFailed, ...: what the broker answers.
            UsageError: the consumer was made without a ``group_id``.
        """
        self._committing()
        assert self._offsets is not None
        asked = normalize_partitions(partitions)
        return await self._offsets.committed(asked, self._deadline(timeout)) if asked else {}

    def _committing(self) -> "OffsetCommitter":
        if self._commits is None:
            raise UsageError("offsets are committed for a group: make the consumer with a group_id")
        if self._state != "closing":
            self._require_open()
        return self._commits


add_hints(Consumer, CONSUMER)


def _commits(
    cluster: Cluster, config: ConsumerConfig, positions: SubscriptionState, offsets: "GroupOffsets"
) -> "OffsetCommitter":
    from .offset_commits import OffsetCommitter

    return OffsetCommitter(cluster, positions, offsets, config.auto_commit_interval_ms / 1000)
