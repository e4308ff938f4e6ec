"""Finds the offsets before which records are deleted."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...admin.admin import Admin
from ...types import OffsetSpec, TopicPartition
from ..records.points import BeforeEnd, Point

__all__ = ("REFUSED", "deletion_outcome", "deletion_rows")

REFUSED: Final = "would be refused"


async def deletion_rows(
    admin: Admin, partitions: Iterable[TopicPartition], point: Point
) -> dict[TopicPartition, dict[str, Any]]:
    """Return a row about each partition: its first offset, and the offset before which records are to be deleted.

    A time is the first record at or after it, or the end if there is none. "records" is the number of offsets up to
    there; compacted records and markers of transactions count.

    Raises:
        KafkaError: the offsets cannot be looked up.
    """
    wanted = list(partitions)
    first = await admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.EARLIEST))
    end = await admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST))
    found = await admin.list_offsets(dict.fromkeys(wanted, point)) if isinstance(point, OffsetSpec) else {}
    rows = {}
    for partition in wanted:
        begins, ends, at = first[partition], end[partition], found.get(partition)
        assert begins is not None
        assert ends is not None
        if isinstance(point, BeforeEnd):
            offset = max(begins.offset, ends.offset - point.count)
        elif isinstance(point, int):
            offset = point
        else:
            offset = ends.offset if at is None else at.offset
        rows[partition] = {
            "topic": partition.topic,
            "partition": partition.partition,
            "log_start_offset": begins.offset,
            "log_end_offset": ends.offset,
            "before_offset": offset,
            "records": max(0, min(offset, ends.offset) - begins.offset),
        }
    return rows


def deletion_outcome(row: Mapping[str, Any]) -> str:
    """Return what would become of the deletion in a row: brokers refuse one before an offset after the end."""
    return REFUSED if row["before_offset"] > row["log_end_offset"] else "would be deleted"
