"""The table of groups under fault: a row for each client."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.faults.report import Row, count, seconds
from benchmarks.group_faults.judge import WRONGS
from benchmarks.report import aligned

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


def render(about: Mapping[str, str], rows: list[Row]) -> str:
    """Return the run as text."""
    width = max(map(len, about))
    table = [["", *_COLUMNS], *([row["client"], *(show(row) for show in _COLUMNS.values())] for row in rows)]
    lines = [*(f"{name:<{width}}  {text}" for name, text in about.items()), "", *aligned(table), ""]
    for row in rows:
        lines += _remarks(row)
    return "\n".join(lines)


def _departed(row: Row, how: str) -> str:
    return str(sum(one["how"] == how for one in row["departures"]))


def _remarks(row: Row) -> list[str]:
    kills = ", ".join(f"{one['node']} at {one['at']:.0f}-{one['back']:.0f} s" for one in row["kills"])
    gone = ", ".join(f"{one['place']} {one['how']} at {one['at']:.0f}-{one['back']:.0f} s" for one in row["departures"])
    producer: dict[str, Any] = row["producer"]
    own = f"{seconds('gap_s')(producer)} s, of a partition {seconds('partition_gap_s')(producer)} s"
    lines = [
        f"  {row['client']} ({row['version']}): brokers killed: {kills or 'none'}; members: {gone or 'none went'}",
        f"    the producer's own gaps: {own}; {producer['failed']:,} records failed",
    ]
    lines += [f"    NOT ENDED WELL: {text}" for text in row["problems"]]
    lines += [f"    WRONG: {row[name]:,} {name}" for name in WRONGS if row[name]]
    lines += [f"    raised, {number:,}: {text}" for text, number in row["errors"].items()]
    lines += [f"    logged, {number:,}: {text}" for text, number in row["logged"].items()]
    return lines
