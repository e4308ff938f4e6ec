"""The cluster's layout: which broker leads which partition, and which replicas are in sync."""

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from ...cluster.metadata import Node
from ...protocol.messages.metadata import MetadataResponse
from ...types import Address, TopicPartition

__all__ = ("BrokerLayout", "Layout", "TopicLayout", "layout_is_due", "layout_of", "nodes_of")

_SMALL: Final = 2_000
"""The number of partitions up to which the layout is part of every sample."""
_MAX_AGE: Final = 30.0
_MIN_AGE: Final = 5.0


@attrs.define
class BrokerLayout:
    """The numbers of a broker's partitions: led, of these under-replicated, replicas, and replicas in sync."""

    leads: int = 0
    under_replicated: int = 0
    replicas: int = 0
    in_sync: int = 0


@attrs.frozen
class TopicLayout:
    """The numbers of a topic's partitions: all, those with a replica that is not in sync, those without a leader."""

    partitions: int
    under_replicated: int
    leaderless: int


@attrs.frozen
class Layout:
    """The brokers, the topics to show, and the leader of each partition of all topics.

    ``brokers`` may have ids that ``nodes`` lacks: brokers that hold replicas and are not in service. ``controller_id``
    is None if it is not known.
    """

    cluster_id: str | None
    controller_id: int | None
    nodes: Mapping[int, Node]
    brokers: Mapping[int, BrokerLayout]
    topics: Mapping[str, TopicLayout]
    leaders: Mapping[TopicPartition, int]


def nodes_of(response: MetadataResponse) -> dict[int, Node]:
    """Return the brokers in a Metadata response, by id."""
    return {
        broker.node_id: Node(broker.node_id, Address(broker.host, broker.port), broker.rack)
        for broker in response.brokers
    }


def layout_of(response: MetadataResponse, shows: Callable[[str], bool], controller_id: int | None) -> Layout:
    """Return the layout from a Metadata response for all topics.

    Args:
        response: the response.
        shows: returns whether a topic is to be shown.
        controller_id: the controller; None if it is not known.
    """
    nodes = nodes_of(response)
    brokers = {node_id: BrokerLayout() for node_id in nodes}
    topics: dict[str, TopicLayout] = {}
    leaders: dict[TopicPartition, int] = {}
    for topic in response.topics:
        if topic.name is None:
            continue
        under_replicated = leaderless = 0
        for partition in topic.partitions:
            missing = len(partition.isr_nodes) < len(partition.replica_nodes)
            under_replicated += missing
            for node_id in partition.replica_nodes:
                brokers.setdefault(node_id, BrokerLayout()).replicas += 1
            for node_id in partition.isr_nodes:
                brokers.setdefault(node_id, BrokerLayout()).in_sync += 1
            if partition.leader_id < 0:
                leaderless += 1
                continue
            leaders[TopicPartition(topic.name, partition.partition_index)] = partition.leader_id
            leader = brokers.setdefault(partition.leader_id, BrokerLayout())
            leader.leads += 1
            leader.under_replicated += missing
        if shows(topic.name):
            topics[topic.name] = TopicLayout(len(topic.partitions), under_replicated, leaderless)
    return Layout(response.cluster_id, controller_id, nodes, brokers, topics, leaders)


def layout_is_due(layout: Layout, age: float, *, outdated: bool) -> bool:
    """Return whether to request the metadata of all topics again.

    Args:
        layout: the last layout. A small one is part of every sample, and a large one is renewed every 30 s.
        age: the seconds since the last layout.
        outdated: whether a broker has reported that a partition has moved or is gone. A large layout is then renewed
            after 5 s.
    """
    if len(layout.leaders) <= _SMALL or age >= _MAX_AGE:
        return True
    return outdated and age >= _MIN_AGE
