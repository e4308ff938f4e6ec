"""Medians, ranges and ratios of a run: as text, as JSON, and as a picture.

``python benchmarks/report.py results/produce_consume-....json [--plot FILE.png]`` shows an earlier run again.
"""

import argparse
import importlib
import json
import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.contenders import NO_LOOP, OURS, TASKS

RESULTS = Path(__file__).resolve().parent / "results"

Row = dict[str, Any]
Figure = Callable[[Row], float]

_RATE: tuple[str, Figure] = ("records_per_second", lambda one: one["records"] / one["seconds"])
_CPU: tuple[str, Figure] = ("cpu_us_per_record", lambda one: one["cpu_seconds"] * 1e6 / one["records"])
_P50: tuple[str, Figure] = ("p50_us", lambda one: one["p50_us"])
_P99: tuple[str, Figure] = ("p99_us", lambda one: one["p99_us"])
FIGURES = {"produce": (_RATE, _CPU), "consume": (_RATE, _CPU), "latency": (_P50, _P99, _CPU)}
"""What is reported of each task."""

_HEADINGS = {
    "records_per_second": "records/s (more is better)",
    "cpu_us_per_record": "us of client CPU per record (less is better)",
    "p50_us": "p50 us (less is better)",
    "p99_us": "p99 us (less is better)",
}


def summarise(about: dict[str, str], measurements: list[Row], failures: list[Row]) -> dict[str, Any]:
    """All there is to know about a run, ready for JSON: one entry a row, and one for each of our rows and a peer's."""
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for one in measurements:
        groups.setdefault((one["task"], one["client"], one["way"], one["loop"]), []).append(one)
    return {
        "about": about,
        "rows": [_row(key, group) for key, group in _in_order(groups)],
        "ratios": [
            _ratio(ours, peer, groups[ours], groups[peer])
            for ours, _ in _in_order(groups)
            for peer, _ in _in_order(groups)
            if ours[1] == OURS != peer[1] and ours[0] == peer[0]
        ],
        "failures": failures,
        "measurements": measurements,
    }


def render(result: dict[str, Any]) -> str:
    """The run as text."""
    width = max(map(len, result["about"]))
    lines = [f"{name:<{width}}  {text}" for name, text in result["about"].items()]
    for task in TASKS:
        rows = [row for row in result["rows"] if row["task"] == task]
        if rows:
            lines += ["", *_task_table(task, rows)]
        for figure, _ in FIGURES[task]:
            lines += _ratio_table(task, figure, result["ratios"])
    if result["failures"]:
        lines += ["", "FAILED"]
        lines += [f"  round {one['round']}: {_name(one)}: {one['error']}" for one in result["failures"]]
    return "\n".join(lines)


