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


def magic_of(version: int) -> int:
    """The format of what Produce carries in a version."""
    return 2 if version >= _MAGIC_2 else 1 if version >= _MAGIC_1 else 0


def check_codec(codec: Codec, spoken: Versions, where: str) -> None:
    """Refuse what a broker could not read.

    Raises:
        UnsupportedVersion: it speaks none of the versions of Produce that carry the codec.
    """
    if codec is Codec.ZSTD and spoken.last < _ZSTD:
        raise UnsupportedVersion(
            f"{where} speaks Produce {spoken}, and zstd came with v{_ZSTD}, in Kafka 2.1 (KIP-110): set "
            "compression_type to gzip, snappy or lz4"
        )


def as_message_set(builder: BatchBuilder, magic: int, *, transactional: bool) -> bytes:
    """The batch as a message set, not numbered.

    Raises:
        UnsupportedVersion: a record has headers, it is of a transaction, or its codec is not known to the format.
    """
    from ..records.message_set_writer import down_convert  # few producers meet brokers as old

    (batch,) = split(memoryview(builder.build(transactional=transactional)), "a batch to be sent")
    return down_convert(batch, magic, level=builder.level)
