"""A broker's checks of produced records, in the order in which Apache Kafka makes them."""

from collections.abc import Iterator
from typing import Final

from ...errors import CorruptBatch, ErrorCode
from ...protocol.messages.produce import ProduceRequest
from ...protocol.primitives import Buffer
from ...records import layout
from ...records.batch import BatchHeader, ConsumerRecord, RecordBatch, RecordReader, sealed, set_log_append_time
from ...records.compression import Codec, compress
from ..cluster.api_error import ApiError
from .batch_rules import BatchRules

__all__ = ("first_headers", "only_batch", "validated")

_ZSTD_SINCE: Final = 7  # the first version of Produce that may carry zstd (KIP-110)
_NO_TIMESTAMP: Final = -1


def only_batch(records: Buffer | None, version: int) -> RecordBatch:
    """Return the single v2 batch for one partition of a Produce request of ``version``, without checking its content.

    Raises:
        ApiError: there is no batch, more than one, another format, or a codec that the version does not support.
    """
    view = memoryview(records or b"")
    size = _whole_batch(view)
    if size is None:
        raise _invalid("no record batch; each partition needs one")
    if view[layout.MAGIC_AT] != layout.MAGIC:
        raise _invalid(f"record batch with magic {view[layout.MAGIC_AT]}, expected 2")
    if size < layout.HEADER_SIZE:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, reason=f"record batch of {size} bytes is too short")
    batch = RecordBatch(BatchHeader(*layout.HEADER.unpack_from(view)), view[:size])
    if version < _ZSTD_SINCE and batch.header.codec == Codec.ZSTD:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if _whole_batch(view[size:]) is not None:
        raise _invalid("more than one record batch; each partition needs one")
    return batch


