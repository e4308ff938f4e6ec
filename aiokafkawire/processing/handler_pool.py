"""Runs the handler for the works of lanes: several at once, and again after failures; passes on what still fails."""

from collections.abc import Callable, Collection, Coroutine
from typing import Any, Final, TypeAlias

import anyio
import anyio.abc
import anyio.lowlevel

from ..cluster.cluster import Cluster
from ..errors import DeserializationError
from ..event_log import EventLog, TroubleLog
from ..share.share_record import Reject
from ..types import TopicPartition
from .failed_record_writer import FailedRecordWriter
from .handler_call import HandlerCall
from .lanes import Lanes, Work
from .record_source import RecordSource
from .retry import Retry
from .retry_topics import RetryTopics
from .summary import ProcessSummary
from .undeserializable_records import SkippedRecords
from .unreadable_record import UnreadableRecord

__all__ = ("Guard", "HandlerPool")

_log = EventLog("aiokafkawire.processing")

_LEAST_PAUSE: Final = 0.1
"""The shortest pause before a record is deserialized again, in seconds."""
_YIELD_EVERY: Final = 0.01
"""Seconds after which a handler that does not wait lets other tasks run."""


Guard: TypeAlias = Callable[[Callable[[], Coroutine[Any, Any, None]]], Coroutine[Any, Any, None]]
"""A coroutine function that awaits another one in a task, and takes its error."""


