"""Message sets, the batch format of brokers older than Kafka 0.11, which have no record batches (KIP-98).

Produce v0 and v1 (0.8, 0.9) carry message sets of magic 0, without timestamps; Produce v2 (0.10) those of magic 1.
"""

from collections.abc import Collection
from typing import Final

from ..errors import UnsupportedVersion
from ..protocol.schema import Versions
from ..records.batch import BatchBuilder, split
from ..records.compression import Codec
from ..types import Header

__all__ = ("FIRST_WITH_BATCHES", "NEWEST_MAGIC", "as_message_set", "check_codec", "magic_of")

NEWEST_MAGIC: Final = 2
FIRST_WITH_BATCHES: Final = 3
"""The first version of Produce with record batches."""
_FIRST_WITH_MAGIC_1: Final = 2
_FIRST_WITH_ZSTD: Final = 7
_BEFORE_LZ4: Final = ("0.8.0", "0.8.1")


def magic_of(version: int) -> int:
    """Return the magic number of the record format that a version of Produce carries."""
    return 2 if version >= FIRST_WITH_BATCHES else 1 if version >= _FIRST_WITH_MAGIC_1 else 0


def check_codec(codec: Codec, supported: Versions, broker: str, release: str | None = None) -> None:
    """Refuse a codec that the broker cannot read.

    Args:
        codec: the codec of the batches.
        supported: the versions of Produce that the broker supports.
        broker: the broker's name, for the error.
        release: the broker's release; None if the broker supports ApiVersions.

    Raises:
        UnsupportedVersion: the broker does not know the codec.
    """
    before_lz4 = release in _BEFORE_LZ4
    usable = "gzip or snappy" if before_lz4 else "gzip, snappy or lz4"
    if codec is Codec.ZSTD and supported.last < _FIRST_WITH_ZSTD:
        raise UnsupportedVersion(
            f"{broker} speaks Produce {supported}, and zstd came with v{_FIRST_WITH_ZSTD}, in Kafka 2.1 (KIP-110): set "
            f"compression_type to {usable}"
        )
    if codec is Codec.LZ4 and before_lz4:
        raise UnsupportedVersion(
            f"{broker} is a broker of Kafka {release}, and lz4 came with Kafka 0.8.2: set compression_type to {usable}"
        )


def as_message_set(
    builder: BatchBuilder, magic: int, *, transactional: bool, without: Collection[Header] = ()
) -> bytes:
    """Return the batch as a message set, without a sequence number and without the headers ``without``.

    Raises:
        UnsupportedVersion: a record has other headers, the batch is transactional, or the format does not support the
            codec.
    """
    from ..records.message_set_writer import down_convert  # imported late: few brokers are so old

    (batch,) = split(memoryview(builder.build(transactional=transactional)), "a batch to be sent")
    return down_convert(batch, magic, level=builder.level, without=without)
