"""What is known of the cluster: immutable snapshots, each made from the one before and a Metadata response."""

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
    "other_cluster",
    "with_leaders",
)

_LARGE: Final = 10_000


@attrs.frozen
class Node:
    """A broker, and where it listens."""

    node_id: int
    address: Address
    rack: str | None = None


@attrs.frozen
class Partition:
    """A partition: ``leader`` is None while nobody leads; ``leader_epoch`` is -1 where the broker does not say."""

    index: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@attrs.frozen(repr=False, eq=False)
class Topic:
    """A topic, or with an ``error`` other than 0 why it is not known."""

    name: str
    topic_id: UUID
    error: int
    answered: Sequence[MetadataResponsePartition]
    """What brokers said of each partition, in order of their index; not to be changed."""
    is_internal: bool = False

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """In order of their index. Made when they are looked at: an answer may hold 100,000, of which few are."""
        return tuple(_partition(one) for one in self.answered)

    def __eq__(self, other: object) -> bool:
        return self._said() == other._said() if isinstance(other, Topic) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._said())

    def _said(self) -> tuple[object, ...]:
        return self.name, self.topic_id, self.error, self.partitions, self.is_internal

    def __repr__(self) -> str:
        return (
            f"Topic(name={self.name!r}, topic_id={self.topic_id!r}, error={self.error!r}, "
            f"partitions={self.partitions!r}, is_internal={self.is_internal!r})"
        )


class _Topics(Mapping[str, Topic]):
    """Topics by name, each made when it is looked at.

    10,000 more objects for the garbage collector to follow would bring on a full collection, which holds the event
    loop for as long as the rest of the program is large.
    """

    __slots__ = ("_answered", "_made")

    def __init__(self, answered: dict[str, MetadataResponseTopic]) -> None:
        self._answered = answered
        self._made: dict[str, Topic] = {}

    def __getitem__(self, name: str) -> Topic:
        made = self._made.get(name)
        if made is None:
            one = self._answered[name]
            made = Topic(name, one.topic_id, one.error_code, one.partitions, one.is_internal)
            self._made[name] = made
        return made

    def get(self, name: str, default: Any = None) -> Any:
        """As of any mapping; it is asked several times for every batch."""
        made = self._made.get(name)
        if made is not None:
            return made
        return self[name] if name in self._answered else default

    def replaced(self, answered: Mapping[str, MetadataResponseTopic]) -> "_Topics":
        """These topics, but for some that were answered anew."""
        topics = _Topics({**self._answered, **answered})
        topics._made = dict(self._made)  # at once, for a thread may be merging and look topics up
        for name in answered:
            topics._made.pop(name, None)
        return topics

    def said(self, name: str) -> MetadataResponseTopic | None:
        """What a topic is made from, if it is known."""
        return self._answered.get(name)

    def answers(self) -> list[MetadataResponseTopic]:
        """What they are made from."""
        return list(self._answered.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._answered)

    def __len__(self) -> int:
        return len(self._answered)


@attrs.frozen
class Snapshot:
    """The cluster at one moment. ``generation`` grows by one with each."""

    generation: int
    cluster_id: str | None
    controller_id: int
    nodes: Mapping[int, Node]
    topics: Mapping[str, Topic]
    topic_names: Mapping[UUID, str]
    healthy: bool = True
    """Whether no topic carries an error."""

    def partition(self, where: TopicPartition) -> Partition | None:
        """The partition, if it is known."""
        topic = self.topics.get(where.topic)
        if topic is None:
            return None
        partitions = topic.partitions
        return partitions[where.partition] if 0 <= where.partition < len(partitions) else None

    def leader(self, where: TopicPartition) -> Node | None:
        """The broker that leads the partition, if both are known."""
        partition = self.partition(where)
        return self.nodes.get(partition.leader) if partition is not None and partition.leader is not None else None

    def topic_error(self, topic: str) -> int | None:
        """Return the error code that the topic was answered with; None if it is not in the answer."""
        if not isinstance(self.topics, _Topics):
            return None
        said = self.topics.said(topic)  # makes no object for each of many topics
        return said.error_code if said is not None else None

    def topic_id(self, topic: str) -> UUID:
        """The topic's id; all zeros where the brokers have none (before 2.8)."""
        known = self.topics.get(topic)
        return known.topic_id if known is not None else ZERO_UUID


EMPTY = Snapshot(0, None, -1, {}, {}, {})
"""Nothing is known yet."""


def is_large(response: MetadataResponse) -> bool:
    """Whether merging or freeing it would hold the event loop for long: threads do it then."""
    return sum(len(topic.partitions) for topic in response.topics) > _LARGE


