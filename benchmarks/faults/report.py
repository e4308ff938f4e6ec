"""The table of a run under fault: a row for each client."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.faults.judge import WRONGS
from benchmarks.report import aligned

Row = dict[str, Any]


def count(name: str) -> Callable[[Row], str]:
    """Return a column of integers."""
    return lambda row: "-" if row.get(name) is None else f"{row[name]:,}"


def _ms(name: str) -> Callable[[Row], str]:
    return lambda row: "-" if row.get(name) is None else f"{row[name] * 1e3:,.0f}"


def seconds(name: str, digits: int = 1) -> Callable[[Row], str]:
    """Return a column of seconds."""
    return lambda row: "-" if row.get(name) is None else f"{row[name]:.{digits}f}"


def _kills(row: Row) -> str:
    return str(len(row["kills"]))


_RECORDS: Mapping[str, Callable[[Row], str]] = {
    "records": count("handed"),
    "kills": _kills,
    "acknowledged": count("acknowledged"),
    "failed": count("failed"),
    "wrong": count("wrong"),
    "lost": count("lost"),
    "doubled": count("doubled"),
    "out of order": count("out_of_order"),
    "gap s": seconds("gap_s"),
    "of a partition s": seconds("partition_gap_s"),
    "p50 ms": _ms("p50_s"),
    "p99 ms": _ms("p99_s"),
    "max ms": _ms("max_s"),
    "log lines": count("log_lines"),
}
_TRANSACTIONS: Mapping[str, Callable[[Row], str]] = {
    "transactions": count("transactions"),
    "kills": _kills,
    "committed": count("committed"),
    "aborted": count("aborted"),
    "failed": count("failed"),
    "unsure": count("unsure"),
    "wrong": count("wrong"),
    "lost": count("lost"),
    "doubled": count("doubled"),
    "torn": count("torn"),
    "undead": count("undead"),
    "gap s": seconds("gap_s"),
    "p50 ms": _ms("p50_s"),
    "p99 ms": _ms("p99_s"),
    "slowest s": seconds("max_s"),
    "log lines": count("log_lines"),
    "producers": count("producers"),
}


def render(about: Mapping[str, str], rows: list[Row]) -> str:
    """Return the run as text."""
    width = max(map(len, about))
    columns = _TRANSACTIONS if any(row["transactions_of"] for row in rows) else _RECORDS
    table = [["", *columns], *([label(row, rows), *(show(row) for show in columns.values())] for row in rows)]
    lines = [*(f"{name:<{width}}  {text}" for name, text in about.items()), "", *aligned(table), ""]
    for row in rows:
        lines += _remarks(row)
    return "\n".join(lines)


def label(row: Row, rows: list[Row]) -> str:
    """Return the name of a row: its client, and its seed if the report has several."""
    return row["client"] if len({one["seed"] for one in rows}) == 1 else f"{row['client']}, seed {row['seed']}"


def _remarks(row: Row) -> list[str]:
    kills = ", ".join(f"{one['node']} at {one['at']:.0f}-{one['back']:.0f} s" for one in row["kills"])
    lines = [f"  {row['client']} ({row.get('version', 'version unknown')}): killed {kills or 'nobody'}"]
    lines += [f"    NOT ENDED WELL: {text}" for text in row["problems"]]
    lines += [f"    WRONG: {row[name]:,} {name}" for name in WRONGS if row[name]]
    lines += [f"      {text}" for example in row.get("counterexamples", ()) for text in example.splitlines()]
    lines += [f"    failed, {count:,}: {error}" for error, count in row["errors"].items()]
    lines += [f"    logged, {count:,}: {text}" for text, count in row.get("logged", {}).items()]
    return lines
