"""What becomes of old records: compaction keeps the newest of each key, retention drops what is too old or too much.

Apache Kafka cleans whole segments, now and then, and leaves the newest alone. Here it is done when a test says so,
every batch is a segment, and none is left alone: a test need not fill a segment to see a gap.
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
    """What decides whether a record stays."""

    offset: int
    key: bytes | None
    has_value: bool
    timestamp: int


def compact(log: PartitionLog, *, keep_tombstones: bool = True) -> bool:
    """Keep the newest record of each key, below the last stable offset; whether anything has changed.

    What stays has the offset it had. Records of aborted transactions and records without keys go, markers stay.
    Without ``keep_tombstones`` the records go that delete a key, as they do after ``delete.retention.ms``.
    """
    end = log.last_stable_offset
    batches = list(log.batches())
    cleanable = [batch for batch in batches if batch.header.next_offset <= end]
    aborted = _aborted(cleanable)
    newest: dict[bytes, int] = {}
    for batch in cleanable:
        if not batch.header.is_control and batch.header.base_offset not in aborted:
            newest.update((record.key, record.offset) for record in _records(batch) if record.key is not None)
    last_of = {batch.header.producer_id: batch.header.base_offset for batch in batches}
    stored: list[bytes | memoryview] = []
    for batch in batches:
        header = batch.header
        if header.next_offset > end or header.is_control:
            stored.append(batch.view)
            continue
        records = _records(batch)
        keep = [
            header.base_offset not in aborted
            and one.key is not None
            and newest[one.key] == one.offset
            and (one.has_value or keep_tombstones)
            for one in records
        ]
        # The last batch of a producer stays, empty: a new leader learns the sequence from it.
        if any(keep) or (header.producer_id >= 0 and last_of[header.producer_id] == header.base_offset):
            stored.append(batch.view if all(keep) else _without(batch, keep, records))
    changed = [bytes(batch) for batch in stored] != [bytes(batch.view) for batch in batches]
    if changed:
        log.rewrite(stored)
    return changed


def expire(log: PartitionLog, *, now: int, retention_ms: int, retention_bytes: int) -> bool:
    """Drop the oldest batches that are too old, and those that are too much; whether any went. -1 is no limit.

    What is not replicated yet stays. Times are in ms since the epoch.
    """
    start = log.log_start_offset
    size = log.size
    expired = True
    for batch in log.batches():
        header = batch.header
        # Without a time it counts as old as the file, which was written just now.
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
    return [_Record(one.offset, one.key, one.value is not None, one.timestamp) for one in records]


def _aborted(batches: Iterable[RecordBatch]) -> set[int]:
    """The base offsets of the batches whose transactions were aborted."""
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
    """The batch with fewer records, which keep their offsets and times: both count from those of the batch."""
    header = batch.header
    newest = max((one.timestamp for one, keeps in zip(records, keep, strict=True) if keeps), default=-1)
    body = batch.prepare(check_crcs=False)
    kept: list[memoryview] = []
    position = 0
    for keeps in keep:
        length, begin = read_varint(body, position)
        end = begin + length
        if keeps:
            kept.append(body[position:end])
        position = end
    left = compress(Codec(header.codec), b"".join(kept)) if kept else b""
    head = bytearray(batch.view[: layout.HEADER_SIZE])
    layout.INT64.pack_into(head, layout.MAX_TIMESTAMP_AT, newest)
    layout.INT32.pack_into(head, layout.COUNT_AT, len(kept))
    return sealed(head, left)
