"""Log cleaning: compaction keeps the newest record of each key, retention deletes records by age and size.

Apache Kafka regularly cleans all segments except the newest one. In this broker a test starts the cleaning, and each
batch, even the newest one, is treated as a segment, so that a test need not fill a segment to see a gap. The last batch
of the log stays, even if empty: a reader could not reach the end of the log without it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ...records import layout
from ...records.batch import RecordBatch, RecordReader, sealed
from ...records.compression import Codec, compress
from ...records.varint import read_varint
from .end_marker import EndMarker
from .log import PartitionLog

__all__ = ("compact", "expire")


class _Record(NamedTuple):
    """The properties of a record that decide whether compaction keeps it."""

    offset: int
    key: bytes | None
    has_value: bool
    timestamp: int


def compact(log: PartitionLog, *, keep_tombstones: bool = True) -> bool:
    """Keep only the newest record of each key in the part of the log below the last stable offset.

    Return whether anything changed. Offsets stay the same. Records of aborted transactions and records without keys
    are removed, markers stay. Without ``keep_tombstones`` tombstones are removed, as after ``delete.retention.ms``.
    """
    end = log.last_stable_offset
    batches = list(log.batches())
    cleanable = [batch for batch in batches if batch.header.next_offset <= end]
    aborted = _aborted(cleanable)
    newest: dict[bytes, int] = {}
    for batch in cleanable:
        if not batch.header.is_control and batch.header.base_offset not in aborted:
            newest.update((record.key, record.offset) for record in _records(batch) if record.key is not None)
    data = [batch.header for batch in batches if not batch.header.is_control]
    last_of = {header.producer_id: header.base_offset for header in data}
    stored: list[bytes | memoryview] = []
    for batch in batches:
        header = batch.header
        if header.next_offset > end or header.is_control:
            stored.append(batch.view)
            continue
        records = _records(batch)
        keep = [
            header.base_offset not in aborted
            and record.key is not None
            and newest[record.key] == record.offset
            and (record.has_value or keep_tombstones)
            for record in records
        ]
        # The last batch of a producer stays, even if empty: a new leader reads the sequence number from it.
        is_last_of_producer = header.producer_id >= 0 and last_of[header.producer_id] == header.base_offset
        if any(keep) or is_last_of_producer or batch is batches[-1]:
            stored.append(batch.view if all(keep) else _without(batch, keep, records))
    changed = [bytes(batch) for batch in stored] != [bytes(batch.view) for batch in batches]
    if changed:
        log.rewrite(stored)
    return changed


def expire(log: PartitionLog, *, now: int, retention_ms: int, retention_bytes: int) -> bool:
    """Delete the oldest batches beyond the limits of age and size; return whether any was deleted. -1 means no limit.

    Batches above the high watermark are kept. ``now`` is in ms since the epoch.
    """
    start = log.log_start_offset
    size = log.size
    expired = True
    for batch in log.batches():
        header = batch.header
        # The age of a batch without a timestamp is its file's age in Kafka; here it is 0, since there are no files.
        expired = expired and header.max_timestamp >= 0 and 0 <= retention_ms < now - header.max_timestamp
        too_much = 0 <= retention_bytes <= size - header.size
        if not (expired or too_much) or header.next_offset > log.high_watermark:
            break
        size -= header.size
        start = header.next_offset
    if start == log.log_start_offset:
        return False
    log.delete_before(start)
    return True


def _records(batch: RecordBatch) -> list[_Record]:
    records: RecordReader[bytes, bytes] = batch.records("", 0, check_crcs=False)
    return [_Record(record.offset, record.key, record.value is not None, record.timestamp) for record in records]


def _aborted(batches: Iterable[RecordBatch]) -> set[int]:
    """Return the base offsets of the batches of aborted transactions."""
    aborted: set[int] = set()
    open_batches: dict[int, list[int]] = {}
    for batch in batches:
        header = batch.header
        if header.is_control:
            of_transaction = open_batches.pop(header.producer_id, [])
            if not EndMarker(batch).commit:
                aborted.update(of_transaction)
        elif header.is_transactional:
            open_batches.setdefault(header.producer_id, []).append(header.base_offset)
    return aborted


def _without(batch: RecordBatch, keep: list[bool], records: list[_Record]) -> bytes:
    """Return the batch with only the records for which ``keep`` is True, at the same offsets and timestamps."""
    header = batch.header
    head = bytearray(batch.view[: layout.HEADER_SIZE])
    layout.INT32.pack_into(head, layout.COUNT_AT, sum(keep))
    if not any(keep):
        # As in Kafka, an empty batch is not compressed, and keeps its time, by which retention deletes it.
        layout.INT16.pack_into(head, layout.ATTRIBUTES_AT, header.attributes & ~layout.CODEC_MASK)
        return sealed(head, b"")
    newest = max(record.timestamp for record, keeps in zip(records, keep, strict=True) if keeps)
    body = batch.prepare(check_crcs=False)
    kept: list[memoryview] = []
    position = 0
    for keeps in keep:
        length, begin = read_varint(body, position)
        end = begin + length
        if keeps:
            kept.append(body[position:end])
        position = end
    layout.INT64.pack_into(head, layout.MAX_TIMESTAMP_AT, newest)
    return sealed(head, compress(Codec(header.codec), b"".join(kept)))
