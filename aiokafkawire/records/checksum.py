"""CRC32C, the checksum of record batches v2."""

from collections.abc import Callable

from ..protocol.primitives import Buffer

__all__ = ("crc32c",)

_compute: Callable[[Buffer, int], int] | None = None


def crc32c(data: Buffer, start: int = 0) -> int:
    """Compute the checksum of ``data``; ``start`` is the checksum of the bytes before ``data``, if there are any."""
    global _compute
    if _compute is None:
        # Imported with the first batch: loading this library takes a tenth of the package's import time.
        from crc32c import crc32c as compute

        _compute = compute
    return _compute(data, start)
