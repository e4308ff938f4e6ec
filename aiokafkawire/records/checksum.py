"""CRC32C, the checksum of record batches v2."""

from ..protocol.primitives import Buffer

__all__ = ("crc32c",)


def crc32c(data: Buffer, start: int = 0) -> int:
    """The checksum of ``data``, going on from that of what came before it."""
    # Imported with the first batch: loading it costs a tenth of the package's import time.
    from crc32c import crc32c as compute

    return compute(data, start)
