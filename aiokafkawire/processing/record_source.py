"""The interface of the places that the records of ``Client.process`` come from."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from .lanes import Work
from .unreadable_record import UnreadableRecord

if TYPE_CHECKING:
    from .processing_run import ProcessingRun

__all__ = ("RecordSource",)


class RecordSource(Protocol):
    """The place that records come from, which learns what becomes of them."""

    async def open(self, run: "ProcessingRun") -> None:
        """Start to read for this run."""

    async def close(self) -> None:
        """Send the last commits or acknowledgements."""

    async def read_again(self, record: UnreadableRecord) -> Any:
        """Return the record with its key and value deserialized.

        Raises:
            DeserializationError: that has failed once more.
        """

    def finished(self, work: Work[Any]) -> None:
        """Record that the records of a work are finished."""

    def reject(self, work: Work[Any]) -> bool:
        """Reject the records of a work, which are finished then; return False if this source cannot reject records."""

    def failed(self, work: Work[Any]) -> None:
        """Record that a work has failed finally, which ends the processing."""

    def status(self) -> Mapping[str, int]:
        """Return the numbers of a summary that the source knows."""