class HandlerPool:
    """The worker tasks that call the handler.

    Args:
        cluster: has the clock and random numbers.
        lanes: has the records to handle.
        call: calls the handler.
        retry: says how often and when.
        retry_topics: the topics for what has failed so often, one after the other.
        dead_letter_topic: the topic for what has failed finally; None if that ends the processing.
        writer: writes to these topics; None if there are none.
        concurrency: the largest number of workers.
        skipped: counts the records that cannot be deserialized, and are skipped; None if they have failed finally.
        source: learns which works are finished.
        on_failed: is called with an error that ends the processing, and the work that it is of.
    """

    def __init__(
        self,
        cluster: Cluster,
        lanes: Lanes[Any],
        call: HandlerCall,
        retry: Retry,
        *,
        retry_topics: RetryTopics,
        dead_letter_topic: str | None,
        writer: FailedRecordWriter | None,
        concurrency: int,
        skipped: SkippedRecords | None,
        source: RecordSource,
        on_failed: Callable[[Work[Any], BaseException], None],
    ) -> None:
        self._runtime, self._lanes, self._call, self._retry = cluster.runtime, lanes, call, retry
        self._retry_topics, self._dead_letter_topic, self._writer = retry_topics, dead_letter_topic, writer
        self._concurrency, self._group = concurrency, call.group
        self._skipped, self._source, self._on_failed = skipped, source, on_failed
        self._trouble = TroubleLog(_log, cluster.runtime.now)
        self._tasks: anyio.abc.TaskGroup | None = None
        self._guard: Guard
        self._workers = self._starting = self._takes = 0
        self._scopes: dict[Work[Any], anyio.CancelScope] = {}
        """The scope of each call that is running."""
        self._wake = anyio.Event()
        """Set when a work waits for another attempt, and when there is room for one: a worker has ended."""
        self._has_ended: anyio.Event | None = None
        """Set when a call has ended; None if nobody waits for that."""
        self._processed = self._retried = self._deferred = self._dead_lettered = self._rejected = 0

    async def run(self, tasks: anyio.abc.TaskGroup, guard: Guard) -> None:
        """Run works in these tasks, those that wait for another attempt when they are due.

        ``guard`` takes the errors of tasks that are no errors of handlers.
        """
        self._tasks, self._guard = tasks, guard
        self.start()
        while True:
            due, self._wake = self._lanes.wake_at, anyio.Event()
            wait = None if due is None else max(0.0, due - self._runtime.now())
            with anyio.move_on_after(wait):
                await self._wake.wait()
            self.start()

    def start(self) -> None:
        """Start workers, if there are works to run.

        No more of them are on their way than calls are running, and one: handlers that do not wait need few workers.
        """
        if self._tasks is None:
            return
        wanted = min(self._lanes.available(self._runtime.now()), len(self._lanes.running) + 1)
        while self._starting < wanted and self._workers < self._concurrency:
            self._starting += 1
            self._workers += 1
            self._tasks.start_soon(self._guard, self._work)

    async def _work(self) -> None:
        """Run works until there are no more."""
        self._starting -= 1
        try:
            has_more = True
            while has_more:
                has_more = await self._run_works()
                # Also at the end: asyncio raises the cancellation of a task by its own handler here alone.
                await anyio.lowlevel.checkpoint()
                has_more = has_more or self._lanes.available(self._runtime.now()) > 0
        finally:
            self._workers -= 1
            if self._lanes.next_due is not None:
                self._wake.set()

    async def _run_works(self) -> bool:
        """Run works for a short time, or until one is cancelled; return False if there are no more.

        They have one cancel scope, since entering a scope takes longer than many handlers.
        """
        now, take = self._runtime.now, self._lanes.take
        began = now()
        work = take(began)
        if work is None:
            return False
        with anyio.CancelScope() as scope:
            self.start()
            while work is not None:
                self._takes = mine = self._takes + 1
                await self._handle(work, scope)
                ended = now()
                if scope.cancel_called:
                    return True
                if ended - began > _YIELD_EVERY:
                    if self._takes == mine:
                        return True
                    began = ended  # other workers have run meanwhile: the handler has waited
                work = take(ended)
            return False
        return True  # the scope was cancelled

    async def _handle(self, work: Work[Any], scope: anyio.CancelScope) -> None:
        """Call the handler once, and let the work finish, wait for another attempt, or end the processing."""
        failed: Exception | None = None
        self._scopes[work] = scope
        try:
            try:
                self._call.check_threads()
                try:
                    if isinstance(work.records[0], UnreadableRecord):
                        await self._read_again(work, work.records[0])
                    await self._call(work.records)
                except Exception as error:
                    failed = error
                is_over = failed is None or await self._has_given_up(work, failed)
            finally:
                del self._scopes[work]
                self._lanes.running.pop(work, None)
                if self._has_ended is not None:
                    self._has_ended.set()
            if is_over and not work.dropped:
                if failed is None:
                    self._processed += len(work.records)
                self._source.finished(work)
                self._lanes.finish(work)
        # The failed record is not written, the threads are used up, or the handler ends the program.
        except BaseException as error:
            if isinstance(error, anyio.get_cancelled_exc_class()):
                raise
            self._on_failed(work, error)

    async def _read_again(self, work: Work[Any], record: UnreadableRecord) -> None:
        """Deserialize a record again if only what its deserializer needs has failed.

        Raises:
            DeserializationError: it has failed again, or the record itself cannot be deserialized.
        """
        if not record.error.retriable:
            raise record.error
        try:
            work.records[0] = await self._source.read_again(record)
        except DeserializationError as error:
            work.records[0] = UnreadableRecord(error, record.given)
            raise
        work.attempts = 1
        self._trouble.ended("deserialize", "group %(group)r: records can be deserialized again", group=self._group)

    async def _has_given_up(self, work: Work[Any], error: Exception) -> bool:
        """Return whether a failed work is finished, its records in another topic; else let it be tried again."""
        if work.dropped:
            return False
        is_readable = not isinstance(work.records[0], UnreadableRecord)
        if isinstance(error, DeserializationError) and not is_readable:
            if error.retriable:
                self._wait_to_read_again(work, error)
                return False
            if self._skipped is not None:
                self._skipped.handle(error)
                return True
        may_retry = is_readable and isinstance(error, self._retry.on) and not isinstance(error, Reject)
        delay = self._retry.delay(error, work.attempts, self._runtime.chance.random()) if may_retry else None
        if delay is not None:
            self._retried += 1
            self._delay(work, delay)
            return False
        following = self._retry_topics.after(work.partition.topic) if may_retry else None
        if self._writer is not None and following is not None:
            due = self._runtime.wall_ms() + following.delay_ms
            await self._writer.write(following.name, work.records, work.attempts, error, not_before_ms=due)
            self._deferred += len(work.records)
            return True
        if self._writer is not None and self._dead_letter_topic is not None:
            await self._writer.write(self._dead_letter_topic, work.records, work.attempts, error)
            self._dead_lettered += len(work.records)
            return True
        if isinstance(error, Reject) and self._source.reject(work):
            self._rejected += len(work.records)
            return True
        self._on_failed(work, error)
        return False

    def _wait_to_read_again(self, work: Work[Any], error: DeserializationError) -> None:
        """Let a record wait until its deserializer has what it needs: it must not count as one that cannot be read."""
        self._trouble.failed(
            "deserialize",
            "group %(group)r: the record at offset %(offset)d of %(topic)s-%(partition)d waits, since its %(failed)s "
            "cannot be deserialized now: %(error)s",
            text={"offset": error.offset, "failed": error.failed},
            group=self._group,
            topic=work.partition.topic,
            partition=work.partition.partition,
            error=error.__cause__,
        )
        pause = self._retry.pause(work.attempts, self._runtime.chance.random())
        self._delay(work, max(pause, _LEAST_PAUSE))

    def _delay(self, work: Work[Any], seconds: float) -> None:
        self._lanes.delay(work, self._runtime.now() + seconds)
        self._wake.set()

    # --- the end of works ------------------------------------------------------------------------------------

    def cancel(self, works: Collection[Work[Any]] | None = None) -> int:
        """Cancel the calls of these works, by default of all; return how many calls were running."""
        running = [work for work in (tuple(self._scopes) if works is None else works) if work in self._scopes]
        for work in running:
            work.dropped = True
            self._scopes[work].cancel()
        return len(running)

    async def wait_until_idle(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Wait until no call runs for these partitions, by default for any."""
        while any(partitions is None or work.partition in partitions for work in self._scopes):
            if self._has_ended is None or self._has_ended.is_set():
                self._has_ended = anyio.Event()
            await self._has_ended.wait()

    @property
    def why_waiting(self) -> str | None:
        """Why records wait until they can be deserialized; None if none do."""
        first = (work.records[0] for work in (*self._lanes.delayed, *self._lanes.running))
        errors = [record.error for record in first if isinstance(record, UnreadableRecord) and record.error.retriable]
        if not errors:
            return None
        records = "1 record waits" if len(errors) == 1 else f"{len(errors)} records wait"
        return f"{records} to be deserialized: {errors[0].__cause__}"

    @property
    def abandoned(self) -> int:
        """The number of threads that go on with a call that was cancelled."""
        return self._call.abandoned

    def summary(self, *, skipped: int, in_hand: int, waiting: int) -> ProcessSummary:
        """Return what is done so far."""
        now = self._runtime.now()
        return ProcessSummary(
            processed=self._processed,
            retried=self._retried,
            deferred=self._deferred,
            dead_lettered=self._dead_lettered,
            rejected=self._rejected,
            undeserializable=0 if self._skipped is None else self._skipped.count,
            skipped=skipped,
            waiting=waiting,
            in_hand=in_hand,
            running=len(self._scopes),
            longest=max((now - work.since for work in self._scopes), default=0.0),
        )
