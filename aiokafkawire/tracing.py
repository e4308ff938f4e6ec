"""The interface of tracing systems, such as OpenTelemetry, to producers and consumers; without one, nothing is traced.

``Cluster.tracing`` has the tracing system of one client.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from .types import Header, RecordMetadata, TopicPartition

__all__ = ("BatchTrace", "HandledRecords", "Handling", "RecordTrace", "TracedBatch", "Tracing", "new_client_hooks")

R = TypeVar("R")


class TracedBatch(Protocol):
    """The part of a batch's result that the trace of its records uses."""

    @property
    def partition(self) -> TopicPartition: ...
    @property
    def completed(self) -> bool: ...
    @property
    def error(self) -> Exception | None: ...
    @property
    def parts(self) -> "Sequence[TracedBatch]": ...
    @property
    def timestamps(self) -> Sequence[int]: ...

    trace: "BatchTrace | None"

    def metadata_at(self, index: int) -> RecordMetadata:
        """Return the metadata of record ``index`` of a completed batch."""


class BatchTrace(Protocol):
    """The spans of a batch's records."""

    @property
    def headers(self) -> Collection[Header]: ...

    """The headers that carry the spans' contexts, which brokers before Kafka 0.11 do not get."""

    def completed(self, result: Any) -> None:
        """Take notice that the batch with this result was acknowledged, has failed, or was split."""


class RecordTrace(Protocol):
    """The span of one record, or of several of one batch."""

    @property
    def headers(self) -> Sequence[Header]: ...

    """The headers that carry the span's context to consumers."""

    @property
    def is_new(self) -> bool: ...

    """Whether no record has the span yet."""

    def appended(self, result: Any, index: int) -> None:
        """Take notice that record ``index`` of the batch with this result has the span."""


class Handling(Protocol):
    """The span of the record that the user handles now, between two steps of an iteration."""

    def next(self, record: Any) -> bool:
        """End the span of the record before, and begin that of ``record``; return whether there is one.

        ``record`` is None if the user requests a record that is not there yet. The method raises nothing.
        """


class HandledRecords(AsyncIterator[R]):
    """An iterator over records that begins and ends the span of each."""

    def __init__(self, records: AsyncIterator[R], handling: Handling) -> None:
        self._records, self._handling = records, handling
        self._attached = False

    async def __anext__(self) -> R:
        if self._attached:
            self._attached = self._handling.next(None)
        record = await anext(self._records)
        self._attached = self._handling.next(record)
        return record


class Tracing(Protocol):
    """A tracing system."""

    @property
    def variable(self) -> ContextVar[Any]: ...

    """The context variable that has the tracing system's context; equal contexts are one object."""

    @property
    def makes_spans(self) -> bool: ...

    """Whether there may be spans; otherwise producers and consumers that are opened now trace no records."""

    def begin(
        self,
        topic: str,
        partition: int,
        result: Any,
        context: object,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        room: int,
        alone: bool,
    ) -> RecordTrace | None:
        """Return the span for a record that is sent in ``context``; None if the record is not traced.

        Args:
            topic, partition, key, value, headers: those of the record.
            result: the result of the batch that has room for the record; None before a new batch.
            context: the value of :attr:`variable`.
            room: the number of bytes that headers may add.
            alone: whether the record has a span of its own, and shares none with others of its batch.
        """

    def handling(self, group: str | None) -> Handling:
        """Return the spans of the records of one iteration, by a member of ``group``."""

    def received(self, records: Iterable[Any], group: str | None, seconds: float) -> None:
        """Make a span for records that a call returns, which took ``seconds``; raise nothing."""

    def failed(self, error: BaseException) -> None:
        """Take notice that the record that the user handles in this task has failed; raise nothing."""

    def processing(self, records: Sequence[Any], group: str | None) -> AbstractContextManager[object]:
        """Return a context manager in which the records are processed."""


new_client_hooks: list[Callable[[Any], None]] = []
"""Functions that get each new client."""
