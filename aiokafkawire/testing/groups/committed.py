"""Offsets that groups have committed, including those of open transactions."""

from itertools import count

import attrs

from ...types import TopicPartition

__all__ = ("Committed", "CommittedOffsets", "metadata_length")


@attrs.frozen
class Committed:
    """A committed offset of one partition, with the client's metadata.

    ``timestamp`` is the time of the commit, ``expires`` the time from which the offset may be deleted, both in ms since
    the epoch; if ``expires`` is None, ``offsets.retention.minutes`` applies.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    timestamp: int = -1
    expires: int | None = None


_Offsets = dict[TopicPartition, tuple[int, Committed]]
"""Committed offsets by partition, each with the sequence number of its commit."""


class CommittedOffsets:
    """The offsets of all groups. A transaction's offsets are pending until the transaction ends (KIP-98, KIP-447)."""

    def __init__(self) -> None:
        self._groups: dict[str, _Offsets] = {}
        # The offsets of open transactions by producer id and group; a group may be in several transactions.
        self._pending: dict[int, dict[str, _Offsets]] = {}
        self._numbers = count()

    def commit(self, group: str, partition: TopicPartition, offset: Committed) -> None:
        """Store a group's committed offset of a partition, which replaces the previous offset."""
        self._groups.setdefault(group, {})[partition] = next(self._numbers), offset

    def get(self, group: str, partition: TopicPartition) -> Committed | None:
        """Return a group's committed offset of a partition; None if nothing is committed."""
        found = self._groups.get(group, {}).get(partition)
        return found and found[1]

    def of(self, group: str) -> dict[TopicPartition, Committed]:
        """Return a copy of all offsets of a group; empty if there are none."""
        return {partition: offset for partition, (_, offset) in self._groups.get(group, {}).items()}

    def groups(self) -> list[str]:
        """Return the groups that have committed or pending offsets."""
        pending = [group for groups in self._pending.values() for group in groups]
        return list(dict.fromkeys([*self._groups, *pending]))

    def delete(self, group: str, partition: TopicPartition) -> Committed | None:
        """Delete a group's committed and pending offsets of one partition; return the committed offset or None."""
        for groups in self._pending.values():
            _drop(groups, group, partition)
        return _drop(self._groups, group, partition)

    def delete_group(self, group: str) -> None:
        """Delete all committed and pending offsets of a group."""
        for groups in (self._groups, *self._pending.values()):
            groups.pop(group, None)

    def delete_topic(self, topic: str) -> None:
        """Delete the offsets of a deleted topic in all groups."""
        for groups in (self._groups, *self._pending.values()):
            for group, offsets in list(groups.items()):
                for partition in list(offsets):
                    if partition.topic == topic:
                        _drop(groups, group, partition)

    def clear(self) -> None:
        """Delete all offsets."""
        self._groups.clear()
        self._pending.clear()

    # --- transactions ------------------------------------------------------------------------------------------

    def pend(self, group: str, producer_id: int, offsets: dict[TopicPartition, Committed]) -> None:
        """Store the offsets of a producer's open transaction; a partition's new offset replaces its earlier one."""
        pending = self._pending.setdefault(producer_id, {}).setdefault(group, {})
        pending.update({partition: (next(self._numbers), offset) for partition, offset in offsets.items()})

    def complete(self, producer_id: int, *, commit: bool) -> None:
        """End a producer's transaction: commit or discard its offsets.

        Of several offsets for one partition, the last one sent applies, even if its transaction was the first to end.
        """
        for group, offsets in self._pending.pop(producer_id, {}).items():
            kept = self._groups.setdefault(group, {}) if commit else {}
            for partition, numbered in offsets.items():
                if partition not in kept or kept[partition][0] < numbered[0]:
                    kept[partition] = numbered

    def is_pending(self, group: str, partition: TopicPartition) -> bool:
        """Return whether a group's offset of a partition is unstable: an open transaction also has one (KIP-447)."""
        return any(partition in groups.get(group, {}) for groups in self._pending.values())


def metadata_length(metadata: str | None) -> int:
    """Return the length of ``metadata`` as Java counts it, in UTF-16 units; ``offset.metadata.max.bytes`` limits it."""
    return len((metadata or "").encode("utf-16-be")) // 2


def _drop(groups: dict[str, _Offsets], group: str, partition: TopicPartition) -> Committed | None:
    offsets = groups.get(group, {})
    _, dropped = offsets.pop(partition, (0, None))
    if group in groups and not offsets:
        del groups[group]
    return dropped
