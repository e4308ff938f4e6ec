"""What became of a batch: one result for all of its records, and the event their waiters share."""

from array import array
from collections.abc import Callable
from typing import Protocol

from ..errors import KafkaError, again
from ..types import RecordMetadata, TopicPartition

__all__ = ("BatchResult",)


class Event(Protocol):
    """Something that tasks wait on, as ``anyio.Event``."""

    def set(self) -> object: ...

    async def wait(self) -> object: ...


class BatchResult:
    """The outcome of one batch. It keeps the records' timestamps, and nothing else of them."""

    __slots__ = (
        "_awaited",
        "_base_offset",
        "_event",
        "_log_append_time",
        "_new_event",
        "done",
        "error",
        "timestamps",
        "where",
    )

    def __init__(self, where: TopicPartition, new_event: Callable[[], Event]) -> None:
        self.where: TopicPartition = where
        self._new_event = new_event
        self.timestamps: array[int] = array("q")
        """The producer's timestamp of each record, in ms since the epoch."""
        self.done: bool = False
        self.error: KafkaError | None = None
        self._base_offset = -1
        self._log_append_time = -1
        self._awaited: set[int] = set()
        # Made by the first who waits: most records of a fast producer are never awaited.
        self._event: Event | None = None

    async def wait(self, index: int) -> RecordMetadata:
        """Where record ``index`` is, once it is acknowledged. Raises the error that its batch failed with."""
        self._awaited.add(index)
        try:
            await self.settled()
        except BaseException:
            # Who stopped waiting will not hear of it: flush has to tell.
            self._awaited.discard(index)
            raise
        if self.error is not None:
            raise again(self.error)
        offset = self._base_offset + index if self._base_offset >= 0 else -1
        timestamp = self._log_append_time if self._log_append_time >= 0 else self.timestamps[index]
        return RecordMetadata(*self.where, offset, timestamp)

    async def settled(self) -> None:
        """Wait until the outcome is known, whatever it is."""
        if not self.done:
            if self._event is None:
                self._event = self._new_event()
            await self._event.wait()

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

    def _finish(self) -> None:
        self.done = True
        if self._event is not None:
            self._event.set()
