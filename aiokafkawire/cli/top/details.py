"""Reads what a group or a topic consists of, from the cluster."""

from collections.abc import Collection, Mapping
from typing import Final

import anyio

from ...admin.descriptions import GroupMember, ShareMemberDescription
from ...client import Client
from ...errors import KafkaError
from ...records.batch import ConsumerRecord
from ...types import OffsetSpec, TopicPartition
from .detail_rows import KEPT_BYTES, GroupDetails, RecordRow, newest_ranges, rows_of_lag, rows_of_members

__all__ = ("read_group", "read_newest_records")

_FETCH_BYTES: Final = 1024 * 1024
_PARTITION_BYTES: Final = 64 * 1024
_READ_BYTES: Final = 8 * 1024 * 1024
"""The number of bytes of keys and values after which reading stops."""
_HEADERS: Final = 50


async def read_group(kafka: Client, group_id: str, kind: str, *, timeout: float) -> GroupDetails:
    """Return the members of a group, and its partitions with their lag.

    Args:
        kafka: an open client.
        group_id: the group.
        kind: its type: "classic", "consumer", "share" or "streams". The members of streams groups are not returned.
        timeout: the limit for each call, in seconds.

    Raises:
        KafkaError: the group cannot be described.
    """
    admin = kafka.admin
    members: tuple[GroupMember, ...] | tuple[ShareMemberDescription, ...] = ()
    known_lag: dict[TopicPartition, int] = {}
    state: str | None = None
    if kind == "share":
        share = (await admin.describe_share_groups(group_id, timeout=timeout))[group_id]
        members, state = share.members, share.state
        offsets = await admin.list_share_group_offsets(group_id, timeout=timeout)
        committed = {key: known.start_offset for key, known in offsets.items() if known.start_offset is not None}
        known_lag = {key: known.lag for key, known in offsets.items() if known.lag is not None}
    elif kind == "streams":
        fetched = await admin.list_consumer_group_offsets(group_id, timeout=timeout)
        committed = {key: offset.offset for key, offset in fetched.items()}
    else:
        described = (await admin.describe_groups(group_id, timeout=timeout))[group_id]
        members, committed = described.members, {key: known.offset for key, known in described.offsets.items()}
        state = described.state
    ends = await _ends(kafka, {*committed, *(key for member in members for key in member.assignment)}, timeout)
    rows = rows_of_members(members) if kind != "streams" else None
    return GroupDetails(rows, rows_of_lag(committed, known_lag, ends, members), state)


async def _ends(kafka: Client, partitions: Collection[TopicPartition], timeout: float) -> dict[TopicPartition, int]:
    """Return the end offsets; none if a partition is gone, or its leader does not answer."""
    try:
        found = await kafka.admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST), timeout=timeout)
    except KafkaError:
        return {}
    return {partition: known.offset for partition, known in found.items() if known is not None}


async def read_newest_records(kafka: Client, topic: str, count: int, *, timeout: float) -> list[RecordRow]:
    """Return about ``count`` of the newest records of a topic, fewer if the timeout has passed or they are large.

    Args:
        kafka: an open client.
        topic: the topic.
        count: the number of records, at most one of each partition if there are as many partitions.
        timeout: the limit for each of the look-ups, and for reading, in seconds.

    Raises:
        KafkaError: the topic cannot be read.
    """
    described = await kafka.admin.describe_topic(topic, timeout=timeout)
    partitions = [
        TopicPartition(topic, partition.index) for partition in described.partitions if partition.leader is not None
    ]
    begins = await _offsets(kafka, partitions, OffsetSpec.EARLIEST, timeout)
    ends = await _offsets(kafka, partitions, OffsetSpec.LATEST, timeout)
    starts, stops = newest_ranges(begins, ends, count)
    rows: list[RecordRow] = []
    if not starts:
        return rows
    reader = kafka.read_records(
        topic,
        start=starts,
        end=stops,
        isolation_level="read_uncommitted",
        auto_offset_reset="earliest",
        fetch_max_bytes=_FETCH_BYTES,
        max_partition_fetch_bytes=_PARTITION_BYTES,
    )
    size = 0
    async with reader:
        with anyio.move_on_after(timeout):
            async for record in reader:
                rows.append(_row(record))
                size += rows[-1].key_size + rows[-1].value_size
                if size > _READ_BYTES:
                    break
    return rows


async def _offsets(
    kafka: Client, partitions: Collection[TopicPartition], spec: OffsetSpec, timeout: float
) -> Mapping[TopicPartition, int]:
    found = await kafka.admin.list_offsets(dict.fromkeys(partitions, spec), timeout=timeout)
    return {partition: known.offset for partition, known in found.items() if known is not None}


def _row(record: ConsumerRecord[bytes, bytes]) -> RecordRow:
    key, value = record.key, record.value
    return RecordRow(
        record.partition,
        record.offset,
        record.timestamp,
        _kept(key),
        _kept(value),
        len(key or b""),
        len(value or b""),
        tuple((name, _kept(content)) for name, content in record.headers[:_HEADERS]),
    )


def _kept(data: bytes | None) -> bytes | None:
    return None if data is None else bytes(data[:KEPT_BYTES])
