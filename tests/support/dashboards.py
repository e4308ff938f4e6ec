"""The Grafana dashboards of docs/dashboards: `python tests/support/dashboards.py` writes them again.

Both have the same panels. Each exporter has its own names for the measurements and their labels, as Prometheus sees
them; a panel without a measurement of an exporter is left out of that exporter's dashboard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from aiokafkawire.metrics.instrument_list import INSTRUMENTS
from aiokafkawire.prometheus import KafkaCollector

__all__ = ("DASHBOARDS", "EXPORTERS", "ROWS", "Exporter", "Panel", "dashboard", "expressions", "resolved")

DASHBOARDS: Final = Path(__file__).parent.parent.parent / "docs" / "dashboards"
_COLUMNS, _WIDTH, _HEIGHT = 24, 8, 8
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_ALWAYS: Final = "connections"
"""A measurement that every client has."""


@attrs.frozen
class Rate:
    """How much a counter grows each second, or the number (``of="_count"``) or sum of a histogram's values."""

    name: str
    by: tuple[str, ...]
    legend: str
    of: str = ""

    @property
    def key(self) -> str:
        return self.name + self.of

    def expression(self, exporter: Exporter) -> str | None:
        series = exporter.series(self.key)
        return series and f"sum by ({exporter.labels_of(self.key, self.by)}) (rate({series}[$__rate_interval]))"


@attrs.frozen
class Quantile:
    """A quantile of a histogram's values."""

    name: str
    quantile: float
    by: tuple[str, ...]
    legend: str

    @property
    def key(self) -> str:
        return f"{self.name}_bucket"

    def expression(self, exporter: Exporter) -> str | None:
        series = exporter.series(self.key)
        labels = exporter.labels_of(self.key, ("le", *self.by))
        return series and f"histogram_quantile({self.quantile}, sum by ({labels}) (rate({series}[$__rate_interval])))"


@attrs.frozen
class Now:
    """The current values of a gauge, added up, or the largest of them."""

    name: str
    by: tuple[str, ...]
    legend: str
    function: str = "sum"

    @property
    def key(self) -> str:
        return self.name

    def expression(self, exporter: Exporter) -> str | None:
        series = exporter.series(self.key)
        return series and f"{self.function} by ({exporter.labels_of(self.key, self.by)}) ({series})"


@attrs.frozen
class Mean:
    """The average of a histogram's values."""

    name: str
    by: tuple[str, ...]
    legend: str

    @property
    def key(self) -> str:
        return f"{self.name}_count"

    def expression(self, exporter: Exporter) -> str | None:
        sums, counts = exporter.series(f"{self.name}_sum"), exporter.series(self.key)
        by = exporter.labels_of(self.key, self.by)
        rates = (f"sum by ({by}) (rate({series}[$__rate_interval]))" for series in (sums, counts))
        return sums and counts and " / ".join(rates)


@attrs.frozen
class Share:
    """A gauge as a part of another one."""

    name: str
    whole: str
    by: tuple[str, ...]
    legend: str

    @property
    def key(self) -> str:
        return self.name

    def expression(self, exporter: Exporter) -> str | None:
        part, whole, by = (
            exporter.series(self.name),
            exporter.series(self.whole),
            exporter.labels_of(self.key, self.by),
        )
        return part and whole and f"sum by ({by}) ({part}) / sum by ({by}) ({whole})"


Series = Rate | Quantile | Now | Mean | Share


@attrs.frozen
class Panel:
    """A plot: its title, unit and series."""

    title: str
    unit: str
    """A unit of Grafana."""
    description: str
    series: tuple[Series, ...]


@attrs.frozen
class Named:
    """What a measurement is called where Prometheus scrapes it."""

    series: str
    matchers: tuple[str, ...] = ()
    """What its series are to match, where other measurements have the same name."""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    """The labels whose names differ from those of the exporter's other measurements."""


