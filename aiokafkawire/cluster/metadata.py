"""Immutable snapshots of the cluster's metadata, each made from the previous one and a Metadata response."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import zip_longest
from typing import Any, Final
from uuid import UUID

import attrs

from .._lazy_classes import frozen
from ..errors import ErrorCode
from ..protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from ..protocol.primitives import ZERO_UUID
from ..types import Address, TopicPartition

__all__ = (
    "EMPTY",
    "Node",
    "Partition",
    "Snapshot",
    "Topic",
    "forget",
    "has_other_ids",
    "is_large",
    "merge",
    "is_other_cluster",
    "with_leaders",
)

_LARGE: Final = 10_000


@frozen
class Node:
    """A broker and its address."""

    node_id: int
    address: Address
    rack: str | None = None


@frozen
class Partition:
    """A partition. ``leader`` is None while there is no leader; ``leader_epoch`` is -1 if the broker sends no epoch."""

    index: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@attrs.frozen(repr=False, eq=False)
class Topic:
    """A topic of a Metadata response. If ``error`` is not 0, the partitions may be unknown."""

    name: str
    topic_id: UUID
    error: int
    answered: Sequence[MetadataResponsePartition]
    """The partitions in the Metadata response, in order of their index. Do not change them."""
    is_internal: bool = False

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """The partitions in order of their index. They are made on first use: a response may have 100,000 of them."""
        return tuple(_partition(answered) for answered in self.answered)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Topic) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.name, self.topic_id, self.error, self.partitions, self.is_internal

    def __repr__(self) -> str:
        return (
            f"Topic(name={self.name!r}, topic_id={self.topic_id!r}, error={self.error!r}, "
            f"partitions={self.partitions!r}, is_internal={self.is_internal!r})"
        )


class _Topics(Mapping[str, Topic]):
    """A mapping of topics by name, each made on first use.

    Making 10,000 objects would start a full garbage collection, which blocks the event loop for long in large programs.
    """

    __slots__ = ("_answered", "_made")

    def __init__(self, answered: dict[str, MetadataResponseTopic]) -> None:
        self._answered = answered
        self._made: dict[str, Topic] = {}

    def __getitem__(self, name: str) -> Topic:
        made = self._made.get(name)
        if made is None:
            topic = self._answered[name]
            made = Topic(name, topic.topic_id, topic.error_code, topic.partitions, topic.is_internal)
            self._made[name] = made
        return made

    def get(self, name: str, default: Any = None) -> Any:
        """Return the topic or the default. The method is optimized, since each batch calls it several times."""
        made = self._made.get(name)
        if made is not None:
            return made
        return self[name] if name in self._answered else default

    def replaced(self, answered: Mapping[str, MetadataResponseTopic]) -> "_Topics":
        """Return a copy in which the ``answered`` topics replace those of the same name."""
        topics = _Topics({**self._answered, **answered})
        topics._made = dict(self._made)  # in one step, since a thread that merges may add topics meanwhile
        for name in answered:
            topics._made.pop(name, None)
        return topics

    def answer(self, name: str) -> MetadataResponseTopic | None:
        """Return the Metadata response's entry of a topic; None if there is no such topic."""
        return self._answered.get(name)

    def answers(self) -> list[MetadataResponseTopic]:
        """Return the Metadata response's entries of all topics."""
        return list(self._answered.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._answered)

    def __len__(self) -> int:
        return len(self._answered)


@frozen
class Snapshot:
    """The cluster's metadata at one time. Each new snapshot has a higher ``generation``."""

    generation: int
    cluster_id: str | None
    controller_id: int
    nodes: Mapping[int, Node]
    topics: Mapping[str, Topic]
    topic_names: Mapping[UUID, str]
    healthy: bool = True
    """Whether no topic has an error."""
    leaderless: Sequence[TopicPartition] = ()
    """The partitions without a leader, as of the last Metadata response."""

    def partition(self, partition: TopicPartition) -> Partition | None:
        """Return the partition; None if it is not known."""
        topic = self.topics.get(partition.topic)
        if topic is None:
            return None
        partitions = topic.partitions
        return partitions[partition.partition] if 0 <= partition.partition < len(partitions) else None

    def leader(self, partition: TopicPartition) -> Node | None:
        """Return the partition's leader; None if the partition, its leader or the leader's address is unknown."""
        known = self.partition(partition)
        return self.nodes.get(known.leader) if known is not None and known.leader is not None else None

    def topic_error(self, topic: str) -> int | None:
        """Return the topic's error code in the Metadata response; None if the response lacks the topic."""
        if not isinstance(self.topics, _Topics):
            return None
        answer = self.topics.answer(topic)  # makes no Topic, since this is called for many topics
        return answer.error_code if answer is not None else None

    def topic_id(self, topic: str) -> UUID:
        """Return the topic's id; all zeros if the brokers have none (before 2.8)."""
        known = self.topics.get(topic)
        return known.topic_id if known is not None else ZERO_UUID


EMPTY = Snapshot(0, None, -1, {}, {}, {})
"""The snapshot before the first Metadata response."""


def is_large(response: MetadataResponse) -> bool:
    """Return whether the response is so large that merging and freeing it would block the event loop for long."""
    return sum(len(topic.partitions) for topic in response.topics) > _LARGE


def is_other_cluster(before: Snapshot, response: MetadataResponse) -> bool:
    """Return whether the response and the snapshot are of different clusters, whose epochs cannot be compared."""
    return None not in (before.cluster_id, response.cluster_id) and before.cluster_id != response.cluster_id


