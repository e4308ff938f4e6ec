"""Contexts in records' headers, by the propagator that the application has set (W3C Trace Context by default)."""

from collections.abc import Iterable, Sequence

from opentelemetry.context import Context
from opentelemetry.propagate import get_global_textmap
from opentelemetry.propagators.textmap import Getter, Setter
from opentelemetry.trace import SpanContext, get_current_span

from ..types import Header

__all__ = ("carried", "context_in", "headers_for", "sampled_sender")


class _HeaderSetter(Setter[list[Header]]):
    def set(self, carrier: list[Header], key: str, value: str) -> None:
        carrier.append((key, value.encode()))


class _HeaderGetter(Getter[Sequence[Header]]):
    def get(self, carrier: Sequence[Header], key: str) -> list[str] | None:
        # Older headers come first: a record that was forwarded may have the headers of each sender.
        found = [value.decode("utf-8", "replace") for name, value in carrier if name == key and value is not None]
        return found[-1:] or None

    def keys(self, carrier: Sequence[Header]) -> list[str]:
        return [name for name, _ in carrier]


_SETTER = _HeaderSetter()
_GETTER = _HeaderGetter()


def headers_for(context: Context) -> tuple[Header, ...]:
    """Return the headers that carry a context."""
    carrier: list[Header] = []
    get_global_textmap().inject(carrier, context, _SETTER)
    return tuple(carrier)


def carried(headers: Iterable[Header]) -> tuple[Header, ...]:
    """Return those of a record's headers that carry a context; equal ones carry the same."""
    fields = get_global_textmap().fields
    return tuple(header for header in headers if header[0] in fields)


def context_in(headers: Sequence[Header], context: Context) -> Context:
    """Return ``context`` with what the headers carry."""
    return get_global_textmap().extract(headers, context, _GETTER)


def sampled_sender(headers: Sequence[Header]) -> SpanContext | None:
    """Return the span that the context in headers names; None if there is none, or it is not sampled."""
    found = get_current_span(context_in(headers, Context())).get_span_context()
    return found if found.is_valid and found.trace_flags.sampled else None
