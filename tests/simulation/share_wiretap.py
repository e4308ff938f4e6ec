"""What the brokers of a run do with a share group, as it happens, told to a watch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from aiokafkawire import TopicPartition
from aiokafkawire.testing.share.acknowledgements import AcknowledgedRange
from aiokafkawire.testing.share.acquisition import Acquisition, BatchOffsets
from aiokafkawire.testing.share.in_flight import Acquired
from aiokafkawire.testing.share.share_partition import SharePartition
from aiokafkawire.testing.share.share_sessions import ShareSession, ShareSessions
from aiokafkawire.testing.share.shared_partitions import SharedPartitions, ShareState
from aiokafkawire.testing.simulation import Simulation

from .share_checks import ShareWatch

__all__ = ("wiretap",)


@contextmanager
def wiretap(sim: Simulation, watch: ShareWatch, name_of: Callable[[str], str]) -> Iterator[None]:
    """Tell the watch of all acquisitions, acknowledgements, ended sessions and new leaders.

    ``name_of`` returns the name of the member with an id.
    """
    cluster = sim.broker._cluster
    ears = _Ears(cluster, watch, name_of)
    with (
        patch.object(SharePartition, "acquire", ears.acquire(SharePartition.acquire)),
        patch.object(SharedPartitions, "acknowledge", ears.acknowledge(SharedPartitions.acknowledge)),
        patch.object(SharedPartitions, "_lead_anew", ears.lead_anew(SharedPartitions._lead_anew)),
        patch.object(ShareSessions, "close", ears.close(ShareSessions.close)),
    ):
        yield


class _Ears:
    def __init__(self, cluster: Any, watch: ShareWatch, name_of: Callable[[str], str]) -> None:
        self._cluster, self._watch, self._name_of = cluster, watch, name_of

    def _leader(self, partition: TopicPartition) -> int:
        return int(self._cluster.topics.partition(*partition).leader)

    def acquire(self, original: Callable[..., list[Acquired]]) -> Callable[..., list[Acquired]]:
        def acquire(
            shared: SharePartition, acquisition: Acquisition, batches: Sequence[BatchOffsets], limit: int
        ) -> list[Acquired]:
            found = original(shared, acquisition, batches, limit)
            (state,) = (state for state in self._cluster.shared._states.values() if state.partition is shared)
            partition = TopicPartition(state.log.topic, state.log.partition)
            member, leader = self._name_of(acquisition.member_id), self._leader(partition)
            for part in found:
                for offset in range(part.first, part.last + 1):
                    self._watch.acquire(partition, offset, member, part.delivery_count, leader)
            return found

        return acquire

    def acknowledge(self, original: Callable[..., None]) -> Callable[..., None]:
        def acknowledge(
            shared: SharedPartitions, state: ShareState, member_id: str, parts: list[AcknowledgedRange]
        ) -> None:
            start = state.partition.start_offset
            original(shared, state, member_id, parts)
            partition = TopicPartition(state.log.topic, state.log.partition)
            for part in parts:
                # Leaders take no notice of what is finished, and refuse nothing of it.
                for offset in range(max(start, part.first), part.last + 1):
                    kind = part.types[0] if len(part.types) == 1 else part.types[offset - part.first]
                    self._watch.acknowledge(partition, offset, self._name_of(member_id), kind)

        return acknowledge

    def lead_anew(self, original: Callable[..., None]) -> Callable[..., None]:
        def lead_anew(shared: SharedPartitions, state: ShareState) -> None:
            self._watch.lead_anew(TopicPartition(state.log.topic, state.log.partition))
            original(shared, state)

        return lead_anew

    def close(self, original: Callable[..., None]) -> Callable[..., None]:
        def close(sessions: ShareSessions, session: ShareSession) -> None:
            (node,) = (node.node_id for node in self._cluster.nodes if node.share_sessions is sessions)
            partitions = [TopicPartition(self._cluster.topic_name(key[0]), key[1]) for key in session.partitions]
            self._watch.end_session(self._name_of(session.member_id), node, partitions, "session")
            original(sessions, session)

        return close
