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

__all__ = ("DASHBOARDS", "EXPORTERS", "Exporter", "Panel", "dashboard", "expressions", "panels", "resolved")

DASHBOARDS: Final = Path(__file__).parent.parent.parent / "docs" / "dashboards"
_WIDTH, _HEIGHT, _ROW = 8, 8, 24


@attrs.frozen
class Rate:
    """How much a counter grows each second, or the number (``of="_count"``) or sum of a histogram's values."""

    name: str
    by: tuple[str, ...]
    legend: str
    of: str = ""

    def expression(self, exporter: Exporter) -> str | None:
        series = exporter.series(self.name, self.of)
        return series and f"sum by ({exporter.labels_of(self.by)}) (rate({series}[$__rate_interval]))"


@attrs.frozen
class Quantile:
    """A quantile of a histogram's values."""

    name: str
    quantile: float
    by: tuple[str, ...]
    legend: str

    def expression(self, exporter: Exporter) -> str | None:
        series = exporter.series(self.name, "_bucket")
        labels = exporter.labels_of(("le", *self.by))
        return series and f"histogram_quantile({self.quantile}, sum by ({labels}) (rate({series}[$__rate_interval])))"


@attrs.frozen
class Now:
    """The current values of a gauge, added up, or the largest of them."""

    name: str
    by: tuple[str, ...]
    legend: str
    function: str = "sum"

    def expression(self, exporter: Exporter) -> str | None:
        series = exporter.series(self.name)
        return series and f"{self.function} by ({exporter.labels_of(self.by)}) ({series})"


@attrs.frozen
class Used:
    """The part of a gauge that another gauge does not leave free."""

    total: str
    free: str
    by: tuple[str, ...]
    legend: str

    def expression(self, exporter: Exporter) -> str | None:
        total, free, by = exporter.series(self.total), exporter.series(self.free), exporter.labels_of(self.by)
        return total and free and f"1 - sum by ({by}) ({free}) / sum by ({by}) ({total})"


Series = Rate | Quantile | Now | Used


@attrs.frozen
class Panel:
    """A plot: its title, unit and series."""

    title: str
    unit: str
    """A unit of Grafana."""
    description: str
    series: tuple[Series, ...]


@attrs.frozen
class Exporter:
    """How measurements are named where Prometheus scrapes them."""

    title: str
    uid: str
    names: Mapping[str, str]
    """The names as Prometheus sees them, by those of the client's instruments; without the suffixes of histograms."""
    labels: Mapping[str, str]
    """The labels that have other names than the instruments' attributes."""

    def series(self, name: str, suffix: str = "") -> str | None:
        """Return the selector of a measurement's series; None if the exporter does not have it."""
        found = self.names.get(name)
        return found and f'{found}{suffix}{{job=~"$job", {self.label("client_id")}=~"$client"}}'

    def label(self, attribute: str) -> str:
        return self.labels.get(attribute, attribute)

    def labels_of(self, attributes: tuple[str, ...]) -> str:
        return ", ".join(self.label(attribute) for attribute in attributes)

    def legend_of(self, legend: str) -> str:
        return re.sub(r"{{(\w+)}}", lambda found: f"{{{{{self.label(found[1])}}}}}", legend)


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
    # Every client has connections.
    series, label = exporter.names[ALWAYS], exporter.label("client_id")
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
        {"datasource": _DATASOURCE, "expr": expression, "legendFormat": exporter.legend_of(series.legend)}
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
