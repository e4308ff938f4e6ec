"""Detects topics that were deleted and created again while they are read: their positions are no longer valid.

The rules:

1. The first fetch after a seek or an assignment shows the id of the topic that the position belongs to. A position that
   was never fetched belongs to no topic yet, since the metadata may be older than the position.
2. Once the metadata has another id for the topic, ``auto_offset_reset`` decides where to read the new topic. Data that
   was fetched from the old topic and not read yet is dropped, and offsets of records in hand cannot be committed.
3. In a consumer group of KIP-848 the coordinator assigns topic ids. A partition of the old topic then returns no more
   records, until the membership has lost it and the coordinator has assigned the new topic.
"""

from collections.abc import Iterable
from uuid import UUID

from ..cluster.metadata import Snapshot
from ..errors import LogTruncated
from ..event_log import EventLog
from ..protocol.primitives import ZERO_UUID
from ..types import TopicPartition
from .completed_fetch import PartitionFetch
from .pending_errors import PendingErrors
from .subscription_state import PartitionState, SubscriptionState, format_partitions

__all__ = ("RecreatedTopics", "is_of_old_topic")

_log = EventLog("aiokafkawire.consumer")


def is_of_old_topic(positions: SubscriptionState, state: PartitionState, snapshot: Snapshot) -> bool:
    """Return whether the metadata shows that the partition's topic was created again since its records were read."""
    topic_id = state.known_id
    if topic_id is None:
        return False
    current = snapshot.topic_id(state.partition.topic)
    # A broker that lags behind may return the id of the old topic once more.
    return current not in (topic_id, ZERO_UUID) and current not in positions.vanished


class RecreatedTopics:
    """The check of one consumer's positions for topics that were created again.

    Args:
        positions: the consumer's positions.
        errors: receives an error for each position without ``auto_offset_reset``.
    """

    def __init__(self, positions: SubscriptionState, errors: PendingErrors) -> None:
        self._positions, self._errors = positions, errors

    def fetched(self, asks: Iterable[PartitionFetch], snapshot: Snapshot) -> None:
        """Record the topic ids of fetches that succeeded."""
        for ask in asks:
            state = ask.state
            if state.topic_id is None and self._positions.is_current(state, ask.epoch):
                topic_id = snapshot.topic_id(state.partition.topic)
                if topic_id != ZERO_UUID:
                    state.topic_id = topic_id
                    # A broker that lagged behind may have given another id, for a topic that was never deleted.
                    self._positions.vanished.discard(topic_id)

    def check(self, snapshot: Snapshot) -> None:
        """Reset the positions of topics that were created again, or withhold the partitions that are assigned by id."""
        old = [state for state in self._positions if is_of_old_topic(self._positions, state, snapshot)]
        reset: dict[str, list[PartitionState]] = {}
        for state in old:
            self._positions.vanished |= {topic_id for topic_id in (state.assigned_id, state.topic_id) if topic_id}
            if state.assigned_id is None:
                reset.setdefault(state.partition.topic, []).append(state)
            elif not state.withheld:
                self._positions.withhold(state, True)
        for topic, states in reset.items():
            self._reset(topic, states, snapshot.topic_id(topic))

    def _reset(self, topic: str, states: list[PartitionState], topic_id: UUID) -> None:
        _log.warning(
            "topic %(topic)r was deleted and created again (its id was %(before)s, and is %(topic_id)s now): the "
            "positions in %(partitions)s are those of the old topic, so auto_offset_reset decides where to read the "
            "new one",
            text={"before": states[0].topic_id},
            topic=topic,
            topic_id=topic_id,
            partitions=format_partitions([state.partition for state in states]),
        )
        for state in states:
            new = self._positions.read_new_topic(state, f"topic {topic!r} was deleted and created again")
            if new.lost:
                self._errors.report(new, _deleted(state.partition, state.position))


def _deleted(partition: TopicPartition, position: int | None) -> LogTruncated:
    read = "" if position is None else f" after it was read up to offset {position}"
    message = (
        f"the topic of {partition} was deleted and created again{read}; auto_offset_reset is 'none', so call seek()"
    )
    return LogTruncated(message, partition, -1 if position is None else position)
