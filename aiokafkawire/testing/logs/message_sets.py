"""Conversion between batches and message sets, the format before Kafka 0.11, for old producers and old consumers.

Logs contain v2 batches only, as with ``log.message.format.version`` 0.11 or later.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from ...errors import CorruptBatch, ErrorCode, UnsupportedVersion
from ...protocol.primitives import Buffer
from ...records import layout
from ...records.batch import AnyBatch, AnyReader, BatchBuilder, ConsumerRecord, split
from ...records.compression import Codec
from ...records.message_set_writer import down_convert
from ..cluster.api_error import ApiError

__all__ = ("BATCHES_FETCHED_SINCE", "BATCHES_PRODUCED_SINCE", "down_converted", "up_converted")

BATCHES_PRODUCED_SINCE: Final = 3
"""The first version of Produce with v2 batches."""
BATCHES_FETCHED_SINCE: Final = 4
"""The first version of Fetch with v2 batches."""

_MAGIC_1_SINCE: Final = 2  # of Fetch; responses of older versions have magic 0
_UNBOUNDED: Final = 1 << 31


def up_converted(records: Buffer | None) -> Buffer | None:
    """Convert one partition's messages in a Produce request below v3 to a v2 batch; None if no message is complete.

    A v2 batch, which such a request should not contain, is returned unchanged.

    Raises:
        ApiError: CORRUPT_MESSAGE or INVALID_RECORD.
    """
    try:
        sets = list(split(memoryview(records or b"")))
        for batch in sets:
            batch.check()
    except CorruptBatch as damage:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, reason=str(damage)) from damage
    if not sets:
        return None
    if sets[0].header.magic == layout.MAGIC:
        return records
    codec = _common_codec(sets)
    builder = BatchBuilder(limit=_UNBOUNDED, codec=codec)
    try:
        for batch in sets:
            _check_inside(batch)
        for record in _records(sets, check_crcs=False):
            builder.append(record.timestamp, record.raw_key, record.raw_value)
    except CorruptBatch as damage:
        raise _invalid(str(damage)) from damage
    try:
        for _ in _records(sets, check_crcs=True):
            pass
    except CorruptBatch as damage:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, reason=str(damage)) from damage
    return builder.build()


def down_converted(records: bytes, version: int, from_offset: int, *, exact: bool) -> bytes:
    """Convert batches to message sets for a Fetch request below v4: with magic 0 for v0 and v1, magic 1 for v2 and v3.

    With ``exact``, as in brokers since 2.0 (KIP-283), the result is as long as ``records`` or, if that is longer, as
    the first converted batch. A longer result is truncated; a shorter one is padded with the start of an incomplete
    message, which clients ignore. The result ends before a batch that uses zstd.

    Raises:
        ApiError: UNSUPPORTED_COMPRESSION_TYPE, the first batch uses zstd.
    """
    magic = 1 if version >= _MAGIC_1_SINCE else 0
    parts: list[bytes] = []
    for batch in split(memoryview(records)):
        try:
            part = down_convert(batch, magic, lossy=True, from_offset=from_offset)
        except UnsupportedVersion as fault:
            if parts:
                break
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason=str(fault)) from fault
        if part:
            parts.append(part)
    converted = b"".join(parts)
    if not exact or not records:
        return converted
    size = max(len(records), len(parts[0]) if parts else 0)
    missing = size - len(converted)
    if missing <= 0:
        return converted[:size]
    endless = layout.INT64.pack(-1) + layout.INT32.pack(max(missing + 1, layout.HEADER_SIZE))
    return converted + endless.ljust(missing, b"\0")[:missing]


def _common_codec(sets: Sequence[AnyBatch]) -> Codec:
    if any(batch.header.magic != sets[0].header.magic for batch in sets):
        raise _invalid("messages of several formats")
    codec = sets[0].header.codec
    if any(batch.header.codec for batch in sets) and len(sets) > 1:
        raise _invalid("more than one message although one is compressed")
    if codec not in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        raise _invalid(f"codec {codec}, which message sets do not support")
    return Codec(codec)


def _check_inside(batch: AnyBatch) -> None:
    """Check that the messages inside a compressed message have the same format and are not compressed themselves."""
    if batch.header.codec:
        body, position = batch.prepare(), 0
        while position < len(body):
            _, length, _, magic, attributes, _ = layout.MESSAGE.unpack_from(body, position)
            if magic != batch.header.magic or attributes & layout.CODEC_MASK:
                raise _invalid(f"a message inside a compressed one has magic {magic} and attributes {attributes}")
            position += layout.LOG_OVERHEAD + length


def _records(sets: Sequence[AnyBatch], *, check_crcs: bool) -> Iterator[ConsumerRecord[bytes, bytes]]:
    for batch in sets:
        reader: AnyReader[bytes, bytes] = batch.records("", -1, check_crcs=check_crcs)
        yield from reader


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, reason=reason)
