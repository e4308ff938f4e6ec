"""The consumer's public API."""

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Never, Self, TypeVar
from uuid import UUID

import anyio

from ..argument_checks import INT64, check_flag, check_integer, check_seconds, check_text, flattened, shown
from ..cluster.cluster import Cluster
from ..cluster.list_offsets import look_up_offsets
from ..cluster.live_values import MemberValues, PartitionValues
from ..cluster.metrics_push import MetricsPush
from ..cluster.retry import Deadline
from ..config import ConsumerConfig
from ..errors import UsageError
from ..other_clients_names import CONSUMER, add_hints, refuse_keywords
from ..records.batch import ConsumerRecord
from ..records.deserialization import FailureHandler
from ..runtime import CLOSE_SECONDS, finish, opened_at, warn_unclosed
from ..serialization import AnyDeserializer
from ..types import (
    Event,
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    SubscriptionPattern,
    TopicPartition,
    check_partition,
    check_start,
    check_topic_name,
    normalize_offsets,
    normalize_partitions,
    normalize_specs,
)
from .assign_all import AllPartitions
from .consumer_batch import ConsumerBatch
from .fetcher import Fetcher
from .health import ConsumerHealth, health_snapshot
from .offset_reset_policy import parse_reset_policy
from .record_iteration import RecordIteration
from .subscription_state import SubscriptionState, known_ids

if TYPE_CHECKING:  # consumers without a group do not need these
    import re

    from ..group.assignors import Assignor
    from ..group.group_offsets import GroupOffsets
    from ..interceptors import ConsumerInterceptors
    from .auto_commit import AutoCommit
    from .coordinator import ConsumerCoordinator
    from .offset_commits import OffsetCommitter
    from .topic_subscription import Listener, RebalancePatience, TopicSubscription

__all__ = ("Consumer", "ConsumerBatch")

K = TypeVar("K")
V = TypeVar("V")


