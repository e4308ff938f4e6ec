"""Instrumenting clients."""

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import attrs
from opentelemetry.metrics import MeterProvider, NoOpMeterProvider
from opentelemetry.trace import TracerProvider

from ..argument_checks import shown
from ..either_client import asynchronous_client
from ..errors import UsageError
from ..tracing import new_client_hooks
from .client_tracing import ClientTracing
from .meters import ClientMeters, Meters, meters_of
from .process_spans import get_tracer
from .stall_events import StallEvents

if TYPE_CHECKING:
    from ..blocking import Client as BlockingClient
    from ..client import Client

__all__ = ("Instrumentation", "instrument")


def instrument(
    kafka: "Client | BlockingClient | None" = None,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> "Instrumentation":
    """Make OpenTelemetry's spans and metrics of a client, or of every client that is made from now on.

    Producers and consumers that are open already get no spans.

    Args:
        kafka: a client, also a blocking one; None for every client made from now on.
        tracer_provider, meter_provider: where spans and metrics go; None for OpenTelemetry's global providers.
            With a ``NoOpMeterProvider`` nothing is measured.

    Raises:
        UsageError: an argument is of a wrong type, the client is instrumented already, or new clients are.
        ConfigError: OpenTelemetry has another context than that of ``OTEL_PYTHON_CONTEXT=contextvars_context``.
    """
    if tracer_provider is not None and not callable(getattr(tracer_provider, "get_tracer", None)):
        raise UsageError(f"tracer_provider must be a TracerProvider or None, got {shown(tracer_provider)}")
    if meter_provider is not None and not callable(getattr(meter_provider, "get_meter", None)):
        raise UsageError(f"meter_provider must be a MeterProvider or None, got {shown(meter_provider)}")
    made = Instrumentation(tracer_provider, meter_provider)
    if kafka is None:
        if any(isinstance(getattr(hook, "__self__", None), Instrumentation) for hook in new_client_hooks):
            raise UsageError("new clients are instrumented already: call uninstrument() first")
        new_client_hooks.append(made.add)
    else:
        client = asynchronous_client(kafka)
        if client._cluster.tracing is not None:
            raise UsageError("this client is instrumented already: call uninstrument() first")
        made.add(client)
    return made


@attrs.define
class _Parts:
    """The tracing and the observers of one client."""

    tracing: ClientTracing
    observers: list[object]


class Instrumentation:
    """The spans and metrics of the clients that a call of :func:`instrument` has instrumented."""

    def __init__(self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None) -> None:
        self._tracer = get_tracer(tracer_provider)
        self._meters: Meters = meters_of(meter_provider)
        self._measures = not isinstance(meter_provider, NoOpMeterProvider)
        self._clients: WeakKeyDictionary[Client, _Parts] = WeakKeyDictionary()

    def add(self, client: "Client") -> None:
        """Add the spans and metrics of an asynchronous client, unless it is instrumented already."""
        cluster = client._cluster
        if cluster.tracing is not None:
            return
        measuring = ClientMeters(self._meters, cluster.config.client_id)
        tracing = ClientTracing(cluster, self._tracer, measuring.process_ended)
        observers: list[object] = [StallEvents(cluster.config.client_id)]
        if self._measures:
            client._client_metrics().on_requests = measuring.record_requests  # counts from now on
            self._meters.add(client)
            observers.append(measuring)
        for observer in observers:
            cluster.observers.add(observer)
        self._clients[client] = _Parts(tracing, observers)
        cluster.tracing = tracing

    def uninstrument(self) -> None:
        """Make no spans and metrics any more; spans of records in flight still end. May be called again."""
        if self.add in new_client_hooks:
            new_client_hooks.remove(self.add)
        for client, parts in list(self._clients.items()):
            parts.tracing.is_on = False
            client._cluster.tracing = None
            for observer in parts.observers:
                client._cluster.observers.remove(observer)
            if self._measures:
                client._client_metrics().on_requests = None
                self._meters.remove(client)
        self._clients.clear()
