"""The futures of records that were sent: made from the results of their batches, without an event for each record."""

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any, Final

from ...errors import KafkaError
from ...producer.batch import BatchResult
from ...runtime import Owner
from ...types import RecordMetadata as OwnRecordMetadata
from ..error_translation import TRANSLATED, translated
from ..structs import RecordMetadata, TopicPartition

__all__ = ("BatchWatcher", "SendFuture")

_new_tuple: Final = tuple.__new__


class SendFuture:
    """The outcome of sending one record, with the interface of :class:`asyncio.Future`.

    It may be awaited repeatedly, and by several tasks, and given to ``asyncio.gather``, ``asyncio.wait`` and others.
    Only these, and :meth:`add_done_callback`, make a future of the event loop; awaiting it does not. Cancelling it does
    not stop the record.
    """

    __slots__ = ("_future", "_index", "_result", "_watcher")

    _asyncio_future_blocking = False
    """By this attribute asyncio knows a future."""

    def __init__(self, watcher: "BatchWatcher", result: BatchResult, index: int) -> None:
        self._watcher = watcher
        self._result = result
        self._index = index
        self._future: asyncio.Future[RecordMetadata | None] | None = None

    def __await__(self) -> Generator[Any, Any, RecordMetadata | None]:
        return self._wait().__await__() if self._future is None else self._future.__await__()

    __iter__ = __await__

    async def _wait(self) -> RecordMetadata | None:
        with TRANSLATED:
            written = await self._result.wait(self._index)
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
        return self._result.is_done(self._index) if self._future is None else self._future.done()

    def result(self) -> RecordMetadata | None:
        """Return the record's metadata, or raise its error.

        Raises:
            asyncio.InvalidStateError: the outcome is not known yet.
        """
        if self._future is not None:
            return self._future.result()
        if not self._result.is_done(self._index):
            raise asyncio.InvalidStateError("Result is not set.")
        return self._outcome()

    def exception(self) -> BaseException | None:
        """Return the record's error, or None if it is acknowledged. Raises as :meth:`result` if it is not done."""
        try:
            self.result()
        except (asyncio.InvalidStateError, asyncio.CancelledError):
            raise
        except Exception as error:
            return error
        return None

    def add_done_callback(self, callback: Callable[[Any], object], *, context: Context | None = None) -> None:
        """Call ``callback(self)`` soon after the outcome is known."""
        self._as_future().add_done_callback(_Callback(callback, self), context=context)

    def remove_done_callback(self, callback: Callable[[Any], object]) -> int:
        """Remove all instances of a callback; return how many there were."""
        return 0 if self._future is None else self._future.remove_done_callback(_Callback(callback, self))

    def cancel(self, msg: Any = None) -> bool:
        """Cancel the future, and not the record; return whether the outcome was not known yet."""
        return not self.done() and self._as_future().cancel(msg)

    def cancelled(self) -> bool:
        """Return whether the future was cancelled."""
        return self._future is not None and self._future.cancelled()

    def _make_cancelled_error(self) -> BaseException:
        """Return the error of a cancelled future, which ``asyncio.gather`` needs."""
        return asyncio.CancelledError()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop of the producer."""
        return self._watcher.loop

    def __repr__(self) -> str:
        return f"<SendFuture {'done' if self.done() else 'pending'}>"

    def _as_future(self) -> "asyncio.Future[RecordMetadata | None]":
        if self._future is None:
            self._future = self._watcher.loop.create_future()
            if self._result.completed and self._result.is_done(self._index):
                self._settle()
            else:
                self._watcher.watch(self._result, self)
        return self._future

    def _settle(self) -> None:
        """Give the outcome to the event loop's future, unless that was cancelled."""
        future = self._future
        if future is None or future.done():
            return
        if not self._result.is_done(self._index):
            future.cancel("the client was closed")
            return
        try:
            outcome = self._outcome()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(outcome)

    def _outcome(self) -> RecordMetadata | None:
        """Return the metadata as aiokafka has it; None if the producer waits for no acknowledgement (acks=0)."""
        try:
            written = self._result.outcome(self._index)
        except KafkaError as error:  # cheaper than TRANSLATED
            raise translated(error) from error
        return self._as_theirs(written)


class _Callback:
    """A callback that gets the SendFuture instead of the event loop's future. Equal callbacks make equal objects."""

    __slots__ = ("_callback", "_sent")

    def __init__(self, callback: Callable[[Any], object], sent: SendFuture) -> None:
        self._callback, self._sent = callback, sent

    def __call__(self, future: object) -> None:
        self._callback(self._sent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Callback) and self._callback == other._callback

    def __hash__(self) -> int:
        return hash(self._callback)


class BatchWatcher:
    """Settles the futures of a producer's batches, with one task for each watched batch.

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
        """Settle ``sent`` when its batch is completed."""
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
            for sent in self._watched.pop(result):
                sent._settle()
