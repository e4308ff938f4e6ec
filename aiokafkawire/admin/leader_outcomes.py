"""Outcomes of requests to the leaders of several partitions.

A leader that is down or slow does not delay the requests to other leaders.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeVar

import anyio

from ..cluster.cluster import Cluster, Route
from ..cluster.metadata import Node, Snapshot
from ..cluster.retry import Deadline, retry_action
from ..errors import KafkaError, NotLeaderOrFollower, RequestTimeout, TopicNotReady, WireError
from ..protocol.schema import Request, Response
from ..types import TopicPartition
from .coordinator_outcomes import ask_one_by_one, concurrently, timed_out
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
    requested = list(dict.fromkeys(partitions))
    found: Outcomes[TopicPartition, V] = {}

    async def ask(node_and_partitions: tuple[Node, list[TopicPartition]]) -> None:
        node, some = node_and_partitions
        for partition, outcome in (await _ask(cluster, node, some, deadline, request, outcomes)).items():
            known = found.get(partition)
            # At the deadline, an earlier error explains more than a timeout.
            if not (isinstance(outcome, RequestTimeout) and isinstance(known, KafkaError)):
                found[partition] = outcome

    backoff = cluster.backoff()
    left = requested
    while left:
        snapshot = cluster.metadata.snapshot
        # A partition without a leader leaves half of the time for the requests about the others.
        half = cluster.deadline(deadline.left(cluster.runtime.now()) / 2)
        leaders = await ask_one_by_one(left, partial(cluster.leader, deadline=half))
        is_slow = half.passed(cluster.runtime.now())
        by_leader: dict[Node, list[TopicPartition]] = {}
        for partition, node in leaders.items():
            if isinstance(node, KafkaError):
                found[partition] = node
            else:
                by_leader.setdefault(node, []).append(partition)
        await concurrently(ask, list(by_leader.items()))
        left = [partition for partition in left if _is_retriable(found[partition], is_slow=is_slow)]
        wait = backoff.next()
        if left and wait >= deadline.left(cluster.runtime.now()):
            break
        if left:
            cluster.metadata.mark_stale(snapshot)
            await anyio.sleep(wait)
    return timed_out({partition: found[partition] for partition in requested}, deadline)


async def _ask(
    cluster: Cluster,
    node: Node,
    partitions: list[TopicPartition],
    deadline: Deadline,
    request: Callable[[list[TopicPartition]], Request[R]],
    outcomes: Callable[[R], Mapping[TopicPartition, V | KafkaError]],
) -> Outcomes[TopicPartition, V]:
    asked = request(partitions)
    try:
        answered = outcomes(await cluster.ask(_route(node, partitions[0]), asked, deadline, lane=_LANE))
    except KafkaError as error:
        return dict.fromkeys(partitions, error)
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


def _is_retriable(outcome: object, *, is_slow: bool) -> bool:
    if isinstance(outcome, TopicNotReady):
        return is_slow  # otherwise the topic does not exist
    return isinstance(outcome, KafkaError) and retry_action(outcome).retry
