"""Notices partitions that make no progress: records that a producer cannot deliver, and partitions that bring none."""

from collections.abc import Iterator, Sequence

import attrs

from .client_health import ClientHealth
from .consumer.health import ConsumerHealth
from .observe import PartitionStalled, StallEnded
from .producer.health import ProducerHealth
from .types import TopicPartition

__all__ = ("StallTracker",)


@attrs.define
class _Wait:
    """A partition that waits. A consumer's wait begins with the first check that sees it at this position."""

    since: float
    position: int | None
    reported: bool = False


class StallTracker:
    """The stalls of one client's partitions, from one look at its health to the next.

    Args:
        after: how many seconds a consumer's partition may wait before it counts as stalled.
    """

    def __init__(self, after: float) -> None:
        self._after = after
        self._waits: dict[tuple[str, TopicPartition], _Wait] = {}

    def look(self, health: ClientHealth, now: float) -> tuple[Sequence[PartitionStalled], Sequence[StallEnded]]:
        """Return the stalls that have begun and ended since the last look; ``now`` is in seconds."""
        began: list[PartitionStalled] = []
        waits: dict[tuple[str, TopicPartition], _Wait] = {}
        for name, producer in health.producers.items():
            self._look_at_producer(name, producer, now, waits, began)
        for name, consumer in health.consumers.items():
            self._look_at_consumer(name, consumer, now, waits, began)
        ended = [
            StallEnded(lane=name, topic=partition.topic, partition=partition.partition, seconds=now - before.since)
            for (name, partition), before in self._waits.items()
            if before.reported and ((after := waits.get((name, partition))) is None or not after.reported)
        ]
        self._waits = waits
        return began, ended

    @property
    def stalled(self) -> Iterator[tuple[str, TopicPartition]]:
        """The partitions that are stalled, with the names of the producers and consumers."""
        return (key for key, wait in self._waits.items() if wait.reported)

    def _look_at_producer(
        self,
        name: str,
        producer: ProducerHealth,
        now: float,
        waits: dict[tuple[str, TopicPartition], _Wait],
        began: list[PartitionStalled],
    ) -> None:
        for partition, records in producer.partitions.items():
            if not records.is_overdue:
                continue
            before = self._waits.get((name, partition))
            waits[name, partition] = _Wait(now - records.age if before is None else before.since, None, True)
            if before is None:
                began.append(_stalled(name, partition, records.age, records.records, records.why))

    def _look_at_consumer(
        self,
        name: str,
        consumer: ConsumerHealth,
        now: float,
        waits: dict[tuple[str, TopicPartition], _Wait],
        began: list[PartitionStalled],
    ) -> None:
        for partition, health in consumer.partitions.items():
            why = health.waits_for
            if why is None:
                continue
            wait = self._waits.get((name, partition))
            if wait is None or wait.position != health.position:
                wait = _Wait(now, health.position)
            waits[name, partition] = wait
            if not wait.reported and now - wait.since >= self._after:
                waits[name, partition] = _Wait(wait.since, wait.position, True)
                began.append(_stalled(name, partition, now - wait.since, health.lag, why))


def _stalled(name: str, partition: TopicPartition, seconds: float, records: int | None, why: str) -> PartitionStalled:
    return PartitionStalled(
        lane=name, topic=partition.topic, partition=partition.partition, seconds=seconds, records=records, reason=why
    )
