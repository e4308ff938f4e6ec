"""Where a partition begins that has no position: what ``auto_offset_reset`` says."""

from typing import TypeAlias

import attrs

from ..config import duration_ms
from ..types import OffsetSpec

__all__ = ("DurationReset", "Start", "reset_to", "spec_of")


@attrs.frozen
class DurationReset:
    """The first record of the last ``ms`` milliseconds, counted from when it is looked up (KIP-1106)."""

    ms: int


Start: TypeAlias = OffsetSpec | DurationReset
"""Where to begin; ListOffsets knows the offset."""

_NAMED = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST}


def reset_to(policy: str) -> Start | None:
    """What a valid ``auto_offset_reset`` means; None is ``"none"``."""
    ms = duration_ms(policy)
    return DurationReset(ms) if ms is not None else _NAMED.get(policy)


def spec_of(start: Start, wall_ms: int) -> OffsetSpec:
    """What to look up now; ``wall_ms`` is the time in ms since the epoch."""
    return OffsetSpec.at(max(0, wall_ms - start.ms)) if isinstance(start, DurationReset) else start
