"""Markers of written micro-batches: offsets that are committed in the transaction of each batch."""

from ..types import OffsetAndMetadata

__all__ = ("group_of", "is_unknown", "is_written", "mark_of")


def group_of(transactional_id: str) -> str:
    """Return the id of the group for which markers are committed; this group never has members."""
    return f"{transactional_id}-batches"


def mark_of(query: str, batch_id: int) -> OffsetAndMetadata:
    """Return the marker of a batch: the next batch's id as the offset, and the query as the metadata."""
    return OffsetAndMetadata(batch_id + 1, query)


def is_written(found: OffsetAndMetadata | None, query: str, batch_id: int) -> bool:
    """Return whether the found marker shows that the batch was committed.

    Another query's marker does not show this, since each query counts its batches from 0.
    """
    return found is not None and found.metadata == query and batch_id < found.offset


def is_unknown(found: OffsetAndMetadata | None, query: str, batch_id: int) -> bool:
    """Return whether the query's marker is missing although the query had earlier batches: the marker may have expired.

    A query's first batch never has a marker.
    """
    return batch_id > 0 and (found is None or found.metadata != query)
