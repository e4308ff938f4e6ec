"""Processes the records of a consumer group's member: reads, commits what is finished, and follows rebalances."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio

from ..cluster.cluster import Cluster
from ..consumer.consumer import Consumer
from ..errors import BrokerError, CommitFailed, DeserializationError, OffsetMetadataTooLarge, RequestTimeout
from ..event_log import EventLog, TroubleLog
from ..group.group_offsets import NOT_ENTITLED
from ..types import TopicPartition
from .commit_metadata import decode_metadata
from .handler_pool import HandlerPool
from .lanes import Lanes, Work
from .partitions_in_hand import PartitionsInHand, offsets_of
from .processing_run import ProcessingRun
from .unreadable_record import UnreadableRecord, failed_partition

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
        max_in_hand: int,
        commit_interval_ms: int,
    ) -> None:
        self._consumer, self._topics, self._lanes = consumer, topics, lanes
        self._partitions = PartitionsInHand(max_in_hand)
        self._interval = commit_interval_ms / 1000
        config = consumer._config
        self._group = config.group_id
        self._revoke_seconds = config.max_poll_interval_ms / 1000 * _REVOKE_SHARE
        self._run: ProcessingRun | None = None
        self._lock = anyio.Lock()
        self._dirty, self._due = anyio.Event(), anyio.Event()
        self._trouble = TroubleLog(_log, cluster.runtime.now)
        self.skipped: int = 0
        """The number of records that an earlier owner of their partition had finished."""

    @property
    def in_hand(self) -> int:
        """The number of records that were read and are not committed."""
        return self._partitions.in_hand

    async def open(self, run: ProcessingRun) -> None:
        """Subscribe, and begin to read and to commit for this run."""
        self._run = run
        # The records of a handler's call have a span, not those of a poll.
        self._consumer._iteration.tracing = None
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
        consumer, partitions, pool = self._consumer, self._partitions, self._pool
        while True:
            self._pause_full()
            try:
                records = await consumer.poll(partitions.read_limit)
            except DeserializationError as error:
                self._add(failed_partition(error), error.raw_key, UnreadableRecord(error), alone=True)
                records = []
            for record in records:
                self._add(TopicPartition(record.topic, record.partition), record.raw_key, record)
            pool.start()

    def _add(self, partition: TopicPartition, key: bytes | None, record: Any, *, alone: bool = False) -> None:
        if partition not in self._partitions:
            self._partitions.assign(partition)
        elif self._partitions[partition].precedes(record.offset):
            self._forget((partition,))
            self._partitions.assign(partition)
        if self._partitions[partition].add(record.offset, record.leader_epoch):
            self._lanes.add(partition, key, record, alone=alone)
        else:
            self.skipped += 1
            self._dirty.set()

    def _pause_full(self) -> None:
        """Pause the partitions of which enough is in hand, and resume the others."""
        full, consumer = set(self._partitions.full()), self._consumer
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
        tracker = self._partitions[work.partition]
        for record in work.records:
            tracker.finish(record.offset)
        self._dirty.set()
        if self._partitions.commit_early:
            self._due.set()

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
            while progress := self._partitions.progress(partitions, self._position):
                try:
                    await self._consumer.commit(offsets_of(progress), timeout=_COMMIT_SECONDS)
                except OffsetMetadataTooLarge:
                    if not any(part.commit.metadata for part in progress.values()):
                        raise
                    self._partitions.shorten_metadata()
                else:
                    self._partitions.committed(progress)
                    return

    def _position(self, partition: TopicPartition) -> int | None:
        """Return the consumer's position if all records before it are tracked, as while the reading task waits."""
        iteration = self._consumer._iteration
        if not iteration.waiting or iteration.pending_errors or self._consumer._positions.get(partition) is None:
            return None
        return self._consumer.position(partition)

    # --- rebalances --------------------------------------------------------------------------------------------

    async def _on_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        with anyio.move_on_after(self._revoke_seconds):  # calls that were cancelled when the partitions were lost
            await self._pool.wait_until_idle(partitions)
        for partition, committed in (await self._consumer.committed(partitions)).items():
            text = "" if committed is None else committed.metadata
            self._partitions.assign(partition, () if committed is None else decode_metadata(committed.offset, text))
        self._pause_full()

    async def _on_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Wait for the running handlers of these partitions, commit what is finished, and let go of them."""
        self._lanes.drop(partitions, running=False)
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

    def status(self) -> Mapping[str, int]:
        """Return the numbers of a summary that this source knows."""
        return {"skipped": self.skipped, "in_hand": self.in_hand}
