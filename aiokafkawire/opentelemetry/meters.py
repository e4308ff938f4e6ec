"""The measurements of clients as OpenTelemetry's metrics; most are read from the clients when they are collected."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, ref

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from ..event_log import EventLog
from ..metrics.client_metrics import ClientMetrics
from ..metrics.instrument import Buckets, Instrument
from ..metrics.instrument_list import INSTRUMENTS
from ..metrics.reentrant_lock import ReentrantLock
from ..notes import RequestNote
from ..observe import CommitEnded
from ..version import __version__
from .attributes import (
    CLIENT_ID,
    DESTINATION,
    ERROR_TYPE,
    GROUP,
    OPERATION,
    OPERATION_TYPE,
    PARTITION,
    SCHEMA_URL,
    SERVER_ADDRESS,
    SERVER_PORT,
    SYSTEM,
    error_type,
)
from .ended_clients import EndedClients

if TYPE_CHECKING:
    from ..client import Client

__all__ = ("ClientMeters", "Meters", "meters_of")

_log = EventLog("aiokafkawire.opentelemetry")

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""The bounds of the buckets that the conventions prescribe."""
_OPERATIONS: Final = {"Produce": ("send", "send"), "Fetch": ("poll", "receive"), "ShareFetch": ("poll", "receive")}
"""The name and the type of the operation, by the request that it consists of."""
_NAMES: Final = {"topic": DESTINATION, "partition": PARTITION, "group": GROUP, "client_id": CLIENT_ID}
"""The conventions' names of attributes; others are called as in the list of instruments."""
_CONVENTIONS: Final = {
    "producer.records_sent": ("messaging.client.sent.messages", "send", "send"),
    "consumer.records_fetched": ("messaging.client.consumed.messages", "poll", "receive"),
}
"""The instruments that have a name in the conventions, with the name and the type of the operation."""
_MAX_ATTRIBUTES: Final = 1_000
_BETWEEN_REQUESTS: Final = 0.004
"""The seconds between two requests whose durations are recorded: each takes OpenTelemetry's SDK some microseconds."""

_Key = tuple[tuple[str, str], ...]


