"""Outcomes of requests to the leaders of several partitions.

A leader that is down or slow does not delay the requests to other leaders.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeVar

from ..cluster.cluster import Cluster, Route
from ..cluster.metadata import Node, Snapshot
from ..cluster.retry import Deadline, retry_action
from ..errors import KafkaError, NotLeaderOrFollower, TopicNotReady, WireError
from ..protocol.schema import Request, Response
from ..types import TopicPartition
from .concurrent_outcomes import ask_again, ask_by_batch, ask_one_by_one, timed_out
from .outcomes import Outcomes

__all__ = ("ask_leaders",)

V = TypeVar("V")
R = TypeVar("R", bound=Response)

_LANE: Final = "admin"


async def ask_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    deadline: Deadline,
    *,
    request: Callable[[list[TopicPartition]], Request[R]],
    outcomes: Callable[[R], Mapping[TopicPartition, V | KafkaError]],
) -> Outcomes[TopicPartition, V]:
    """Ask about partitions, by one request to each leader, and again about those whose leader has moved.

    Args:
        cluster: has the brokers.
        partitions: what to ask about.
        deadline: the time after which nothing is asked again; a partition then has RequestTimeout or TopicNotReady.
        request: makes the request for some of the partitions.
        outcomes: returns the result or the error of each partition in a response.
    """
    is_slow = False

    async def ask(some: list[TopicPartition]) -> Outcomes[TopicPartition, V]:
        nonlocal is_slow
        snapshot = cluster.metadata.snapshot
        # A partition without a leader leaves half of the time for the requests about the others.
        now = cluster.runtime.now()
        half = Deadline(now + deadline.left(now) / 2, deadline.allowed)  # errors name the time that the call has
        leaders = await ask_one_by_one(some, partial(cluster.leader, deadline=half))
        is_slow = half.passed(cluster.runtime.now())
        found: Outcomes[TopicPartition, V] = {}
        by_leader: dict[Node, list[TopicPartition]] = {}
        for partition, node in leaders.items():
            if isinstance(node, KafkaError):
                found[partition] = node
            else:
                by_leader.setdefault(node, []).append(partition)

        async def ask_leader(node: Node) -> Mapping[TopicPartition, V | KafkaError]:
            return await _ask(cluster, node, by_leader[node], deadline, request, outcomes)

        found |= await ask_by_batch(by_leader, ask_leader)
        if any(isinstance(outcome, KafkaError) and may_pass(outcome) for outcome in found.values()):
            cluster.metadata.mark_stale(snapshot)
        return found

    def may_pass(error: KafkaError) -> bool:
        if isinstance(error, TopicNotReady):
            return is_slow  # otherwise the topic does not exist
        return retry_action(error).retry

    return timed_out(await ask_again(cluster, partitions, deadline, ask, may_pass), deadline)


async def _ask(
    cluster: Cluster,
    node: Node,
    partitions: list[TopicPartition],
    deadline: Deadline,
    request: Callable[[list[TopicPartition]], Request[R]],
    outcomes: Callable[[R], Mapping[TopicPartition, V | KafkaError]],
) -> Outcomes[TopicPartition, V]:
    asked = request(partitions)
    answered = outcomes(await cluster.ask(_route(node, partitions[0]), asked, deadline, lane=_LANE))
    api = type(asked).__name__.removesuffix("Request")
    return {
        partition: answered.get(partition, WireError(f"the {api} response lacks the requested {partition}"))
        for partition in partitions
    }


def _route(node: Node, partition: TopicPartition) -> Route:
    """Return the route to a partition's leader; it raises NotLeaderOrFollower once another broker is the leader."""

    def route(snapshot: Snapshot) -> Node:
        leader = snapshot.leader(partition)
        if leader is not None and leader != node:
            raise NotLeaderOrFollower(f"{partition} has another leader now, broker {leader.node_id}")
        return node

    return route
