"""The output of ``top --once`` and ``top --json``: plain tables for people, JSON for programs."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import attrs

from ..shell.safe_text import safe_text
from .columns import BROKERS, GROUPS, TOPICS, TableKind, select_rows
from .rows import History

__all__ = ("json_line", "plain_table", "plain_tables")

R = TypeVar("R")

_KEYS: Final = {"name": "topic", "type": "group_type", "replicas": "replica_count", "in_sync": "in_sync_count"}
"""The keys of JSON for the fields of rows that have other names, so that the keys are those of the other verbs."""


def plain_tables(history: History) -> str:
    """Return the three tables of the newest sample, sorted as the live view sorts them at first."""
    newest = history.newest
    assert newest is not None
    controller, brokers = newest.layout.controller_id, plain_table(BROKERS, history.broker_rows())
    if controller is not None and controller not in newest.layout.brokers:
        brokers += f"controller: {controller}\n"
    tables = (
        brokers,
        plain_table(TOPICS, history.topic_rows()),
        plain_table(GROUPS, history.group_rows()),
    )
    return "\n".join(tables)


def plain_table(kind: TableKind[R], rows: Iterable[R]) -> str:
    """Return a table as text: its columns are as wide as their longest cell, and errors follow the table."""
    chosen = select_rows(rows, kind)
    cells = [[column.text(row) for column in kind.columns] for row in chosen]
    titles = [column.title for column in kind.columns]
    sizes = [max(len(line[index]) for line in (titles, *cells)) for index in range(len(titles))]
    right = [column.right for column in kind.columns]
    lines = [_line(line, sizes, right) for line in (titles, *cells)]
    for row in chosen:
        error = kind.error(row)
        if error is not None:
            lines.append(f"{safe_text(kind.name(row))}: {safe_text(error, 500)}")
    return "\n".join(lines) + "\n"


def json_line(history: History) -> str:
    """Return the newest sample as a JSON object, in one line."""
    sample = history.newest
    assert sample is not None
    found: dict[str, Any] = {
        "timestamp": sample.time_ms,
        "cluster_id": sample.layout.cluster_id,
        "controller_id": sample.layout.controller_id,
        "seconds": history.seconds,
        "brokers": [_fields(row) for row in history.broker_rows()],
        "topics": [_fields(row) for row in select_rows(history.topic_rows(), TOPICS)],
        "groups": [_fields(row) for row in select_rows(history.group_rows(), GROUPS)],
    }
    return json.dumps(found, separators=(",", ":"))


def _line(cells: Sequence[str], sizes: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        cell.rjust(size) if is_right else cell.ljust(size)
        for cell, size, is_right in zip(cells, sizes, right, strict=True)
    ]
    return "  ".join(padded).rstrip()


def _fields(row: Any) -> dict[str, Any]:
    shown = attrs.asdict(row, filter=lambda attribute, _: attribute.name != "trend")
    return {_KEYS.get(name, name): value for name, value in shown.items()}
