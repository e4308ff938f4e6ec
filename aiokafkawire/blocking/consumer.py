"""The blocking client's consumer.

The loop's thread reads records ahead (``consumer/read_ahead.py``), and the calling thread takes them without a thread
switch. CPython raises KeyboardInterrupt only after function calls, and at the start of functions and loop iterations.
Therefore no function is called between marking a record as taken and returning the record. If Ctrl-C comes before the
record is marked, the next call returns the record.
"""

import inspect
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Never, ParamSpec, TypeVar

import anyio

from ..consumer.consumer import Consumer as AsyncConsumer
from ..consumer.consumer import ConsumerBatch
from ..consumer.health import ConsumerHealth
from ..consumer.read_ahead import Lent, ReadAhead
from ..consumer.record_iteration import check_poll
from ..errors import UsageError
from ..loop_thread import LoopThread
from ..other_clients_names import BLOCKING_CONSUMER, add_hints
from ..records.batch import ConsumerRecord
from ..runtime import CLOSE_SECONDS
from ..tracing import Handling
from ..types import (
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    SubscriptionPattern,
    TopicPartition,
)
from .closed_on_interruption import ClosedOnInterruption
from .listener import Listener, ListenerThread
from .metrics_push import MetricsPush

if TYPE_CHECKING:
    import re

__all__ = ("Consumer",)

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")
T = TypeVar("T")

_READ_AHEAD: Final = 500
"""The number of records that are read ahead of the iteration, since a thread switch costs as much as many records."""


