"""The offset at which to begin reading a partition without a position, as ``auto_offset_reset`` sets it."""

from typing import TypeAlias

import attrs

from ..config import duration_ms
from ..types import OffsetSpec

__all__ = ("DurationReset", "Start", "parse_reset_policy", "resolve_start")


@attrs.frozen
class DurationReset:
    """The policy to begin at the first record of the ``ms`` milliseconds before the lookup (KIP-1106)."""

    ms: int


Start: TypeAlias = OffsetSpec | DurationReset
"""The place to begin reading, such as the end of the log; its offset is looked up by ListOffsets."""

_NAMED = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST}


def parse_reset_policy(policy: str) -> Start | None:
    """Parse a valid ``auto_offset_reset``; return None for ``"none"``."""
    ms = duration_ms(policy)
    return DurationReset(ms) if ms is not None else _NAMED.get(policy)


def resolve_start(start: Start, wall_ms: int) -> OffsetSpec:
    """Return the spec to look up now; ``wall_ms`` is the current time in ms since 1970 (UTC)."""
    return OffsetSpec.at(max(0, wall_ms - start.ms)) if isinstance(start, DurationReset) else start
