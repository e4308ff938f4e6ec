"""ShareFetch and ShareAcknowledge: the records of share groups (KIP-932)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar
from uuid import UUID

import anyio

from ...errors import ErrorCode
from ...protocol.messages.share_fetch import (
    AcknowledgementBatch,
    NodeEndpoint,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeResponsePartitionData,
    ShareAcknowledgeTopicResponse,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResponsePartitionData,
)
from ..cluster.api_error import ApiError
from ..serving.call import ServerCall
from ..share.acknowledgements import acknowledged_ranges
from ..share.assignor import SharedPartition
from ..share.share_reader import ShareRead, hosted_partition, leader_of
from ..share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession
from .share_group import check_share_version

__all__ = ("share_acknowledge", "share_fetch")

_LONGEST_ID: Final = 36


class _Asking(Protocol):
    """The fields that both requests have."""

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool


_Data = TypeVar("_Data")

_Outcomes: TypeAlias = dict[SharedPartition, tuple[ErrorCode, str | None]]
"""The error code and message of the acknowledgements of each partition."""


async def share_fetch(call: ServerCall, request: ShareFetchRequest) -> ShareFetchResponse:
    """Apply the acknowledgements of a member and acquire records for it, if need be after a wait."""
    batches = {
        (topic.topic_id, partition.partition_index): partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    }
    acknowledged = {key: found for key, found in batches.items() if found}
    try:
        _check(call, request)
        if request.is_renew_ack and (request.max_bytes or request.max_wait_ms or request.min_bytes or _limits(request)):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        session = _session(call, request, list(batches), has_acknowledgements=bool(acknowledged))
    except ApiError as refused:
        return ShareFetchResponse(
            error_code=refused.code, error_message=refused.message, responses=[], node_endpoints=[]
        )
    outcomes = _acknowledge(call, request, acknowledged)
    reads_on = request.share_session_epoch != FINAL_EPOCH and not request.is_renew_ack
    read = await _read(call, request, session.in_turn() if reads_on else [])
    if request.share_session_epoch == FINAL_EPOCH:
        _close(call, session)
    results = _with_outcomes(call, read.results, outcomes, everything=request.share_session_epoch == INITIAL_EPOCH)
    return ShareFetchResponse(
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout_ms=call.cluster.shared.configs(session.group_id).lock_ms,
        responses=[
            ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in _by_topic(results).items()
        ],
        node_endpoints=_endpoints(call, (data.current_leader.leader_id for data in results.values() if _failed(data))),
    )


def _limits(request: ShareFetchRequest) -> bool:
    return bool(request.max_records or request.batch_size)


async def share_acknowledge(call: ServerCall, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    """Apply the acknowledgements of a member."""
    batches = {
        (topic.topic_id, partition.partition_index): partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    }
    try:
        _check(call, request)
        if request.share_session_epoch == INITIAL_EPOCH:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        sessions = call.node.share_sessions
        session = sessions.get(request.group_id or "", request.member_id or "", request.share_session_epoch)
    except ApiError as refused:
        return ShareAcknowledgeResponse(
            error_code=refused.code, error_message=refused.message, responses=[], node_endpoints=[]
        )
    outcomes = _acknowledge(call, request, batches)
    if request.share_session_epoch == FINAL_EPOCH:
        _close(call, session)
    results = {
        key: ShareAcknowledgeResponsePartitionData(
            partition_index=key[1], error_code=code, error_message=message, current_leader=leader_of(call, key, code)
        )
        for key, (code, message) in outcomes.items()
    }
    return ShareAcknowledgeResponse(
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout_ms=call.cluster.shared.configs(session.group_id).lock_ms,
        responses=[
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in _by_topic(results).items()
        ],
        node_endpoints=_endpoints(call, (data.current_leader.leader_id for data in results.values() if _failed(data))),
    )


def _check(call: ServerCall, request: _Asking) -> None:
    check_share_version(call)
    if not request.member_id or len(request.member_id) > _LONGEST_ID:
        raise ApiError(ErrorCode.INVALID_REQUEST)


def _session(
    call: ServerCall, request: ShareFetchRequest, named: Sequence[SharedPartition], *, has_acknowledgements: bool
) -> ShareSession:
    """Return the session of a ShareFetch, opened or updated.

    Raises:
        ApiError: INVALID_REQUEST, the first request acknowledges records; SHARE_SESSION_NOT_FOUND,
            INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED.
    """
    sessions, group_id, member_id = call.node.share_sessions, request.group_id or "", request.member_id or ""
    if request.share_session_epoch == INITIAL_EPOCH:
        if has_acknowledgements:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        slots = call.cluster.configs.synonyms("group.share.max.share.sessions")[0].value
        session = sessions.open(group_id, member_id, call.peer.number, int(slots or 0))
    else:
        session = sessions.get(group_id, member_id, request.share_session_epoch)
    if request.share_session_epoch != FINAL_EPOCH:
        forgotten = [(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions]
        sessions.update(session, named, forgotten)
    return session


def _close(call: ServerCall, session: ShareSession) -> None:
    call.node.share_sessions.close(session)
    call.cluster.shared.release(session, call.node.node_id)


def _acknowledge(
    call: ServerCall, request: _Asking, batches: Mapping[SharedPartition, Sequence[AcknowledgementBatch]]
) -> _Outcomes:
    outcomes: _Outcomes = {}
    group_id, member_id = request.group_id or "", request.member_id or ""
    may_renew = request.is_renew_ack and call.cluster.shared.configs(group_id).may_renew
    for key, found in batches.items() if any(batches.values()) else ():
        try:
            hosted_partition(call, key)
            ranges = acknowledged_ranges(found, may_renew=may_renew)
            state = call.cluster.shared.get(group_id, key)
            if state is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            call.cluster.shared.acknowledge(state, member_id, ranges)
            outcomes[key] = ErrorCode.NONE, None
        except ApiError as refused:
            outcomes[key] = refused.code, refused.message
    return outcomes


async def _read(call: ServerCall, request: ShareFetchRequest, keys: Sequence[SharedPartition]) -> ShareRead:
    """Acquire records; if there are too few, wait for more until the request's time is over."""
    read = ShareRead(call, request, keys, force=request.max_wait_ms <= 0)
    if request.max_wait_ms <= 0 or read.is_due or not keys:
        return read
    watched = read.logs
    with call.cluster.fetch_purgatory.watch(watched) as watch, anyio.move_on_after(request.max_wait_ms / 1000):
        while not read.is_due:
            await watch.wait()
            read = ShareRead(call, request, keys, force=False)
    return read if read.is_due else ShareRead(call, request, keys, force=True)


