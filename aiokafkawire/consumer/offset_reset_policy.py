"""The start of partitions without a position, by ``auto_offset_reset``."""

from typing import TypeAlias

import attrs

from ..config import duration_ms
from ..types import OffsetSpec

__all__ = ("DurationReset", "Start", "parse_reset_policy", "resolve_start")


@attrs.frozen
class DurationReset:
    """Start at the first record of the last ``ms`` milliseconds, counted from the lookup (KIP-1106)."""

    ms: int


Start: TypeAlias = OffsetSpec | DurationReset
"""Where to start; ListOffsets returns the offset."""

_NAMED = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST}


def parse_reset_policy(policy: str) -> Start | None:
    """Parse a valid ``auto_offset_reset``; return None for ``"none"``."""
    ms = duration_ms(policy)
    return DurationReset(ms) if ms is not None else _NAMED.get(policy)


def resolve_start(start: Start, wall_ms: int) -> OffsetSpec:
    """Return the spec to look up now; ``wall_ms`` is the time in ms since the epoch."""
    return OffsetSpec.at(max(0, wall_ms - start.ms)) if isinstance(start, DurationReset) else start
