"""Plots of a run, one for each table or curve; needs matplotlib."""

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cases import FIGURES
from benchmarks.report import label, tables_together

_COLOURS = {
    "ours": "tab:blue",
    "aiokafka": "tab:orange",
    "confluent": "tab:green",
    "kafka-python": "tab:red",
    "kio": "tab:purple",
    "floor": "tab:gray",
}


def plot_all(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw them all as PNG; the files, each named after its benchmark and case or curve."""
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for tables in tables_together(result["tables"]):
        first = tables[0]
        if first["at"] is not None:
            drawing = _curve(pyplot, tables)
        elif first["group"]:
            drawing = _groups(pyplot, tables)
        elif "memory_mb" in first["rows"][0]:
            drawing = _memory(pyplot, first)
        else:
            drawing = _bars(pyplot, first)
        path = folder / file_name(first["benchmark"], first["group"] or first["case"])
        drawing.savefig(path, dpi=120)
        pyplot.close(drawing)
        drawn.append(path)
    return drawn


def file_name(benchmark: str, case: str) -> str:
    """Return a file name, such as ``produce-values-of-100-b.png``."""
    return re.sub(r"[^a-z0-9]+", "-", f"{benchmark} {case}".lower()).strip("-") + ".png"


def _bars(pyplot: Any, table: dict[str, Any]) -> Any:
    """Draw a panel for each figure, a bar for each contender, and the range of the rounds as a whisker."""
    rows, figures = table["rows"], table["figures"]
    drawing, axes = pyplot.subplots(
        1, len(figures), figsize=(3 + 3.5 * len(figures), 1.2 + 0.3 * len(rows)), layout="constrained", squeeze=False
    )
    for figure, axis in zip(figures, axes[0], strict=True):
        medians, whiskers = _spreads([row[figure] for row in rows])
        axis.barh(range(len(rows)), medians, xerr=whiskers, color=[_COLOURS[row["client"]] for row in rows])
        axis.set_yticks(range(len(rows)), [label(row) for row in rows] if axis is axes[0][0] else [""] * len(rows))
        axis.invert_yaxis()
        axis.set_title(FIGURES[figure].title, fontsize=9)
        axis.tick_params(labelsize=8)
    drawing.suptitle(f"{table['benchmark']}: {table['case']}", fontsize=11)
    return drawing


def _curve(pyplot: Any, tables: list[dict[str, Any]]) -> Any:
    """Draw a panel for each figure, a line for each contender."""
    first = tables[0]
    drawing, axes = pyplot.subplots(1, len(first["figures"]), figsize=(11, 4), layout="constrained", squeeze=False)
    named = {label(row): row["client"] for table in tables for row in table["rows"]}
    for figure, axis in zip(first["figures"], axes[0], strict=True):
        for name, client in named.items():
            found = [(table["at"], row[figure]) for table in tables for row in table["rows"] if label(row) == name]
            medians, whiskers = _spreads([one for _, one in found])
            places = [at for at, _ in found]
            axis.errorbar(places, medians, yerr=whiskers, label=name, color=_COLOURS[client], marker="o", capsize=3)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel(first["group"].partition(", by ")[2], fontsize=9)
        axis.set_title(FIGURES[figure].title, fontsize=9)
        axis.tick_params(labelsize=8)
    axes[0][0].legend(fontsize=8)
    drawing.suptitle(f"{first['benchmark']}: {first['group']}", fontsize=11)
    return drawing


def _groups(pyplot: Any, tables: list[dict[str, Any]]) -> Any:
    """Draw a panel for each figure, and for each place a bar of each contender."""
    first = tables[0]
    figures = first["figures"]
    named = {label(row): row["client"] for table in tables for row in table["rows"]}
    height = 0.8 / len(named)
    drawing, axes = pyplot.subplots(
        1,
        len(figures),
        figsize=(4 + 4 * len(figures), 1.5 + 0.2 * len(tables) * (1 + len(named))),
        layout="constrained",
        squeeze=False,
    )
    for figure, axis in zip(figures, axes[0], strict=True):
        for number, (name, client) in enumerate(named.items()):
            found = [(at, row[figure]) for at, t in enumerate(tables) for row in t["rows"] if label(row) == name]
            medians, whiskers = _spreads([one for _, one in found])
            places = [at + number * height for at, _ in found]
            axis.barh(places, medians, height, xerr=whiskers, label=name, color=_COLOURS[client])
        names = [table["place"] for table in tables] if axis is axes[0][0] else [""] * len(tables)
        axis.set_yticks([at + 0.4 - height / 2 for at in range(len(tables))], names)
        axis.invert_yaxis()
        axis.set_xscale("log")
        axis.set_title(FIGURES[figure].title, fontsize=9)
        axis.tick_params(labelsize=8)
    axes[0][-1].legend(fontsize=8)
    drawing.suptitle(f"{first['benchmark']}: {first['group']}", fontsize=11)
    return drawing


def _memory(pyplot: Any, table: dict[str, Any]) -> Any:
    """Draw resident memory over the run, a line for each contender."""
    drawing, axis = pyplot.subplots(figsize=(9, 4), layout="constrained")
    for row in table["rows"]:
        samples = row["memory_mb"]
        shares = [100 * (number + 1) / len(samples) for number in range(len(samples))]
        axis.plot(shares, samples, label=f"{label(row)}, {row['records']:,} records", color=_COLOURS[row["client"]])
    axis.set_ylim(bottom=0)
    axis.set_xlabel("% of the run", fontsize=9)
    axis.set_ylabel("resident memory, MB", fontsize=9)
    axis.set_title(f"{table['benchmark']}: {table['case']}", fontsize=11)
    axis.legend(fontsize=8)
    return drawing


def _spreads(spreads: list[dict[str, float]]) -> tuple[list[float], list[list[float]]]:
    """Return medians, and the distances of minimum and maximum from them."""
    medians = [one["median"] for one in spreads]
    return medians, [
        [one["median"] - one["least"] for one in spreads],
        [one["most"] - one["median"] for one in spreads],
    ]