def write(result: dict[str, Any], path: Path) -> Path:
    """Keep the run as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def plot(result: dict[str, Any], path: Path) -> None:
    """Draw every figure of every task as bars, with the range of the rounds as a whisker."""
    pyplot = importlib.import_module("matplotlib.pyplot")
    panels = [
        (task, figure, rows)
        for task in TASKS
        if (rows := [row for row in result["rows"] if row["task"] == task])
        for figure, _ in FIGURES[task]
    ]
    longest = max(len(rows) for *_, rows in panels)
    drawing, axes = pyplot.subplots(
        len(panels), 1, figsize=(10, len(panels) * (0.8 + 0.28 * longest)), layout="constrained", squeeze=False
    )
    colours = {"ours": "tab:blue", "aiokafka": "tab:orange", "confluent": "tab:green"}
    for (task, figure, rows), axis in zip(panels, axes[:, 0], strict=True):
        medians = [row[figure]["median"] for row in rows]
        below = [row[figure]["median"] - row[figure]["least"] for row in rows]
        above = [row[figure]["most"] - row[figure]["median"] for row in rows]
        axis.barh(
            [_name(row) for row in rows], medians, xerr=[below, above], color=[colours[row["client"]] for row in rows]
        )
        axis.invert_yaxis()
        axis.set_title(f"{task}: {_HEADINGS[figure]}", fontsize=10)
        axis.tick_params(labelsize=8)
    drawing.savefig(path, dpi=150)


# --- the parts of a summary ----------------------------------------------------------------------------------


def _in_order(groups: dict[tuple[str, str, str, str], list[Row]]) -> list[tuple[tuple[str, str, str, str], list[Row]]]:
    clients = ("ours", "aiokafka", "confluent")
    return sorted(groups.items(), key=lambda item: (TASKS.index(item[0][0]), clients.index(item[0][1])))


def _row(key: tuple[str, str, str, str], group: list[Row]) -> Row:
    task, client, way, loop = key
    figures = {name: _spread(figure(one) for one in group) for name, figure in FIGURES[task]}
    return {
        "task": task,
        "client": client,
        "way": way,
        "loop": loop,
        "version": group[0]["version"],
        "records": group[0]["records"],
        "rounds": len(group),
        **figures,
        "max_rss_mb": max(one["max_rss_kb"] for one in group) / 1024,
    }


def _ratio(
    ours: tuple[str, str, str, str], peer: tuple[str, str, str, str], our_group: list[Row], peer_group: list[Row]
) -> Row:
    """Our figure by the peer's, in each round that has both."""
    theirs = {one["round"]: one for one in peer_group}
    pairs = [(one, theirs[one["round"]]) for one in our_group if one["round"] in theirs]
    figures = {
        name: _spread(figure(one) / figure(other) for one, other in pairs) for name, figure in FIGURES[ours[0]] if pairs
    }
    return {
        "task": ours[0],
        "ours": " ".join(_shown(ours[2:])),
        "peer": " ".join(_shown(peer[1:])),
        "pairs": len(pairs),
        **figures,
    }


def _spread(values: Iterable[float]) -> dict[str, float]:
    found = sorted(values)
    return {"median": statistics.median(found), "least": found[0], "most": found[-1]}


# --- the parts of a text -------------------------------------------------------------------------------------


def _task_table(task: str, rows: list[Row]) -> list[str]:
    figures = [name for name, _ in FIGURES[task]]
    table = [["", *(_HEADINGS[name].partition(" (")[0] + ", range" for name in figures), "RSS MB", "rounds", "version"]]
    for row in rows:
        texts = [_with_range(row[name]) for name in figures]
        table.append([_name(row), *texts, f"{row['max_rss_mb']:.0f}", str(row["rounds"]), row["version"]])
    return [f"{task.upper()}: the median, and the range of the rounds", *aligned(table)]


def _ratio_table(task: str, figure: str, ratios: list[Row]) -> list[str]:
    wanted = [one for one in ratios if one["task"] == task and figure in one]
    if not wanted:
        return []
    peers = list(dict.fromkeys(one["peer"] for one in wanted))
    named = [peer.partition(" ") for peer in peers]
    table = [["", *(client for client, _, _ in named)], ["aiokafkawire divided by", *(way for *_, way in named)]]
    for ours in dict.fromkeys(one["ours"] for one in wanted):
        found = {one["peer"]: _with_range(one[figure]) for one in wanted if one["ours"] == ours}
        table.append([ours, *(found.get(peer, "-") for peer in peers)])
    return ["", f"{task}: ratios of {_HEADINGS[figure]}", *aligned(table)]


def aligned(table: list[list[str]]) -> list[str]:
    """The rows as lines: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = []
    for row in table:
        rest = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  " + "  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return lines


def _with_range(spread: dict[str, float]) -> str:
    median, least, most = (_short(spread[name]) for name in ("median", "least", "most"))
    return median if least == most else f"{median} [{least}-{most}]"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _name(row: Row) -> str:
    client = "aiokafkawire" if row["client"] == OURS else row["client"]
    return " ".join(_shown((client, row["way"], row["loop"])))


def _shown(words: Iterable[str]) -> list[str]:
    """The parts of a name; that a client has no event loop goes without saying."""
    return [word for word in words if word != NO_LOOP]


def main() -> None:
    parser = argparse.ArgumentParser(description="Show the result of an earlier run again.")
    parser.add_argument("result", type=Path, help="a JSON file of benchmarks/results/")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="also draw it; needs matplotlib")
    options = parser.parse_args()
    result: dict[str, Any] = json.loads(options.result.read_text())
    print(render(result))
    if options.plot is not None:
        plot(result, options.plot)


if __name__ == "__main__":
    main()
