"""The tables of a run: a line for each kind of fault and client."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.recovery.judge import Recovery, summary
from benchmarks.report import aligned

Row = dict[str, Any]

NAMES = {"ours": "aiokafkawire", "confluent": "confluent-kafka"}
"""The clients whose names differ from those of the command line."""
FIGURES = {"first": "first record s", "caught_up": "caught up s", "gap": "longest gap s", "slowest": "slowest record s"}
_HEADS = {"gap": "gap", "slowest": "slowest record"}


def render(about: Mapping[str, str], rows: list[Row]) -> str:
    """Return the run as text: medians, and the worst of each."""
    width = max(map(len, about))
    lines = [f"{name:<{width}}  {text}" for name, text in about.items()]
    for role in ("producer", "reader"):
        head = ["", role, *FIGURES.values(), "records", "failed", "wrong", "log lines"]
        lines += ["", *aligned([head, *(_line(row) for row in rows if row["role"] == role)])]
    for row in rows:
        lines += _remarks(row)
    return "\n".join(lines)


def markdown(about: Mapping[str, str], rows: list[Row], figure: str = "gap") -> str:
    """Return the tables of docs/faults.md: recoveries and another figure, medians with the worst in brackets."""
    clients = list(dict.fromkeys(row["client"] for row in rows))
    names = [NAMES.get(client, client) for client in clients]
    machine = f"{about['machine']}, {about['date']}, load before {about['load before']}"
    parts = [*textwrap.wrap(f"{about['load']}; {machine}; {about['packages']}.", 120, break_on_hyphens=False), ""]
    for role in ("producer", "reader"):
        found = {(row["kind"], row["client"]): row for row in rows if row["role"] == role}
        head = f"{role}: caught up / {_HEADS[figure]}, s"
        parts += [f"| {head} | {' | '.join(names)} |", "|---|" + "---|" * len(clients)]
        for kind, title in dict.fromkeys((row["kind"], row["title"]) for row in rows):
            cells = [_summary(found[kind, client], figure) for client in clients]
            parts.append(f"| {title} | {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts)


def write_into(page: Path, what: str, text: str) -> None:
    """Replace what is between the marks of these figures in a page, such as those of "networks".

    :raises ValueError: the page has no marks.
    """
    begin, end = marks(what)
    before, first, rest = page.read_text().partition(begin)
    _, second, after = rest.partition(end)
    if not first or not second:
        raise ValueError(f"{page} needs {begin} and {end}, between which the tables are written")
    page.write_text(f"{before}{begin}\n{text}{end}{after}")


def marks(what: str) -> tuple[str, str]:
    """Return the lines of a page between which these figures are."""
    return f"<!-- figures of {what} -->", f"<!-- end of the figures of {what} -->"


def _summary(row: Row, figure: str) -> str:
    wrongs = "".join(f", {count:,} {name.replace('_', ' ')}" for name, count in row["wrongs"].items())
    return f"{_cell(row, 'caught_up')} / {_cell(row, figure)}{wrongs}"


def recoveries(row: Row) -> list[Recovery]:
    """Return what each fault did."""
    return [Recovery(**one) for one in row["faults"]]


def _line(row: Row) -> list[str]:
    cells = [_cell(row, figure) for figure in FIGURES]
    counts = [f"{row[name]:,}" for name in ("records", "failed", "wrong")]
    return [row["title"], row["client"], *cells, *counts, str(row["log_lines"])]


def _cell(row: Row, figure: str) -> str:
    found = summary(recoveries(row), figure)
    never = sum(getattr(one, figure) is None for one in recoveries(row))
    mark = f" ({never} not at all)" if never else ""
    return f"{found['median']:.1f} [{found['worst']:.1f}]{mark}"


def _remarks(row: Row) -> list[str]:
    told = [f"NOT ENDED WELL: {text}" for text in row["problems"]]
    told += [f"WRONG: {count:,} {name}" for name, count in row["wrongs"].items()]
    told += [f"failed, {count:,}: {error}" for error, count in row["errors"].items()]
    return [f"  {row['kind']}, {row['client']}, {row['role']}: {text}" for text in told]
