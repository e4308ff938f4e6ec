"""The plot of docs/observability.md: `cd tests && python -m support.metric_plots` draws it, in two minutes.

Two services run on three in-process brokers while a real Prometheus scrapes them: the second service joins, a broker
stops and returns, and the second service leaves. The plot has some of the dashboard's queries. It needs matplotlib.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync

from aiokafkawire.testing import Broker

from .dashboards import EXPORTERS, ROWS, Panel, resolved
from .guarded_process import GuardedProcess
from .ports import free_ports
from .prometheus_server import PrometheusServer

ROOT: Final = Path(__file__).parents[2]
PLOT: Final = ROOT / "docs" / "plots" / "metrics.svg"
SERVICE: Final = ROOT / "examples" / "prometheus_service.py"
PANELS: Final = (
    "Records received",
    "Batch latency",
    "Lag",
    "Assigned partitions",
    "Time in rebalances",
    "Connections opened, closed and failed",
    "Requests failed",
    "Request latency, 99th percentile",
)
SECONDS: Final = {"a member joins": 20, "a broker stops": 40, "it returns": 55, "the member leaves": 75}
"""When something happens."""
END: Final = 95
WINDOW: Final = "3s"
STEP: Final = 0.5
"""Seconds between the points of a curve, and between two scrapes."""


async def record() -> dict[str, list[tuple[str, list[float], list[float]]]]:
    """Return the curves of each panel, with their labels, times and values."""
    one, other = free_ports(2)
    async with Broker(3) as broker:
        with PrometheusServer({"shop": one, "second": other}, interval=f"{STEP * 1000:.0f}ms") as prometheus:
            async with service(broker.bootstrap, "shop-1", one):
                await run_sync(prometheus.wait_for, "kafka_consumer_partitions > 0")
                began = time.time()

                async def at(what: str) -> None:
                    await anyio.sleep(began + SECONDS[what] - time.time())

                await at("a member joins")
                async with service(broker.bootstrap, "shop-2", other):
                    await at("a broker stops")
                    await broker.stop_node(2)
                    await at("it returns")
                    await broker.start_node(2)
                    await at("the member leaves")
                await anyio.sleep(began + END - time.time())
                panels = {panel.title: panel for panels in ROWS.values() for panel in panels}
                return {title: await run_sync(curves, prometheus, panels[title], began) for title in PANELS}


@asynccontextmanager
async def service(bootstrap: str, name: str, port: int) -> AsyncIterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        arguments = [bootstrap, "--name", name, "--port", str(port), "--seconds", "300"]
        process = GuardedProcess([sys.executable, str(SERVICE), *arguments], Path(folder) / "service.log")
        process.launch()
        try:
            yield
        finally:
            await run_sync(process.end, 5)


def curves(prometheus: PrometheusServer, panel: Panel, began: float) -> list[tuple[str, list[float], list[float]]]:
    exporter = EXPORTERS["prometheus.json"]
    found = []
    for series in panel.series:
        expression = series.expression(exporter)
        assert expression is not None
        for each in prometheus.query_range(resolved(expression, WINDOW), began, began + END, STEP):
            times = [float(at) - began for at, _ in each["values"]]
            values = [float(value) for _, value in each["values"]]
            if any(value and not math.isnan(value) for value in values):
                found.append((label_of(series.legend, each["metric"]), times, values))
    return sorted(found)


def label_of(legend: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), legend).strip()


def draw(found: Mapping[str, list[tuple[str, list[float], list[float]]]]) -> None:
    matplotlib: Any = importlib.import_module("matplotlib")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "metrics", "font.size": 9})
    figure, axes = pyplot.subplots(len(PANELS) // 2, 2, figsize=(10, 10), sharex=True, layout="constrained")
    panels = {panel.title: panel for panels in ROWS.values() for panel in panels}
    for axis, (title, drawn) in zip(axes.flat, found.items(), strict=True):
        for label, times, values in drawn:
            axis.plot(times, values, label=label, linewidth=1.2)
        for what, at in SECONDS.items():
            axis.axvline(at, color="gray", linestyle=":", linewidth=0.8)
            if axis in axes[0]:
                axis.annotate(what, (at, 1.01), xycoords=("data", "axes fraction"), rotation=18, fontsize=7)
        unit = {"cps": "per second", "s": "seconds", "percentunit": "part of the time"}.get(panels[title].unit, "")
        axis.set_title(f"{title}\n" if axis in axes[0] else title, fontsize=10, loc="left")
        axis.set_ylabel(unit)
        columns = 1 if len(drawn) <= 2 else 3
        # Room for the legend above the curves.
        axis.set_ylim(0, axis.get_ylim()[1] * (1.2 + 0.12 * math.ceil(len(drawn) / columns)))
        axis.set_xlim(0, END)
        axis.legend(fontsize=7, loc="upper left", ncols=columns, frameon=False)
    for axis in axes[-1]:
        axis.set_xlabel("seconds")
    figure.savefig(PLOT, metadata={"Date": None})


def main() -> None:
    draw(anyio.run(record))
    print(f"{PLOT.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()
