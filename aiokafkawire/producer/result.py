"""What became of a batch: one result for all of its records, and the event their waiters share."""

from array import array
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from ..errors import KafkaError, copy_for_reraise
from ..types import Event, RecordMetadata, TopicPartition

__all__ = ("BatchResult",)

_new_tuple: Final = tuple.__new__


class BatchResult:
    """The outcome of one batch. It keeps the records' timestamps, and nothing else of them.

    A batch that is split leaves its outcome to its parts, each with a result of its own.
    """

    __slots__ = (
        "_awaited",
        "_base_offset",
        "_event",
        "_log_append_time",
        "_new_event",
        "error",
        "parts",
        "settled",
        "timestamps",
        "where",
    )

    def __init__(self, where: TopicPartition, new_event: Callable[[], Event]) -> None:
        self.where: TopicPartition = where
        self._new_event = new_event
        self.timestamps: array[int] = array("q")
        """The producer's timestamp of each record, in ms since the epoch."""
        self.settled: bool = False
        """Whether the batch has an outcome, or parts that will have theirs."""
        self.error: KafkaError | None = None
        self._base_offset = -1
        self._log_append_time = -1
        self._awaited: set[int] = set()
        # Made by the first who waits: most records of a fast producer are never awaited.
        self._event: Event | None = None
        self.parts: Sequence[BatchResult] = ()
        """Whom it has left its outcome to."""

    async def wait(self, index: int) -> RecordMetadata:
        """Where record ``index`` is, once it is acknowledged. Raises the error that its batch failed with."""
        if self.settled:
            self._awaited.add(index)
        else:
            try:
                await self.settling(index)
            except BaseException:
                self.unhear(index)
                raise
        if self.parts:
            part, within = self._part(index)
            return await part.wait(within)
        return self.place(index)

    def settling(self, index: int) -> Awaitable[object]:
        """Somebody waits for record ``index``, and awaits this until the batch is settled."""
        self._awaited.add(index)
        if self._event is None:
            self._event = self._new_event()
        return self._event.wait()

    def unhear(self, index: int) -> None:
        """Who waited has left: flush has to tell what becomes of the record."""
        self._awaited.discard(index)
        if self.parts:
            part, within = self._part(index)
            part.unhear(within)

    def place(self, index: int) -> RecordMetadata:
        """Where record ``index`` is, of a batch that is settled and in one part. Raises as :meth:`wait`."""
        if self.error is not None:
            raise copy_for_reraise(self.error)
        offset = self._base_offset + index if self._base_offset >= 0 else -1
        timestamp = self._log_append_time if self._log_append_time >= 0 else self.timestamps[index]
        # As RecordMetadata(...) does, without the function that it would call for each record.
        return _new_tuple(RecordMetadata, (*self.where, offset, timestamp))

    async def finished(self) -> None:
        """Wait until the outcome of every record is known, whatever it is."""
        if not self.settled:
            if self._event is None:
                self._event = self._new_event()
            await self._event.wait()
        for part in self.parts:
            await part.finished()

    def is_done(self, index: int) -> bool:
        """Whether the outcome of record ``index`` is known."""
        if self.parts:
            part, within = self._part(index)
            return part.is_done(within)
        return self.settled

    @property
    def unawaited(self) -> int:
        """How many of its records nobody has awaited."""
        return len(self.timestamps) - len(self._awaited)

    def resolve(self, base_offset: int, log_append_time: int) -> None:
        """The batch was written at ``base_offset`` (-1: no broker said). Either time is -1 where the other counts."""
        self._base_offset, self._log_append_time = base_offset, log_append_time
        self._finish()

    def fail(self, error: KafkaError) -> None:
        """The batch will not be written."""
        self.error = error
        self._finish()

    def split(self, counts: Sequence[int]) -> "list[BatchResult]":
        """Leave the outcome to parts with so many records each, in their order."""
        parts, first = [], 0
        for count in counts:
            part = BatchResult(self.where, self._new_event)
            part.timestamps = self.timestamps[first : first + count]
            part._awaited = {index - first for index in self._awaited if first <= index < first + count}
            parts.append(part)
            first += count
        self.parts = parts
        self._finish()
        return parts

    def _part(self, index: int) -> "tuple[BatchResult, int]":
        for part in self.parts:
            if index < len(part.timestamps):
                return part, index
            index -= len(part.timestamps)
        raise IndexError(index)

    def _finish(self) -> None:
        self.settled = True
        if self._event is not None:
            self._event.set()