def has_other_ids(before: Snapshot, response: MetadataResponse) -> bool:
    """Return whether a topic has another id in the response than in the snapshot, if both have one."""
    names = before.topic_names
    return any(
        before.topic_id(topic.name) != ZERO_UUID
        for topic in response.topics
        if topic.name is not None and topic.topic_id != ZERO_UUID and names.get(topic.topic_id) != topic.name
    )


def merge(before: Snapshot, response: MetadataResponse) -> Snapshot:
    """Return the next snapshot, made from the response. Leaders with a newer epoch in ``before`` are kept (KIP-320).

    A broker that lags behind may return a previous leader, with an older epoch. The snapshot refers to the response, so
    the caller must not change the response afterwards.
    """
    nodes = {node.node_id: Node(node.node_id, Address(node.host, node.port), node.rack) for node in response.brokers}
    topics = {topic.name: topic for topic in response.topics if topic.name is not None}
    for name, topic in topics.items():
        for leader in _keep_newer(topic, before.topics.get(name)):
            # A broker that lags behind may not know the new leader's address either.
            if leader in before.nodes:
                nodes.setdefault(leader, before.nodes[leader])
    return Snapshot(
        generation=before.generation + 1,
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        nodes=nodes,
        topics=_Topics(topics),
        topic_names={topic.topic_id: name for name, topic in topics.items() if topic.topic_id != ZERO_UUID},
        healthy=all(topic.error_code == ErrorCode.NONE for topic in topics.values()),
        leaderless=tuple(
            TopicPartition(name, partition.partition_index)
            for name, topic in topics.items()
            for partition in topic.partitions
            if partition.leader_id < 0
        ),
    )


def with_leaders(
    snapshot: Snapshot, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
) -> Snapshot:
    """Return the next snapshot, with the leaders that a broker named in a Produce or Fetch error (KIP-951).

    A leader is ignored if its epoch is not newer, or if its address is neither known nor among ``nodes``. If all are
    ignored, return the same snapshot.

    Args:
        snapshot: the current snapshot.
        leaders: the id and the epoch of each partition's leader.
        nodes: the addresses of leaders.
    """
    topics = snapshot.topics
    if not isinstance(topics, _Topics):  # nothing is known yet
        return snapshot
    found = {**{node.node_id: node for node in nodes}, **snapshot.nodes}
    changed: dict[str, MetadataResponseTopic] = {}
    for partition, (leader, epoch) in leaders.items():
        topic = changed.get(partition.topic) or topics.answer(partition.topic)
        if topic is None or not 0 <= partition.partition < len(topic.partitions) or leader not in found:
            continue
        known = topic.partitions[partition.partition]
        if epoch <= known.leader_epoch:
            continue
        # Older snapshots share the entries of the response, so copy an entry before changing it.
        if partition.topic not in changed:
            topic = changed[partition.topic] = copy(topic)
            topic.partitions = list(topic.partitions)
        replaced = topic.partitions[partition.partition] = copy(known)
        replaced.leader_id, replaced.leader_epoch, replaced.error_code = leader, epoch, ErrorCode.NONE
    if not changed:
        return snapshot
    return attrs.evolve(
        snapshot,
        generation=snapshot.generation + 1,
        nodes={**snapshot.nodes, **found},
        topics=topics.replaced(changed),
    )


def forget(snapshots: list[Snapshot]) -> None:
    """Pop a snapshot from the list, and free it topic by topic: freeing it at once would block all other threads."""
    topics = snapshots.pop().topics
    answers = topics.answers() if isinstance(topics, _Topics) else []
    del topics
    while answers:
        answers.pop()


def _keep_newer(answered: MetadataResponseTopic, known: Topic | None) -> set[int]:
    """Sort the response's partitions, and replace those of which ``known`` has a newer epoch.

    Return the ids of the leaders that were taken from ``known``.
    """
    # Usually the response is sorted and its broker does not lag behind; then its list is used unchanged.
    newest = answered.partitions
    indexes = [partition.partition_index for partition in newest]
    if indexes != list(range(len(indexes))):
        newest.sort(key=lambda partition: partition.partition_index)
        if sorted(indexes) != list(range(len(indexes))):
            # Partitions are found by their position in the list, so a list with gaps cannot be used.
            answered.error_code, answered.partitions = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []
            return set()
    # A topic that was deleted and created again has a new id, and its epochs start at 0. Brokers before 2.8 name no id.
    is_same = known is not None and answered.topic_id in (known.topic_id, ZERO_UUID)
    before = known.answered if known is not None and is_same else ()
    if not any(-1 < new.leader_epoch < old.leader_epoch for new, old in zip(newest, before, strict=False)):
        return set()
    answered.partitions = [
        old if old is not None and -1 < new.leader_epoch < old.leader_epoch else new
        for new, old in zip_longest(newest, before[: len(newest)])
    ]
    return {kept.leader_id for kept, new in zip(answered.partitions, newest, strict=True) if kept is not new}


def _partition(answered: MetadataResponsePartition) -> Partition:
    return Partition(
        index=answered.partition_index,
        leader=answered.leader_id if answered.leader_id >= 0 else None,
        leader_epoch=answered.leader_epoch,
        replicas=tuple(answered.replica_nodes),
        in_sync=tuple(answered.isr_nodes),
    )
