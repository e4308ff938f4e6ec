"""The spans of records that consumers process, and their contexts for the code that processes them."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import INVALID_SPAN, Link, Span, SpanContext, SpanKind, Tracer, TracerProvider

from ..errors import UsageError
from ..event_log import EventLog
from ..types import Header
from ..version import __version__
from .attributes import (
    COUNT,
    DESTINATION,
    GROUP,
    KEY,
    OFFSET,
    OPERATION,
    OPERATION_TYPE,
    PARTITION,
    SCHEMA_URL,
    SYSTEM,
    TOMBSTONE,
    common_place,
    end_with_error,
    key_text,
)
from .headers import carried, context_in, sampled_sender

__all__ = (
    "MAX_LINKS",
    "extract_context",
    "get_tracer",
    "process_span",
    "processing",
    "sampled_contexts",
    "start_process",
)

_log = EventLog("aiokafkawire.opentelemetry")

MAX_LINKS: Final = 128
"""The number of links that a span has at most, which is the SDK's default limit."""


def get_tracer(provider: TracerProvider | None) -> Tracer:
    """Return the tracer of this package."""
    return trace.get_tracer("aiokafkawire", __version__, provider, SCHEMA_URL)


def extract_context(record: Any) -> Context:
    """Return the current context with what a record's headers carry: the span in which the record was sent, baggage.

    Raises:
        UsageError: the argument is no record.
    """
    return context_in(_headers_of(record), get_current())


@contextmanager
def process_span(
    records: Any, *, group: str | None = None, tracer_provider: TracerProvider | None = None
) -> Iterator[Span]:
    """Return a context manager that is the span of processing a record, or several, from ``poll()`` or ``batches()``.

    Without a sampled context in the records' headers there is no span, and the context manager returns an invalid one.
    An exception in the body gives the span an error.

    Args:
        records: a record, or a list of records.
        group: the name of the consumer's group, for the span's attributes.
        tracer_provider: the provider of the span; None for the global one.

    Raises:
        UsageError: the argument is no record and no list of records.
    """
    listed = [records] if hasattr(records, "headers") else _list_of(records)
    for record in listed:
        _headers_of(record)
    attributes = {} if group is None else {GROUP: group}
    with processing(get_tracer(tracer_provider), listed, attributes, _log_failure) as span:
        yield span


@contextmanager
def processing(
    tracer: Tracer, records: Sequence[Any], attributes: Mapping[str, str], failed: Callable[[str], None]
) -> Iterator[Span]:
    """Return a context manager that is the span of processing records, with links to the contexts in their headers.

    No error of OpenTelemetry is raised: ``failed`` is called with its consequence, in the handler of the error.
    """
    try:
        started = start_process(tracer, records, attributes)
    except Exception:
        failed("records are processed without a span")
        started = None
    if started is None:
        yield INVALID_SPAN
        return
    span, context = started
    token = attach(context)
    error: BaseException | None = None
    try:
        yield span
    except BaseException as raised:
        error = raised
        raise
    finally:
        detach(token)
        try:
            _end(span, error)
        except Exception:
            failed("the span of records that were processed is not reported")


def _end(span: Span, error: BaseException | None) -> None:
    if error is None:
        span.end()
    else:
        span.record_exception(error)
        end_with_error(span, error)


def _log_failure(what: str) -> None:
    error = sys.exception()
    _log.error("OpenTelemetry has failed, so %(consequence)s", text={"consequence": what}, error=error, exc_info=error)


def start_process(tracer: Tracer, records: Sequence[Any], attributes: Mapping[str, str]) -> tuple[Span, Context] | None:
    """Start the span of processing records, and return it with its context; None without a sampled context."""
    found = sampled_contexts(records)
    if not found:
        return None
    context = get_current()
    if len(found) == 1:
        headers = next(iter(found))
        context = _context_of_one(headers, found[headers], context)
    topic, partition = common_place(records)
    described: dict[str, Any] = {SYSTEM: "kafka", OPERATION: "process", OPERATION_TYPE: "process", **attributes}
    if topic is not None:
        described[DESTINATION] = topic
    if partition is not None:
        described[PARTITION] = str(partition)
    if len(records) == 1:
        described |= _of_record(records[0])
    else:
        described[COUNT] = len(records)
    span = tracer.start_span(
        "process" if topic is None else f"process {topic}",
        context,
        SpanKind.CONSUMER,
        described,
        links=[Link(each) for each in list(found.values())[:MAX_LINKS]],
    )
    return span, trace.set_span_in_context(span, context)


def sampled_contexts(records: Iterable[Any]) -> dict[tuple[Header, ...], SpanContext]:
    """Return the contexts of the sampled spans in which records were sent, by the headers that carry them."""
    found: dict[tuple[Header, ...], SpanContext | None] = {}
    for record in records:
        if record.headers:
            headers = carried(record.headers)
            if headers and headers not in found:
                found[headers] = sampled_sender(headers)
    return {headers: span for headers, span in found.items() if span is not None}


def _context_of_one(headers: tuple[Header, ...], sent_in: SpanContext, context: Context) -> Context:
    """Return the context for a single sender's records: its trace goes on, unless another span is open here."""
    here = trace.get_current_span(context)
    extracted = context_in(headers, context)
    return trace.set_span_in_context(here, extracted) if here.get_span_context().is_valid else extracted


def _of_record(record: Any) -> dict[str, Any]:
    described: dict[str, Any] = {OFFSET: record.offset}
    text = key_text(getattr(record, "raw_key", None))
    if text is not None:
        described[KEY] = text
    if getattr(record, "raw_value", b"") is None:
        described[TOMBSTONE] = True
    return described


def _headers_of(record: Any) -> Sequence[Header]:
    headers: Sequence[Header] | None = getattr(record, "headers", None)
    if headers is None or not hasattr(record, "topic"):
        raise UsageError(f"a record of a consumer is needed, got {record!r:.100}")
    return headers


def _list_of(records: Any) -> Sequence[Any]:
    if not isinstance(records, Sequence) or isinstance(records, str | bytes):
        raise UsageError(f"a record or a list of records is needed, got {records!r:.100}")
    return records
