"""What a producer's deliveries wait on: the result of one batch."""

from typing import Protocol

from ..types import RecordMetadata

__all__ = ("DeliveryResult",)


class DeliveryResult(Protocol):
    """The outcome of one batch, shared by the deliveries of all its records."""

    @property
    def done(self) -> bool:
        """Whether the outcome is known, good or bad."""

    async def wait(self, index: int) -> RecordMetadata:
        """Wait until the outcome is known; return where record ``index`` of the batch is, or raise why not."""
