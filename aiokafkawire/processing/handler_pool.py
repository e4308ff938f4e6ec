"""Runs the handler for the works of lanes: several at once, and again after failures; passes on what still fails."""

from collections.abc import Callable, Collection
from typing import Any, Final

import anyio
import anyio.abc
import anyio.lowlevel

from ..cluster.cluster import Cluster
from ..types import TopicPartition
from .failed_record_writer import FailedRecordWriter
from .handler_call import HandlerCall
from .lanes import Lanes, Work
from .retry import Retry
from .retry_topics import RetryTopics
from .summary import ProcessSummary
from .unreadable_record import UnreadableRecord

__all__ = ("HandlerPool",)

_YIELD_EVERY: Final = 0.01
"""Seconds after which a handler that does not wait lets other tasks run."""


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
        on_finished: is called when the records of a work are finished.
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
        on_finished: Callable[[Work[Any]], None],
        on_failed: Callable[[Work[Any], BaseException], None],
    ) -> None:
        self._runtime, self._lanes, self._call, self._retry = cluster.runtime, lanes, call, retry
        self._retry_topics, self._dead_letter_topic, self._writer = retry_topics, dead_letter_topic, writer
        self._concurrency = concurrency
        self._on_finished, self._on_failed = on_finished, on_failed
        self._tasks: anyio.abc.TaskGroup | None = None
        self._workers = self._starting = 0
        self._scopes: dict[Work[Any], anyio.CancelScope] = {}
        """The scope of each call that is running."""
        self._wake = anyio.Event()
        """Set when a work waits for another attempt, and when there is room for one: a worker has ended."""
        self._has_ended: anyio.Event | None = None
        """Set when a call has ended; None if nobody waits for that."""
        self._processed = self._retried = self._deferred = self._dead_lettered = 0

    async def run(self, tasks: anyio.abc.TaskGroup) -> None:
        """Run works in these tasks, those that wait for another attempt when they are due."""
        self._tasks = tasks
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
            self._tasks.start_soon(self._work)

    async def _work(self) -> None:
        """Run works until there are no more."""
        self._starting -= 1
        try:
            while await self._run_works():
                await anyio.lowlevel.checkpoint()
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
                await self._handle(work, scope)
                ended = now()
                if scope.cancel_called or ended - began > _YIELD_EVERY:
                    return True
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
                self._on_finished(work)
                self._lanes.finish(work)
        # The failed record is not written, the threads are used up, or the handler ends the program.
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            self._on_failed(work, error)

    async def _has_given_up(self, work: Work[Any], error: Exception) -> bool:
        """Return whether a failed work is finished, its records in another topic; else let it be tried again."""
        if work.dropped:
            return False
        delay = self._retry.delay(error, work.attempts, self._runtime.chance.random())
        is_readable = not isinstance(work.records[0], UnreadableRecord)
        if delay is not None and is_readable:
            self._retried += 1
            self._lanes.delay(work, self._runtime.now() + delay)
            self._wake.set()
            return False
        may_retry = is_readable and isinstance(error, self._retry.on)
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
        self._on_failed(work, error)
        return False

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
            skipped=skipped,
            waiting=waiting,
            in_hand=in_hand,
            running=len(self._scopes),
            longest=max((now - work.since for work in self._scopes), default=0.0),
        )