@attrs.frozen
class Exporter:
    """How measurements and labels are named where Prometheus scrapes them."""

    title: str
    uid: str
    names: Mapping[str, Named]
    """The names by those of the client's instruments; of histograms with ``_bucket``, ``_count`` and ``_sum``."""
    labels: Mapping[str, str]
    """The labels whose names differ from those of the instruments' attributes."""

    def series(self, key: str) -> str | None:
        """Return the selector of a measurement's series; None if the exporter does not have it."""
        assert re.sub("_(bucket|count|sum)$", "", key) in INSTRUMENTS, key
        found = self.names.get(key)
        if found is None:
            return None
        matchers = ('job=~"$job"', f'{self.label(key, "client_id")}=~"$client"', *found.matchers)
        return f"{found.series}{{{', '.join(matchers)}}}"

    def label(self, key: str, attribute: str) -> str:
        own = self.names[key].labels if key in self.names else {}
        return own.get(attribute, self.labels.get(attribute, attribute))

    def labels_of(self, key: str, attributes: tuple[str, ...]) -> str:
        return ", ".join(self.label(key, attribute) for attribute in attributes)

    def legend_of(self, series: Series) -> str:
        return re.sub(r"{{(\w+)}}", lambda found: f"{{{{{self.label(series.key, found[1])}}}}}", series.legend)


def _latency(name: str, *by: str) -> tuple[Series, ...]:
    """Return the median, the 99th percentile and the average of a histogram."""
    of = " ".join(f"{{{{{label}}}}}" for label in by)
    quantiles = (Quantile(name, part, by, f"{of} {title}".strip()) for part, title in ((0.5, "p50"), (0.99, "p99")))
    return *quantiles, Mean(name, by, f"{of} mean".strip())


