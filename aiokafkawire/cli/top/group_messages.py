"""Requests about many groups of one coordinator, and the groups in the responses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from ...errors import ErrorCode, broker_error
from ...protocol.messages import consumer_group, group_admin, share_group, streams_group
from ...protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from ...protocol.schema import Request, Versions
from ...types import TopicPartition
from .sample import SampledGroup

__all__ = (
    "MANY_GROUPS",
    "ONE_GROUP",
    "DescribeResponse",
    "listed_groups",
    "describe_request",
    "one_group_request",
    "offsets_request",
    "share_offsets_request",
    "with_description",
    "with_error",
    "with_offsets",
    "with_share_offsets",
)

MANY_GROUPS: Final = Versions.parse("8-9")
"""The versions of OffsetFetch for several groups (KIP-709)."""
ONE_GROUP: Final = Versions.parse("2-7")
"""The versions of OffsetFetch for all offsets of one group (KIP-88)."""

Groups: TypeAlias = dict[str, SampledGroup]
DescribeResponse: TypeAlias = (
    group_admin.DescribeGroupsResponse
    | consumer_group.ConsumerGroupDescribeResponse
    | share_group.ShareGroupDescribeResponse
    | streams_group.StreamsGroupDescribeResponse
)


def listed_groups(response: group_admin.ListGroupsResponse, coordinator: int) -> Groups:
    """Return the groups that a broker lists; before 2.6 without states (KIP-518), before 3.8 without types (KIP-848).

    Raises:
        BrokerError: the broker answered with an error.
    """
    if response.error_code != ErrorCode.NONE:
        raise broker_error(response.error_code, "ListGroups")
    return {
        group.group_id: SampledGroup(
            group.group_id, coordinator, type=group.group_type.lower() or "classic", state=group.group_state
        )
        for group in response.groups
    }


# --- states and members --------------------------------------------------------------------------------------------


def describe_request(kind: str, group_ids: Sequence[str]) -> Request[Any]:
    """Return the request that describes groups of a type: "classic", "consumer", "share" or "streams"."""
    names = list(group_ids)
    if kind == "consumer":
        return consumer_group.ConsumerGroupDescribeRequest(group_ids=names, include_authorized_operations=False)
    if kind == "share":
        return share_group.ShareGroupDescribeRequest(group_ids=names, include_authorized_operations=False)
    if kind == "streams":
        return streams_group.StreamsGroupDescribeRequest(group_ids=names, include_authorized_operations=False)
    return group_admin.DescribeGroupsRequest(groups=names)


def with_description(groups: Mapping[str, SampledGroup], response: DescribeResponse) -> Groups:
    """Return the groups with the states and the numbers of members, or the errors, in a response."""
    described = dict(groups)
    for group in response.groups:
        known = groups.get(group.group_id)
        if known is None:
            continue
        if group.error_code != ErrorCode.NONE:
            described[group.group_id] = attrs.evolve(known, error=_reason(group.error_code, group.error_message))
        else:
            state = group.group_state
            described[group.group_id] = attrs.evolve(known, state=state, members=len(group.members), error=None)
    return described


def with_error(groups: Iterable[SampledGroup], error: str) -> Groups:
    """Return the groups with an error, and without the offsets and members of an earlier sample."""
    return {
        group.group_id: attrs.evolve(group, error=error, members=None, committed={}, known_lag={}) for group in groups
    }


# --- offsets -------------------------------------------------------------------------------------------------------


def offsets_request(group_ids: Sequence[str]) -> OffsetFetchRequest:
    """Return the request for all committed offsets of several groups, in the versions :data:`MANY_GROUPS`."""
    groups = [OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids]
    return OffsetFetchRequest(groups=groups)


def one_group_request(group_id: str) -> OffsetFetchRequest:
    """Return the request for all committed offsets of a group, in the versions :data:`ONE_GROUP`."""
    return OffsetFetchRequest(group_id=group_id, topics=None)


def with_offsets(groups: Mapping[str, SampledGroup], response: OffsetFetchResponse, group_id: str = "") -> Groups:
    """Return the groups with the committed offsets, or the errors, in a response.

    Args:
        groups: the groups that the request named.
        response: the response; its versions for one group do not name the group.
        group_id: the group of a request for one group.
    """
    fetched = dict(groups)
    answers: list[tuple[str, OffsetFetchResponse | OffsetFetchResponseGroup]]
    answers = [(group_id, response)] if group_id else [(group.group_id, group) for group in response.groups]
    for name, answer in answers:
        known = groups.get(name)
        if known is None:
            continue
        if answer.error_code != ErrorCode.NONE:
            fetched[name] = attrs.evolve(known, offsets_error=_reason(answer.error_code, None))
            continue
        committed: dict[TopicPartition, int] = {}
        failed = ErrorCode.NONE.value
        for topic in answer.topics:
            for partition in topic.partitions:
                if partition.error_code != ErrorCode.NONE:
                    failed = partition.error_code
                elif partition.committed_offset >= 0:
                    committed[TopicPartition(topic.name, partition.partition_index)] = partition.committed_offset
        error = _reason(failed, None) if failed != ErrorCode.NONE else None
        fetched[name] = attrs.evolve(known, committed=committed, offsets_error=error)
    return fetched


def share_offsets_request(group_ids: Sequence[str]) -> share_group.DescribeShareGroupOffsetsRequest:
    """Return the request for the start offsets of share groups, in all their partitions (KIP-932)."""
    groups = [
        share_group.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None) for group_id in group_ids
    ]
    return share_group.DescribeShareGroupOffsetsRequest(groups=groups)


def with_share_offsets(
    groups: Mapping[str, SampledGroup], response: share_group.DescribeShareGroupOffsetsResponse
) -> Groups:
    """Return the share groups with their start offsets, and the lag that brokers since 4.2 report (KIP-1226)."""
    fetched = dict(groups)
    for group in response.groups:
        known = groups.get(group.group_id)
        if known is None:
            continue
        if group.error_code != ErrorCode.NONE:
            fetched[group.group_id] = attrs.evolve(known, offsets_error=_reason(group.error_code, group.error_message))
            continue
        committed: dict[TopicPartition, int] = {}
        lag: dict[TopicPartition, int] = {}
        for topic in group.topics:
            for partition in topic.partitions:
                key = TopicPartition(topic.topic_name, partition.partition_index)
                if partition.error_code == ErrorCode.NONE and partition.start_offset >= 0:
                    committed[key] = partition.start_offset
                    if partition.lag >= 0:
                        lag[key] = partition.lag
        fetched[group.group_id] = attrs.evolve(known, committed=committed, known_lag=lag)
    return fetched


def _reason(code: int, message: str | None) -> str:
    error = broker_error(code, message or "")
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
