"""CRC32C, the checksum of record batches v2."""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import cast

from ..protocol.primitives import Buffer

__all__ = ("crc32c",)

_compute: Callable[[Buffer, int], int] | None = None


def crc32c(data: Buffer, start: int = 0) -> int:
    """Compute the checksum of ``data``; ``start`` is the checksum of the bytes before ``data``, if there are any."""
    global _compute
    if _compute is None:
        _compute = _load()
    return _compute(data, start)


def _load() -> Callable[[Buffer, int], int]:
    """Return the library's function, from its extension alone: its package takes 25 ms to read its own version."""
    package = find_spec("crc32c")
    found = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations) if package else None
    if found is None or found.loader is None:  # a release that is built otherwise
        from crc32c import crc32c as compute

        return compute
    extension = module_from_spec(found)
    found.loader.exec_module(extension)
    return cast("Callable[[Buffer, int], int]", extension.crc32c)
