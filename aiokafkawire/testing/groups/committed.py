"""Offsets that groups have committed, those of open transactions too."""

from itertools import count

import attrs

from ...types import TopicPartition

__all__ = ("Committed", "CommittedOffsets", "metadata_length")


@attrs.frozen
class Committed:
    """What was committed for one partition: where to go on, and what the client noted.

    ``timestamp`` is when, in ms since the epoch; ``expires`` when it may be forgotten, None if the brokers' setting
    says so (``offsets.retention.minutes``).
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    timestamp: int = -1
    expires: int | None = None


_Offsets = dict[TopicPartition, tuple[int, Committed]]
"""Offsets, each with the number of its commit."""


class CommittedOffsets:
    """The offsets of all groups. What a transaction commits is pending until the transaction ends (KIP-98, KIP-447)."""

    def __init__(self) -> None:
        self._groups: dict[str, _Offsets] = {}
        # By the producer that has the transaction open; a group may be in several.
        self._pending: dict[int, dict[str, _Offsets]] = {}
        self._numbers = count()

    def commit(self, group: str, where: TopicPartition, offset: Committed) -> None:
        """Keep an offset in place of any before."""
        self._groups.setdefault(group, {})[where] = next(self._numbers), offset

    def get(self, group: str, where: TopicPartition) -> Committed | None:
        """The offset of one partition; None if nothing is committed."""
        found = self._groups.get(group, {}).get(where)
        return found and found[1]

    def of(self, group: str) -> dict[TopicPartition, Committed]:
        """All offsets of a group, a copy; empty if there are none."""
        return {where: offset for where, (_, offset) in self._groups.get(group, {}).items()}

    def groups(self) -> list[str]:
        """The groups that offsets are kept for, pending ones included."""
        pending = [group for groups in self._pending.values() for group in groups]
        return list(dict.fromkeys([*self._groups, *pending]))

    def delete(self, group: str, where: TopicPartition) -> Committed | None:
        """Forget the offset of one partition, a pending one too; what was committed, if anything was."""
        for groups in self._pending.values():
            _drop(groups, group, where)
        return _drop(self._groups, group, where)

    def delete_group(self, group: str) -> None:
        """Forget all that a group has committed, and what is pending for it."""
        for groups in (self._groups, *self._pending.values()):
            groups.pop(group, None)

    def delete_topic(self, topic: str) -> None:
        """Forget the offsets of a topic that is gone, in all groups."""
        for groups in (self._groups, *self._pending.values()):
            for group, offsets in list(groups.items()):
                for where in list(offsets):
                    if where.topic == topic:
                        _drop(groups, group, where)

    def clear(self) -> None:
        """Forget all."""
        self._groups.clear()
        self._pending.clear()

    # --- transactions ------------------------------------------------------------------------------------------

    def pend(self, group: str, producer_id: int, offsets: dict[TopicPartition, Committed]) -> None:
        """Keep what a transaction commits until :meth:`complete`; later ones of the same transaction replace it."""
        pending = self._pending.setdefault(producer_id, {}).setdefault(group, {})
        pending.update({where: (next(self._numbers), offset) for where, offset in offsets.items()})

    def complete(self, producer_id: int, *, commit: bool) -> None:
        """End a producer's transaction: its offsets count from now on, or never.

        Of several commits the last one counts, by when they were made and not by when their transactions ended.
        """
        for group, offsets in self._pending.pop(producer_id, {}).items():
            kept = self._groups.setdefault(group, {}) if commit else {}
            for where, numbered in offsets.items():
                if where not in kept or kept[where][0] < numbered[0]:
                    kept[where] = numbered

    def is_pending(self, group: str, where: TopicPartition) -> bool:
        """Whether an open transaction has an offset for it, so that the one kept is not stable (KIP-447)."""
        return any(where in groups.get(group, {}) for groups in self._pending.values())


def metadata_length(metadata: str | None) -> int:
    """How long brokers find what a client noted, for ``offset.metadata.max.bytes``: Java counts UTF-16 units."""
    return len((metadata or "").encode("utf-16-be")) // 2


def _drop(groups: dict[str, _Offsets], group: str, where: TopicPartition) -> Committed | None:
    offsets = groups.get(group, {})
    _, dropped = offsets.pop(where, (0, None))
    if group in groups and not offsets:
        del groups[group]
    return dropped
