"""Both decoders, each by itself: decode() asks the pure one wherever the compiled one refuses."""

from functools import cache
from typing import Any

from aiokafkawire.errors import WireError
from aiokafkawire.protocol.compiler import DECODERS

Decoded = tuple[Any, int]


def pure(cls: Any, version: int, data: bytes, position: int = 0) -> Decoded | None:
    """What the pure decoder reads, and where it ends; None if it refuses."""
    try:
        return DECODERS["pure"](cls, version, data, position)
    except WireError:
        return None


def compiled(cls: Any, version: int, data: bytes, position: int = 0) -> Decoded | None:
    """What the compiled decoder reads, and where it ends; None if it refuses."""
    try:
        read: Decoded = _plan(cls, version).decode(data, position)
    except ValueError:
        return None
    return read


@cache
def _plan(cls: Any, version: int) -> Any:
    from aiokafkawire.protocol.decode_plan import plan_of

    return plan_of(cls, version)
