"""The columns of the tables: title, width, text and order of each."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

import attrs

from ..shell.safe_text import safe_text
from .rows import BrokerRow, GroupRow, TopicRow
from .spark_line import spark_line

__all__ = (
    "BROKERS",
    "GROUPS",
    "TOPICS",
    "TableColumn",
    "TableKind",
    "big_number",
    "decimal",
    "fit_columns",
    "select_rows",
    "text_column",
    "trouble_column",
)

R = TypeVar("R")

TREND_WIDTH: Final = 10
_PADDING: Final = 2
_WIDE_ENOUGH: Final = 16
_NARROWEST: Final = 4


@attrs.frozen
class TableColumn(Generic[R]):
    """A column.

    ``width`` is in characters; None for the column that gets the rest of the line. ``text`` returns a row's cell, and
    ``value`` what to sort by; None sorts last. ``is_bad`` returns whether the cell reports trouble.
    """

    title: str
    width: int | None
    text: Callable[[R], str]
    value: Callable[[R], Any]
    right: bool = True
    descending: bool = True
    """Whether the greatest values come first when the table is sorted by this column."""
    is_bad: Callable[[R], bool] = attrs.field(default=lambda _: False)
    spare: int = 0
    """The order in which narrow terminals leave columns out: the greatest first, and 0 never."""


@attrs.frozen
class TableKind(Generic[R]):
    """A table: its title, its columns, the column that it is sorted by at first, and the name of a row."""

    title: str
    columns: tuple[TableColumn[R], ...]
    sorted_by: int
    name: Callable[[R], str]
    error: Callable[[R], str | None] = attrs.field(default=lambda _: None)


def text_column(
    title: str,
    width: int | None,
    text: Callable[[R], str],
    value: Callable[[R], Any],
    *,
    is_bad: Callable[[R], bool] = lambda _: False,
    spare: int = 0,
) -> TableColumn[R]:
    """Return a column of text: at the left, sorted from A to Z at first."""
    return TableColumn(title, width, text, value, right=False, descending=False, is_bad=is_bad, spare=spare)


def trouble_column(title: str, width: int, value: Callable[[R], int], *, spare: int = 0) -> TableColumn[R]:
    """Return a column of numbers that should be 0."""
    return TableColumn(title, width, lambda row: f"{value(row)}", value, is_bad=lambda row: value(row) > 0, spare=spare)


def big_number(number: float | None) -> str:
    """Return a whole number in at most 9 characters, such as "1,234,567" or "12.3M"; "-" for None."""
    if number is None:
        return "-"
    if abs(number) < 10_000_000:
        return f"{number:,.0f}"
    for unit in "MGTP":
        number /= 1_000 if unit != "M" else 1_000_000
        if abs(number) < 1_000:
            return f"{number:.1f}{unit}"
    return f"{number:.0f}P"


def decimal(number: float | None) -> str:
    """Return a rate in at most 9 characters; below 10 with one digit after the point."""
    if number is None or number == 0 or abs(number) >= 10:
        return big_number(number)
    return f"{number:.1f}"


def select_rows(
    rows: Iterable[R],
    kind: TableKind[R],
    *,
    sorted_by: int | None = None,
    descending: bool | None = None,
    text: str = "",
) -> list[R]:
    """Return the rows whose name contains ``text``, in any case, sorted by a column and then by name.

    Args:
        rows: all rows.
        kind: the table.
        sorted_by: the index of the column; None for the one that the table is sorted by at first.
        descending: the direction; None for that of the column. Rows without a value come last in both directions.
        text: the filter; all rows if it is empty.
    """
    column = kind.columns[kind.sorted_by if sorted_by is None else sorted_by]
    wanted = text.casefold()
    found = sorted((row for row in rows if wanted in kind.name(row).casefold()), key=kind.name)
    known = [row for row in found if column.value(row) is not None]
    unknown = [row for row in found if column.value(row) is None]
    known.sort(key=column.value, reverse=column.descending if descending is None else descending)
    return known + unknown


def fit_columns(columns: Sequence[TableColumn[R]], available: int) -> dict[int, int]:
    """Return the width of each column that a line has room for, by the column's index.

    Args:
        columns: all columns. The one without a width gets what the others leave, at least 4 characters; others are left
            out while it gets less than 16.
        available: the characters of a line; each column takes two more than its width.
    """
    shown = list(range(len(columns)))

    def rest() -> int:
        return available - sum((columns[index].width or 0) + _PADDING for index in shown)

    for index in sorted(shown, key=lambda index: -columns[index].spare):
        if rest() >= _WIDE_ENOUGH or not columns[index].spare:
            break
        shown.remove(index)
    return {index: columns[index].width or max(_NARROWEST, rest()) for index in shown}


def _broker_id(row: BrokerRow) -> str:
    return f"{row.node_id}{'*' if row.is_controller else ''}"


def _address(row: BrokerRow) -> str:
    return safe_text(row.address) if row.address is not None else "not in service"


def _lag_text(row: GroupRow) -> str:
    return big_number(row.lag) + ("+" if row.unknown and row.lag is not None else "")


def _has_growing_lag(row: GroupRow) -> bool:
    return row.lag_rate is not None and row.lag_rate > 0


BROKERS: Final = TableKind[BrokerRow](
    "Brokers",
    (
        TableColumn("NODE", 5, _broker_id, lambda row: row.node_id, descending=False),
        text_column("ADDRESS", None, _address, lambda row: row.address, is_bad=lambda row: row.address is None),
        text_column("RACK", 10, lambda row: safe_text(row.rack or "-", 10), lambda row: row.rack, spare=5),
        TableColumn("LEADS", 6, lambda row: f"{row.leads}", lambda row: row.leads, spare=4),
        trouble_column("UNDER", 6, lambda row: row.under_replicated, spare=1),
        TableColumn(
            "IN SYNC",
            11,
            lambda row: f"{row.in_sync}/{row.replicas}",
            lambda row: row.replicas - row.in_sync,
            is_bad=lambda row: row.in_sync < row.replicas,
            spare=3,
        ),
        TableColumn("RECORDS/S", 10, lambda row: decimal(row.rate), lambda row: row.rate, spare=2),
    ),
    sorted_by=0,
    name=lambda row: f"{row.node_id} {row.address or ''} {row.rack or ''}".strip(),
    error=lambda row: row.error if row.address is not None else None,
)

TOPICS: Final = TableKind[TopicRow](
    "Topics",
    (
        text_column("TOPIC", None, lambda row: safe_text(row.name, 249), lambda row: row.name),
        TableColumn("RECORDS/S", 10, lambda row: decimal(row.rate), lambda row: row.rate),
        TableColumn("PARTITIONS", 11, lambda row: f"{row.partitions}", lambda row: row.partitions, spare=3),
        trouble_column("UNDER", 6, lambda row: row.under_replicated, spare=1),
        trouble_column("NO LEADER", 10, lambda row: row.leaderless, spare=2),
    ),
    sorted_by=1,
    name=lambda row: row.name,
    error=lambda row: f"no end offsets of {row.unread} of {row.partitions} partitions" if row.unread else None,
)

GROUPS: Final = TableKind[GroupRow](
    "Groups",
    (
        text_column(
            "GROUP",
            None,
            lambda row: safe_text(row.group_id, 249),
            lambda row: row.group_id,
            is_bad=lambda row: row.error is not None,
        ),
        text_column("STATE", 10, lambda row: safe_text(row.state or "-", 24), lambda row: row.state, spare=2),
        text_column("TYPE", 8, lambda row: safe_text(row.type, 8), lambda row: row.type, spare=4),
        TableColumn("MEMBERS", 8, lambda row: big_number(row.members), lambda row: row.members, spare=3),
        TableColumn("LAG", 10, _lag_text, lambda row: row.lag, is_bad=_has_growing_lag),
        TableColumn(
            "TREND",
            TREND_WIDTH,
            lambda row: spark_line(row.trend, TREND_WIDTH),
            lambda row: row.lag_rate,
            right=False,
            spare=1,
        ),
    ),
    sorted_by=4,
    name=lambda row: row.group_id,
    error=lambda row: row.error,
)
