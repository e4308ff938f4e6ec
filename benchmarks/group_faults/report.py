"""The table of groups under fault: a row for each client."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.faults.report import Row, count, label, seconds
from benchmarks.group_faults.judge import WRONGS
from benchmarks.report import aligned, spread

_COLUMNS: Mapping[str, Callable[[Row], str]] = {
    "records": count("acknowledged"),
    "brokers killed": lambda row: str(len(row["kills"])),
    "members killed": lambda row: _departed(row, "killed"),
    "lost": count("lost"),
    "redelivered": count("redelivered"),
    "gap s": seconds("gap_s"),
    "of a partition s": seconds("partition_gap_s"),
    "late p50 s": seconds("late_p50_s", 3),
    "p99 s": seconds("late_p99_s"),
    "max s": seconds("late_max_s"),
    "slowest close s": seconds("slowest_close_s"),
    "rebalances": count("rebalances"),
    "errors": count("raised"),
    "log lines": count("log_lines"),
}

_SUMMARISED: Mapping[str, tuple[str, int]] = {
    "redelivered": ("redelivered", 0),
    "gap s": ("gap_s", 1),
    "of a partition s": ("partition_gap_s", 1),
    "late p99 s": ("late_p99_s", 1),
    "slowest close s": ("slowest_close_s", 1),
    "log lines": ("log_lines", 0),
}
"""The columns of a summary: the figure, and the digits after its point."""


def render(about: Mapping[str, str], rows: list[Row]) -> str:
    """Return the run as text."""
    width = max(map(len, about))
    table = [["", *_COLUMNS], *([label(row, rows), *(show(row) for show in _COLUMNS.values())] for row in rows)]
    lines = [*(f"{name:<{width}}  {text}" for name, text in about.items()), "", *aligned(table), ""]
    if len({row["seed"] for row in rows}) > 1:
        lines += ["medians, with least and most", "", *aligned(summary(rows)), ""]
    for row in rows:
        lines += _remarks(row)
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> list[list[str]]:
    """Return a table of all runs of each client: medians, with least and most; of lost records the sum."""
    clients = dict.fromkeys(row["client"] for row in rows)
    table = [["", "runs", "lost", *_SUMMARISED]]
    for client in clients:
        own = [row for row in rows if row["client"] == client]
        lost = sum(row["lost"] for row in own)
        figures = [_spread([row.get(name) for row in own], digits) for name, digits in _SUMMARISED.values()]
        table.append([client, str(len(own)), f"{lost:,}", *figures])
    return table


def _spread(values: Sequence[float | None], digits: int) -> str:
    """Return median, least and most of the values that are there."""
    there = [value for value in values if value is not None]
    if not there:
        return "-"
    middle, least, most = (f"{one:,.{digits}f}" for one in spread(there).values())
    return f"{middle} [{least}-{most}]"


def _departed(row: Row, how: str) -> str:
    return str(sum(one["how"] == how for one in row["departures"]))


def _remarks(row: Row) -> list[str]:
    kills = ", ".join(f"{one['node']} at {one['at']:.0f}-{one['back']:.0f} s" for one in row["kills"])
    gone = ", ".join(f"{one['place']} {one['how']} at {one['at']:.0f}-{one['back']:.0f} s" for one in row["departures"])
    producer: dict[str, Any] = row["producer"]
    own = f"{seconds('gap_s')(producer)} s, of a partition {seconds('partition_gap_s')(producer)} s"
    name = f"{row['client']} ({row['version']}), seed {row['seed']}"
    lines = [
        f"  {name}: brokers killed: {kills or 'none'}; members: {gone or 'none went'}",
        f"    the producer's own gaps: {own}; {producer['failed']:,} records failed",
    ]
    lines += [f"    NOT ENDED WELL: {text}" for text in row["problems"]]
    lines += [f"    WRONG: {row[name]:,} {name}" for name in WRONGS if row[name]]
    lines += [f"    raised, {number:,}: {text}" for text, number in row["errors"].items()]
    lines += [f"    logged, {number:,}: {text}" for text, number in row["logged"].items()]
    return lines
