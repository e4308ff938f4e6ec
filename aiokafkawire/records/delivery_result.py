"""The result of one batch, which a producer's deliveries wait for."""

from typing import Protocol

from ..types import RecordMetadata

__all__ = ("DeliveryResult",)


class DeliveryResult(Protocol):
    """The outcome of one batch, shared by the deliveries of all its records."""

    def is_done(self, index: int) -> bool:
        """Return whether the outcome of record ``index`` is known."""

    async def wait(self, index: int) -> RecordMetadata:
        """Wait until the outcome is known; return the metadata of record ``index``, or raise its error."""
