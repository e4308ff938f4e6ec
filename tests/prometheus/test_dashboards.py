"""The queries of the dashboards, on a real Prometheus that scrapes the example."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.dashboards import DASHBOARDS, EXPORTERS, ROWS, dashboard, expressions, resolved
from support.guarded_process import GuardedProcess
from support.metric_plots import PANELS, PLOT
from support.needing import require
from support.ports import accepts, free_ports
from support.prometheus_server import PrometheusServer, missing_prometheus

SERVICE = Path(__file__).parents[2] / "examples" / "prometheus_service.py"
TESTS = str(Path(__file__).parents[1])
WINDOW = "4s"
"""The interval of rates; Prometheus scrapes the service four times a second."""


@contextmanager
def scraped(command: Sequence[str], folder: Path) -> Iterator[PrometheusServer]:
    """A Prometheus that scrapes a service."""
    require(missing_prometheus(), "AIOKAFKAWIRE_REQUIRE_PROMETHEUS")
    (port,) = free_ports(1)
    log = folder / "service.log"
    service = GuardedProcess(
        [sys.executable, *command, "--port", str(port), "--seconds", "50"], log, {"PYTHONPATH": TESTS}
    )
    service.launch()
    try:
        service.wait_until(lambda: accepts(port), "the service")
        with PrometheusServer({"shop": port}) as prometheus:
            yield prometheus
    finally:
        service.kill()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with scraped(["-W", "error", str(SERVICE)], tmp_path_factory.mktemp("service")) as prometheus:
        # Commits come last.
        prometheus.wait_for(f"rate(kafka_consumer_commit_duration_seconds_count[{WINDOW}]) > 0")
        yield prometheus


def without_data(name: str, prometheus: PrometheusServer) -> set[tuple[str, str]]:
    return {
        (title, query)
        for title, queries in expressions(EXPORTERS[name]).items()
        for query in queries
        if not prometheus.query(resolved(query, WINDOW))
    }


@pytest.mark.slow
def test_every_query_of_the_dashboard_has_data(prometheus: PrometheusServer) -> None:
    assert without_data("prometheus.json", prometheus) == set()


@pytest.mark.slow
def test_every_query_of_the_dashboard_for_opentelemetry_has_data(tmp_path: Path) -> None:
    with scraped(["-m", "support.opentelemetry_service"], tmp_path) as prometheus:
        commits = "messaging_client_operation_duration_seconds_count{messaging_operation_name='commit'}"
        prometheus.wait_for(f"rate({commits}[{WINDOW}]) > 0")
        assert without_data("opentelemetry.json", prometheus) == set()


def test_the_values_are_those_of_the_service(prometheus: PrometheusServer) -> None:
    def value(query: str) -> float:
        (found,) = prometheus.query(query)
        return float(found["value"][1])

    assert value(f"sum(rate(kafka_producer_records_sent_total[{WINDOW}]))") > 10
    assert value(f"sum(rate(kafka_consumer_records_fetched_total[{WINDOW}]))") > 10
    assert value("sum(kafka_consumer_partitions)") == 6
    assert value("count(kafka_consumer_lag)") == 6
    latency = value(
        f"histogram_quantile(0.5, sum by (le) (rate(kafka_producer_batch_duration_seconds_bucket[{WINDOW}])))"
    )
    assert 0.005 < latency < 1


def test_prometheus_understands_the_queries_of_the_documentation(prometheus: PrometheusServer) -> None:
    (block,) = re.findall(r"```promql\n(.*?)```", (DASHBOARDS.parent / "observability.md").read_text(), re.DOTALL)
    queries = block.splitlines()
    assert len(queries) == 2
    for query in queries:
        prometheus.query(query)
        # Without what it is compared with, it has data.
        assert prometheus.query(query.partition(" > ")[0].replace("5m", WINDOW)), query


def test_prometheus_names_the_mistake_in_a_query(prometheus: PrometheusServer) -> None:
    with pytest.raises(ValueError, match="parse error"):
        prometheus.query("rate(kafka_connections[)")


@pytest.mark.parametrize("name", EXPORTERS)
def test_the_file_is_what_the_script_writes(name: str) -> None:
    written = json.loads((DASHBOARDS / name).read_text())
    assert written == dashboard(EXPORTERS[name]), "python tests/support/dashboards.py writes it again"


@pytest.mark.parametrize("name", EXPORTERS)
def test_panels_have_ids_of_their_own_and_do_not_overlap(name: str) -> None:
    panels: list[dict[str, Any]] = dashboard(EXPORTERS[name])["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_the_plot_of_the_documentation_has_panels_of_the_dashboard() -> None:
    words = PLOT.read_text()
    titles = {panel.title for panels in ROWS.values() for panel in panels}
    assert titles >= {*PANELS}
    for title in PANELS:
        assert f">{title}<" in words, "python -m support.metric_plots, in tests, draws it again"
