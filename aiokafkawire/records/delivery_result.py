"""The result of one batch, which a producer's deliveries wait for."""

from typing import Protocol

from ..types import RecordMetadata

__all__ = ("DeliveryResult",)


class DeliveryResult(Protocol):
    """The outcome of one batch, shared by the deliveries of all its records."""

    def is_done(self, index: int) -> bool:
        """Return whether the outcome of the batch's record ``index`` is known."""

    async def wait(self, index: int) -> RecordMetadata:
        """Wait for the outcome of the batch's record ``index``; return the record's metadata, or raise its error."""
