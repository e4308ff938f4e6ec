"""The futures of records that were sent: made from the results of their batches, without an event for each record."""

import asyncio
from collections.abc import Callable, Generator, Iterable
from contextvars import Context, copy_context
from typing import Any, Final, TypeAlias

from ...errors import KafkaError
from ...producer.batch import BatchResult
from ...runtime import Owner
from ...types import RecordMetadata as OwnRecordMetadata
from ..error_translation import TRANSLATED, translated
from ..structs import RecordMetadata, TopicPartition

__all__ = ("BatchWatcher", "SendFuture")

_new_tuple: Final = tuple.__new__

_Callback: TypeAlias = tuple[Callable[[Any], object], Context]


class SendFuture:
    """The outcome of sending one record, with the interface of :class:`asyncio.Future`.

    It may be awaited repeatedly, and by several tasks, and given to ``asyncio.gather``, ``asyncio.wait`` and others.
    Cancelling it does not stop the record.
    """

    __slots__ = ("_callbacks", "_cancel_message", "_index", "_is_cancelled", "_metadata", "_result", "_watcher")

    _asyncio_future_blocking = False
    """By this attribute asyncio knows a future."""

    def __init__(self, watcher: "BatchWatcher", result: BatchResult, index: int) -> None:
        self._watcher = watcher
        self._result = result
        self._index = index
        self._callbacks: list[_Callback] | None = None
        self._is_cancelled = False
        self._cancel_message: Any = None  # asyncio.gather reads it
        self._metadata: RecordMetadata | None = None
        """What :meth:`result` returned, if it is not None."""

    def __await__(self) -> Generator[Any, Any, RecordMetadata | None]:
        return self._wait().__await__()

    __iter__ = __await__

    async def _wait(self) -> RecordMetadata | None:
        result, index = self._result, self._index
        try:
            while not self.done():
                await result.wait_handle(index)
        except BaseException:
            result.discard_waiter(index)
            raise
        if self._is_cancelled:
            raise self._make_cancelled_error()
        with TRANSLATED:
            written = result.outcome(index)
        return self._as_theirs(written)

    def _as_theirs(self, written: OwnRecordMetadata) -> RecordMetadata | None:
        if self._watcher.unacknowledged:
            return None
        partition = TopicPartition(written.topic, written.partition)
        is_append_time = self._result.has_append_time(self._index)
        fields = (*partition, partition, written.offset, written.timestamp, int(is_append_time), None)
        # The same as RecordMetadata(...), but without a function call for each record.
        return _new_tuple(RecordMetadata, fields)

    def done(self) -> bool:
        """Return whether the record is acknowledged, has failed, or the future was cancelled."""
        return self._is_cancelled or self._result.is_done(self._index)

    def result(self) -> RecordMetadata | None:
        """Return the record's metadata, or raise its error.

        Raises:
            asyncio.InvalidStateError: the outcome is not known yet.
        """
        if self._metadata is not None:
            return self._metadata
        if self._is_cancelled:
            raise self._make_cancelled_error()
        if not self._result.is_done(self._index):
            raise asyncio.InvalidStateError("Result is not set.")
        try:
            written = self._result.outcome(self._index)
        except KafkaError as error:  # cheaper than TRANSLATED
            raise translated(error) from error
        self._metadata = self._as_theirs(written)
        return self._metadata

    def exception(self) -> BaseException | None:
        """Return the record's error, or None if it is acknowledged. Raises as :meth:`result` if it is not done."""
        if self._metadata is not None:
            return None
        try:
            self.result()
        except (asyncio.InvalidStateError, asyncio.CancelledError):
            raise
        except Exception as error:
            return error
        return None

    def add_done_callback(self, callback: Callable[[Any], object], *, context: Context | None = None) -> None:
        """Call ``callback(self)`` soon after the outcome is known."""
        made = callback, copy_context() if context is None else context
        if self.done():
            self._watcher.call_soon(((self, made),))
        elif self._callbacks is None:
            self._watcher.watch(self._result, self)
            self._callbacks = [made]
        else:
            self._callbacks.append(made)

    def remove_done_callback(self, callback: Callable[[Any], object]) -> int:
        """Remove all instances of a callback; return how many there were."""
        if self._callbacks is None:
            return 0
        before = len(self._callbacks)
        self._callbacks = [one for one in self._callbacks if one[0] != callback]
        return before - len(self._callbacks)

    def cancel(self, msg: Any = None) -> bool:
        """Cancel the future, and not the record; return whether the outcome was not known yet."""
        if self.done():
            return False
        self._is_cancelled, self._cancel_message = True, msg
        self._result.wake(self._index)
        self._watcher.call_soon(self.take_callbacks())
        return True

    def cancelled(self) -> bool:
        """Return whether the future was cancelled."""
        return self._is_cancelled

    def _make_cancelled_error(self) -> BaseException:
        """Return the error of a cancelled future, which ``asyncio.gather`` needs."""
        return (
            asyncio.CancelledError() if self._cancel_message is None else asyncio.CancelledError(self._cancel_message)
        )

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop of the producer."""
        return self._watcher.loop

    def __repr__(self) -> str:
        return f"<SendFuture {'done' if self.done() else 'pending'}>"

    def take_callbacks(self) -> "list[tuple[SendFuture, _Callback]]":
        """Return the callbacks, once. The batch is completed, or the future was cancelled."""
        if not self.done():
            self._is_cancelled, self._cancel_message = True, "the client was closed"
        callbacks, self._callbacks = self._callbacks, []
        return [(self, one) for one in callbacks or ()]


class BatchWatcher:
    """Calls the callbacks of a producer's futures, with one task for each watched batch.

    Closing the producer completes all batches, and so ends the tasks.

    Args:
        owner: knows the event loop.
        unacknowledged: whether brokers do not answer (acks=0), so that the outcome of a record is None.
    """

    def __init__(self, owner: Owner, *, unacknowledged: bool) -> None:
        self._owner = owner
        self.unacknowledged: bool = unacknowledged
        self._watched: dict[BatchResult, list[SendFuture]] = {}
        self._tasks: dict[BatchResult, asyncio.Task[None]] = {}
        self._due: list[tuple[SendFuture, _Callback]] = []

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the futures.

        Raises:
            RuntimeError: the producer runs on trio, where the records' futures can be awaited only.
        """
        loop = self._owner.loop
        if loop is None:
            raise RuntimeError("callbacks and gather() need asyncio; on trio, await the future of a record")
        return loop

    def watch(self, result: BatchResult, sent: SendFuture) -> None:
        """Call the callbacks of ``sent`` when its batch is completed."""
        watched = self._watched.get(result)
        if watched is not None:
            watched.append(sent)
            return
        self._watched[result] = [sent]
        # The loop may not be running now, as before loop.run_until_complete(future): so the task is asyncio's.
        self._tasks[result] = self.loop.create_task(self._settle(result))

    async def _settle(self, result: BatchResult) -> None:
        try:
            await result.wait_until_complete()
        finally:
            del self._tasks[result]
            self.call_soon([one for sent in self._watched.pop(result) for one in sent.take_callbacks()])

    def call_soon(self, callbacks: "Iterable[tuple[SendFuture, _Callback]]") -> None:
        """Call the callbacks in the next turn of the event loop, all by one entry of its queue."""
        is_scheduled = bool(self._due)
        self._due.extend(callbacks)
        if self._due and not is_scheduled:
            self.loop.call_soon(self._call_due, context=Context())

    def _call_due(self) -> None:
        due, self._due = self._due, []
        for done, (sent, (callback, context)) in enumerate(due, 1):
            try:
                context.run(callback, sent)
            except (SystemExit, KeyboardInterrupt):
                rest, self._due = [*due[done:], *self._due], []
                self.call_soon(rest)
                raise
            except BaseException as error:  # as asyncio does
                self.loop.call_exception_handler(
                    {"message": f"Exception in callback {callback!r}", "exception": error, "future": sent}
                )
