"""Rows of what a group or a topic consists of: members, partitions with their lag, and records."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import attrs

from ...admin.descriptions import GroupMember, ShareMemberDescription
from ...types import TopicPartition
from ..shell.safe_text import safe_bytes, safe_text
from .columns import TableColumn, TableKind, big_number, text_column

__all__ = (
    "LAGS",
    "MEMBERS",
    "RECORDS",
    "GroupDetails",
    "LagRow",
    "MemberRow",
    "RecordRow",
    "newest_ranges",
    "record_text",
    "rows_of_lag",
    "rows_of_members",
)

KEPT_BYTES: Final = 4096
"""The number of bytes of a key, a value or a header that are kept."""


@attrs.frozen
class MemberRow:
    """A member of a group, and the number of its partitions."""

    member_id: str
    client_id: str
    host: str
    partitions: int


@attrs.frozen
class LagRow:
    """A partition that a group reads: the committed offset, the end, the lag, and the client that it is assigned to."""

    partition: TopicPartition
    committed: int | None
    end: int | None
    lag: int | None
    client_id: str | None


@attrs.frozen
class GroupDetails:
    """The members and the partitions of a group; the number of members is not known if ``members`` is None.

    ``state`` is None for streams groups, which are not described.
    """

    members: tuple[MemberRow, ...] | None
    partitions: tuple[LagRow, ...]
    state: str | None = None


@attrs.frozen
class RecordRow:
    """A record. Of long keys, values and headers only the first bytes are kept; the sizes are those of all bytes.

    ``timestamp`` is in ms since the epoch, or -1 without one.
    """

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    key_size: int
    value_size: int
    headers: tuple[tuple[str, bytes | None], ...]


def rows_of_members(members: Iterable[GroupMember | ShareMemberDescription]) -> tuple[MemberRow, ...]:
    """Return a row for each member, by client id and member id."""
    rows = [
        MemberRow(member.member_id, member.client_id, member.client_host, len(member.assignment)) for member in members
    ]
    return tuple(sorted(rows, key=lambda row: (row.client_id, row.member_id)))


def rows_of_lag(
    committed: Mapping[TopicPartition, int],
    known_lag: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    members: Iterable[GroupMember | ShareMemberDescription],
) -> tuple[LagRow, ...]:
    """Return a row for each partition with a committed offset or an owner, by topic and partition.

    Args:
        committed: the committed offsets.
        known_lag: the lag that the broker reports itself.
        ends: the end offsets.
        members: the members, with their assignments.
    """
    owners: dict[TopicPartition, list[str]] = {}
    for member in members:
        for partition in member.assignment:
            owners.setdefault(partition, []).append(member.client_id)
    rows = []
    for partition in sorted({*committed, *owners}):
        offset, end, lag = committed.get(partition), ends.get(partition), known_lag.get(partition)
        if lag is None and offset is not None and end is not None:
            lag = max(0, end - offset)
        names = owners.get(partition)
        rows.append(LagRow(partition, offset, end, lag, ", ".join(sorted(set(names))) if names else None))
    return tuple(rows)


def newest_ranges(
    begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], count: int
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return the offsets to read from and to, so that about ``count`` of the newest records are read.

    Of each partition the same number of records is read, at least one; of more than ``count`` partitions with records,
    only the first ``count``.
    """
    filled = [partition for partition in sorted(ends) if ends[partition] > begins.get(partition, 0)][:count]
    each = max(1, -(-count // len(filled))) if filled else 0
    starts = {partition: max(begins.get(partition, 0), ends[partition] - each) for partition in filled}
    return starts, {partition: ends[partition] for partition in filled}


def record_text(row: RecordRow) -> str:
    """Return all of a record, in lines: place, time, key, headers and value."""
    time = _time(row.timestamp, "%Y-%m-%d %H:%M:%S.%f")
    lines = [f"partition {row.partition}, offset {row.offset}, {time}"]
    lines.append(f"key     {safe_bytes(row.key, KEPT_BYTES)}{_rest(row.key, row.key_size)}")
    lines += [f"header  {safe_text(name)}: {safe_bytes(value, 1000)}" for name, value in row.headers]
    lines.append(f"value   {safe_bytes(row.value, KEPT_BYTES)}{_rest(row.value, row.value_size)}")
    return "\n".join(lines)


def _rest(kept: bytes | None, size: int) -> str:
    return f" ({len(kept):,} of {size:,} bytes)" if kept is not None and len(kept) < size else ""


def _time(timestamp: int, form: str) -> str:
    if timestamp < 0:
        return "-"
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).strftime(form).removesuffix("000")
    except (ValueError, OverflowError, OSError):
        return f"{timestamp} ms"


MEMBERS: Final = TableKind[MemberRow](
    "Members",
    (
        text_column("CLIENT", 20, lambda row: safe_text(row.client_id), lambda row: row.client_id, spare=1),
        text_column("HOST", 18, lambda row: safe_text(row.host), lambda row: row.host, spare=3),
        TableColumn("PARTITIONS", 11, lambda row: f"{row.partitions}", lambda row: row.partitions, spare=2),
        text_column("MEMBER", None, lambda row: safe_text(row.member_id), lambda row: row.member_id),
    ),
    sorted_by=0,
    name=lambda row: f"{row.client_id} {row.host} {row.member_id}",
)

LAGS: Final = TableKind[LagRow](
    "Partitions",
    (
        text_column("PARTITION", None, lambda row: safe_text(str(row.partition), 260), lambda row: row.partition),
        TableColumn("COMMITTED", 11, lambda row: big_number(row.committed), lambda row: row.committed, spare=2),
        TableColumn("END", 11, lambda row: big_number(row.end), lambda row: row.end, spare=3),
        TableColumn("LAG", 10, lambda row: big_number(row.lag), lambda row: row.lag, is_bad=lambda row: bool(row.lag)),
        text_column("CLIENT", 16, lambda row: safe_text(row.client_id or "-"), lambda row: row.client_id, spare=1),
    ),
    sorted_by=3,
    name=lambda row: f"{row.partition} {row.client_id or ''}".strip(),
)

RECORDS: Final = TableKind[RecordRow](
    "Newest records",
    (
        TableColumn("PART", 5, lambda row: f"{row.partition}", lambda row: row.partition, descending=False),
        TableColumn("OFFSET", 11, lambda row: f"{row.offset}", lambda row: row.offset),
        TableColumn(
            "TIME (UTC)",
            12,
            lambda row: _time(row.timestamp, "%H:%M:%S.%f"),
            lambda row: (row.timestamp, row.offset),
            right=False,
            spare=2,
        ),
        text_column("KEY", 12, lambda row: safe_bytes(row.key), lambda row: row.key, spare=1),
        text_column("VALUE", None, lambda row: safe_bytes(row.value), lambda row: row.value),
    ),
    sorted_by=2,
    name=lambda row: f"{row.partition} {row.offset} {safe_bytes(row.key)} {safe_bytes(row.value)}",
)