def _with_outcomes(
    call: ServerCall,
    read: Mapping[SharedPartition, ShareFetchResponsePartitionData],
    outcomes: _Outcomes,
    *,
    everything: bool,
) -> dict[SharedPartition, ShareFetchResponsePartitionData]:
    """Return the results to send: those with records, an error or acknowledgements, or all in the first response."""
    results = {
        key: data
        for key, data in read.items()
        if everything or data.error_code or data.acquired_records or key in outcomes
    }
    for key, (code, message) in outcomes.items():
        data = results.get(key)
        if data is None:
            data = results[key] = ShareFetchResponsePartitionData(
                partition_index=key[1],
                error_code=ErrorCode.NONE,
                acknowledge_error_code=code,
                current_leader=leader_of(call, key, code),
                records=b"",
                acquired_records=[],
            )
        data.acknowledge_error_code, data.acknowledge_error_message = code, message
    return results


def _failed(data: ShareFetchResponsePartitionData | ShareAcknowledgeResponsePartitionData) -> bool:
    if isinstance(data, ShareFetchResponsePartitionData) and data.acknowledge_error_code:
        return True
    return data.error_code != ErrorCode.NONE


def _by_topic(results: Mapping[SharedPartition, _Data]) -> dict[UUID, list[_Data]]:
    topics: dict[UUID, list[_Data]] = {}
    for (topic_id, _), data in results.items():
        topics.setdefault(topic_id, []).append(data)
    return topics


def _endpoints(call: ServerCall, leaders: Iterable[int]) -> list[NodeEndpoint]:
    """Return the addresses of the leaders that a response names (KIP-951)."""
    named = set(leaders)
    return [
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for node in call.cluster.alive
        if node.node_id in named
    ]
