"""The queries of the dashboards, on a real Prometheus that scrapes the example."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.dashboards import DASHBOARDS, EXPORTERS, dashboard, expressions, resolved
from support.guarded_process import GuardedProcess
from support.needing import require
from support.ports import accepts, free_ports
from support.prometheus_server import PrometheusServer, missing_prometheus

SERVICE = Path(__file__).parents[2] / "examples" / "prometheus_service.py"
WINDOW = "4s"
"""The interval of rates; Prometheus scrapes the service four times a second."""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    require(missing_prometheus())
    (port,) = free_ports(1)
    command = [sys.executable, "-W", "error", str(SERVICE), "--port", str(port), "--seconds", "50"]
    service = GuardedProcess(command, tmp_path_factory.mktemp("service") / "service.log")
    service.launch()
    try:
        service.wait_until(lambda: accepts(port), "the example")
        with PrometheusServer({"shop": port}) as prometheus:
            # Commits come last.
            prometheus.wait_for(f"rate(kafka_request_duration_seconds_count{{api='OffsetCommit'}}[{WINDOW}]) > 0")
            yield prometheus
    finally:
        service.kill()


@pytest.mark.parametrize("name", EXPORTERS)
def test_every_query_of_the_dashboard_has_data(name: str, prometheus: PrometheusServer) -> None:
    empty = {
        (title, query)
        for title, queries in expressions(EXPORTERS[name]).items()
        for query in queries
        if not prometheus.query(resolved(query, WINDOW))
    }
    assert empty == set()


def test_the_values_are_those_of_the_service(prometheus: PrometheusServer) -> None:
    def value(query: str) -> float:
        (found,) = prometheus.query(query)
        return float(found["value"][1])

    assert value(f"sum(rate(kafka_producer_records_sent_total[{WINDOW}]))") > 50
    assert value(f"sum(rate(kafka_consumer_records_fetched_total[{WINDOW}]))") > 50
    assert value("sum(kafka_consumer_partitions)") == 6
    assert value("count(kafka_consumer_lag)") == 6
    latency = value(
        f"histogram_quantile(0.5, sum by (le) (rate(kafka_producer_batch_duration_seconds_bucket[{WINDOW}])))"
    )
    assert 0.005 < latency < 1


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