def first_headers(request: ProduceRequest) -> Iterator[BatchHeader]:
    """Yield the header of each partition's first batch, if it is a v2 batch with a complete header."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            view = memoryview(data.records or b"")
            if len(view) >= layout.HEADER_SIZE and view[layout.MAGIC_AT] == layout.MAGIC:
                yield BatchHeader(*layout.HEADER.unpack_from(view))


def validated(batch: RecordBatch, rules: BatchRules) -> RecordBatch:
    """Check a batch and return it as a topic with these rules stores it.

    Raises:
        ApiError: the batch is invalid; the code and message are Kafka's.
    """
    header = batch.header
    if header.base_offset != 0:
        raise _invalid(f"base offset {header.base_offset}, expected 0")
    _check_size(header, rules)
    try:
        batch.check()
    except CorruptBatch as damage:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, reason=str(damage)) from damage
    _check_header(header)
    claims = bool(header.attributes & layout.LOG_APPEND_TIME)
    if claims:  # the topic's setting decides on this flag, not the producer
        batch = _restamped(batch, header.attributes & ~layout.LOG_APPEND_TIME, header.max_timestamp)
    newest = _check_records(batch, rules, claims_append_time=claims)
    if rules.codec is not None and rules.codec != header.codec:
        batch = _recompressed(batch, rules.codec, rules.level)
        _check_size(batch.header, rules)
    if rules.log_append_time:
        return RecordBatch.parse(memoryview(set_log_append_time(batch.view, rules.now)))
    # Searches by time rely on the header, so the broker computes its maximum timestamp.
    return batch if newest == header.max_timestamp else _restamped(batch, batch.header.attributes, newest)


def _check_size(header: BatchHeader, rules: BatchRules) -> None:
    if header.size > rules.max_bytes:
        reason = f"batch of {header.size} bytes exceeds max.message.bytes ({rules.max_bytes})"
        raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, reason=reason)


def _whole_batch(view: memoryview) -> int | None:
    """Return the size of the first batch or message in any format; None if it is incomplete."""
    if len(view) <= layout.MAGIC_AT:
        return None
    (length,) = layout.INT32.unpack_from(view, layout.LENGTH_AT)
    if length < layout.SHORTEST_MESSAGE:
        fault = f"Record size {length} is less than the minimum record overhead ({layout.SHORTEST_MESSAGE})"
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, fault)
    magic = view[layout.MAGIC_AT]
    if magic > layout.MAGIC:
        signed = magic - 256 if magic > 127 else magic
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {signed}")
    size = layout.LOG_OVERHEAD + int(length)
    return size if size <= len(view) else None


def _check_header(header: BatchHeader) -> None:
    if header.count <= 0:
        raise _invalid(f"invalid record count {header.count}")
    if header.count != header.last_offset_delta + 1:
        raise _invalid(f"{header.count} records, but the last offset delta is {header.last_offset_delta}")
    if header.is_control:
        raise _invalid("clients may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid(f"invalid base sequence {header.base_sequence} with producer id {header.producer_id}")


def _check_records(batch: RecordBatch, rules: BatchRules, *, claims_append_time: bool) -> int:
    """Check every record, as Kafka does, so that the log stays readable; return the newest timestamp.

    ``claims_append_time`` means that the producer set LogAppendTime, which only brokers may set.
    """
    try:
        batch.prepare()
    except CorruptBatch as damage:
        # Kafka raises an unexpected exception here, so that the response does not mention the records.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, reason=str(damage)) from damage
    newest = -1
    earliest, latest = rules.now - rules.before_max_ms, rules.now + rules.after_max_ms
    keyless: list[tuple[int, str]] = []
    untimely: list[tuple[int, str]] = []
    try:
        records: RecordReader[bytes, bytes] = batch.records("", 0, check_crcs=False)
        for index, record in enumerate(records):
            timestamp = record.timestamp
            if timestamp > newest:
                newest = timestamp
            if rules.compacted and record.key is None:
                fault = f"Compacted topic cannot accept message without key in topic partition {rules.where}"
                keyless.append((index, fault))
            elif not rules.log_append_time and timestamp != _NO_TIMESTAMP:
                if not earliest <= timestamp <= latest:
                    untimely.append((index, _untimely(index, timestamp, earliest, latest)))
            elif claims_append_time:
                untimely.append((index, _claimed(record, batch.header.max_timestamp)))
    except CorruptBatch as damage:
        raise _invalid(str(damage)) from damage
    faults = tuple(sorted(keyless + untimely))
    if untimely:
        reason = "One or more records have been rejected due to invalid timestamp"
        raise ApiError(ErrorCode.INVALID_TIMESTAMP, reason, record_errors=faults)
    if keyless:
        raise ApiError(ErrorCode.INVALID_RECORD, _rejected(faults), record_errors=faults)
    return newest


def _claimed(record: ConsumerRecord[bytes, bytes], timestamp: int) -> str:
    key, value = (len(part or b"") for part in (record.key, record.value))
    return (
        f"Invalid timestamp type in message DefaultRecord(offset={record.offset}, timestamp={timestamp}, "
        f"key={key} bytes, value={value} bytes). Producer should not set timestamp type to LogAppendTime."
    )


def _untimely(index: int, timestamp: int, earliest: int, latest: int) -> str:
    return (
        f"Timestamp {timestamp} of message with offset {index} is out of range. "
        f"The timestamp should be within [{earliest}, {latest}]"
    )


def _rejected(faults: tuple[tuple[int, str], ...]) -> str:
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{message}')" for index, message in faults[:3])
    return (
        f"One or more records have been rejected due to {len(faults)} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]"
    )


def _recompressed(batch: RecordBatch, codec: Codec, level: int | None) -> RecordBatch:
    """Return the batch compressed with ``codec``, at the given level or the default one."""
    header = batch.header
    body = compress(codec, batch.prepare(check_crcs=False), level)
    head = bytearray(batch.view[: layout.HEADER_SIZE])
    layout.INT16.pack_into(head, layout.ATTRIBUTES_AT, header.attributes & ~layout.CODEC_MASK | codec)
    return RecordBatch.parse(memoryview(sealed(head, body)))


def _restamped(batch: RecordBatch, attributes: int, max_timestamp: int) -> RecordBatch:
    """Return a copy with other attributes, another maximum timestamp and the new checksum."""
    head = bytearray(batch.view[: layout.HEADER_SIZE])
    layout.INT16.pack_into(head, layout.ATTRIBUTES_AT, attributes)
    layout.INT64.pack_into(head, layout.MAX_TIMESTAMP_AT, max_timestamp)
    return RecordBatch.parse(memoryview(sealed(head, batch.view[layout.HEADER_SIZE :])))


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, reason=reason)