class Consumer(ClosedOnInterruption, MetricsPush, Generic[K, V]):
    """A consumer, made by :meth:`Client.consumer`. Errors are those of :class:`aiokafkawire.Consumer`.

    Iterate over the consumer for records, or over :meth:`batches` for whole batches. A new iteration continues with the
    next record. A record is finished once the user requests the next record; records from :meth:`poll` are finished
    once :meth:`poll` is called again.

    Only one thread may be in a call at a time; a call of another thread raises UsageError. Any thread may call
    :meth:`close`, :meth:`health` and the properties at any time. Ctrl-C loses no records, except during ``on_consume``
    of an interceptor: the next call returns the records that the interrupted call had taken.
    """

    def __init__(self, loop: LoopThread, consumer: AsyncConsumer[K, V]) -> None:
        self._loop, self._consumer = loop, consumer
        self._telemetry = consumer
        self._iterator_state = consumer._positions.iterator_state
        self._ahead: ReadAhead[K, V] = ReadAhead(consumer._iteration, consumer._positions)
        self._interceptors = consumer._interceptors
        self._nothing: Lent[K, V] = Lent()
        # The records that an iteration returns without calling the loop's thread.
        self._lent = self._nothing
        # The thread that is in a call of this consumer now, or None.
        self._caller: int | None = None
        self._listening: ListenerThread | None = None
        # The call that runs on the loop's thread now, or None. Only that thread uses this variable.
        self._running_call: _RunningCall | None = None
        self._is_closed = False
        _consumers.add(self)

    def _open(self) -> None:
        self._ask(self._consumer.__aenter__)

    def _end(self, *_: object) -> None:
        self.close()

    async def _leave_open(self, error: BaseException) -> None:
        if self._consumer._iteration.state == "open":
            await self._close(CLOSE_SECONDS, None)

    def close(self, timeout: float = 5.0, *, leave_group: bool | None = None) -> None:
        """Commit finished records (``enable_auto_commit``), leave the group, and stop, within ``timeout`` seconds.

        ``leave_group`` is that of :meth:`aiokafkawire.Consumer.close`.

        Any thread may call this method, but listeners must not. Iterations on other threads end, a waiting :meth:`poll`
        returns an empty list, and other waiting calls raise UsageError.
        """
        if self._is_listener():
            raise UsageError("a listener cannot close the consumer: the rebalance waits for the listener")
        self._loop.call_while_running(self._close, timeout, leave_group)

    async def _close(self, timeout: float, leave_group: bool | None) -> None:
        self._is_closed = True
        self._iterator_state.changes += 1  # invalidate the records that were read ahead
        try:
            await self._consumer.close(timeout, leave_group=leave_group)
        finally:
            if self._running_call is not None:
                self._running_call.scope.cancel()

    # --- records -----------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Iterate over the records, and wait for new ones. The iteration ends when the consumer is closed."""
        if self._interceptors is not None:
            return _InterceptedRecords(self)
        return _Records(self)

    def poll(self, max_records: int = 500, timeout: float | None = None) -> list[ConsumerRecord[K, V]]:
        """Return up to ``max_records`` records, or an empty list after ``timeout`` seconds without records."""
        check_poll(max_records, timeout)
        try:
            while True:
                taken: list[ConsumerRecord[K, V]] | None = self._take(
                    "together", max_records, timeout, self._received()
                )
                records = taken or []
                if not records or self._interceptors is None:
                    return records
                if (made := self._on_consume(records)) or timeout is not None:
                    return made
        except _Closed:
            return []

    def _received(self) -> Callable[[Any], None] | None:
        """Return the function that makes the span of the records that a call takes; None without tracing."""
        tracing = self._consumer._iteration.tracing
        if tracing is None:
            return None
        began, group = time.monotonic(), self._consumer._config.group_id
        return lambda records: tracing.received(records, group, time.monotonic() - began)

    def _on_consume(self, records: list[ConsumerRecord[K, V]]) -> list[ConsumerRecord[K, V]]:
        """Return what the interceptors, which the client's thread calls, make of the records."""
        assert self._interceptors is not None  # the callers check it
        return self._loop.call_sync(partial(self._interceptors.on_consume, records))

    def batches(self, timeout: float | None = None) -> Iterator[ConsumerBatch[K, V]]:
        """Iterate over whole batches, which is fastest; end after ``timeout`` seconds without a batch."""
        return _Batches(self, timeout)

    def _intercepted_batch(self, batch: ConsumerBatch[K, V]) -> ConsumerBatch[K, V]:
        from ..consumer.intercepted_iteration import InterceptedBatch

        return InterceptedBatch(batch, self._on_consume)

    def _take(
        self,
        unit: Literal["one by one", "together", "batch"],
        limit: int,
        timeout: float | None,
        before: Callable[[Any], object] | None = None,
    ) -> Any:
        """Request records; return a record, a list of records, or a batch, as ``unit`` says; None after the timeout.

        ``before`` is called with what will be returned.
        """
        self._enter()
        try:
            while True:
                self._lent = self._nothing
                lent = self._loop.call(self._run_alone, partial(self._ahead.lend, unit, limit, timeout))
                if lent is None:
                    return None
                first, last, error = lent.taken, lent.taken + 1, None
                found: Any = None
                if first >= lent.count:
                    error = lent.error
                elif unit == "together":
                    last = min(first + limit, lent.count)
                    found = lent.records[first:last]
                else:
                    found = lent.batch if unit == "batch" else lent.records[first]
                if unit == "one by one":
                    self._lent = lent
                if before is not None and error is None:
                    before(found)
                # From here to the return there must be no call: see the module's docstring.
                lent.taken = last
                if self._iterator_state.changes == lent.seen:
                    if error is not None:
                        raise error
                    return found
                lent.taken = first
        finally:
            self._caller = None

    # --- what to read ------------------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int | OffsetSpec]) -> None:
        """Read exactly these partitions; a mapping also sets the offset at which to start each partition."""
        self._ask_sync(self._consumer.assign, partitions)

    def subscribe(
        self,
        *topics: str | Collection[str] | SubscriptionPattern,
        pattern: "str | re.Pattern[str] | None" = None,
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        **unknown: Never,
    ) -> None:
        """Share the partitions of these topics with the other members of the group; replace a previous subscription.

        The arguments are those of :meth:`aiokafkawire.Consumer.subscribe`. The listeners are plain functions. Each call
        of a listener runs on its own thread, one at a time, even while another thread is in a call of this consumer.
        The rebalance waits until the listener returns. A listener may call this consumer (:meth:`commit`, :meth:`seek`
        and others), but must not read records.

        Raises:
            UsageError: as the asynchronous method, or a listener is a coroutine function.
        """
        listeners = {"on_assigned": on_assigned, "on_revoked": on_revoked, "on_lost": on_lost}
        wrapped: Any = {name: self._wrapped(name, listener) for name, listener in listeners.items()} | unknown
        self._ask_sync(self._consumer.subscribe, *topics, pattern=pattern, **wrapped)

    def unsubscribe(self, timeout: float = 5.0) -> None:
        """Commit finished records (``enable_auto_commit``) and leave the group, within ``timeout`` seconds."""
        self._ask(self._consumer.unsubscribe, timeout)

    @property
    def subscription(self) -> "tuple[str, ...] | re.Pattern[str] | SubscriptionPattern":
        """The topics subscribed to, or the pattern; empty without a subscription."""
        return self._consumer.subscription

    def partitions_for(self, topic: str, *, timeout: float | None = None) -> tuple[int, ...]:
        """Return the indexes of the topic's partitions."""
        return self._ask(self._consumer.partitions_for, topic, timeout=timeout)

    def list_topics(self, *, timeout: float | None = None) -> dict[str, tuple[int, ...]]:
        """Return the indexes of the partitions of every topic, except internal topics."""
        return self._ask(self._consumer.list_topics, timeout=timeout)

    def enforce_rebalance(self, reason: str = "the user has requested it") -> None:
        """Start a rebalance of the group; see :meth:`aiokafkawire.Consumer.enforce_rebalance`."""
        self._ask(self._consumer.enforce_rebalance, reason)

    def seek(self, partition: TopicPartition, to: int | OffsetSpec) -> None:
        """Set the position from which a partition is read next: an offset, or the offset that an OffsetSpec finds."""
        self._ask_sync(self._consumer.seek, partition, to)

    def pause(self, *partitions: TopicPartition) -> None:
        """Pause reading from these partitions until :meth:`resume`; records that are fetched already are kept."""
        self._ask_sync(self._consumer.pause, *partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo :meth:`pause` for these partitions."""
        self._ask_sync(self._consumer.resume, *partitions)

    @property
    def paused(self) -> tuple[TopicPartition, ...]:
        """The partitions that are paused."""
        return self._look(lambda: self._consumer.paused)

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """The partitions that the consumer reads, assigned by :meth:`assign` or by the group."""
        return self._consumer.assignment

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset after the partition's last returned record; None while the start is looked up."""
        return self._look(self._consumer.position, partition)

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return each partition's offset after the last returned record, in the form that :meth:`commit` accepts."""
        return self._look(self._consumer.positions)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """Return the end offset of the partition's log at its last fetch; None before the first fetch."""
        return self._look(self._consumer.high_watermark, partition)

    @property
    def undeserializable_records(self) -> int:
        """The number of records that ``on_error`` has left out: skipped, or written to the dead-letter topic."""
        return self._consumer.undeserializable_records

    @property
    def name(self) -> str:
        """The consumer's name, which its connections for fetches have as well, such as ``"fetch-2"``."""
        return self._consumer.name

    def health(self) -> ConsumerHealth:
        """Return the consumer's state: its partitions, positions and group, and why it gets no records."""
        return self._look(self._consumer.health)

    def offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up offsets: of the beginning, of the end, or by time; None for a time after all records."""
        return self._ask(self._consumer.offsets, specs, timeout=timeout)

    # --- the group's offsets -----------------------------------------------------------------------------

    def group_metadata(self) -> GroupMetadata:
        """Return the member's metadata, for ``transaction.commit_offsets(offsets, group=...)`` (KIP-447)."""
        return self._ask_sync(self._consumer.group_metadata)

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        retention_ms: int | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets for the group; by default the offsets after the last returned records."""
        self._ask(self._consumer.commit, offsets, retention_ms=retention_ms, timeout=timeout)

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets of these partitions; None for a partition without one."""
        return self._ask(self._consumer.committed, partitions, timeout=timeout)

    def owns(self, record: ConsumerRecord[Any, Any] | ConsumerBatch[Any, Any]) -> bool:
        """Return whether this member still owns a returned record or batch; see :meth:`.Consumer.owns`."""
        return self._look(self._consumer.owns, record)

    def check_ownership(self) -> None:
        """Raise CommitFailed if the group took partitions away while their records were being processed."""
        self._look(self._consumer.check_ownership)

    # --- one call at a time ------------------------------------------------------------------------------

    def _enter(self) -> None:
        """Mark the start of a call. When the call ends, its method sets ``_caller`` to None."""
        self._loop.require()
        current = threading.get_ident()
        if self._is_listener():
            raise UsageError("a listener cannot read records: return from it, and read then")
        if self._caller is not None:
            caller = "another thread" if self._caller != current else "this thread"
            raise UsageError(f"{caller} is in a call of this consumer: a consumer has one caller at a time")
        self._caller = current

    def _is_listener(self) -> bool:
        return self._listening is not None and self._listening.thread == threading.get_ident()

    def _ask(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        listening = self._listening
        if listening is not None and listening.thread == threading.get_ident():
            return listening.call(partial(function, *args, **kwargs))
        self._enter()
        try:
            return self._loop.call(self._run_alone, partial(function, *args, **kwargs))
        finally:
            self._caller = None

    def _ask_sync(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async def ask() -> T:
            return function(*args, **kwargs)

        return self._ask(ask)

    def _look(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._loop.call_sync(function, *args, **kwargs)

    async def _run_alone(self, function: Callable[[], Awaitable[T]]) -> T:
        while (before := self._running_call) is not None:  # the caller of that call was interrupted
            before.scope.cancel()
            await before.ended.wait()
        call, was_closed = _RunningCall(), self._is_closed
        self._running_call = call
        try:
            with call.scope:
                return await function()
            raise UsageError("another call of this consumer began before this call had ended")
        except (StopAsyncIteration, UsageError) as error:
            if was_closed or not self._is_closed:
                raise
            raise _Closed("the consumer was closed while this call was waiting") from error
        finally:
            self._running_call = None
            call.ended.set()

    # --- listeners ---------------------------------------------------------------------------------------

    def _wrapped(self, name: str, listener: Any) -> Any:
        if inspect.iscoroutinefunction(listener):
            raise UsageError(f"{name} must be a plain function for the blocking consumer, got {listener!r}")
        return partial(self._listen, listener) if callable(listener) else listener

    async def _listen(self, listener: Listener, partitions: tuple[TopicPartition, ...]) -> None:
        self._listening = listening = ListenerThread(self._loop)
        try:
            await listening.run(partial(listener, partitions))
        finally:
            self._listening = None


add_hints(Consumer, BLOCKING_CONSUMER)


class _Closed(UsageError):
    """The error of a call that was waiting when another thread closed the consumer."""


class _RunningCall:
    """A call that runs on the loop's thread: its cancel scope, and an event that is set when it has ended."""

    def __init__(self) -> None:
        self.scope: anyio.CancelScope = anyio.CancelScope()
        self.ended: anyio.Event = anyio.Event()


class _Records(Iterator[ConsumerRecord[K, V]]):
    """An iterator over records. Unlike a generator, it holds no records itself, and continues after an error."""

    __slots__ = ("_attached", "_consumer", "_handling")

    def __init__(self, consumer: Consumer[K, V]) -> None:
        self._consumer = consumer
        tracing = consumer._consumer._iteration.tracing
        self._handling: Handling | None = None
        if tracing is not None:
            self._handling = tracing.handling(consumer._consumer._config.group_id)
        self._attached = False

    def _enter(self, record: ConsumerRecord[K, V]) -> None:
        if self._handling is not None and (self._attached or record.headers):
            self._attached = self._handling.next(record)

    def __next__(self) -> ConsumerRecord[K, V]:
        lent = self._consumer._lent
        taken = lent.taken
        if taken < lent.count:
            record = lent.records[taken]
            if self._handling is not None:
                self._enter(record)
            # From here to the return there must be no call: see the module's docstring.
            lent.taken = taken + 1
            if self._consumer._iterator_state.changes == lent.seen:
                return record
            lent.taken = taken
        if self._handling is not None and self._attached:
            self._attached = self._handling.next(None)
        before = None if self._handling is None else self._enter
        try:
            return self._consumer._take("one by one", _READ_AHEAD, None, before)  # type: ignore[no-any-return]
        except _Closed:
            raise StopIteration from None


class _InterceptedRecords(Iterator[ConsumerRecord[K, V]]):
    """An iterator over what interceptors make of the records."""

    def __init__(self, consumer: Consumer[K, V]) -> None:
        self._consumer = consumer
        self._made: deque[ConsumerRecord[K, V]] = deque()

    def __next__(self) -> ConsumerRecord[K, V]:
        try:
            while not self._made:
                self._made.extend(self._consumer._on_consume([self._consumer._take("one by one", 1, None)]))
        except _Closed:
            raise StopIteration from None
        return self._made.popleft()


class _Batches(Iterator[ConsumerBatch[K, V]]):
    def __init__(self, consumer: Consumer[K, V], timeout: float | None) -> None:
        self._consumer, self._timeout = consumer, timeout

    def __next__(self) -> ConsumerBatch[K, V]:
        try:
            batch = self._consumer._take("batch", 1, self._timeout)
        except _Closed:
            batch = None
        if batch is None:
            raise StopIteration
        # Without interceptors there must be no call here: see the module's docstring.
        return batch if self._consumer._interceptors is None else self._consumer._intercepted_batch(batch)


_consumers: weakref.WeakSet[Consumer[Any, Any]] = weakref.WeakSet()


def _discard_lent_records() -> None:
    """Discard the records read ahead, in a forked process: its calls must not return them, but raise UsageError."""
    for consumer in list(_consumers):
        consumer._lent = consumer._nothing


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_discard_lent_records)
