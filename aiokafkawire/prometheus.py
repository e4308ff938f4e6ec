"""The measurements of clients for Prometheus: :class:`KafkaCollector`, for registries of prometheus_client."""

import math
import re
from collections.abc import Collection, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

try:
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
    from prometheus_client.registry import Collector
except ImportError as _missing:
    raise ImportError(
        "Metrics for Prometheus need prometheus_client: pip install 'aiokafkawire[prometheus]'"
    ) from _missing

from .argument_checks import shown
from .either_client import asynchronous_client
from .errors import UsageError
from .metrics.instrument import Buckets, InstrumentDefinition
from .metrics.instrument_list import INSTRUMENTS

if TYPE_CHECKING:
    from .blocking import Client as BlockingClient
    from .client import Client

__all__ = ("KafkaCollector",)

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
"""A metric of Prometheus, with a series for each set of labels."""

_UNITS = {"s": "seconds", "By": "bytes"}
_LABELS = sorted({label for each in INSTRUMENTS.values() for label in each.labels})
_PREFIX = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


class KafkaCollector(Collector):
    """A collector with the measurements of clients; register it once: ``REGISTRY.register(KafkaCollector(kafka))``.

    The clients count from now on. Any thread may collect, also while the clients' event loops are blocked: collecting
    reads numbers and waits for nothing. A client that is closed keeps its totals until it is removed.

    Several clients share one collector, since a registry accepts each name once; they differ in the label
    ``client_id``. Series of equal labels are added up (of ages, the largest counts), so that clients with one id have
    their sum.

    Args:
        clients: the clients to measure, blocking ones too; :meth:`add` and :meth:`remove` change them later.
        prefix: what the names begin with.
        without: labels to leave out, such as ``["partition"]`` or ``["topic"]``, to have fewer series; the series that
            differ in these labels alone are added up. Without topics there are no partitions either.

    Raises:
        UsageError: an argument is wrong.
    """

    def __init__(
        self, *clients: "Client | BlockingClient", prefix: str = "kafka", without: Collection[str] = ()
    ) -> None:
        if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
            raise UsageError(f"prefix must be of letters, digits, '_' and ':', such as 'kafka', got {shown(prefix)}")
        if isinstance(without, str) or not isinstance(without, Collection):
            raise UsageError(f"without must be a list of labels, such as ['partition'], got {shown(without)}")
        for label in without:
            if label not in _LABELS:
                raise UsageError(f"without must be of the labels {', '.join(_LABELS)}, got {shown(label)}")
        self._prefix = prefix
        self._without = frozenset(without) | ({"partition"} if "topic" in without else set())
        self._clients: tuple[Client | BlockingClient, ...] = ()
        for kafka in clients:
            self.add(kafka)

    def add(self, kafka: "Client | BlockingClient") -> None:
        """Measure this client, too, from now on; adding it again has no effect."""
        asynchronous_client(kafka)._client_metrics()
        if kafka not in self._clients:
            self._clients = (*self._clients, kafka)

    def remove(self, kafka: "Client | BlockingClient") -> None:
        """Leave out the series of this client; ignore a client that was never added."""
        self._clients = tuple(known for known in self._clients if known is not kafka)

    def describe(self) -> Iterator[Family]:
        """Return the names that :meth:`collect` may return, for the registry, which accepts each once."""
        for definition in INSTRUMENTS.values():
            yield _family(self._prefix, definition, ())

    def collect(self) -> Iterator[Family]:
        """Return the current values."""
        found: dict[str, dict[tuple[str, ...], float | Buckets]] = {}
        for kafka in self._clients:
            for instrument in asynchronous_client(kafka)._client_metrics().instruments():
                definition, value = INSTRUMENTS[instrument.name], instrument.value
                if isinstance(value, Buckets) or not math.isnan(value):
                    labels = tuple(instrument.attributes[label] for label in self._labels(definition))
                    series = found.setdefault(instrument.name, {})
                    series[labels] = _joined(series[labels], value, definition) if labels in series else value
        for name, series in found.items():
            yield self._filled(INSTRUMENTS[name], series)

    def _labels(self, definition: InstrumentDefinition) -> tuple[str, ...]:
        return ("client_id", *(label for label in definition.labels if label not in self._without))

    def _filled(self, definition: InstrumentDefinition, series: dict[tuple[str, ...], float | Buckets]) -> Family:
        family = _family(self._prefix, definition, self._labels(definition))
        for labels, value in series.items():
            if isinstance(value, Buckets):
                assert isinstance(family, HistogramMetricFamily)
                bounds = [*(repr(bound) for bound in value.bounds), "+Inf"]
                family.add_metric(labels, list(zip(bounds, accumulate(value.counts), strict=True)), value.sum)
            else:
                assert not isinstance(family, HistogramMetricFamily)
                family.add_metric(labels, value)
        return family


def _family(prefix: str, definition: InstrumentDefinition, labels: tuple[str, ...]) -> Family:
    """Return a metric without series, with the name that Prometheus's conventions demand."""
    # The unit comes last: "producer.bytes_sent" is kafka_producer_sent_bytes_total.
    name = f"{prefix}_{definition.name.replace('.bytes_', '_').replace('.', '_')}"
    made: type[Family] = {
        "counter": CounterMetricFamily,
        "gauge": GaugeMetricFamily,
        "histogram": HistogramMetricFamily,
    }[definition.kind]
    return made(name, definition.description, labels=labels, unit=_UNITS.get(definition.unit, ""))


def _joined(one: float | Buckets, other: float | Buckets, definition: InstrumentDefinition) -> float | Buckets:
    """Return the value of two series as one."""
    if isinstance(one, Buckets):
        assert isinstance(other, Buckets)
        return one.plus(other)
    assert not isinstance(other, Buckets)
    is_age = definition.kind == "gauge" and definition.unit == "s"
    return max(one, other) if is_age else one + other
