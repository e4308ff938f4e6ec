"""Runs the handler for the works of lanes: several at once, and again after failures; passes on what still fails."""

from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

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


class _Running(NamedTuple):
    """A call of the handler, in the cancel scope of its worker."""

    since: float
    scope: anyio.CancelScope


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
        self._workers = 0
        self._running: dict[Work[Any], _Running] = {}
        self._wake = anyio.Event()
        """Set when a work waits for another attempt, and when there is room for one: a worker has ended."""
        self._has_ended: anyio.Event | None = None
        """Set when a call has ended; None if nobody waits for that."""
        self._processed = self._retried = self._deferred = self._dead_lettered = 0

    async def run(self, tasks: anyio.abc.TaskGroup) -> None:
        """Start works in these tasks, those that wait for another attempt when they are due."""
        self._tasks = tasks
        self.start()
        while True:
            due, self._wake = self._lanes.wake_at, anyio.Event()
            wait = None if due is None else max(0.0, due - self._runtime.now())
            with anyio.move_on_after(wait):
                await self._wake.wait()
            self.start()

    def start(self) -> None:
        """Start as many workers as there are works to run."""
        lanes, now = self._lanes, self._runtime.now()
        while self._tasks is not None and self._workers < self._concurrency:
            work = lanes.take(now)
            if work is None:
                return
            self._workers += 1
            self._tasks.start_soon(self._work, work)

    async def _work(self, work: Work[Any]) -> None:
        """Run this work, and others until there are no more."""
        now, yielded_at = self._runtime.now, self._runtime.now()
        following: Work[Any] | None = work
        try:
            while following is not None:
                # Entering a scope takes longer than many handlers: it is left only if it was cancelled, or to yield.
                with anyio.CancelScope() as scope:
                    while following is not None:
                        work, following = following, None
                        await self._handle(work, scope)
                        if scope.cancel_called or now() - yielded_at > _YIELD_EVERY:
                            break
                        following = self._lanes.take(now())
                    else:
                        return
                await anyio.lowlevel.checkpoint()
                yielded_at = now()
                following = self._lanes.take(yielded_at)
        except Exception as error:
            self._on_failed(work, error)
        finally:
            self._workers -= 1
            self._wake.set()

    async def _handle(self, work: Work[Any], scope: anyio.CancelScope) -> None:
        failed: Exception | None = None
        is_over = False
        self._running[work] = _Running(self._runtime.now(), scope)
        try:
            self._call.check_threads()
            try:
                await self._call(work.records)
            except Exception as error:
                failed = error
            is_over = failed is None or await self._has_given_up(work, failed)
        # The failed record is not written, the threads are used up, or the handler ends the program.
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            self._on_failed(work, error)
        finally:
            del self._running[work]
            self._lanes.running.pop(work, None)
            if self._has_ended is not None:
                self._has_ended.set()
        if is_over and not work.dropped:
            if failed is None:
                self._processed += len(work.records)
            self._on_finished(work)
            self._lanes.finish(work)

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
        chosen = tuple(self._running) if works is None else works
        running = [(work, self._running[work]) for work in chosen if work in self._running]
        for work, call in running:
            work.dropped = True
            call.scope.cancel()
        return len(running)

    async def wait_until_idle(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Wait until no call runs for these partitions, by default for any."""
        while any(partitions is None or work.partition in partitions for work in self._running):
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
            running=len(self._running),
            longest=max((now - running.since for running in self._running.values()), default=0.0),
        )
