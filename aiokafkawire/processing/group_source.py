"""Processes the records of a consumer group's member: reads, commits what is finished, and follows rebalances."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import anyio

from ..cluster.cluster import Cluster
from ..consumer.consumer import Consumer
from ..consumer.subscription_state import PartitionState
from ..errors import BrokerError, CommitFailed, DeserializationError, OffsetMetadataTooLarge, RequestTimeout, UsageError
from ..event_log import EventLog, TroubleLog
from ..group.group_offsets import NOT_ENTITLED
from ..records.deserialization import RecordDeserializer
from ..types import OffsetAndMetadata, TopicPartition
from .commit_metadata import FinishedRecords, decode_metadata
from .failures import failure_of
from .handler_pool import HandlerPool
from .lanes import Lanes, Work
from .offset_tracker import OffsetTracker
from .partitions_in_hand import PartitionsInHand, offsets_of
from .processing_run import ProcessingRun
from .retry_topics import RetryTopics
from .undeserializable_records import deserialize_again
from .unreadable_record import UnreadableRecord, failed_partition
from .waiting_records import WaitingRecords

__all__ = ("GroupSource",)

_log = EventLog("aiokafkawire.processing")

_COMMIT_SECONDS: Final = 10.0
"""Seconds that one attempt of a commit may take."""
_REVOKE_SHARE: Final = 2 / 3
"""The part of ``max_poll_interval_ms`` that a rebalance waits for handlers; the rest is for the commit."""
_IDLE_SECONDS: Final = 5.0
"""Seconds after which positions are committed that have moved past records that users do not get."""


class GroupSource:
    """The records of a consumer in a group, of which the finished ones are committed.

    Args:
        cluster: has the clock.
        consumer: reads the records; it has no topics yet.
        topics: the topics to subscribe to.
        lanes: has the records to handle.
        retry_topics: those of the topics whose records wait until they are due.
        dead_letter_topic: the topic that must not be among them.
        deserializer: converts the records that could not be converted when they were read.
        max_in_hand: the largest number of records that are read and not committed.
        commit_interval_ms: the time between two commits.
    """

    def __init__(
        self,
        cluster: Cluster,
        consumer: Consumer[Any, Any],
        topics: Sequence[Any],
        lanes: Lanes[Any],
        *,
        retry_topics: RetryTopics,
        dead_letter_topic: str | None,
        deserializer: RecordDeserializer,
        max_in_hand: int,
        commit_interval_ms: int,
    ) -> None:
        self._consumer, self._topics, self._lanes = consumer, topics, lanes
        self._retry_topics, self._dead_letter_topic = retry_topics, dead_letter_topic
        self._deserializer = deserializer
        self._partitions = PartitionsInHand(max_in_hand)
        # The state of each partition when it was first tracked; it has another one once its topic is another one.
        self._read_from: dict[TopicPartition, PartitionState | None] = {}
        self._seen_changes = -1
        self._waiting: WaitingRecords[Any] = WaitingRecords()
        self._polling = anyio.CancelScope()
        self._polls_until: float | None = None
        self._interval = commit_interval_ms / 1000
        config = consumer._config
        self._group = config.group_id
        self._revoke_seconds = config.max_poll_interval_ms / 1000 * _REVOKE_SHARE
        self._run: ProcessingRun | None = None
        self._lock = anyio.Lock()
        self._dirty, self._due = anyio.Event(), anyio.Event()
        self._runtime = cluster.runtime
        self._trouble = TroubleLog(_log, cluster.runtime.now)
        self.skipped: int = 0
        """The number of records that an earlier owner of their partition had finished, or that are another group's."""

    @property
    def in_hand(self) -> int:
        """The number of records that were read and are not committed."""
        return self._partitions.in_hand

    async def open(self, run: ProcessingRun) -> None:
        """Subscribe, and begin to read and to commit for this run."""
        self._run = run
        # The records of a handler's call have a span, not those of a poll.
        self._consumer._iteration.tracing = None
        # Their records were moved there to be handled, so ``auto_offset_reset`` does not count.
        self._consumer._positions.read_whole = self._retry_topics
        self._consumer.subscribe(
            *self._topics, on_assigned=self._on_assigned, on_revoked=self._on_revoked, on_lost=self._on_lost
        )
        run.start(self._read)
        run.start(self._commit_regularly)

    async def close(self) -> None:
        """Commit what is finished at the end; the records that were read and are not finished go to another member."""
        self._consumer._iteration.finish_in_hand()
        try:
            await self._commit()
        except (CommitFailed, RequestTimeout, BrokerError) as error:
            _log.warning("group %(group)r: the last commit has failed: %(error)s", group=self._group, error=error)

    # --- reading -----------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            self._leave_old_topics()
            self._add_due()
            self._pool.start()
            self._pause_full()
            try:
                records = await self._poll()
            except DeserializationError as error:
                # Its partition may have been lost since it was read: then another member handles it.
                is_assigned = self._consumer._positions.get(failed_partition(error)) is not None
                records = [UnreadableRecord(error)] if is_assigned else []
            except RequestTimeout as error:
                self._no_answer(error)
                continue
            self._leave_old_topics()
            for place, run in groupby(records, attrgetter("topic", "partition")):
                self._receive(TopicPartition(*place), run)

    async def _poll(self) -> list[Any]:
        """Return the next records; none once a waiting record can be added."""
        due = self._polls_until = self._waiting.next_due(self._partitions.full())
        timeout = None if due is None else max(0.0, due - self._runtime.now())
        with anyio.CancelScope() as self._polling:
            return await self._consumer.poll(self._partitions.read_limit, timeout)
        return []

    def _add_due(self) -> None:
        """Add the waiting records that are due, as far as their partitions have room."""
        now, partitions = self._runtime.now(), self._partitions
        while due := self._waiting.take(now, partitions.full(), partitions.read_limit):
            self._add(TopicPartition(due[0].topic, due[0].partition), due)

    def _receive(self, partition: TopicPartition, records: Iterable[Any]) -> None:
        """Add records that were read; those of a retry topic wait until they are due."""
        self._add(partition, self._due_now(partition, records) if partition.topic in self._retry_topics else records)

    def _due_now(self, partition: TopicPartition, records: Iterable[Any]) -> Iterator[Any]:
        """Yield the records of a retry topic that are due, up to the first that is not; all others wait."""
        for record in records:
            # A record that cannot be read fails in its turn, without a wait of its own.
            failure = None if isinstance(record, UnreadableRecord) else failure_of(record.headers)
            wait = self._retry_topics.wait(partition.topic, failure, self._runtime.wall_ms())
            if wait > 0 or partition in self._waiting:
                self._waiting.add(partition, self._runtime.now() + wait, record)
            else:
                yield record

    def _add(self, partition: TopicPartition, records: Iterable[Any]) -> None:
        """Add records of a partition to those in hand."""
        tracker, lanes, is_retry_topic = None, self._lanes, partition.topic in self._retry_topics
        for record in records:
            if tracker is None:
                tracker = self._tracker(partition)
            if tracker.precedes(record.offset):
                self._restart(partition, record.offset)
                return
            if not tracker.add(record.offset, record.leader_epoch):
                self.skipped += 1
                self._dirty.set()
            elif is_retry_topic and self._is_of_another_group(record):
                tracker.finish(record.offset)
                self.skipped += 1
                self._dirty.set()
            else:
                lanes.add(partition, record.raw_key, record, alone=isinstance(record, UnreadableRecord))

    def _tracker(self, partition: TopicPartition) -> OffsetTracker:
        if partition not in self._partitions:
            self._track(partition)
        return self._partitions[partition]

    def _track(self, partition: TopicPartition, finished: FinishedRecords | None = None) -> None:
        self._partitions.assign(partition, finished)
        self._read_from[partition] = self._consumer._positions.get(partition)

    def _leave_old_topics(self) -> None:
        """Cancel what is in hand of topics that were deleted and created again, and commit where the new ones begin."""
        positions = self._consumer._positions
        if positions.changes == self._seen_changes:
            return
        self._seen_changes = positions.changes
        for partition, state in list(self._read_from.items()):
            current = positions.get(partition)
            if current is not None and current is not state:
                self._forget((partition,))
                self._track(partition)
                self._dirty.set()

    def _restart(self, partition: TopicPartition, offset: int) -> None:
        """Restart in a log that was truncated at ``offset``, at the first record that is not finished before."""
        begin = min(offset, self._partitions[partition].first_unfinished(offset))
        self._forget((partition,))
        self._consumer.seek(partition, begin)

    def _is_of_another_group(self, record: Any) -> bool:
        failure = failure_of(record.headers)
        return failure is not None and failure.group != self._group

    def _pause_full(self) -> None:
        """Pause the partitions of which enough is in hand or waits, and resume the others."""
        full, consumer = {*self._partitions.full(), *self._waiting.partitions}, self._consumer
        paused = set(consumer.paused)
        assigned = consumer.assignment
        to_pause = [partition for partition in assigned if partition in full and partition not in paused]
        to_resume = [partition for partition in assigned if partition in paused and partition not in full]
        if to_pause:
            consumer.pause(to_pause)
        if to_resume:
            consumer.resume(to_resume)

    @property
    def _pool(self) -> HandlerPool:
        assert self._run is not None  # the run opens the source
        return self._run.pool

    # --- committing --------------------------------------------------------------------------------------------

    def finished(self, work: Work[Any]) -> None:
        """Record that the records of a work are finished."""
        if not self._dirty.is_set():
            self._dirty.set()
        if self._partitions.finish(work.partition, [record.offset for record in work.records]):
            self._due.set()

    async def read_again(self, record: UnreadableRecord) -> Any:
        """Return the record with its key and value deserialized."""
        return await deserialize_again(record, self._deserializer)

    def reject(self, work: Work[Any]) -> bool:
        """Return False: a group has no records that are rejected."""
        return False

    def failed(self, work: Work[Any]) -> None:
        """Do nothing: what is not committed is read again by the next owner."""

    async def _commit_regularly(self) -> None:
        while True:
            with anyio.move_on_after(_IDLE_SECONDS):
                await self._dirty.wait()
            with anyio.move_on_after(self._interval):
                await self._due.wait()
            self._dirty, self._due = anyio.Event(), anyio.Event()
            try:
                await self._commit()
            except (CommitFailed, RequestTimeout) as error:
                self._commit_failed(error)
            except BrokerError as error:
                if not (error.retriable or error.code in NOT_ENTITLED):
                    raise
                self._commit_failed(error)
            else:
                self._trouble.ended("commit", "group %(group)r: commits succeed again", group=self._group)
            self._pause_full()
            if self._waiting.next_due(self._partitions.full()) != self._polls_until:
                self._polling.cancel()  # there is room for waiting records again

    def _commit_failed(self, error: Exception) -> None:
        self._dirty.set()
        if not isinstance(error, CommitFailed):  # after which the partitions are revoked or lost
            message = "group %(group)r: committing what is finished has failed: %(error)s"
            self._trouble.failed("commit", message, group=self._group, error=error)

    async def _commit(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        """Commit what is finished of these partitions, by default of all.

        Raises:
            CommitFailed, RequestTimeout, BrokerError: it is not committed.
        """
        async with self._lock:
            self._leave_old_topics()
            while progress := self._partitions.progress(partitions, self._position):
                try:
                    consumer = self._consumer
                    deadline = consumer._deadline(_COMMIT_SECONDS)
                    commits = consumer._committing()
                    left_out = await commits.commit(offsets_of(progress), deadline, skip_deleted=True)
                except OffsetMetadataTooLarge:
                    if not any(part.commit.metadata for part in progress.values()):
                        raise
                    self._partitions.shorten_metadata()
                else:
                    # A partition that was left out is committed later, if its topic only seemed to be deleted.
                    self._partitions.committed({at: part for at, part in progress.items() if at not in left_out})
                    return

    def _position(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        """Return the consumer's position if all records before it are tracked, as while the reading task waits."""
        if partition in self._waiting:
            return None
        iteration, state = self._consumer._iteration, self._consumer._positions.get(partition)
        if not iteration.waiting or iteration.pending_errors or state is None:
            return None
        offset = self._consumer.position(partition)
        return None if offset is None else OffsetAndMetadata(offset, leader_epoch=state.leader_epoch)

    # --- rebalances --------------------------------------------------------------------------------------------

    async def _on_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        if any(partition.topic == self._dead_letter_topic for partition in partitions):
            self._fail_for_dead_letters()
            return
        with anyio.move_on_after(self._revoke_seconds):  # calls that were cancelled when the partitions were lost
            await self._pool.wait_until_idle(partitions)
        for partition, committed in (await self._committed(partitions)).items():
            finished = None
            if committed is None:
                self._dirty.set()  # where the partition begins is committed, too
            else:
                finished = decode_metadata(committed.offset, committed.metadata, committed.leader_epoch)
            self._track(partition, finished)
        self._pause_full()

    async def _committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what is committed of these partitions; wait for a coordinator that is away, as the records do."""
        while True:
            try:
                found = await self._consumer.committed(partitions)
            except RequestTimeout as error:
                self._no_answer(error)
            else:
                self._trouble.ended("read", "group %(group)r: brokers answer again", group=self._group)
                return found

    def _no_answer(self, error: RequestTimeout) -> None:
        message = "group %(group)r: where to read from is not known, so records wait: %(error)s"
        self._trouble.failed("read", message, group=self._group, error=error)

    def _fail_for_dead_letters(self) -> None:
        assert self._run is not None  # the run opens the source
        topic = self._dead_letter_topic
        self._run.fail(UsageError(f"the pattern matches {topic!r}, the dead_letter_topic: change one of them"))

    async def _on_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Wait for the running handlers of these partitions, commit what is finished, and let go of them."""
        assert self._run is not None  # the run opens the source
        if self._run.was_cancelled:  # handlers may have returned since then, so that their records seem to be finished
            self._forget(partitions)
            return
        self._lanes.drop(partitions, running=False)
        self._waiting.hold(partitions)
        try:
            with anyio.move_on_after(self._revoke_seconds):
                await self._pool.wait_until_idle(partitions)
            unfinished = list(self._lanes.running_of(partitions))
            if unfinished:
                _log.warning(
                    "group %(group)r: cancelling %(count)d calls of the handler, since the group waits for the "
                    "partitions for %(elapsed).0f s already (max_poll_interval_ms); other members handle the records",
                    group=self._group,
                    count=len(unfinished),
                    elapsed=self._revoke_seconds,
                )
                self._pool.cancel(unfinished)
            await self._commit(partitions)
        except (CommitFailed, RequestTimeout, BrokerError) as error:
            message = "group %(group)r: what was finished before a rebalance is not committed: %(error)s"
            _log.warning(message, group=self._group, error=error)
        finally:
            self._forget(partitions)

    async def _on_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Cancel the handlers of these partitions, which other members have already, and commit nothing."""
        self._forget(partitions)

    def _forget(self, partitions: Sequence[TopicPartition]) -> None:
        self._pool.cancel(self._lanes.drop(partitions, running=True))
        self._partitions.revoke(partitions)
        self._waiting.drop(partitions)
        for partition in partitions:
            self._read_from.pop(partition, None)

    def status(self) -> Mapping[str, int]:
        """Return the numbers of a summary that this source knows."""
        return {"skipped": self.skipped, "in_hand": self.in_hand, "waiting": len(self._waiting)}
