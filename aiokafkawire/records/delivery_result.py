"""The result of one batch, which a producer's deliveries wait for."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from ..errors import KafkaError
from ..types import RecordMetadata

__all__ = ("DeliveryCallback", "DeliveryResult")

DeliveryCallback: TypeAlias = Callable[[RecordMetadata | None, KafkaError | None], object]
"""Takes a record's metadata, or why it has failed; the other is None."""


class DeliveryResult(Protocol):
    """The outcome of one batch, shared by the deliveries of all its records."""

    def is_done(self, index: int) -> bool:
        """Return whether the outcome of the batch's record ``index`` is known."""

    async def wait(self, index: int) -> RecordMetadata:
        """Wait for the outcome of the batch's record ``index``; return the record's metadata, or raise its error."""

    def add_callback(self, index: int, callback: DeliveryCallback) -> None:
        """Call ``callback`` with the outcome of the batch's record ``index`` once it is known."""
