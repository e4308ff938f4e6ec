"""Fetch: the reading of record batches, and the long poll for new batches."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

import anyio

from ...errors import ErrorCode
from ...protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from ..cluster.api_error import ApiError
from ..cluster.state import ClusterState
from ..logs.log_reader import FetchParams, Read, failed
from ..logs.sessions import NO_SESSION, Wanted
from ..serving.call import ServerCall

__all__ = ("fetch",)

_TOPIC_IDS_SINCE: Final = 13


async def fetch(call: ServerCall, request: FetchRequest) -> FetchResponse:
    """Read the requested partitions; if the total is below ``min_bytes``, wait up to ``max_wait_ms`` for more."""
    cluster, sessions = call.cluster, call.node.sessions
    params = FetchParams.of(call, request)

    def name_of(topic_id: UUID) -> str | None:
        topic = cluster.topics.by_id(topic_id)
        return None if topic is None else topic.name

    try:
        by_topic_id = call.version >= _TOPIC_IDS_SINCE
        fetching = sessions.begin(request, name_of, by_topic_id=by_topic_id, now=cluster.timers.now())
    except ApiError as refused:
        return FetchResponse(error_code=refused.code, session_id=NO_SESSION, responses=[])
    known, unknown = list[Wanted](), list[tuple[Wanted, PartitionData]]()
    for wanted in fetching.partitions:
        fault = _fault(call, wanted)
        if fault is None:
            known.append(wanted)
        else:
            unknown.append((wanted, failed(wanted, fault)))
    read = await _read(params, known, request)
    results = read.results + unknown
    error, session_id, reported = fetching.answer(results, from_follower=params.from_follower, now=cluster.timers.now())
    return FetchResponse(
        error_code=error,
        session_id=session_id,
        responses=_by_topic(reported),
        node_endpoints=_endpoints(cluster, (data for _, data in reported)),
    )


async def _read(params: FetchParams, wanted: list[Wanted], request: FetchRequest) -> Read:
    read = Read(params, wanted)
    if request.max_wait_ms <= 0 or read.is_due:
        return read
    watched = read.logs
    with params.call.cluster.fetch_purgatory.watch(watched) as watch, anyio.move_on_after(request.max_wait_ms / 1000):
        # After a topic was deleted and created again, the logs differ: the wait ends, and the response reports this.
        while not read.is_due and read.logs == watched:
            await watch.wait()
            read = Read(params, wanted)
    return read


def _fault(call: ServerCall, wanted: Wanted) -> ErrorCode | None:
    """Return the error for a partition that does not exist or that the client may not read, else None.

    The long poll continues despite this error.
    """
    if wanted.topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if call.hides_topic is not None and call.hides_topic(wanted.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = call.cluster.topics.get(wanted.topic)
    if topic is None or not 0 <= wanted.asked.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


def _by_topic(results: Iterable[tuple[Wanted, PartitionData]]) -> list[FetchableTopicResponse]:
    """Group results by topic; a topic whose partitions are not adjacent has several entries."""
    topics: list[FetchableTopicResponse] = []
    for wanted, data in results:
        last = topics[-1] if topics else None
        name = wanted.topic or ""
        if last is None or (last.topic, last.topic_id) != (name, wanted.topic_id):
            last = FetchableTopicResponse(topic=name, topic_id=wanted.topic_id, partitions=[])
            topics.append(last)
        last.partitions.append(data)
    return topics


def _endpoints(cluster: ClusterState, answers: Iterable[PartitionData]) -> list[NodeEndpoint]:
    """Return the addresses of the leaders that the response names (KIP-951)."""
    named = {data.current_leader.leader_id for data in answers}
    return [
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for node in cluster.alive
        if node.node_id in named
    ]
