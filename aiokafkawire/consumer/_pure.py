"""The record iterator in plain Python; _hot.pyx has the compiled one."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, Self, final

from ..tracing import Handling

__all__ = ("IteratorState", "RecordIterator")

_CLOCK_EVERY: Final = 16
"""The number of records after which the consumer reads the clock, and lets other tasks run if it is time."""


@final
class IteratorState:
    """Counters shared by a consumer and its record iterators."""

    __slots__ = ("changes", "polls")

    def __init__(self) -> None:
        self.changes: int = 0
        """The number of events that may change the next record, such as seeks, pauses and changes of the assignment."""
        self.polls: int = 0
        """The number of the user's polls: calls of ``poll``, and records and batches taken by iterators."""


@final
class RecordIterator:
    """An iterator for ``async for``, which reads the current batch itself and calls the consumer for the next one.

    Args:
        iterator_state: the consumer's counters.
        slow: the consumer's coroutine function that returns the next record, and passes its batch to :meth:`adopt`.
        reads_clock: ignored; only the compiled iterator reads the clock itself.
    """

    __slots__ = ("_attached", "_handling", "_iterator_state", "_left", "_reader", "_seen", "_slow", "_state")

    def __init__(
        self,
        iterator_state: IteratorState,
        slow: Callable[["RecordIterator"], Coroutine[Any, Any, Any]],
        reads_clock: bool,
    ) -> None:
        self._iterator_state, self._slow = iterator_state, slow
        self._reader: Any = None
        self._state: Any = None
        self._seen = self._left = 0
        self._handling: Handling | None = None
        self._attached = False

    def adopt(self, reader: object, state: object) -> None:
        """Take the next records from ``reader``, until a seek, pause or assignment; ``state`` is the partition's."""
        self._reader, self._state = reader, state
        self._seen, self._left = self._iterator_state.changes, _CLOCK_EVERY

    def trace(self, handling: Handling) -> None:
        """Call ``handling`` for each traced record from now on."""
        self._handling = handling

    def enter(self, record: Any) -> None:
        """Start the span of a record that ``slow`` returns, if the record is traced."""
        if self._handling is not None and record.headers:
            self._attached = self._handling.next(record)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        record = self._take()
        if record is not None:
            return record
        if self._attached and self._handling is not None:
            self._attached = self._handling.next(None)
        return await self._slow(self)

    def _take(self) -> Any:
        """Return the next record of the batch; None if ``slow`` has to return it, or has to let other tasks run."""
        if self._reader is None or self._seen != self._iterator_state.changes or self._left == 0:
            self._reader = None
            return None
        self._left -= 1
        self._state.held = self._state.position
        try:
            record = next(self._reader, None)
        finally:
            self._state.position = self._reader.next_offset
        if record is None:
            self._reader = None  # the end: the slow path handles it
        else:
            self._iterator_state.polls += 1
            if self._handling is not None and (self._attached or record.headers):
                self._attached = self._handling.next(record)
        return record