class Meters:
    """The instruments of one meter provider, for all its clients."""

    def __init__(self, provider: MeterProvider | None) -> None:
        meter = metrics.get_meter("aiokafkawire", __version__, provider, SCHEMA_URL)
        self.operation_duration: metrics.Histogram = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "The time until the response to a request of a producer or consumer, or until a commit has ended",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self.process_duration: metrics.Histogram = meter.create_histogram(
            "messaging.process.duration",
            "s",
            "The duration of each span of a processed record",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._clients: dict[ref[Client], tuple[str, ClientMetrics]] = {}
        self._ended = EndedClients()
        self._reading = ReentrantLock()  # a signal handler may collect while its own thread does, and a forked process
        self._read: dict[str, list[Instrument]] = {}
        self._observed: set[tuple[str, str]] = set()
        for name in INSTRUMENTS:
            self._observe(meter, name)

    def add(self, client: "Client") -> None:
        """Measure this client from now on."""
        with self._reading:
            self._take_ended()  # nothing may ever collect
            self._clients[ref(client)] = (client._cluster.config.client_id, client._client_metrics())

    def remove(self, client: "Client") -> None:
        """Measure this client no more, and forget its totals."""
        with self._reading:
            self._clients.pop(ref(client), None)

    def _take_ended(self) -> None:
        """Keep the totals of the clients that no longer exist."""
        for client in [client for client in self._clients if client() is None]:
            client_id, measured = self._clients.pop(client)
            self._ended.add(client_id, measured.instruments())

    def _observe(self, meter: Meter, name: str) -> None:
        defined = INSTRUMENTS[name]
        convention = _CONVENTIONS.get(name)
        called = f"aiokafkawire.{name}" if convention is None else convention[0]
        unit = defined.unit if convention is None else "{message}"
        if defined.kind == "histogram":
            # The API has no histograms to read at collection: rates and means come from these two counters.
            meter.create_observable_counter(
                f"{called}.count", [self._callback(name, "count")], "{event}", f"{defined.description}: how many"
            )
            meter.create_observable_counter(
                f"{called}.sum", [self._callback(name, "sum")], unit, f"{defined.description}: in all"
            )
        if defined.kind == "gauge":
            meter.create_observable_gauge(called, [self._callback(name)], unit, defined.description)
        elif defined.kind == "counter":
            meter.create_observable_counter(called, [self._callback(name)], unit, defined.description)

    def _callback(self, name: str, part: str = "") -> Callable[[CallbackOptions], Iterable[Observation]]:
        fixed: dict[str, str] = {SYSTEM: "kafka"}
        if name in _CONVENTIONS:
            _, fixed[OPERATION], fixed[OPERATION_TYPE] = _CONVENTIONS[name]
        merge = max if name == "metadata.age" else sum
        counts = part == "count" or (part == "" and INSTRUMENTS[name].unit != "s")

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            values: dict[_Key, list[float]] = {}
            for each in self._values(name, part):
                value = each.value
                if isinstance(value, Buckets):
                    value = value.count if part == "count" else value.sum
                if not math.isnan(value):
                    values.setdefault(tuple(sorted(each.attributes.items())), []).append(value)
            observations = []
            for key, found in values.items():
                labels = {_NAMES.get(label, label): text for label, text in key}
                observations.append(Observation(int(merge(found)) if counts else merge(found), fixed | labels))
            return observations

        return observe

    def _values(self, name: str, part: str) -> list[Instrument]:
        """Return the values of an instrument; a collection reads the clients once, at its first instrument."""
        with self._reading:
            if not self._observed or (name, part) in self._observed:
                self._observed.clear()
                self._read = {}
                self._take_ended()
                live = [each for _, measured in self._clients.values() for each in measured.instruments()]
                for each in (*self._ended, *live):
                    self._read.setdefault(each.name, []).append(each)
            self._observed.add((name, part))
            return self._read.get(name, [])


class ClientMeters:
    """Records the durations of one client's requests and commits; it is an observer of commits."""

    def __init__(self, meters: Meters, client_id: str) -> None:
        self._record = meters.operation_duration.record
        self._process = meters.process_duration.record
        self._client_id = client_id
        self._known: dict[tuple[str, ...], Mapping[str, Any]] = {}
        self._next: dict[str, float] = {}
        self._has_failed = False

    def record_requests(self, notes: Sequence[RequestNote]) -> None:
        """Record the durations of requests that send or fetch records; under load, of a sample of them."""
        try:
            for kind, _, _, seconds, _, error, ended_at in notes:
                if kind.api in _OPERATIONS and (error is not None or ended_at >= self._next.get(kind.api, ended_at)):
                    self._next[kind.api] = ended_at + _BETWEEN_REQUESTS
                    failed = None if error is None else error_type(error)
                    self._record(seconds, self._attributes(*_OPERATIONS[kind.api], str(kind.at), failed, None))
        except Exception as raised:
            if not self._has_failed:
                self._has_failed = True
                message = "cannot record the durations of requests, later failures are not logged: %(error)s"
                _log.warning(message, error=raised, exc_info=raised)

    def commit_ended(self, event: CommitEnded) -> None:
        """Record the duration of a commit."""
        failed = None if event.error is None else error_type(event.error)
        self._record(event.seconds, self._attributes("commit", "settle", None, failed, event.group))

    def process_ended(self, topic: str, group: str | None, seconds: float) -> None:
        """Record the duration of a process span."""
        attributes = {**self._attributes("process", "process", None, None, group), DESTINATION: topic}
        self._process(seconds, attributes)

    def _attributes(
        self, operation: str, kind: str, broker: str | None, failed: str | None, group: str | None
    ) -> Mapping[str, Any]:
        key = (operation, broker or "", failed or "", group or "")
        known = self._known.get(key)
        if known is None:
            made: dict[str, Any] = {SYSTEM: "kafka", OPERATION: operation, OPERATION_TYPE: kind}
            made[CLIENT_ID] = self._client_id
            if broker is not None:
                host, _, port = broker.rpartition(":")
                made[SERVER_ADDRESS], made[SERVER_PORT] = host, int(port)
            if failed is not None:
                made[ERROR_TYPE] = failed
            if group is not None:
                made[GROUP] = group
            if len(self._known) >= _MAX_ATTRIBUTES:
                self._known.clear()
            known = self._known[key] = made
        return known


_meters: WeakKeyDictionary[object, Meters] = WeakKeyDictionary()


def meters_of(provider: MeterProvider | None) -> Meters:
    """Return the instruments of a meter provider, None for the global one; a provider has each instrument once."""
    key = metrics.get_meter_provider() if provider is None else provider
    found = _meters.get(key) or _made_before_set(key)
    if found is None:
        found = Meters(provider)
    _meters[key] = found
    return found


def _made_before_set(provider: MeterProvider) -> Meters | None:
    """Return the instruments that were made while there was no global provider, if this one was set since then.

    The SDK would ignore further instruments of the same names.
    """
    for unset, found in list(_meters.items()):
        if getattr(unset, "_real_meter_provider", None) is provider:
            return found
    return None
