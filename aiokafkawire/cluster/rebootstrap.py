"""Decides when to replace the known brokers by the bootstrap addresses (KIP-899, KIP-1102)."""

from collections.abc import Sequence
from typing import NamedTuple

from ..config import ClientConfig
from ..types import Address
from .retry import Deadline

__all__ = ("RebootstrapPolicy", "MetadataCandidates")


class MetadataCandidates(NamedTuple):
    """The addresses to request metadata from."""

    known: tuple[Address, ...]
    """The addresses of known brokers, to ask first, in this order."""
    until: Deadline | None
    """The deadline for asking the known brokers; None if there is none."""
    bootstrap: tuple[Address, ...]
    """The bootstrap addresses to ask afterwards."""


class RebootstrapPolicy:
    """The policy of when to use the bootstrap addresses again. Times are in seconds of the runtime's clock."""

    def __init__(self, config: ClientConfig) -> None:
        self._rebootstraps = config.metadata_recovery_strategy == "rebootstrap"
        self._trigger = config.metadata_recovery_rebootstrap_trigger_ms / 1000
        self._began: float | None = None
        self._demanded = False

    def candidates(self, known: Sequence[Address], bootstrap: Sequence[Address], now: float) -> MetadataCandidates:
        """Return the addresses to ask next; if no broker is ``known``, only the bootstrap addresses."""
        if not known:
            return MetadataCandidates((), None, tuple(bootstrap))
        if not self._rebootstraps:
            return MetadataCandidates(tuple(known), None, ())
        if self._began is None:
            self._began = now
        until = Deadline(self._began + self._trigger, self._trigger)
        if self._demanded or until.passed(now):
            return MetadataCandidates((), None, tuple(bootstrap))
        return MetadataCandidates(tuple(known), until, tuple(address for address in bootstrap if address not in known))

    def demanded(self) -> bool:
        """Note that a broker answered REBOOTSTRAP_REQUIRED; return whether the settings allow rebootstrapping."""
        self._demanded = self._rebootstraps
        return self._demanded

    def learned(self) -> None:
        """Note that metadata was received."""
        self._began, self._demanded = None, False