class Consumer(MetricsPush, Generic[K, V]):
    """A reader of records, made by :meth:`Client.consumer` and used as ``async with``.

    Iterate it for records, or :meth:`batches` for whole batches. After an error, enter the loop again to continue. Only
    one task at a time may take records: while that task waits for or processes records, other tasks get a UsageError.

    With a ``group_id`` and topics, or after :meth:`subscribe`, it shares the topics' partitions with the other members
    of the group: it has joined once :attr:`assignment` is not empty. With ``enable_auto_commit``, finished records are
    committed automatically; a record or batch is finished once the user takes the next one. A rebalance waits until the
    user has finished the records of revoked partitions, up to ``max_poll_interval_ms``.

    With a ``group_id`` and :meth:`assign`, reading begins at the group's committed offsets, but the consumer does not
    join the group.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        lane: str,
        topics: tuple[str, ...] = (),
        key_deserializer: AnyDeserializer[K] | None = None,
        value_deserializer: AnyDeserializer[V] | None = None,
        assignors: Sequence["Assignor"] = (),
        *,
        interceptors: "ConsumerInterceptors | None" = None,
        failures: FailureHandler | None = None,
    ) -> None:
        for topic in topics:
            check_topic_name(topic)
        offsets = None
        if config.group_id is not None:
            from ..group.group_offsets import GroupOffsets

            # A commit may wait for replicas, which must not delay heartbeats.
            offsets = GroupOffsets(cluster, config.group_id, f"commit-{lane}")
        positions = SubscriptionState(parse_reset_policy(config.auto_offset_reset), in_group=offsets is not None)
        fetcher = Fetcher(cluster, config, positions, f"fetch-{lane}", offsets)
        self._cluster, self._config, self._positions, self._fetcher = cluster, config, positions, fetcher
        self._interceptors = interceptors
        self._failures = failures
        parts = cluster, config, positions, fetcher, key_deserializer, value_deserializer, self.health, failures
        self._iteration: RecordIteration[K, V]
        if interceptors is None:
            self._iteration = RecordIteration(*parts)
        else:
            from .intercepted_iteration import InterceptedIteration

            self._iteration = InterceptedIteration(*parts, interceptors)
            if offsets is not None:
                offsets.on_commit = interceptors.on_commit
        self._topics, self._lane, self._assignors = topics, lane, assignors
        self._offsets = offsets
        self._commits: OffsetCommitter | None = None
        self._auto_commit: AutoCommit | None = None
        if offsets is not None:
            self._commits, self._auto_commit = _commits(cluster, config, positions, offsets)
        self._in_group: ConsumerCoordinator | None = None
        self._iteration.has_topics = lambda: bool(self._in_group or self._topics or self._positions.assigned)
        self._background = anyio.CancelScope()
        self._has_closed = anyio.Event()
        self._opened_at = ""

    async def __aenter__(self) -> Self:
        self._open()
        try:
            if self._topics and self._commits is not None:
                self.subscribe(*self._topics)
            elif self._topics:
                all_partitions = AllPartitions(self._cluster, self._positions, self._fetcher, self._topics)
                await all_partitions.take(self._deadline(None))
                self._cluster.owner.spawn(self._follow, all_partitions)
        except BaseException:
            await self.close()
            raise
        return self

    def _open(self, after: Event | None = None) -> None:
        """Start the background tasks; read nothing before the event ``after``."""
        if self._iteration.state != "new":
            raise UsageError(f"this consumer is {self._iteration.state}: make another with client.consumer()")
        self._cluster.owner.spawn(_fetch, self._fetcher, after)
        self._iteration.state, self._opened_at = "open", opened_at()
        if self._auto_commit is not None:
            self._cluster.owner.spawn(self._run_auto_commit, self._auto_commit)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, timeout: float = CLOSE_SECONDS, *, leave_group: bool | None = None) -> None:
        """Commit finished records (``enable_auto_commit``), leave the group, and stop. May be called again.

        With ``leave_group=False`` the partitions stay assigned to this consumer until its session times out, which
        spares the others a rebalance if it returns as a static member (KIP-1092). By default it leaves, unless it is a
        static member.

        Closing ends within ``timeout`` seconds, and sooner if the group's coordinator is unreachable: other members
        then read uncommitted records again. To wait for the commit, call :meth:`commit` before.

        A cancelled call still closes, and raises the cancellation at most 5 seconds later. In other tasks, iterations
        end, and a :meth:`poll` that waits for records returns an empty list.

        Raises:
            UsageError: a listener of the consumer called it, or the running event loop is not the client's.
        """
        check_seconds("timeout", timeout, optional=False)
        if leave_group is not None:
            check_flag("leave_group", leave_group)
        if self._commits is not None and self._commits.is_listening:
            raise UsageError("a listener cannot close the consumer: the rebalance waits for the listener")
        if self._iteration.state == "open":
            if self._cluster.owner.has_lost_loop:
                self._iteration.state = "closed"
            self._cluster.owner.require_own_loop()
            # Listeners that are called meanwhile may still commit.
            self._iteration.state = "closing"
            self._positions.iterator_state.changes += 1
            self._fetcher.notify()
            await finish(self._close, timeout, None if leave_group is None else not leave_group)
        elif self._iteration.state == "closing":
            await finish(self._has_closed.wait)

    async def _close(self, timeout: float, stays: bool | None) -> None:
        self._background.cancel()
        try:
            await self._finish(self._cluster.deadline(timeout), stays)
        finally:
            self._iteration.state = "closed"
            try:
                self._iteration.close()
                if self._failures is not None:
                    await self._failures.close()
                await self._fetcher.close()
                if self._offsets is not None:
                    await self._offsets.close()
            finally:
                if self._interceptors is not None:
                    self._interceptors.close()
                self._has_closed.set()

    def __del__(self) -> None:
        if getattr(getattr(self, "_iteration", None), "state", "new") == "open" and not self._cluster.owner.has_closed:
            warn_unclosed(self, "consumer", self._opened_at)

    async def _finish(self, deadline: Deadline, stays: bool | None) -> None:
        if self._in_group is not None:
            await self._in_group.close(deadline, stays=stays)
        elif self._auto_commit is not None:
            await self._auto_commit.commit_finished(within=deadline.left(self._cluster.runtime.now()))

    async def _run_auto_commit(self, auto_commit: "AutoCommit") -> None:
        with self._background:
            await auto_commit.run()

    async def _follow(self, all_partitions: AllPartitions) -> None:
        with self._background:
            await all_partitions.follow()

    # --- records -----------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Iterate the records. Raises as :meth:`__anext__` does; the iteration may be entered again.

        The iteration ends when any task closes the consumer.
        """
        return aiter(self._iteration)

    async def __anext__(self) -> ConsumerRecord[K, V]:
        """Return the next record; wait for it if needed.

        Raises:
            DeserializationError: the record cannot be deserialized; the position is past the record, and the loop may
                be entered again.
            CorruptBatch: a batch is damaged; to continue, seek past the batch.
            KafkaError: fetching failed with an error that is not retriable, or kept failing for
                ``default_api_timeout_ms``.
            StopAsyncIteration: another task has closed the consumer meanwhile.
            UsageError: the consumer is not open, another task uses it, or the running event loop is not the client's.
        """
        return await anext(self._iteration)

    async def poll(self, max_records: int = 500, timeout: float | None = None) -> list[ConsumerRecord[K, V]]:
        """Return up to ``max_records`` records, as soon as there are any.

        Args:
            max_records: the maximum number of records, which may be of several partitions.
            timeout: how long to wait for the first record, in seconds; None waits without limit. If no record arrives
                in time, or another task closes the consumer meanwhile, the list is empty.

        Raises as the iteration does; if there are records already, they are returned and the next call raises.
        """
        return await self._iteration.poll(max_records, timeout)

    def batches(self) -> AsyncIterator[ConsumerBatch[K, V]]:
        """Iterate whole batches instead of records, which is fastest. The position moves a batch at a time.

        A batch of which some records were handed out is returned without those records. Raises and ends as the
        iteration of records does.
        """
        return self._iteration.batches()

    @property
    def undeserializable_records(self) -> int:
        """The number of records that ``on_error`` has left out: skipped, or written to the dead-letter topic."""
        return 0 if self._failures is None else self._failures.count

    # --- the assignment ----------------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int | OffsetSpec]) -> None:
        """Read these partitions and no others.

        A mapping has the offset or OffsetSpec from which to read each partition. Otherwise partitions assigned before
        keep their positions, and new ones are read from the group's committed offset, or as ``auto_offset_reset`` says.

        Raises:
            UsageError: the consumer was made with topics or has subscribed, or a partition is invalid.
        """
        self._iteration.require_open()
        if self._in_group is not None:
            raise UsageError("the group decides what this consumer reads: make another to assign partitions by hand")
        if self._topics:
            raise UsageError("this consumer reads all partitions of its topics: make one without topics to assign")
        is_mapping = isinstance(partitions, Mapping)
        starts = dict(partitions) if is_mapping else dict.fromkeys(normalize_partitions(partitions))
        checked: dict[TopicPartition, int | OffsetSpec | None] = {}
        for given, start in starts.items():
            partition = check_partition(given)
            if start is not None:
                check_start(partition, start)
            checked[partition] = start
        self._positions.assign(checked)
        self._fetcher.wake()

    def subscribe(
        self,
        *topics: str | Collection[str] | SubscriptionPattern,
        pattern: "str | re.Pattern[str] | None" = None,
        on_assigned: "Listener | None" = None,
        on_revoked: "Listener | None" = None,
        on_lost: "Listener | None" = None,
        **unknown: Never,
    ) -> None:
        """Share the partitions of these topics with the other members of the group; replace an earlier subscription.

        Args:
            topics: topic names, or a list of them; the topics need not exist yet. Or one SubscriptionPattern, which
                the brokers match (``group_protocol="consumer"``).
            pattern: a regular expression for whole topic names, instead of names; it includes topics created later.
            on_assigned: is called with newly assigned partitions, before their records are handed out; it may
                :meth:`seek`.
            on_revoked: is called with partitions that move to other members, once the user has finished their records;
                this is the last moment to :meth:`commit` the offsets.
            on_lost: is called with partitions that other members may read already, since the membership has ended; the
                default is ``on_revoked``.

        The listeners may be coroutine functions; heartbeats are sent while they run. The iteration raises their errors.

        Raises:
            UsageError: there is no ``group_id``, partitions were assigned by hand, or a topic is invalid.
        """
        self._iteration.require_open()
        if self._commits is None:
            raise UsageError("subscribe() needs a group: make the consumer with a group_id")
        if self._in_group is None and len(self._positions.assigned):
            raise UsageError("partitions are assigned by hand already: make another consumer to subscribe")
        if unknown:
            raise refuse_keywords("subscribe", unknown)
        from .topic_subscription import RebalanceListeners, subscription_to

        listeners = RebalanceListeners(on_assigned, on_revoked, on_lost)
        self._subscribe(subscription_to(flattened(topics), pattern, listeners))

    def _subscribe(
        self, subscription: "TopicSubscription", patience: "RebalancePatience | None" = None
    ) -> "ConsumerCoordinator":
        """Subscribe as :meth:`subscribe`; ``patience`` counts for the first subscription."""
        assert self._commits is not None  # subscribe() needs a group
        if self._in_group is None:
            self._in_group = self._make_coordinator(self._commits, patience)
        self._in_group.subscribe(subscription)
        return self._in_group

    async def unsubscribe(self, timeout: float = 5.0) -> None:
        """Commit finished records (``enable_auto_commit``) and leave the group, within ``timeout`` seconds.

        :meth:`subscribe` joins again. A cancelled call unsubscribes nevertheless, within 5 s.

        Raises:
            UsageError: a listener of the consumer called it.
        """
        check_seconds("timeout", timeout, optional=False)
        self._iteration.require_open()
        if self._commits is not None and self._commits.is_listening:
            raise UsageError("a listener cannot unsubscribe the consumer: the rebalance waits for the listener")
        if self._in_group is not None:
            await finish(self._in_group.unsubscribe, self._deadline(timeout))

    def _make_coordinator(
        self, commits: "OffsetCommitter", patience: "RebalancePatience | None"
    ) -> "ConsumerCoordinator":
        from ..group.client_side_assignment import make_assignors
        from .coordinator import ConsumerCoordinator

        assignors = self._assignors or make_assignors(self._config.partition_assignment_strategy)
        coordinator = ConsumerCoordinator(
            self._cluster,
            self._config,
            self._positions,
            self._fetcher,
            self._iteration,
            commits,
            self._auto_commit,
            assignors,
            self._lane,
            patience,
        )
        coordinator.open()
        return coordinator

    @property
    def subscription(self) -> "tuple[str, ...] | re.Pattern[str] | SubscriptionPattern":
        """The topics subscribed to, or the pattern; empty without a subscription."""
        subscription = self._in_group.topics.subscription if self._in_group is not None else None
        if subscription is None:
            return ()
        return subscription.server_pattern or subscription.pattern or subscription.topics

    async def enforce_rebalance(self, reason: str = "the user has requested it") -> None:
        """Start a rebalance of the group; the coordinator gets ``reason`` (KIP-800).

        In the consumer protocol the coordinator decides about rebalances: the call only logs a warning, as in Java.

        Raises:
            UsageError: the consumer has not subscribed.
        """
        self._iteration.require_open()
        if self._in_group is None or self._in_group.topics.subscription is None:
            raise UsageError("enforce_rebalance() needs a subscription: this consumer is in no group")
        check_text("reason", reason)
        self._in_group.enforce_rebalance(reason)

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """The assigned partitions."""
        return self._positions.assigned

    def seek(self, partition: TopicPartition, to: int | OffsetSpec) -> None:
        """Set the position of a partition to an offset, or to the result of looking up an OffsetSpec.

        Raises:
            UsageError: the partition is not assigned, or the offset is negative.
        """
        self._iteration.require_open()
        partition = check_partition(partition)
        check_start(partition, to)
        self._positions.seek(partition, to)
        self._fetcher.wake()

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset after the last record handed out; None while the first position is being looked up.

        The position also skips fetched data that is not for users: control records, records of aborted transactions
        (``read_committed``), and offsets whose records compaction has removed.

        Raises:
            UsageError: the partition is not assigned.
        """
        state = self._positions.require(check_partition(partition))
        self._iteration.pass_hidden_batches(self._fetcher.unread.get(state.partition))
        return state.position

    def _fetch_until(self, partition: TopicPartition, offset: int) -> None:
        """Fetch no data of the partition from ``offset`` on, since the caller reads a range that ends there."""
        self._positions.require(partition).until = offset

    def pause(self, *partitions: TopicPartition | Collection[TopicPartition]) -> None:
        """Pause these partitions until :meth:`resume`: hand out no records, but keep those that are fetched.

        Raises:
            UsageError: a partition is not assigned.
        """
        self._set_paused(partitions, paused=True)

    def resume(self, *partitions: TopicPartition | Collection[TopicPartition]) -> None:
        """Resume paused partitions. Raises as :meth:`pause`."""
        self._set_paused(partitions, paused=False)

    def _set_paused(self, partitions: tuple[object, ...], *, paused: bool) -> None:
        named = normalize_partitions(flattened(partitions))
        for state in [self._positions.require(partition) for partition in named]:
            self._positions.pause(state, paused)
        self._fetcher.wake()
        self._fetcher.notify()

    @property
    def paused(self) -> tuple[TopicPartition, ...]:
        """The paused partitions."""
        return tuple(state.partition for state in self._positions if state.paused)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """Return the offset at the end of the partition's log, as of the last fetch; None before the first fetch.

        Raises:
            UsageError: the partition is not assigned.
        """
        return self._positions.require(check_partition(partition)).high_watermark

    async def partitions_for(self, topic: str, *, timeout: float | None = None) -> tuple[int, ...]:
        """Return the indexes of the topic's partitions; wait for the topic's metadata.

        ``timeout`` is in seconds, by default ``default_api_timeout_ms``.

        Raises:
            TopicNotReady: the partitions were not known in time.
            BrokerError: the broker refused the metadata of this topic.
        """
        self._iteration.require_open()
        check_topic_name(topic)
        known = await self._cluster.metadata.topic(topic, self._deadline(timeout))
        return tuple(partition.index for partition in known.partitions)

    async def list_topics(self, *, timeout: float | None = None) -> dict[str, tuple[int, ...]]:
        """Return the indexes of the partitions of every topic that this client may see, except internal topics.

        ``timeout`` is in seconds, by default ``default_api_timeout_ms``.

        Raises:
            RequestTimeout: the timeout passed; the message has the last cause.
        """
        self._iteration.require_open()
        response = await self._cluster.ask_metadata(None, self._deadline(timeout))
        return {
            topic.name: tuple(sorted(partition.partition_index for partition in topic.partitions))
            for topic in response.topics
            if topic.name and not topic.is_internal
        }

    async def offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up the offset that each spec stands for; None if no record has the spec's time, or a later one.

        ``timeout`` is in seconds, by default ``default_api_timeout_ms``.

        Raises:
            RequestTimeout, TopicNotReady: the timeout passed before all offsets were found.
            UsageError: a topic has no such partition.
        """
        requested = normalize_specs(specs)
        return await look_up_offsets(self._cluster, requested, self._deadline(timeout), self._config.isolation)

    def _deadline(self, timeout: float | None) -> Deadline:
        check_seconds("timeout", timeout)
        allowed = self._cluster.config.default_api_timeout_ms / 1000 if timeout is None else timeout
        return self._cluster.deadline(allowed)

    @property
    def name(self) -> str:
        """The consumer's name, which its connections for fetches have as well, such as ``"fetch-2"``."""
        return self._fetcher.lane

    def _live_values(self) -> MemberValues:
        """Return the present values for metrics. Any thread may call this method."""
        config, commits = self._config, self._commits
        return MemberValues(
            state=self._iteration.state,
            client_rack=config.client_rack,
            group_id=config.group_id,
            group_instance_id=config.group_instance_id,
            member_id=None if commits is None else commits.group.member_id,
            assigned=len(self._positions.assigned),
            polled_at=self._iteration.got_at,
        )

    def _live_partitions(self) -> Iterator[PartitionValues]:
        """Return the present values of each partition for metrics. Any thread may call this method."""
        for state in self._positions.unsettled():
            position, end, start = state.position, state.high_watermark, state.log_start
            if state.committed_end is not None:
                end = state.committed_end
            yield PartitionValues(
                self._config.group_id or "",
                state.partition,
                max(0, end - position) if position is not None and end is not None else None,
                max(0, position - start) if position is not None and start is not None else None,
                -1 if state.replica is None else state.replica,
            )

    def _settle(self) -> None:
        """Move positions past the records that a blocking consumer's thread has taken; only for the client's loop."""
        self._positions.settle()

    def health(self) -> ConsumerHealth:
        """Return the consumer's health: its partitions and lag, its membership, and the reason if it is idle."""
        self._pass_all_hidden_batches()
        topics = self._topics if self._in_group is None else ()
        return health_snapshot(
            self._cluster,
            self._positions,
            self._fetcher,
            self._in_group,
            self._iteration.got_at,
            topics,
            self._iteration.state,
        )

    def _pass_all_hidden_batches(self) -> None:
        self._positions.settle()
        for fetched in list(self._fetcher.unread.values()):
            self._iteration.pass_hidden_batches(fetched)

    # --- the group's offsets ---------------------------------------------------------------------------

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets after the last records handed out, ready to commit.

        Partitions whose position is still being looked up are not included. Partitions that were revoked while their
        records were being processed are included until the next poll; :meth:`commit` and the coordinator reject them.
        """
        self._pass_all_hidden_batches()
        return self._positions.to_commit()

    def group_metadata(self) -> GroupMetadata:
        """Return the membership to commit under, for ``transaction.commit_offsets(offsets, group=...)`` (KIP-447).

        It is the membership under which the records being processed were handed out: if the group has revoked their
        partitions since, the coordinator rejects the commit, even if this consumer has rejoined meanwhile.

        Raises:
            UsageError: the consumer was made without a ``group_id``.
        """
        return self._committing().group_in_hand

    def owns(self, record: ConsumerRecord[Any, Any] | ConsumerBatch[Any, Any]) -> bool:
        """Return whether this consumer still owns the partition of a record or batch that it handed out.

        False if the group has revoked the partition since: another consumer may process the record, and a commit of its
        offset fails. False also for records that were not handed out under the current assignment. The method sends no
        request, so a member that was just evicted may get True: only a successful commit or transaction is certain.
        """
        self._positions.settle()
        if isinstance(record, ConsumerBatch):
            offset = record.next_offset - 1
        elif all(hasattr(record, name) for name in ("topic", "partition", "offset")):
            offset = record.offset
        else:
            raise UsageError(f"owns() takes a record, or a batch, of this consumer; got {shown(record)}")
        state = self._positions.get(TopicPartition(record.topic, record.partition))
        if state is None or not state.has_handed_out(offset):
            return False
        return self._in_group is None or self._in_group.machine.is_member

    def check_ownership(self, *, since: float | None = None) -> None:
        """Raise if the group revoked partitions while their records were being processed.

        Records count as being processed until the next poll. :meth:`commit` without offsets and
        ``transaction.commit_offsets(consumer)`` begin with this check.

        Args:
            since: a time in seconds of the event loop's clock. If given, raise also if a partition was revoked, and its
                records were processed, after this time, even if the user has polled since the revocation.

        Raises:
            CommitFailed: the group revoked partitions; the message has the reason.
            UsageError: ``since`` is not a number.
        """
        check_seconds("since", since)
        self._positions.settle()
        self._positions.require_not_lost()
        if since is not None:
            self._positions.require_not_revoked_since(since)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        retention_ms: int | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets for the group: the next owner of each partition continues from its offset.

        Args:
            offsets: the offsets of the next records to read; by default :meth:`positions`.
            retention_ms: for how long the broker keeps the offsets, instead of ``offsets.retention.minutes``; brokers
                support it from 0.9 on. The commit then uses an older version without leader epochs (OffsetCommit v2-4).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            RequestTimeout: the timeout passed; the message has the last cause.
            CommitFailed: the group has revoked the partitions while their records were being processed; nothing is
                committed, and the results of those records are to be discarded.
            UnknownMemberId: the group has members, and this consumer is not one of them.
            OffsetMetadataTooLarge, GroupAuthorizationFailed, ...: the broker's error; some offsets may be committed.
            UnsupportedVersion: the broker does not support ``retention_ms``.
            UsageError: the consumer was made without a ``group_id``, an offset is invalid, or there are no ``offsets``
                and another task takes the records.
        """
        if retention_ms is not None:
            check_integer("retention_ms", retention_ms, 0, INT64)
        commits = self._committing()
        if offsets is not None:
            given = normalize_offsets(offsets)
            if given:
                await commits.commit(given, self._deadline(timeout), retention_ms=retention_ms)
            return
        self.check_ownership()
        if not commits.is_listening:
            self._iteration.user.require_commit()
        self._pass_all_hidden_batches()
        handed_out = self._iteration.handed_out()
        # Records that another thread takes from here on may be committed, but do not count as finished.
        given = self.positions()
        if given:
            await commits.commit(given, self._deadline(timeout), retention_ms=retention_ms, all_positions=True)
        self._iteration.finish_committed(handed_out)

    def _topic_ids(self, partitions: Iterable[TopicPartition]) -> Mapping[str, UUID]:
        """Return the ids of these partitions' topics, by name, as far as they are known."""
        return known_ids(map(self._positions.get, partitions))

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offset of each partition; None for a partition without one.

        The call waits for offsets that an open transaction commits (KIP-447), on brokers from 2.5 on. ``timeout`` is in
        seconds, by default ``default_api_timeout_ms``.

        Raises:
            RequestTimeout: the timeout passed; the message has the last cause.
            GroupAuthorizationFailed, ...: the broker's error.
            UsageError: the consumer was made without a ``group_id``.
        """
        self._committing()
        assert self._offsets is not None
        requested = normalize_partitions(partitions)
        if not requested:
            return {}
        ids = self._positions.assigned_ids(requested)
        return await self._offsets.committed(requested, self._deadline(timeout), topic_ids=ids)

    def _committing(self) -> "OffsetCommitter":
        if self._commits is None:
            raise UsageError("offsets are committed for a group: make the consumer with a group_id")
        if self._iteration.state != "closing":
            self._iteration.require_open()
        return self._commits


add_hints(Consumer, CONSUMER)


async def _fetch(fetcher: Fetcher, after: Event | None) -> None:
    try:
        if after is not None:
            await after.wait()
    finally:  # the fetcher has to have run before it can be closed
        await fetcher.run()


def _commits(
    cluster: Cluster, config: ConsumerConfig, positions: SubscriptionState, offsets: "GroupOffsets"
) -> "tuple[OffsetCommitter, AutoCommit | None]":
    from .auto_commit import AutoCommit
    from .offset_commits import OffsetCommitter

    every = config.auto_commit_interval_ms / 1000
    auto_commit = AutoCommit(cluster, positions, offsets, every) if config.enable_auto_commit else None
    return OffsetCommitter(cluster, positions, offsets), auto_commit
