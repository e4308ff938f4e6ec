"""The encoding of message sets (magic 0 and 1), for brokers and consumers from before Kafka 0.11."""

import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from ..errors import UnsupportedVersion, UsageError
from ..types import Header, TimestampType
from . import layout
from .compression import Codec, compress
from .interfaces import DEFAULT_INFLATE_LIMIT, AnyBatch, AnyReader
from .lz4_frames import with_old_checksum

__all__ = ("Content", "down_convert", "encode_message_set")

Content: TypeAlias = tuple[int, bytes | None, bytes | None, Sequence[Header]]
"""A record's timestamp (ms since the epoch, -1 for none), key, value and headers, as in ``BatchBuilder.append``."""

_SINCE = {0: "0.8 and 0.9", 1: "0.10"}


def encode_message_set(
    records: Iterable[Content],
    magic: int,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    *,
    offsets: Iterable[int] | None = None,
    log_append_time: int | None = None,
) -> bytes:
    """Encode records as a sequence of messages, or with a codec as one message that wraps them.

    A producer omits ``offsets`` and ``log_append_time``: offsets are then 0, 1, 2, ..., and records keep their
    timestamps. A broker passes ascending offsets and, for a topic with LogAppendTime, its time (ms since the epoch).
    Magic 0 drops timestamps. Inside a wrapper of magic 1, offsets are relative to the first record's (KIP-31); the
    wrapper has the last record's offset.

    Raises:
        UnsupportedVersion: a record has headers, or the format does not support the codec.
        UsageError: there are no records, offsets do not ascend or do not match the records, or the magic is invalid.
        ConfigError: the codec does not have the level.

    An argument of a wrong type, or a timestamp of more than 64 bits, raises Python's own error.
    """
    _check_format(magic, codec)
    contents = list(records)
    given = list(range(len(contents))) if offsets is None else list(offsets)
    _check_offsets(given, len(contents))
    flags = layout.LOG_APPEND_TIME if magic and log_append_time is not None else 0
    first = given[0] if codec is not Codec.NONE and magic else 0
    newest, messages = -1, []
    for index, (offset, (timestamp, key, value, headers)) in enumerate(zip(given, contents, strict=True)):
        if headers:
            raise _no_headers(f"record {index}", magic)
        if log_append_time is not None:
            timestamp = log_append_time
        newest = max(newest, timestamp)
        messages.append(_message(offset - first, magic, flags, timestamp, key, value))
    body = b"".join(messages)
    if codec is Codec.NONE:
        return body
    packed = compress(codec, body, level)
    if codec is Codec.LZ4 and not magic:
        packed = with_old_checksum(packed)
    return _message(given[-1], magic, flags | codec, newest, None, packed)


def down_convert(
    batch: AnyBatch,
    magic: int,
    *,
    lossy: bool = False,
    from_offset: int = 0,
    level: int | None = None,
    limit: int = DEFAULT_INFLATE_LIMIT,
    check_crcs: bool = True,
    without: Collection[Header] = (),
) -> bytes:
    """Convert a batch to format ``magic``, with the same offsets and codec; a batch of an older format is unchanged.

    Producers convert without ``lossy``: no data is lost, except for the timestamps with magic 0. With ``lossy``, which
    is for old consumers, batches are converted as by Kafka's brokers: control batches and headers are dropped, and
    records of transactions become plain records. In both cases, an uncompressed batch's records before ``from_offset``
    are dropped, since old clients do not skip them, and so are the headers in ``without``. If no records remain, the
    result is ``b""``.

    Raises:
        UnsupportedVersion: the batch uses zstd; or, without ``lossy``, it is idempotent, transactional or has headers.
        UsageError: the magic is invalid.
        CorruptBatch: see :meth:`~aiokafkawire.records.batch.RecordBatch.prepare`.
    """
    header = batch.header
    if header.magic <= magic:
        return bytes(batch.view)
    _check_format(magic, header.codec)
    if header.is_control and lossy:
        return b""
    if not lossy:
        _check_producer(batch, magic)
    start = 0 if header.codec else from_offset
    reader: AnyReader[bytes, bytes] = batch.records("", -1, from_offset=start, check_crcs=check_crcs, limit=limit)
    contents: list[Content] = []
    offsets: list[int] = []
    for record in reader:
        if not lossy and any(header not in without for header in record.headers):
            raise _no_headers(f"the record at offset {record.offset}", magic)
        contents.append((record.timestamp, record.raw_key, record.raw_value, ()))
        offsets.append(record.offset)
    if not contents:
        return b""
    by_broker = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    time = header.max_timestamp if by_broker else None
    return encode_message_set(contents, magic, Codec(header.codec), level, offsets=offsets, log_append_time=time)


def _message(offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
    covered = b"".join(
        (
            bytes((magic, attributes)),
            layout.INT64.pack(timestamp) if magic else b"",
            layout.INT32.pack(-1 if key is None else len(key)),
            key or b"",
            layout.INT32.pack(-1 if value is None else len(value)),
            value or b"",
        )
    )
    length = layout.UINT32.size + len(covered)
    return layout.MESSAGE_FRAME.pack(offset, length, zlib.crc32(covered)) + covered


def _check_format(magic: int, codec: int) -> None:
    if magic not in _SINCE:
        raise UsageError(f"a message set has magic 0 or 1, not {magic}")
    if codec == Codec.ZSTD:
        raise UnsupportedVersion(
            f"message format v{magic}, of Kafka {_SINCE[magic]}, does not support zstd, which needs Kafka 2.1"
            " (KIP-110): set compression_type to gzip, snappy or lz4"
        )


def _check_offsets(offsets: Sequence[int], count: int) -> None:
    if not count:
        raise UsageError("a message set without records cannot be built")
    if len(offsets) != count:
        raise UsageError(f"{len(offsets)} offsets for {count} records")
    previous = -1
    for offset in offsets:
        if not previous < offset < layout.LAST_OFFSET:
            raise UsageError(f"offsets must ascend from 0, got {offset} after {previous}")
        previous = offset


def _check_producer(batch: AnyBatch, magic: int) -> None:
    header = batch.header
    what = None
    if header.is_control:
        what = "control batches"
    elif header.is_transactional:
        what = "transactions"
    elif header.producer_id >= 0:
        what = "idempotence"
    if what is not None:
        raise UnsupportedVersion(
            f"message format v{magic}, of Kafka {_SINCE[magic]}, does not support {what}, which need Kafka 0.11"
            " (KIP-98): produce without idempotence and transactions, or to newer brokers"
        )


def _no_headers(which: str, magic: int) -> UnsupportedVersion:
    return UnsupportedVersion(
        f"{which} has headers, which need Kafka 0.11 (KIP-82); message format v{magic}, of Kafka {_SINCE[magic]},"
        " does not support them: leave them out, or produce to newer brokers"
    )
