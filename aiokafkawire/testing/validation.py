"""What a broker demands of the records it is sent, check by check, in the order that Apache Kafka makes them."""

from typing import Final

import crc32c

from ..errors import CorruptBatch, ErrorCode
from ..protocol.primitives import Buffer
from ..records import layout
from ..records.batch import BatchHeader, RecordBatch, RecordReader
from ..records.compression import Codec
from .refused import Refused

__all__ = ("only_batch", "validated")

_ZSTD_SINCE: Final = 7  # the first version of Produce that may carry zstd (KIP-110)
_LONGEST: Final = 2**63 - 1


def only_batch(records: Buffer | None, version: int) -> RecordBatch:
    """The one batch v2 that a Produce request in ``version`` must have for a partition, not yet looked into.

    Raises:
        Refused: there is none, more than one, one of another format, or one compressed as the version cannot.
    """
    view = memoryview(records or b"")
    size = _whole_batch(view)
    if size is None:
        raise _invalid("no record batch, one per partition is due")
    if view[layout.MAGIC_AT] != layout.MAGIC:
        raise _invalid(f"a record batch with magic {view[layout.MAGIC_AT]}, 2 is due")
    if size < layout.HEADER_SIZE:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, reason=f"a record batch of {size} bytes")
    batch = RecordBatch(BatchHeader(*layout.HEADER.unpack_from(view)), view[:size])
    if version < _ZSTD_SINCE and batch.header.codec == Codec.ZSTD:
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if _whole_batch(view[size:]) is not None:
        raise _invalid("more than one record batch, one per partition is due")
    return batch


def validated(batch: RecordBatch, *, max_bytes: int, now: int, after_max_ms: int) -> RecordBatch:
    """The batch as a topic with CreateTime keeps it, after every check.

    Args:
        batch: as it came.
        max_bytes: how large it may be, header and all.
        now: in ms since the epoch.
        after_max_ms: how much later than now its records may be.

    Raises:
        Refused: the error that Kafka gives.
    """
    header = batch.header
    if header.base_offset != 0:
        raise _invalid(f"the base offset is {header.base_offset}, 0 is due")
    if header.size > max_bytes:
        raise Refused(ErrorCode.MESSAGE_TOO_LARGE, reason=f"a batch of {header.size} bytes, {max_bytes} the most")
    try:
        batch.check()
    except CorruptBatch as damage:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, reason=str(damage)) from damage
    _check_header(header)
    if header.attributes & layout.LOG_APPEND_TIME:  # not for the producer to say
        batch = _restamped(batch, header.attributes & ~layout.LOG_APPEND_TIME, header.max_timestamp)
    newest = _check_records(batch, now, now + after_max_ms)
    # Searches by time trust the header, so the broker does not take the producer's word for it.
    return batch if newest == header.max_timestamp else _restamped(batch, batch.header.attributes, newest)


def _whole_batch(view: memoryview) -> int | None:
    """The size of the batch or message there, of any format; None if it is not whole."""
    if len(view) <= layout.MAGIC_AT:
        return None
    (length,) = layout.INT32.unpack_from(view, layout.LENGTH_AT)
    if length < layout.SHORTEST_MESSAGE:
        fault = f"Record size {length} is less than the minimum record overhead ({layout.SHORTEST_MESSAGE})"
        raise Refused(ErrorCode.CORRUPT_MESSAGE, fault)
    magic = view[layout.MAGIC_AT]
    if magic > layout.MAGIC:
        signed = magic - 256 if magic > 127 else magic
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {signed}")
    size = layout.LOG_OVERHEAD + int(length)
    return size if size <= len(view) else None


def _check_header(header: BatchHeader) -> None:
    if header.count <= 0:
        raise _invalid(f"it says that it has {header.count} records")
    if header.count != header.last_offset_delta + 1:
        raise _invalid(f"{header.count} records, and a last offset delta of {header.last_offset_delta}")
    if header.is_control:
        raise _invalid("clients may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid(f"the base sequence {header.base_sequence} with producer id {header.producer_id}")
    if header.is_transactional:
        raise Refused(ErrorCode.INVALID_TXN_STATE, reason="no transaction is open: there is no coordinator yet")


def _check_records(batch: RecordBatch, now: int, latest: int) -> int:
    """Walk every record, as Kafka does, since what cannot be read must not get into a log; the newest timestamp."""
    try:
        batch.prepare()
    except CorruptBatch as damage:
        # An exception that Kafka did not plan for, so its producer is not told that the records are at fault.
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, reason=str(damage)) from damage
    newest = -1
    late: list[tuple[int, str]] = []
    try:
        records: RecordReader[bytes, bytes] = batch.records("", 0, check_crcs=False)
        for index, record in enumerate(records):
            timestamp = record.timestamp
            if timestamp > newest:
                newest = timestamp
            if timestamp > latest:
                late.append((index, _too_late(index, timestamp, now, latest)))
    except CorruptBatch as damage:
        raise _invalid(str(damage)) from damage
    if late:
        reason = "One or more records have been rejected due to invalid timestamp"
        raise Refused(ErrorCode.INVALID_TIMESTAMP, reason, record_errors=tuple(late))
    return newest


def _too_late(index: int, timestamp: int, now: int, latest: int) -> str:
    return (
        f"Timestamp {timestamp} of message with offset {index} is out of range. "
        f"The timestamp should be within [{now - _LONGEST}, {latest}]"
    )


def _restamped(batch: RecordBatch, attributes: int, max_timestamp: int) -> RecordBatch:
    """A copy with other attributes and another highest timestamp, and the checksum that goes with them."""
    copy = bytearray(batch.view)
    layout.INT16.pack_into(copy, layout.ATTRIBUTES_AT, attributes)
    layout.INT64.pack_into(copy, layout.MAX_TIMESTAMP_AT, max_timestamp)
    with memoryview(copy) as view:
        checksum = crc32c.crc32c(view[layout.ATTRIBUTES_AT :])
    layout.UINT32.pack_into(copy, layout.CRC_AT, checksum)
    return RecordBatch.parse(memoryview(bytes(copy)))


def _invalid(reason: str) -> Refused:
    return Refused(ErrorCode.INVALID_RECORD, reason=reason)
