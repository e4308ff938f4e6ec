"""Which dead letters are to be replayed, and the headers with which they go back."""

from collections.abc import Iterable
from typing import Final

import attrs

from ...processing.failures import PREFIX, Failure
from ...types import Header

__all__ = ("REPLAYED_FROM", "Selection", "replayed_headers")

REPLAYED_FROM: Final = "aiokafkawire.replayed-from"
"""The header of a replayed record that names its dead letter as ``topic:partition:offset``."""


@attrs.frozen(kw_only=True)
class Selection:
    """The conditions that a dead letter must pass; without a condition all pass."""

    origins: frozenset[str] = frozenset()
    """The topics that it was first read from; all if empty."""
    errors: frozenset[str] = frozenset()
    """The types of its error, with or without their modules; all if empty."""
    since_ms: int | None = None
    """The earliest timestamp of the dead letter itself, in ms since the epoch."""
    until_ms: int | None = None
    """The timestamp before which it must be."""

    def has(self, failure: Failure, timestamp_ms: int) -> bool:
        """Return whether a dead letter with this failure and this timestamp passes."""
        if self.origins and failure.topic not in self.origins:
            return False
        if self.errors and self.errors.isdisjoint((failure.error, failure.error.rpartition(".")[2])):
            return False
        if self.since_ms is not None and timestamp_ms < self.since_ms:
            return False
        return self.until_ms is None or 0 <= timestamp_ms < self.until_ms


def replayed_headers(headers: Iterable[Header], topic: str, partition: int, offset: int) -> list[Header]:
    """Return the headers of a dead letter without those of its failure, and with one that names its place."""
    kept = [(name, value) for name, value in headers if not name.startswith(PREFIX) and name != REPLAYED_FROM]
    return [*kept, (REPLAYED_FROM, f"{topic}:{partition}:{offset}".encode())]
