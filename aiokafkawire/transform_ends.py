"""How far a group is from the ends of its partitions, for ``Client.transform`` with ``until_end``."""

from collections.abc import Collection, Mapping

from .types import OffsetAndMetadata, TopicPartition

__all__ = ("TransformEnds",)


class TransformEnds:
    """The end offsets of all partitions of a group, and the partitions not yet committed up to there.

    Every member looks at all partitions, since a member may die, and others then take over its partitions.
    """

    def __init__(self, ends: Mapping[TopicPartition, int]) -> None:
        self._missing = {partition: end for partition, end in ends.items() if end > 0}

    @property
    def are_reached(self) -> bool:
        """Whether the group has committed every partition up to its end."""
        return not self._missing

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        """Record committed offsets."""
        for partition, at in offsets.items():
            if at is not None and at.offset >= self._missing.get(partition, at.offset + 1):
                del self._missing[partition]

    def to_commit(
        self, positions: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return those of a member's positions that have reached the end, and are not known to be committed.

        The last offsets of a log may have no records, so that no transaction commits a position after them.
        """
        return {
            partition: at
            for partition, at in positions.items()
            if partition in self._missing and at.offset >= self._missing[partition]
        }

    def of_others(self, assigned: Collection[TopicPartition]) -> tuple[TopicPartition, ...]:
        """Return the missing partitions if none of them is assigned to this member; otherwise nothing."""
        if any(partition in self._missing for partition in assigned):
            return ()
        return tuple(self._missing)
