"""Looks up the end offsets of partitions, once for all groups."""

from collections.abc import Iterable, Mapping

from ...admin.admin import Admin
from ...errors import KafkaError
from ...types import OffsetSpec, TopicPartition
from ..topics.asking import leaders_of, offsets_at_leaders

__all__ = ("EndOffsets",)


class EndOffsets:
    """The end offsets of partitions; None for a partition that does not exist, has no leader, or one without an answer.

    Every partition is looked up once, by one request to each leader for all partitions of a call. A leader that does
    not answer is not asked again.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._ends: dict[TopicPartition, int | None] = {}
        self._errors: dict[int, KafkaError] = {}

    @property
    def errors(self) -> list[KafkaError]:
        """The error of each leader that has not answered."""
        return list(self._errors.values())

    async def look_up(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int | None]:
        """Look up the partitions that are not known yet; return all known end offsets.

        Raises:
            KafkaError: the topics cannot be described.
        """
        new = [partition for partition in dict.fromkeys(partitions) if partition not in self._ends]
        if new:
            leaders = await leaders_of(self._admin, {partition.topic for partition in new})
            self._ends |= dict.fromkeys(new)
            led = {partition: leaders[partition] for partition in new if partition in leaders}
            found = await offsets_at_leaders(self._admin, led, OffsetSpec.LATEST, self._errors)
            self._ends |= {partition: None if at is None else at.offset for partition, at in found.items()}
        return self._ends
