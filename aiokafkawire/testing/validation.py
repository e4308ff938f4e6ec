"""What a broker demands of the records it is sent, check by check, in the order that Kafka makes them."""

from typing import Final

from ..errors import CorruptBatch, ErrorCode
from ..protocol.primitives import Buffer
from ..records import layout
from ..records.batch import BatchHeader, RecordBatch, RecordReader
from ..records.compression import Codec
from .refused import Refused

__all__ = ("validated",)

_ZSTD_SINCE: Final = 7  # the first version of Produce that may carry zstd (KIP-110)


def validated(records: Buffer | None, version: int, *, max_bytes: int, newest_timestamp: int) -> RecordBatch:
    """The one batch of a Produce request in ``version``, all of it checked.

    Args:
        records: as they came.
        version: of the request.
        max_bytes: how large the batch may be, header and all.
        newest_timestamp: how late its records may be (ms since the epoch).

    Raises:
        Refused: the error that Kafka gives.
    """
    batch = _only_batch(memoryview(records or b""), version)
    header = batch.header
    if header.base_offset != 0:
        raise Refused(ErrorCode.INVALID_RECORD, f"The base offset is {header.base_offset}, 0 is due")
    if header.size > max_bytes:
        raise Refused(ErrorCode.MESSAGE_TOO_LARGE)
    try:
        batch.check()
    except CorruptBatch as damage:
        raise Refused(ErrorCode.CORRUPT_MESSAGE) from damage
    _check_header(header)
    _check_records(batch, newest_timestamp)
    return batch


def _only_batch(view: memoryview, version: int) -> RecordBatch:
    size = _whole_batch(view)
    if size is None:
        raise _not_allowed(version, "must have at least one record batch per partition")
    if view[layout.MAGIC_AT] != layout.MAGIC:
        raise _not_allowed(version, "are only allowed to contain record batches with magic version 2")
    try:
        batch = RecordBatch.parse(view[:size])
    except CorruptBatch as damage:
        raise Refused(ErrorCode.INVALID_RECORD, str(damage)) from damage
    if version < _ZSTD_SINCE and batch.header.codec == Codec.ZSTD:
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if _whole_batch(view[size:]) is not None:
        raise _not_allowed(version, "are only allowed to contain exactly one record batch per partition")
    return batch


def _whole_batch(view: memoryview) -> int | None:
    """The size of the batch or message there, of any format; None if it is not whole."""
    if len(view) <= layout.MAGIC_AT:
        return None
    length = int(layout.INT32.unpack_from(view, layout.LENGTH_AT)[0])
    if length < layout.SHORTEST_MESSAGE or view[layout.MAGIC_AT] > layout.MAGIC:
        raise Refused(ErrorCode.CORRUPT_MESSAGE)
    size = layout.LOG_OVERHEAD + length
    return size if size <= len(view) else None


def _check_header(header: BatchHeader) -> None:
    if header.count <= 0:
        fault = f"Invalid reported count for record batch: {header.count}"
    elif header.count != header.last_offset_delta + 1:
        fault = f"Inconsistent batch offset range: {header.count} records, last offset delta {header.last_offset_delta}"
    elif header.is_control:
        fault = "Clients are not allowed to write control records"
    elif header.producer_id >= 0 and header.base_sequence < 0:
        fault = f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id}"
    elif header.attributes & layout.LOG_APPEND_TIME:
        fault = "Only a broker may set the timestamp type LogAppendTime"
    else:
        if header.is_transactional:
            raise Refused(ErrorCode.INVALID_TXN_STATE)
        return
    raise Refused(ErrorCode.INVALID_RECORD, fault)


def _check_records(batch: RecordBatch, newest_timestamp: int) -> None:
    late: list[tuple[int, str]] = []
    try:
        # Every record is walked, as Kafka does: what is not readable must not get into a log.
        records: RecordReader[bytes, bytes] = batch.records("", -1, check_crcs=False)
        for index, record in enumerate(records):
            if record.timestamp > newest_timestamp:
                late.append((index, f"Timestamp {record.timestamp} is later than {newest_timestamp}"))
    except CorruptBatch as damage:
        raise Refused(ErrorCode.INVALID_RECORD, str(damage)) from damage
    if late:
        reason = "One or more records have been rejected due to invalid timestamp"
        raise Refused(ErrorCode.INVALID_TIMESTAMP, reason, tuple(late))


def _not_allowed(version: int, what: str) -> Refused:
    return Refused(ErrorCode.INVALID_RECORD, f"Produce requests with version {version} {what}")
