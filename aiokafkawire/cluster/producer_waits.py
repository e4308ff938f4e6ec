"""The waits of a client's producers before they accepted records."""

__all__ = ("ProducerWaits",)


class ProducerWaits:
    """Totals of the calls that had to wait, over all producers of a client."""

    def __init__(self) -> None:
        self.callers: int = 0
        """The number of calls that wait for buffer space now."""
        self.space_seconds: float = 0.0
        """How long calls have waited for buffer space."""
        self.exhausted: int = 0
        """The number of records that were not accepted, since there was no space within ``max_block_ms``."""
        self.metadata_seconds: float = 0.0
        """How long calls have waited for a topic's metadata."""
