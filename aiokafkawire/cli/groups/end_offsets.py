"""Looks up the end offsets of partitions, once for all groups."""

from collections.abc import Iterable, Mapping

from ...admin.admin import Admin
from ...types import OffsetSpec, TopicPartition
from ..topics.asking import led_partitions

__all__ = ("EndOffsets",)


class EndOffsets:
    """The end offsets of partitions; None for a partition that does not exist, or has no leader.

    Every partition is looked up once, by one request to each leader for all partitions of a call.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._ends: dict[TopicPartition, int | None] = {}

    async def look_up(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int | None]:
        """Look up the partitions that are not known yet; return all known end offsets.

        Raises:
            KafkaError: brokers do not answer.
        """
        new = [partition for partition in dict.fromkeys(partitions) if partition not in self._ends]
        if new:
            led = await led_partitions(self._admin, {partition.topic for partition in new})
            wanted = [partition for partition in new if partition in led]
            self._ends |= dict.fromkeys(new)
            found = await self._admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST))
            self._ends |= {partition: None if at is None else at.offset for partition, at in found.items()}
        return self._ends