ROWS: Final = {
    "Producing": (
        Panel("Records sent", "cps", "", (Rate("producer.records_sent", ("topic",), "{{topic}}"),)),
        Panel(
            "Bytes sent",
            "Bps",
            "As they were sent: compressed.",
            (Rate("producer.bytes_sent", ("topic",), "{{topic}}"),),
        ),
        Panel(
            "Records failed and sent again",
            "cps",
            "Failed records are lost unless the service sends them again; retries are the producer's own.",
            (
                Rate("producer.records_failed", ("topic",), "{{topic}} failed"),
                Rate("producer.records_retried", ("topic",), "{{topic}} sent again"),
            ),
        ),
        Panel(
            "Batch latency",
            "s",
            "From a batch's first record until it is acknowledged; linger_ms is part of it.",
            _latency("producer.batch.duration"),
        ),
        Panel(
            "Batch size",
            "bytes",
            "Small batches cost more for each record.",
            _latency("producer.batch.size"),
        ),
        Panel(
            "Buffer used",
            "percentunit",
            "The part of buffer_memory with records that are not acknowledged; at 100 % send() waits.",
            (Share("producer.buffer.used", "producer.buffer.limit", ("client_id",), "{{client_id}}"),),
        ),
        Panel(
            "Waiting for buffers",
            "s",
            "The time that calls wait for free buffers, each second: brokers are slower than the service.",
            (Rate("producer.buffer.wait", ("client_id",), "{{client_id}}"),),
        ),
        Panel(
            "Time in the queue",
            "s",
            "From a batch's first record until it is sent: linger_ms, and waiting for a free connection.",
            _latency("producer.batch.queue_duration"),
        ),
    ),
    "Consuming": (
        Panel("Records received", "cps", "", (Rate("consumer.records_fetched", ("topic",), "{{topic}}"),)),
        Panel(
            "Bytes received",
            "Bps",
            "As they were sent: compressed.",
            (Rate("consumer.bytes_fetched", ("topic",), "{{topic}}"),),
        ),
        Panel(
            "Lag",
            "short",
            "Records between the positions of the consumers and the ends of their partitions.",
            (Now("consumer.lag", ("group", "topic"), "{{group}} {{topic}}"),),
        ),
        Panel(
            "Largest lag of a partition",
            "short",
            "One partition behind the others has a hot key, a slow member or no member.",
            (Now("consumer.lag", ("group", "topic"), "{{group}} {{topic}}", "max"),),
        ),
        Panel(
            "Fetch latency",
            "s",
            "Brokers wait up to fetch_max_wait_ms for new records: a high value is normal for a quiet topic.",
            _latency("consumer.fetch.duration"),
        ),
        Panel("Commit latency", "s", "With retries.", _latency("consumer.commit.duration", "group")),
        Panel(
            "Commits failed",
            "cps",
            "",
            (Rate("consumer.commit.failures", ("group",), "{{group}}"),),
        ),
        Panel(
            "Assigned partitions",
            "short",
            "By member: a member without partitions has nothing to do.",
            (Now("consumer.partitions", ("group", "client_id"), "{{group}} {{client_id}}"),),
        ),
    ),
    "Rebalances": (
        Panel(
            "Rebalances",
            "cps",
            "For each second, of all members.",
            (Rate("consumer.rebalance.duration", ("group",), "{{group}}", "_count"),),
        ),
        Panel(
            "Time in rebalances",
            "percentunit",
            "The part of the time that each member has spent in rebalances, added up.",
            (Rate("consumer.rebalance.duration", ("group",), "{{group}}", "_sum"),),
        ),
        Panel("Rebalance latency", "s", "", _latency("consumer.rebalance.duration", "group")),
        Panel(
            "Partitions lost",
            "cps",
            "Without a rebalance: the membership has ended, or topics are gone.",
            (Rate("consumer.partitions_lost", ("group",), "{{group}}"),),
        ),
    ),
    "Brokers": (
        Panel("Connections", "short", "", (Now("connections", ("client_id", "part"), "{{client_id}} {{part}}"),)),
        Panel(
            "Connections opened, closed and failed",
            "cps",
            "",
            (
                Rate("connections.opened", ("part",), "{{part}} opened"),
                Rate("connections.closed", ("part",), "{{part}} closed"),
                Rate("connections.failed", ("part",), "{{part}} failed"),
            ),
        ),
        Panel(
            "Requests in flight",
            "short",
            "",
            (Now("requests.in_flight", ("client_id", "part"), "{{client_id}} {{part}}"),),
        ),
        Panel(
            "Request latency, 99th percentile",
            "s",
            "By API.",
            (Quantile("request.duration", 0.99, ("api",), "{{api}}"),),
        ),
        Panel(
            "Latency by broker, on average",
            "s",
            "Of Produce and Fetch; brokers wait for new records before they answer a Fetch.",
            (Mean("network.latency", ("node_id", "part"), "{{node_id}} {{part}}"),),
        ),
        Panel("Requests", "cps", "By API.", (Rate("request.duration", ("api",), "{{api}}", "_count"),)),
        Panel(
            "Requests failed", "cps", "Without a response, by API.", (Rate("request.failures", ("api",), "{{api}}"),)
        ),
        Panel(
            "Traffic by broker",
            "Bps",
            "",
            (
                Rate("network.bytes_sent", ("node_id",), "{{node_id}} sent"),
                Rate("network.bytes_received", ("node_id",), "{{node_id}} received"),
            ),
        ),
        Panel(
            "Throttled",
            "percentunit",
            "The time for which brokers throttle the client, since it has exceeded a quota, as a part of all time.",
            (Rate("request.throttled", ("client_id", "api"), "{{client_id}} {{api}}"),),
        ),
        Panel(
            "Age of the metadata",
            "s",
            "More than metadata_max_age_ms means that no broker answers.",
            (Now("metadata.age", ("client_id",), "{{client_id}}", "max"),),
        ),
    ),
}
"""The panels of each row."""


_OF_HISTOGRAMS: Final = ("_bucket", "_count", "_sum")


def _prometheus_names() -> dict[str, Named]:
    suffixes = {"counter": {"": "_total"}, "gauge": {"": ""}, "histogram": {each: each for each in _OF_HISTOGRAMS}}
    return {
        name + part: Named(family.name + suffix)
        for name, family in zip(INSTRUMENTS, KafkaCollector().describe(), strict=True)
        for part, suffix in suffixes[family.type].items()
    }


def _opentelemetry_names() -> dict[str, Named]:
    """Return the names that Prometheus's exporters of OpenTelemetry make; it has few histograms."""
    names = dict[str, Named]()
    for each in INSTRUMENTS.values():
        unit = {"s": "_seconds", "By": "_bytes"}.get(each.unit, "")
        suffixes = {
            "counter": {"": f"{unit}_total"},
            "gauge": {"": unit},
            "histogram": {"_count": "_count_total", "_sum": f"_sum{unit}_total"},
        }
        for part, suffix in suffixes[each.kind].items():
            names[each.name + part] = Named(f"aiokafkawire_{each.name.replace('.', '_')}{suffix}")
    names["producer.records_sent"] = Named("messaging_client_sent_messages_total")
    names["consumer.records_fetched"] = Named("messaging_client_consumed_messages_total")
    operation, times = "messaging_operation_name", "messaging_client_operation_duration_seconds_bucket"
    names["request.duration_bucket"] = Named(times, (), {"api": operation})
    names["consumer.fetch.duration_bucket"] = Named(times, (f'{operation}="poll"',))
    names["consumer.commit.duration_bucket"] = Named(times, (f'{operation}="commit"',))
    return names


