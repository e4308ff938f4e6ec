"""The records of retry topics that were read before they are due."""

from collections import deque
from collections.abc import Collection, Iterable
from typing import Generic, TypeVar

import attrs

from ..types import TopicPartition

__all__ = ("WaitingRecords",)

R = TypeVar("R")


@attrs.define
class _Waiting(Generic[R]):
    records: deque[tuple[float, R]] = attrs.field(factory=deque)
    held: bool = False


class WaitingRecords(Generic[R]):
    """The waiting records of each partition, in the order of their offsets: none is taken before those before it.

    A partition that has some is not read further, so one read limits their number.
    """

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, _Waiting[R]] = {}

    def __len__(self) -> int:
        return sum(len(waiting.records) for waiting in self._partitions.values())

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._partitions

    @property
    def partitions(self) -> Collection[TopicPartition]:
        """The partitions that have waiting records."""
        return self._partitions.keys()

    def add(self, partition: TopicPartition, due: float, record: R) -> None:
        """Add the next record of a partition."""
        self._partitions.setdefault(partition, _Waiting()).records.append((due, record))

    def next_due(self, full: Collection[TopicPartition]) -> float | None:
        """Return when the next record can be taken, if not of the ``full`` partitions; None if there is none."""
        dues = [
            waiting.records[0][0]
            for partition, waiting in self._partitions.items()
            if not waiting.held and partition not in full
        ]
        return min(dues, default=None)

    def take(self, now: float, full: Collection[TopicPartition], limit: int) -> list[R]:
        """Take up to ``limit`` due records of one partition that is not ``full``; none are due if the list is empty."""
        for partition, waiting in self._partitions.items():
            if waiting.held or partition in full or waiting.records[0][0] > now:
                continue
            taken: list[R] = []
            while waiting.records and waiting.records[0][0] <= now and len(taken) < limit:
                taken.append(waiting.records.popleft()[1])
            if not waiting.records:
                del self._partitions[partition]
            return taken
        return []

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Let no more records of these partitions be taken."""
        for partition in partitions:
            waiting = self._partitions.get(partition)
            if waiting is not None:
                waiting.held = True

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the records of these partitions."""
        for partition in partitions:
            self._partitions.pop(partition, None)
