"""What a producer's deliveries wait on: the result of one batch."""

from typing import Protocol

from ..types import RecordMetadata

__all__ = ("DeliveryResult",)


class DeliveryResult(Protocol):
    """The outcome of one batch, shared by the deliveries of all its records."""

    def is_done(self, index: int) -> bool:
        """Whether the outcome of record ``index`` is known, good or bad."""

    async def wait(self, index: int) -> RecordMetadata:
        """Wait until the outcome is known; return where record ``index`` of the batch is, or raise why not."""
