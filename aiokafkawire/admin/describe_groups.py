"""The admin's requests for descriptions of groups: ConsumerGroupDescribe, and DescribeGroups for classic groups."""

from collections.abc import Iterable, Mapping
from typing import Final

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import KafkaError, UnsupportedVersion
from ..protocol.messages import consumer_group, group_admin
from ..protocol.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from ..protocol.messages.group_admin import DescribeGroupsRequest, DescribeGroupsResponse
from ..protocol.schema import Request, Versions
from ..types import CoordinatorType, OffsetAndMetadata, TopicPartition
from .concurrent_outcomes import ask_one_by_one
from .coordinator_outcomes import ask_coordinators, call_by_coordinator
from .descriptions import GroupDescription
from .group_descriptions import DescribedGroup, description, group_outcomes, is_of_another_type
from .group_offsets import offsets_of_groups
from .outcomes import Outcomes

__all__ = ("describe_groups",)

_ANY: Final = Versions.parse("0+")
_OPERATIONS_SINCE: Final = Versions.parse("3+")  # of DescribeGroups (KIP-430)


async def describe_groups(
    cluster: Cluster, group_ids: Iterable[str], deadline: Deadline, *, operations: bool, classic_only: bool = False
) -> Outcomes[str, GroupDescription]:
    """Ask the groups' coordinators for descriptions and committed offsets; return the outcome of each group.

    With ``classic_only`` the outcome of a consumer group is GroupIdNotFound. Raise UnsupportedVersion if all
    coordinators are too old.
    """

    async def describe(some: list[str]) -> Outcomes[str, GroupDescription]:
        return await _describe(cluster, some, deadline, operations=operations, classic_only=classic_only)

    return await call_by_coordinator(cluster, CoordinatorType.GROUP, group_ids, deadline, describe)


async def _describe(
    cluster: Cluster, requested: list[str], deadline: Deadline, *, operations: bool, classic_only: bool
) -> Outcomes[str, GroupDescription]:
    described: Outcomes[str, DescribedGroup] = {}
    if not classic_only:
        described |= await _consumer_groups(cluster, requested, deadline, operations=operations)
    others = [group_id for group_id in requested if group_id not in described]
    described |= await _classic_groups(cluster, others, deadline, operations=operations)
    known = [group_id for group_id in requested if not isinstance(described[group_id], KafkaError)]
    offsets = await offsets_of_groups(cluster, known, deadline, stable=False)

    async def describe(group_id: str) -> GroupDescription:
        group = described[group_id]
        if isinstance(group, KafkaError):
            raise group
        node = await cluster.coordinator(CoordinatorType.GROUP, group_id, deadline)
        return description(group, node.address, _offsets(offsets[group_id]))

    return await ask_one_by_one(requested, describe)


def _offsets(
    outcome: Mapping[TopicPartition, OffsetAndMetadata] | KafkaError,
) -> Mapping[TopicPartition, OffsetAndMetadata]:
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


async def _consumer_groups(
    cluster: Cluster, group_ids: list[str], deadline: Deadline, *, operations: bool
) -> Outcomes[str, consumer_group.DescribedGroup]:
    """Describe those of the groups that are consumer groups; leave out the others."""

    def request(group_ids: list[str]) -> Request[ConsumerGroupDescribeResponse]:
        return ConsumerGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=operations)

    try:
        found: Outcomes[str, consumer_group.DescribedGroup] = await ask_coordinators(
            cluster,
            CoordinatorType.GROUP,
            group_ids,
            deadline,
            request=request,
            outcomes=lambda response: group_outcomes("ConsumerGroupDescribe", response.groups),
        )
    except UnsupportedVersion:
        return {}  # brokers before 3.7 have no consumer groups
    return {group_id: group for group_id, group in found.items() if not _is_of_another_type(group)}


def _is_of_another_type(group: DescribedGroup | KafkaError) -> bool:
    if isinstance(group, KafkaError):
        return isinstance(group, UnsupportedVersion)
    return is_of_another_type(group)


async def _classic_groups(
    cluster: Cluster, group_ids: list[str], deadline: Deadline, *, operations: bool
) -> Outcomes[str, group_admin.DescribedGroup]:
    def request(group_ids: list[str]) -> Request[DescribeGroupsResponse]:
        return DescribeGroupsRequest(groups=group_ids, include_authorized_operations=operations)

    return await ask_coordinators(
        cluster,
        CoordinatorType.GROUP,
        group_ids,
        deadline,
        request=request,
        outcomes=lambda response: group_outcomes("DescribeGroups", response.groups),
        versions=_OPERATIONS_SINCE if operations else _ANY,
    )
