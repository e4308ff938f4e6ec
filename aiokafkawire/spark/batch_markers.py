"""Which micro-batches were written before: what is committed together with each of them says so."""

from ..types import OffsetAndMetadata

__all__ = ("group_of", "is_unknown", "is_written", "mark_of")


def group_of(transactional_id: str) -> str:
    """The consumer group that the marks are committed for; nobody is ever a member of it."""
    return f"{transactional_id}-batches"


def mark_of(query: str, batch_id: int) -> OffsetAndMetadata:
    """What goes into the transaction of a batch: the number of the next one, and whose it is."""
    return OffsetAndMetadata(batch_id + 1, query)


def is_written(found: OffsetAndMetadata | None, query: str, batch_id: int) -> bool:
    """Whether the batch is in a transaction that was committed. Batches of other queries count from 0 anew."""
    return found is not None and found.metadata == query and batch_id < found.offset


def is_unknown(found: OffsetAndMetadata | None, query: str, batch_id: int) -> bool:
    """Whether there is no mark to tell by, though there were batches before: Kafka may have forgotten it.

    Of a query's first batch nothing can be missed: there never was a mark.
    """
    return batch_id > 0 and (found is None or found.metadata != query)