EXPORTERS: Final = {
    "prometheus.json": Exporter("Kafka clients", "aiokafkawire", _prometheus_names(), {}),
    "opentelemetry.json": Exporter(
        "Kafka clients (OpenTelemetry)",
        "aiokafkawire-otel",
        _opentelemetry_names(),
        {
            "topic": "messaging_destination_name",
            "partition": "messaging_destination_partition_id",
            "group": "messaging_consumer_group_name",
            "client_id": "messaging_client_id",
        },
    ),
}
"""The exporters by the files of their dashboards."""


def expressions(exporter: Exporter) -> dict[str, list[str]]:
    """Return the queries of each panel that an exporter's dashboard has, with Grafana's variables."""
    found = {
        panel.title: [expression for series in panel.series if (expression := series.expression(exporter))]
        for panels in ROWS.values()
        for panel in panels
    }
    return {title: queries for title, queries in found.items() if queries}


def resolved(expression: str, interval: str) -> str:
    """Return a query without Grafana's variables: of all jobs and clients, with rates over an interval."""
    for variable, value in {"$__rate_interval": interval, "$job": ".+", "$client": ".+"}.items():
        expression = expression.replace(variable, value)
    return expression


def dashboard(exporter: Exporter) -> dict[str, Any]:
    """Return a dashboard as Grafana imports it."""
    panels = list(_placed(exporter))
    for number, panel in enumerate(panels, 1):
        panel["id"] = number
    return {
        "title": exporter.title,
        "uid": exporter.uid,
        "tags": ["kafka", "aiokafkawire"],
        "editable": True,
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": list(_variables(exporter))},
        "panels": panels,
    }


def _variables(exporter: Exporter) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    series, label = exporter.names[_ALWAYS].series, exporter.label(_ALWAYS, "client_id")
    for name, title, query in (
        ("job", "Job", f"label_values({series}, job)"),
        ("client", "Client", f'label_values({series}{{job=~"$job"}}, {label})'),
    ):
        yield {
            "name": name,
            "label": title,
            "type": "query",
            "datasource": _DATASOURCE,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".+",
            "current": {"text": ["All"], "value": ["$__all"]},
        }


def _placed(exporter: Exporter) -> Iterator[dict[str, Any]]:
    y = 0
    for row, panels in ROWS.items():
        drawn = [panel for panel in panels if any(series.expression(exporter) for series in panel.series)]
        if not drawn:
            continue
        place = {"x": 0, "y": y, "w": _COLUMNS, "h": 1}
        yield {"type": "row", "title": row, "collapsed": False, "gridPos": place, "panels": []}
        for index, panel in enumerate(drawn):
            x, line = index * _WIDTH % _COLUMNS, index * _WIDTH // _COLUMNS
            place = {"x": x, "y": y + 1 + line * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            yield _panel(panel, exporter) | {"gridPos": place}
        y += 1 + -(-len(drawn) * _WIDTH // _COLUMNS) * _HEIGHT


def _panel(panel: Panel, exporter: Exporter) -> dict[str, Any]:
    targets = [
        {"datasource": _DATASOURCE, "expr": expression, "legendFormat": exporter.legend_of(series)}
        for series in panel.series
        if (expression := series.expression(exporter))
    ]
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "targets": [target | {"refId": chr(ord("A") + number)} for number, target in enumerate(targets)],
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": {"fillOpacity": 10}}, "overrides": []},
        "options": {"tooltip": {"mode": "multi", "sort": "desc"}, "legend": {"displayMode": "list"}},
    }


def main() -> None:
    for name, exporter in EXPORTERS.items():
        (DASHBOARDS / name).write_text(json.dumps(dashboard(exporter), indent=1) + "\n")
        print(f"docs/dashboards/{name} written")


if __name__ == "__main__":
    main()