def other_cluster(before: Snapshot, response: MetadataResponse) -> bool:
    """Whether the response is of another cluster than what is known: epochs of the one say nothing in the other."""
    return None not in (before.cluster_id, response.cluster_id) and before.cluster_id != response.cluster_id


def merge(before: Snapshot, response: MetadataResponse) -> Snapshot:
    """The next snapshot: what the response says, unless we know of a newer leader already. It keeps the response.

    A broker that lags behind may still name the leader before the last; its epoch tells (KIP-320).
    """
    nodes = {one.node_id: Node(one.node_id, Address(one.host, one.port), one.rack) for one in response.brokers}
    topics = {topic.name: topic for topic in response.topics if topic.name is not None}
    for name, topic in topics.items():
        for leader in _settle(topic, before.topics.get(name)):
            # Whoever lags behind may not have heard of that broker either.
            if leader in before.nodes:
                nodes.setdefault(leader, before.nodes[leader])
    return Snapshot(
        generation=before.generation + 1,
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        nodes=nodes,
        topics=_Topics(topics),
        topic_names={one.topic_id: name for name, one in topics.items() if one.topic_id != ZERO_UUID},
        healthy=all(one.error_code == ErrorCode.NONE for one in topics.values()),
    )


def with_leaders(
    snapshot: Snapshot, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
) -> Snapshot:
    """The next snapshot: the leaders' ids and epochs as a broker gave them with an error (KIP-951).

    Only epochs newer than the known ones count, of leaders whose address is known or among ``nodes``; where there is
    none, the snapshot itself comes back.
    """
    topics = snapshot.topics
    if not isinstance(topics, _Topics):  # nothing is known yet
        return snapshot
    found = {**{node.node_id: node for node in nodes}, **snapshot.nodes}
    changed: dict[str, MetadataResponseTopic] = {}
    for where, (leader, epoch) in leaders.items():
        said = changed.get(where.topic) or topics.said(where.topic)
        if said is None or not 0 <= where.partition < len(said.partitions) or leader not in found:
            continue
        known = said.partitions[where.partition]
        if epoch <= known.leader_epoch:
            continue
        # Older snapshots hold the answer as well: it stays as it is.
        if where.topic not in changed:
            said = changed[where.topic] = copy(said)
            said.partitions = list(said.partitions)
        led = said.partitions[where.partition] = copy(known)
        led.leader_id, led.leader_epoch, led.error_code = leader, epoch, ErrorCode.NONE
    if not changed:
        return snapshot
    return attrs.evolve(
        snapshot,
        generation=snapshot.generation + 1,
        nodes={**snapshot.nodes, **found},
        topics=topics.replaced(changed),
    )


def forget(snapshots: list[Snapshot]) -> None:
    """Free what nobody else holds of these snapshots, topic by topic: at once it would hold up all other threads."""
    topics = snapshots.pop().topics
    held = topics.answers() if isinstance(topics, _Topics) else []
    del topics
    while held:
        held.pop()


def _settle(answered: MetadataResponseTopic, known: Topic | None) -> set[int]:
    """Put the partitions in order, and keep what is known better: the leaders that were kept come back."""
    # As a rule nothing is out of order and nobody lags: then the answer's own list will do.
    newest = answered.partitions
    indexes = [one.partition_index for one in newest]
    if indexes != list(range(len(indexes))):
        newest.sort(key=lambda one: one.partition_index)
        if sorted(indexes) != list(range(len(indexes))):
            # Positions are indexes everywhere else: a list with holes names no partition that can be trusted.
            answered.error_code, answered.partitions = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []
            return set()
    # A topic that was deleted and made again has a new id, and epochs that begin anew.
    before = known.answered if known is not None and known.topic_id == answered.topic_id else ()
    if not any(-1 < one.leader_epoch < older.leader_epoch for one, older in zip(newest, before, strict=False)):
        return set()
    answered.partitions = [
        older if older is not None and -1 < one.leader_epoch < older.leader_epoch else one
        for one, older in zip_longest(newest, before[: len(newest)])
    ]
    return {kept.leader_id for kept, one in zip(answered.partitions, newest, strict=True) if kept is not one}


def _partition(answered: MetadataResponsePartition) -> Partition:
    return Partition(
        index=answered.partition_index,
        leader=answered.leader_id if answered.leader_id >= 0 else None,
        leader_epoch=answered.leader_epoch,
        replicas=tuple(answered.replica_nodes),
        in_sync=tuple(answered.isr_nodes),
    )
