"""The partitions of a consumer that processes records: what is in hand of each, what to read, and what to commit."""

from collections.abc import Callable, Collection, Iterable, Mapping

from ..types import OffsetAndMetadata, TopicPartition
from .commit_metadata import MAX_METADATA_BYTES, FinishedRecords
from .offset_tracker import OffsetTracker, Progress

__all__ = ("PartitionsInHand", "offsets_of")

_LEAST_METADATA_BYTES = 64


class PartitionsInHand:
    """The trackers of the assigned partitions, and the limit of the records in hand.

    Records are in hand from when they are read until they are committed. Each partition may have an equal share of the
    limit; it is read while half of its share is free.

    Args:
        max_in_hand: the largest number of records in hand.
    """

    def __init__(self, max_in_hand: int) -> None:
        self._max_in_hand = max_in_hand
        self._trackers: dict[TopicPartition, OffsetTracker] = {}
        self._share = max_in_hand
        """The largest number of records of one partition in hand."""
        self._metadata_limit = MAX_METADATA_BYTES

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._trackers

    def __getitem__(self, partition: TopicPartition) -> OffsetTracker:
        return self._trackers[partition]

    def assign(self, partition: TopicPartition, finished: FinishedRecords | None = None) -> None:
        """Track a partition, of which this is finished after the committed offset; None if nothing is committed."""
        self._trackers[partition] = OffsetTracker(finished)
        self._divide()

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Track these partitions no longer."""
        for partition in partitions:
            self._trackers.pop(partition, None)
        self._divide()

    def _divide(self) -> None:
        self._share = max(1, self._max_in_hand // max(1, len(self._trackers)))

    @property
    def in_hand(self) -> int:
        """The number of records in hand."""
        return sum(tracker.in_hand for tracker in self._trackers.values())

    # --- reading -----------------------------------------------------------------------------------------------

    def full(self) -> Collection[TopicPartition]:
        """Return the partitions not to read from now."""
        if self.in_hand >= self._max_in_hand:
            return tuple(self._trackers)
        half = self._share // 2
        return tuple(partition for partition, tracker in self._trackers.items() if tracker.in_hand > half)

    @property
    def read_limit(self) -> int:
        """The number of records that the next read may return, at least 1."""
        share = self._share
        return max(1, min(share - share // 2, self._max_in_hand - self.in_hand))

    def finish(self, partition: TopicPartition, offsets: Iterable[int]) -> bool:
        """Record that these records are finished; return whether to commit now.

        That is if what is finished and not committed takes a quarter of what the partition may have in hand.
        """
        tracker = self._trackers[partition]
        for offset in offsets:
            tracker.finish(offset)
        return tracker.uncommitted * 4 >= self._share

    # --- committing --------------------------------------------------------------------------------------------

    def progress(
        self,
        partitions: Collection[TopicPartition] | None = None,
        position: Callable[[TopicPartition], OffsetAndMetadata | None] = lambda _: None,
    ) -> dict[TopicPartition, Progress]:
        """Return what to commit of these partitions, by default of all; without those that the last commit covers."""
        found = {}
        for partition, tracker in self._trackers.items():
            if partitions is None or partition in partitions:
                progress = tracker.progress(position(partition), limit=self._metadata_limit)
                if progress is not None:
                    found[partition] = progress
        return found

    def committed(self, progress: Mapping[TopicPartition, Progress]) -> None:
        """Record that this is committed; partitions that were revoked since do not matter."""
        for partition, part in progress.items():
            tracker = self._trackers.get(partition)
            if tracker is not None and part.tracker is tracker:
                tracker.committed(part)

    def shorten_metadata(self) -> None:
        """Write shorter metadata from now on, or none: the brokers have refused it (``offset.metadata.max.bytes``)."""
        self._metadata_limit //= 2
        if self._metadata_limit < _LEAST_METADATA_BYTES:
            self._metadata_limit = 0


def offsets_of(progress: Mapping[TopicPartition, Progress]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets to commit."""
    return {partition: part.commit for partition, part in progress.items()}
