"""When to leave the brokers that are known, and begin again from the bootstrap addresses (KIP-899, KIP-1102)."""

from collections.abc import Sequence
from typing import NamedTuple

from ..config import ClientConfig
from ..types import Address
from .retry import Deadline

__all__ = ("RebootstrapPolicy", "MetadataCandidates")


class MetadataCandidates(NamedTuple):
    """Whom to ask for metadata."""

    known: tuple[Address, ...]
    """First these, in order."""
    until: Deadline | None
    """How long in all, if it is known when to give up on them."""
    bootstrap: tuple[Address, ...]
    """Then these."""


class RebootstrapPolicy:
    """Keeps what has become of asking the known brokers; times are in seconds of the runtime's clock."""

    def __init__(self, config: ClientConfig) -> None:
        self._rebootstraps = config.metadata_recovery_strategy == "rebootstrap"
        self._trigger = config.metadata_recovery_rebootstrap_trigger_ms / 1000
        self._began: float | None = None
        self._demanded = False

    def round(self, known: Sequence[Address], bootstrap: Sequence[Address], now: float) -> MetadataCandidates:
        """Whom to ask next. While no broker is known, it is the bootstrap addresses."""
        if not known:
            return MetadataCandidates((), None, tuple(bootstrap))
        if not self._rebootstraps:
            return MetadataCandidates(tuple(known), None, ())
        if self._began is None:
            self._began = now
        until = Deadline(self._began + self._trigger, self._trigger)
        if self._demanded or until.passed(now):
            return MetadataCandidates((), None, tuple(bootstrap))
        return MetadataCandidates(tuple(known), until, tuple(one for one in bootstrap if one not in known))

    def demanded(self) -> bool:
        """A broker says to begin again (REBOOTSTRAP_REQUIRED); whether that is wanted."""
        self._demanded = self._rebootstraps
        return self._demanded

    def learned(self) -> None:
        """There is metadata again."""
        self._began, self._demanded = None, False
