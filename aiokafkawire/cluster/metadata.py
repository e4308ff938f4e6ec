"""Immutable snapshots of the cluster's metadata, each made from the previous one and a Metadata response."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import zip_longest
from typing import Any, Final
from uuid import UUID

import attrs

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
    "is_large",
    "merge",
    "is_other_cluster",
    "with_leaders",
)

_LARGE: Final = 10_000


@attrs.frozen
class Node:
    """A broker and its address."""

    node_id: int
    address: Address
    rack: str | None = None


@attrs.frozen
class Partition:
    """A partition: ``leader`` is None while there is none; ``leader_epoch`` is -1 if the broker does not send it."""

    index: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@attrs.frozen(repr=False, eq=False)
class Topic:
    """A topic, or with an ``error`` other than 0 the reason why it is not known."""

    name: str
    topic_id: UUID
    error: int
    answered: Sequence[MetadataResponsePartition]
    """The partitions of the Metadata response, in order of their index; not to be changed."""
    is_internal: bool = False

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """The partitions in order of their index. Made on first use: of up to 100,000 in a response few are used."""
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
    """Topics by name, each made on first use.

    10,000 more objects would make the garbage collector run a full collection, which blocks the event loop the longer
    the larger the program is.
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
        """Return the topic or the default; optimized, since it is called several times for every batch."""
        made = self._made.get(name)
        if made is not None:
            return made
        return self[name] if name in self._answered else default

    def replaced(self, answered: Mapping[str, MetadataResponseTopic]) -> "_Topics":
        """Return a copy with the ``answered`` topics replaced."""
        topics = _Topics({**self._answered, **answered})
        topics._made = dict(self._made)  # in one step, since a thread may look topics up while it merges
        for name in answered:
            topics._made.pop(name, None)
        return topics

    def answer(self, name: str) -> MetadataResponseTopic | None:
        """Return the response's entry of a topic, if it is known."""
        return self._answered.get(name)

    def answers(self) -> list[MetadataResponseTopic]:
        """Return the response's entries of all topics."""
        return list(self._answered.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._answered)

    def __len__(self) -> int:
        return len(self._answered)


@attrs.frozen
class Snapshot:
    """The cluster's metadata at one moment. ``generation`` grows by one with each snapshot."""

    generation: int
    cluster_id: str | None
    controller_id: int
    nodes: Mapping[int, Node]
    topics: Mapping[str, Topic]
    topic_names: Mapping[UUID, str]
    healthy: bool = True
    """Whether no topic carries an error."""

    def partition(self, partition: TopicPartition) -> Partition | None:
        """Return the partition, if it is known."""
        topic = self.topics.get(partition.topic)
        if topic is None:
            return None
        partitions = topic.partitions
        return partitions[partition.partition] if 0 <= partition.partition < len(partitions) else None

    def leader(self, partition: TopicPartition) -> Node | None:
        """Return the broker that leads the partition, if both are known."""
        known = self.partition(partition)
        return self.nodes.get(known.leader) if known is not None and known.leader is not None else None

    def topic_error(self, topic: str) -> int | None:
        """Return the topic's error code in the response; None if the response lacks the topic."""
        if not isinstance(self.topics, _Topics):
            return None
        answer = self.topics.answer(topic)  # makes no object for each of many topics
        return answer.error_code if answer is not None else None

    def topic_id(self, topic: str) -> UUID:
        """Return the topic's id; all zeros if the brokers have none (before 2.8)."""
        known = self.topics.get(topic)
        return known.topic_id if known is not None else ZERO_UUID


EMPTY = Snapshot(0, None, -1, {}, {}, {})
"""The snapshot before the first Metadata response."""


def is_large(response: MetadataResponse) -> bool:
    """Return whether merging or freeing the response would block the event loop for long; a thread does it then."""
    return sum(len(topic.partitions) for topic in response.topics) > _LARGE


def is_other_cluster(before: Snapshot, response: MetadataResponse) -> bool:
    """Return whether the response is of another cluster than the snapshot: their epochs cannot be compared."""
    return None not in (before.cluster_id, response.cluster_id) and before.cluster_id != response.cluster_id


def merge(before: Snapshot, response: MetadataResponse) -> Snapshot:
    """Return the next snapshot, made from the response, which it keeps. Newer leaders that are known already remain.

    A broker that lags behind may still name an earlier leader; the leader's epoch reveals that (KIP-320).
    """
    nodes = {node.node_id: Node(node.node_id, Address(node.host, node.port), node.rack) for node in response.brokers}
    topics = {topic.name: topic for topic in response.topics if topic.name is not None}
    for name, topic in topics.items():
        for leader in _keep_newer(topic, before.topics.get(name)):
            # A broker that lags behind may not know that leader's address either.
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
    )


def with_leaders(
    snapshot: Snapshot, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
) -> Snapshot:
    """Return the next snapshot with the leaders' ids and epochs that a broker sent with an error (KIP-951).

    Only newer epochs count, of leaders whose address is known or among ``nodes``. Without any, return the same
    snapshot.
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
        # Older snapshots share the response: copy before changing it.
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
    """Free a snapshot topic by topic: freeing it in one step would block all other threads."""
    topics = snapshots.pop().topics
    answers = topics.answers() if isinstance(topics, _Topics) else []
    del topics
    while answers:
        answers.pop()


def _keep_newer(answered: MetadataResponseTopic, known: Topic | None) -> set[int]:
    """Sort the partitions, and keep known ones with a newer epoch; return the leaders of those that were kept."""
    # As a rule the response is sorted and no broker lags behind: then its own list is used.
    newest = answered.partitions
    indexes = [partition.partition_index for partition in newest]
    if indexes != list(range(len(indexes))):
        newest.sort(key=lambda partition: partition.partition_index)
        if sorted(indexes) != list(range(len(indexes))):
            # Partitions are found by their position in the list: one with gaps cannot be used.
            answered.error_code, answered.partitions = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []
            return set()
    # A topic that was deleted and created again has a new id, and its epochs start again.
    before = known.answered if known is not None and known.topic_id == answered.topic_id else ()
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
