"""The spans of one client's producers and consumers."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context, attach, get_current
from opentelemetry.trace import Link, NoOpTracer, Span, SpanKind, Tracer

from ..cluster.cluster import Cluster
from ..errors import ConfigError
from ..event_log import EventLog
from ..tracing import Handling, RecordTrace
from ..types import Header, TopicPartition
from .attributes import (
    CLIENT_ID,
    COUNT,
    DESTINATION,
    GROUP,
    OPERATION,
    OPERATION_TYPE,
    PARTITION,
    SERVER_ADDRESS,
    SERVER_PORT,
    SYSTEM,
    common_place,
    set_error,
)
from .headers import carried, context_in, headers_for
from .process_spans import MAX_LINKS, processing, sampled_contexts, start_process
from .root_sampling import RootSampling
from .send_spans import SendSpan, shared_span

__all__ = ("ClientTracing",)

_log = EventLog("aiokafkawire.opentelemetry")

_ROOM: Final = 256
"""The number of bytes that must be left for the headers of a record that gets a span."""
_MAX_PARTITIONS: Final = 10_000
_PRODUCER: Final = SpanKind.PRODUCER
_attached_by: Final[ContextVar[object]] = ContextVar("aiokafkawire_span_attached_by", default=None)

ProcessEnded = Callable[[str, str | None, float], None]
"""Takes the topic, the group and the seconds of a process span that has ended."""


class ClientTracing:
    """Makes the spans of one client (:class:`~aiokafkawire.tracing.Tracing`); an error is logged once, with its cause.

    Args:
        cluster: the client's cluster, which knows the leaders of partitions.
        tracer: starts the spans.
        process_ended: gets the duration of each process span.
    """

    def __init__(self, cluster: Cluster, tracer: Tracer, process_ended: ProcessEnded) -> None:
        self._cluster, self._tracer, self._process_ended = cluster, tracer, process_ended
        self._roots = RootSampling(tracer)
        self._client = {} if cluster.config.client_id is None else {CLIENT_ID: cluster.config.client_id}
        self.makes_spans: bool = not isinstance(tracer, NoOpTracer)
        self.is_on: bool = True
        """Whether new spans are made."""
        self._has_failed = False
        self._snapshot: object = None
        self._attributes: dict[tuple[str, int], dict[str, Any]] = {}
        found = getattr(otel_context._RUNTIME_CONTEXT, "_current_context", None)
        if not isinstance(found, ContextVar):
            raise ConfigError("OTEL_PYTHON_CONTEXT must be contextvars_context, the default: spans need that context")
        self.variable: ContextVar[Any] = found

    # --- producers ---------------------------------------------------------------------------------------

    def begin(
        self,
        topic: str,
        partition: int,
        result: Any,
        context: Any,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        room: int,
        alone: bool,
    ) -> RecordTrace | None:
        """Return the span of a record as :meth:`.Tracing.begin`: sampled ones only."""
        parent_id = 0
        if context:
            parent = trace.get_current_span(context).get_span_context()
            if parent.is_valid and not parent.trace_flags.sampled:
                return None
            if context.get(otel_context._SUPPRESS_INSTRUMENTATION_KEY):
                return None
            parent_id = parent.span_id if parent.is_valid else 0
        elif self.variable.get(None) is None:
            # CPython finds a variable that has a value at once, and searches for one that has none at each record.
            self.variable.set(context)
        if not self.is_on:
            return None
        try:
            # A record without a span around it shares that of its batch: the sampler decides once for all of them.
            sharing = None if alone and parent_id else parent_id
            if headers and carried(headers):
                return None
            if sharing is not None and (known := shared_span(result, sharing)) is not None:
                return known if room >= _size(known.headers) else None
            if room < _ROOM:
                return None
            tracer = self._tracer if parent_id else self._roots.tracer()
            if tracer is None:
                return None
            return self._start_send(tracer, topic, partition, context, key, value, room, sharing)
        except Exception:
            self._log_failure("a record is sent without a span")
            return None

    def _start_send(
        self,
        tracer: Tracer,
        topic: str,
        partition: int,
        context: Any,
        key: bytes | None,
        value: bytes | None,
        room: int,
        sharing: int | None,
    ) -> SendSpan | None:
        attributes = self._described(topic, partition)
        span = tracer.start_span(f"send {topic}", context, _PRODUCER, attributes)
        if not span.get_span_context().trace_flags.sampled:
            if span.is_recording():
                span.end()
            return None
        carriers = headers_for(trace.set_span_in_context(span, context))
        return SendSpan(span, carriers if _size(carriers) <= room else (), key, value, sharing, self._log_failure)

    def _described(self, topic: str, partition: int) -> dict[str, Any]:
        """Return the attributes of the spans of a partition's records, the same object until the metadata change."""
        snapshot = self._cluster.metadata.snapshot
        if snapshot is not self._snapshot or len(self._attributes) >= _MAX_PARTITIONS:
            self._snapshot = snapshot
            self._attributes.clear()
        known = self._attributes.get((topic, partition))
        if known is None:
            known = self._attributes[topic, partition] = {
                SYSTEM: "kafka",
                OPERATION: "send",
                OPERATION_TYPE: "send",
                DESTINATION: topic,
                PARTITION: str(partition),
                **self._client,
            }
            leader = snapshot.leader(TopicPartition(topic, partition))
            if leader is not None:
                known[SERVER_ADDRESS], known[SERVER_PORT] = leader.address
        return known

    # --- consumers ---------------------------------------------------------------------------------------

    def handling(self, group: str | None) -> Handling:
        """Return the spans of the records of one iteration as :meth:`.Tracing.handling`."""
        return _RecordHandling(self, group)

    def received(self, records: Iterable[Any], group: str | None, seconds: float) -> None:
        """Make the span of a call that returns records, if some were sent in sampled spans, with links to those."""
        if not self.is_on:
            return
        try:
            listed = list(records)
            found = sampled_contexts(listed)
            if not found:
                return
            context = get_current()
            if len(found) == 1 and not trace.get_current_span(context).get_span_context().is_valid:
                context = context_in(next(iter(found)), context)
            topic, partition = common_place(listed)
            attributes = {
                **self._consumer(group),
                SYSTEM: "kafka",
                OPERATION: "poll",
                OPERATION_TYPE: "receive",
                COUNT: len(listed),
            }
            if topic is not None:
                attributes[DESTINATION] = topic
            if partition is not None:
                attributes[PARTITION] = str(partition)
            self._tracer.start_span(
                "poll" if topic is None else f"poll {topic}",
                context,
                SpanKind.CLIENT,
                attributes,
                links=[Link(each) for each in list(found.values())[:MAX_LINKS]],
                start_time=time.time_ns() - int(max(0.0, seconds) * 1e9),
            ).end()
        except Exception:
            self._log_failure("poll() has no span")

    def processing(self, records: Sequence[Any], group: str | None) -> AbstractContextManager[object]:
        """Return the span of processing records as :meth:`.Tracing.processing`."""
        if not self.is_on:
            return nullcontext()
        return processing(self._tracer, records, self._consumer(group), self._log_failure)

    def failed(self, error: BaseException) -> None:
        """Give the current process span an error as :meth:`.Tracing.failed`."""
        span = _attached_by.get()
        if isinstance(span, Span) and span.is_recording():
            try:
                span.record_exception(error)
                set_error(span, error)
            except Exception:
                self._log_failure("the span of a record has no error")

    def start_process(self, record: Any, group: str | None) -> tuple[Span, Context] | None:
        """Start the span of processing one record, and return it with its context; None if it is not sampled."""
        return start_process(self._tracer, (record,), self._consumer(group)) if self.is_on else None

    def process_ended(self, topic: str, group: str | None, seconds: float) -> None:
        """Take notice of the end of a process span."""
        self._process_ended(topic, group, seconds)

    def _consumer(self, group: str | None) -> dict[str, Any]:
        return self._client if group is None else {**self._client, GROUP: group}

    def _log_failure(self, what: str) -> None:
        if not self._has_failed:
            self._has_failed = True
            text = {"consequence": what}
            message = "OpenTelemetry has failed, so %(consequence)s; later failures are not logged"
            error = sys.exception()
            _log.error(message, text=text, error=error, exc_info=error)


