"""The admin's requests for descriptions of groups: ConsumerGroupDescribe, and DescribeGroups for classic groups."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Final, TypeVar

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import UnsupportedVersion
from ..protocol.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from ..protocol.messages.group_admin import DescribeGroupsRequest, DescribeGroupsResponse
from ..protocol.schema import Request, Versions
from ..types import CoordinatorType
from .descriptions import GroupDescription
from .group_descriptions import DescribedGroup, check_found, description, found_groups, is_of_another_type
from .group_offsets import by_coordinator, offsets_of_groups

__all__ = ("describe_groups",)

R = TypeVar("R", ConsumerGroupDescribeResponse, DescribeGroupsResponse)

_LANE: Final = "admin"
_ANY: Final = Versions.parse("0+")
_OPERATIONS_SINCE: Final = Versions.parse("3+")  # of DescribeGroups (KIP-430)


async def describe_groups(
    cluster: Cluster, group_ids: Collection[str], deadline: Deadline, *, operations: bool, classic_only: bool = False
) -> dict[str, GroupDescription]:
    """Ask the groups' coordinators for descriptions and committed offsets. Raise as :meth:`Admin.describe_groups`.

    With ``classic_only`` a consumer group raises GroupIdNotFound.
    """
    requested = list(dict.fromkeys(group_ids))
    described: dict[str, DescribedGroup] = {}
    if not classic_only:
        described |= await _consumer_groups(cluster, requested, deadline, operations=operations)
    others = [group_id for group_id in requested if group_id not in described]
    described |= await _classic_groups(cluster, others, deadline, operations=operations)
    offsets = await offsets_of_groups(cluster, requested, deadline, stable=False)
    descriptions = {}
    for group_id in requested:
        node = await cluster.coordinator(CoordinatorType.GROUP, group_id, deadline)
        descriptions[group_id] = description(described[group_id], node.address, offsets[group_id])
    return descriptions


async def _consumer_groups(
    cluster: Cluster, group_ids: list[str], deadline: Deadline, *, operations: bool
) -> dict[str, DescribedGroup]:
    """Describe those of the groups that are consumer groups."""

    def question(group_ids: list[str]) -> Request[ConsumerGroupDescribeResponse]:
        return ConsumerGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=operations)

    found = await _describe_together(cluster, group_ids, question, _ANY, deadline)
    for group_id in group_ids:
        if group_id not in found:
            try:
                found[group_id] = await _describe(cluster, group_id, question, _ANY, deadline)
            except UnsupportedVersion:
                continue  # brokers before 3.7 have no consumer groups
    return {group_id: group for group_id, group in found.items() if not is_of_another_type(group)}


async def _classic_groups(
    cluster: Cluster, group_ids: list[str], deadline: Deadline, *, operations: bool
) -> dict[str, DescribedGroup]:
    def question(group_ids: list[str]) -> Request[DescribeGroupsResponse]:
        return DescribeGroupsRequest(groups=group_ids, include_authorized_operations=operations)

    wanted = _OPERATIONS_SINCE if operations else _ANY
    found = await _describe_together(cluster, group_ids, question, wanted, deadline)
    for group_id in group_ids:
        if group_id not in found:
            found[group_id] = await _describe(cluster, group_id, question, wanted, deadline)
    return found


async def _describe_together(
    cluster: Cluster,
    group_ids: list[str],
    question: Callable[[list[str]], Request[R]],
    wanted: Versions,
    deadline: Deadline,
) -> dict[str, DescribedGroup]:
    """Describe groups by one request to each coordinator; leave out groups with errors, and those without another."""
    found: dict[str, DescribedGroup] = {}
    for together in await by_coordinator(cluster, group_ids, deadline) if len(group_ids) > 1 else []:
        try:
            response = await cluster.ask_coordinator(
                CoordinatorType.GROUP,
                together[0],
                question(together),
                deadline,
                lane=_LANE,
                wanted=wanted,
                check=lambda _: None,
            )
        except UnsupportedVersion:
            continue
        found |= found_groups(response)
    return found


async def _describe(
    cluster: Cluster,
    group_id: str,
    question: Callable[[list[str]], Request[R]],
    wanted: Versions,
    deadline: Deadline,
) -> DescribedGroup:
    """Describe one group, and retry until it is found or has an error that is not retriable."""
    response = await cluster.ask_coordinator(
        CoordinatorType.GROUP,
        group_id,
        question([group_id]),
        deadline,
        lane=_LANE,
        wanted=wanted,
        check=partial(check_found, group_id),
    )
    return found_groups(response)[group_id]
