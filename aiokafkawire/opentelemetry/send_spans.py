"""The spans of records that producers send: from the call until the acknowledgement."""

from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry.trace import Span

from ..tracing import TracedBatch
from ..types import Header
from .attributes import COUNT, KEY, OFFSET, TOMBSTONE, end_with_error, key_text

__all__ = ("BatchSpans", "SendSpan", "shared_span")


class BatchSpans:
    """The spans of one batch, which end when it is acknowledged, with all parts if the batch is split."""

    __slots__ = ("_error", "_open_parts", "_spans", "shared")

    def __init__(self) -> None:
        self.shared: dict[int, SendSpan] = {}
        """The spans that further records may share, by the id of the span in which they are sent; 0 without one."""
        self._spans: set[SendSpan] = set()
        self._open_parts = 1
        self._error: Exception | None = None

    def add(self, span: "SendSpan") -> bool:
        """Add a span; return False if the batch has it already."""
        if span in self._spans:
            return False
        self._spans.add(span)
        return True

    @property
    def headers(self) -> frozenset[Header]:
        """The headers that carry the spans' contexts."""
        return frozenset(header for span in self._spans for header in span.headers)

    def completed(self, result: TracedBatch) -> None:
        """Take notice that the batch, or a part of it, was acknowledged, has failed, or was split."""
        self._open_parts += len(result.parts) - 1
        self._error = self._error or result.error
        if not self._open_parts:
            for span in self._spans:
                span.batch_ended(self._error)


class SendSpan:
    """The span of one record, or of the records of one batch that are sent in the same context.

    Args:
        span: OpenTelemetry's span.
        headers: the headers that carry its context.
        key, value: those of the first record.
        sharing: the id of the span in which the record is sent, for others that share this one; None if none may.
        failed: called with the consequence if the span cannot be ended, in the handler of the error.
    """

    __slots__ = (
        "_batches",
        "_count",
        "_error",
        "_failed",
        "_first",
        "_key",
        "_sharing",
        "_span",
        "_tombstone",
        "headers",
        "is_new",
    )

    def __init__(
        self,
        span: Span,
        headers: Sequence[Header],
        key: bytes | None,
        value: bytes | None,
        sharing: int | None,
        failed: Callable[[str], None],
    ) -> None:
        self._failed = failed
        self._span, self._key, self._tombstone, self._sharing = span, key, value is None, sharing
        self.headers: Sequence[Header] = headers
        self.is_new: bool = True
        self._first: tuple[TracedBatch, int] | None = None
        self._count = self._batches = 0
        self._error: Exception | None = None

    def appended(self, result: TracedBatch, index: int) -> None:
        """Take notice that record ``index`` of the batch with this result has the span."""
        self.is_new = False
        self._count += 1
        if not isinstance(result.trace, BatchSpans):
            result.trace = BatchSpans()
        if result.trace.add(self):
            self._batches += 1
            self._first = self._first or (result, index)
            if self._sharing is not None:
                result.trace.shared.setdefault(self._sharing, self)

    def batch_ended(self, error: Exception | None) -> None:
        """End the span with its last batch; raise nothing, since the callers of send() wait for their results."""
        self._batches -= 1
        self._error = self._error or error
        if not self._batches:
            try:
                self._end()
            except Exception:
                self._failed("the span of a record that was sent is not reported")

    def _end(self) -> None:
        if self._count == 1 and self._first is not None:
            self._describe_record(*self._first)
        else:
            self._span.set_attribute(COUNT, self._count)
        if self._error is None:
            self._span.end()
        else:
            end_with_error(self._span, self._error)

    def _describe_record(self, result: TracedBatch, index: int) -> None:
        while result.parts:
            for part in result.parts:
                if index < len(part.timestamps):
                    result = part
                    break
                index -= len(part.timestamps)
        self._error = result.error  # that of the record's own part
        offset = -1 if result.error is not None else result.metadata_at(index).offset
        if offset >= 0:
            self._span.set_attribute(OFFSET, offset)
        text = key_text(self._key)
        if text is not None:
            self._span.set_attribute(KEY, text)
        if self._tombstone:
            self._span.set_attribute(TOMBSTONE, True)


def shared_span(result: Any, parent: int) -> SendSpan | None:
    """Return the span that a batch's records share if they are sent in the span with the id ``parent``."""
    spans = None if result is None else result.trace
    return spans.shared.get(parent) if isinstance(spans, BatchSpans) else None