class _RecordHandling:
    """The process span between two steps of an iteration, whose context is attached in the task that iterates.

    Neighboring records with the same headers, the context included, share a span.
    """

    __slots__ = ("_before", "_began", "_count", "_group", "_headers", "_place", "_span", "_tracing")

    def __init__(self, tracing: ClientTracing, group: str | None) -> None:
        self._tracing, self._group = tracing, group
        self._span: Span | None = None
        self._before = Context()
        self._headers: tuple[Header, ...] = ()
        self._place: tuple[str, int] = ("", -1)
        self._count = 0
        self._began = 0.0

    def next(self, record: Any) -> bool:
        """End the span of the record before, and begin that of ``record``, as :meth:`.Handling.next`."""
        try:
            if self._span is not None:
                if record is not None and record.headers == self._headers and self._is_of(record):
                    self._count += 1
                    return True
                self._end()
            return record is not None and bool(record.headers) and self._start(record)
        except Exception:
            self._tracing._log_failure("a record is processed without a span")
            return False

    def _is_of(self, record: Any) -> bool:
        return self._place == (record.topic, record.partition)

    def _start(self, record: Any) -> bool:
        started = self._tracing.start_process(record, self._group)
        if started is None:
            return False
        self._span, context = started
        self._before, self._headers, self._count = get_current(), record.headers, 1
        self._place, self._began = (record.topic, record.partition), time.perf_counter()
        attach(context)
        _attached_by.set(self._span)
        return True

    def _end(self) -> None:
        span, self._span = self._span, None
        if span is None:
            return
        try:
            if self._count > 1:
                span.set_attribute(COUNT, self._count)
            span.end()
        except Exception:
            self._tracing._log_failure("the span of a record that was processed is not reported")
        finally:
            if _attached_by.get() is span:  # another task has a context of its own
                attach(self._before)
                _attached_by.set(None)
            self._before = Context()
        self._tracing.process_ended(self._place[0], self._group, time.perf_counter() - self._began)

    def __del__(self) -> None:
        # The end of a loop by break or an exception frees its iterator, in the task that ran the loop.
        try:
            self._end()
        except Exception:
            self._tracing._log_failure("the span of a record was not ended")


def _size(headers: Sequence[Header]) -> int:
    return sum(len(name) + len(value or b"") + 10 for name, value in headers)
