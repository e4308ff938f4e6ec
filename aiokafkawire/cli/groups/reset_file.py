"""Reads and writes the CSV files of kafka-consumer-groups with the offsets of groups.

A file for one group has lines of topic, partition and offset; a file for several groups has the group before them.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...argument_checks import INT32, INT64
from ...types import TopicPartition
from ..exit_status import MISSING, CommandFailed

__all__ = ("parse_reset_file", "read_reset_file", "reset_file_text")


def read_reset_file(path: str) -> str:
    """Return the content of a file.

    Raises:
        CommandFailed: it cannot be read, or is not UTF-8 text (exit status 2).
    """
    try:
        return Path(path).read_bytes().decode()  # with the ends of lines as they are, which ids of groups may have
    except OSError as error:
        raise CommandFailed(f"cannot read {path}: {error.strerror}", MISSING) from None
    except UnicodeDecodeError:
        raise CommandFailed(f"cannot read {path}: the file is not UTF-8 text", MISSING) from None


def parse_reset_file(path: str, text: str, group_ids: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """Return the offsets of each group in a file; a group that the file lacks has none.

    Args:
        path: the file's name, for errors.
        text: the content of the file.
        group_ids: the groups to reset; lines for other groups are left out.

    Raises:
        CommandFailed: a line is something else, or there is no group in it but several to reset (exit status 2).
    """
    found: dict[str, dict[TopicPartition, int]] = {group_id: {} for group_id in group_ids}
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    try:
        for fields in reader:
            if not any(fields):
                continue
            group_id, partition, offset = _record(f"{path}:{reader.line_num}", fields, group_ids)
            if group_id in found:
                found[group_id][partition] = offset
    except csv.Error as wrong:
        raise CommandFailed(f"{path}:{reader.line_num}: {wrong}", MISSING) from None
    return found


def _record(place: str, fields: list[str], group_ids: Sequence[str]) -> tuple[str, TopicPartition, int]:
    if len(fields) == 3 and len(group_ids) == 1:
        fields = [group_ids[0], *fields]
    if len(fields) != 4:
        wanted = "topic,partition,offset, with the group before them in a file for several groups"
        raise CommandFailed(f"{place}: expected {wanted}; got {','.join(fields)!r}", MISSING)
    group_id, (topic, partition, offset) = fields[0], (field.strip() for field in fields[1:])
    if group_id not in group_ids:
        group_id = group_id.strip()
    index, at = _number(place, "partition", partition, INT32), _number(place, "offset", offset, INT64)
    return group_id, TopicPartition(topic, index), at


def _number(place: str, what: str, text: str, maximum: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= maximum):
        raise CommandFailed(f"{place}: the {what} is a number from 0 to {maximum}, got {text!r}", MISSING)
    return int(text)


def reset_file_text(offsets: Mapping[str, Mapping[TopicPartition, int]], *, name_groups: bool) -> str:
    """Return the content of a file with these offsets by group, whose lines name the group or not."""
    out = io.StringIO()
    plain = csv.writer(out, lineterminator="\n")
    quoting = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    for group_id, by_partition in offsets.items():
        writer = plain if group_id.isprintable() and group_id == group_id.strip() else quoting
        for partition in sorted(by_partition):
            row = (partition.topic, partition.partition, by_partition[partition])
            writer.writerow((group_id, *row) if name_groups else row)
    return out.getvalue()
