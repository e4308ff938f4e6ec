"""The table of groups that have grown: a row for each client, with the median of its rounds."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.report import aligned, short, spread

Row = dict[str, Any]

_COLUMNS: Final = {
    "all join s": "assembled_s",
    "one more s": "joined_s",
    "moved": "moved",
    "unread": "unread",
    "late": "late",
    "latest s": "latest_s",
    "gap, stayed s": "gap_stayed_s",
    "gap, moved s": "gap_moved_s",
    "the producer's s": "producer_gap_s",
    "redelivered": "redelivered",
    "close s": "closed_s",
}


def render(about: Mapping[str, str], rows: Sequence[Row]) -> str:
    """Return the run as text."""
    width = max(map(len, about))
    table = [["", "rounds", "lost", *_COLUMNS]]
    for client in dict.fromkeys(row["client"] for row in rows):
        own = [row for row in rows if row["client"] == client]
        lost = sum(row["lost"] for row in own)
        cells = (_cell([row[name] for row in own]) for name in _COLUMNS.values())
        table.append([own[0]["version"], str(len(own)), f"{lost:,}", *cells])
    lines = [*(f"{name:<{width}}  {text}" for name, text in about.items()), "", *aligned(table), ""]
    for row in rows:
        name = f"  {row['client']}, round {row['round']}"
        lines += [f"{name}: NOT ENDED WELL: {text}" for text in row["problems"]]
        lines += [f"{name}: raised, {number:,}: {text}" for text, number in row["errors"].items()]
    return "\n".join(lines)


def _cell(values: Sequence[float]) -> str:
    median, least, most = map(short, spread(values).values())
    return median if least == most else f"{median} [{least}-{most}]"
