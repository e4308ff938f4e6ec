"""Batches for brokers from before record batches (Kafka 0.11, KIP-98): which format they take, and batches in it.

Produce v0 and v1 (0.8, 0.9) carry message sets of magic 0, which have no timestamps; v2 (0.10) those of magic 1.
"""

from typing import Final

from ..errors import UnsupportedVersion
from ..protocol.schema import Versions
from ..records.batch import BatchBuilder, split
from ..records.compression import Codec

__all__ = ("NEWEST_MAGIC", "as_message_set", "check_codec", "magic_of")

NEWEST_MAGIC: Final = 2
_MAGIC_1: Final = 2
_MAGIC_2: Final = 3
_ZSTD: Final = 7
_BEFORE_LZ4: Final = ("0.8.0", "0.8.1")


def magic_of(version: int) -> int:
    """The format of what Produce carries in a version."""
    return 2 if version >= _MAGIC_2 else 1 if version >= _MAGIC_1 else 0


def check_codec(codec: Codec, spoken: Versions, where: str, release: str | None = None) -> None:
    """Refuse what a broker could not read.

    Args:
        codec: what batches are compressed with.
        spoken: the versions of Produce that the broker speaks.
        where: the broker, as errors name it.
        release: which old release the broker is; None for one that tells its versions.

    Raises:
        UnsupportedVersion: the broker does not know the codec.
    """
    before_lz4 = release in _BEFORE_LZ4
    usable = "gzip or snappy" if before_lz4 else "gzip, snappy or lz4"
    if codec is Codec.ZSTD and spoken.last < _ZSTD:
        raise UnsupportedVersion(
            f"{where} speaks Produce {spoken}, and zstd came with v{_ZSTD}, in Kafka 2.1 (KIP-110): set "
            f"compression_type to {usable}"
        )
    if codec is Codec.LZ4 and before_lz4:
        raise UnsupportedVersion(
            f"{where} is a broker of Kafka {release}, and lz4 came with Kafka 0.8.2: set compression_type to {usable}"
        )


def as_message_set(builder: BatchBuilder, magic: int, *, transactional: bool) -> bytes:
    """The batch as a message set, not numbered.

    Raises:
        UnsupportedVersion: a record has headers, it is of a transaction, or its codec is not known to the format.
    """
    from ..records.message_set_writer import down_convert  # few producers meet brokers as old

    (batch,) = split(memoryview(builder.build(transactional=transactional)), "a batch to be sent")
    return down_convert(batch, magic, level=builder.level)
