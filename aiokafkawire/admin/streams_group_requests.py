"""The admin's requests about streams groups (KIP-1071)."""

from collections.abc import Collection
from typing import Final

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..protocol.messages.streams_group import DescribedGroup, StreamsGroupDescribeRequest
from ..types import CoordinatorType
from .coordinator_outcomes import ask_coordinators, with_coordinators
from .group_requests import delete_of_type
from .outcomes import Outcomes
from .streams_group_descriptions import StreamsGroupDescription
from .streams_group_messages import streams_group_description, streams_group_outcomes

__all__ = ("delete_streams_groups", "describe_streams_groups")

_NEEDS: Final = "streams groups need brokers since 4.2, or 4.1 with the feature streams.version (KIP-1071)"


async def describe_streams_groups(
    cluster: Cluster, group_ids: Collection[str], deadline: Deadline, *, operations: bool
) -> Outcomes[str, StreamsGroupDescription]:
    """Ask the groups' coordinators for descriptions; return the outcome of each group.

    Raise UnsupportedVersion if all coordinators are too old.
    """

    def request(group_ids: list[str]) -> StreamsGroupDescribeRequest:
        return StreamsGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=operations)

    found: Outcomes[str, DescribedGroup] = await ask_coordinators(
        cluster,
        CoordinatorType.GROUP,
        group_ids,
        deadline,
        request=request,
        outcomes=streams_group_outcomes,
        needs=_NEEDS,
    )

    return await with_coordinators(
        cluster,
        CoordinatorType.GROUP,
        found,
        deadline,
        lambda group, node: streams_group_description(group, node.address),
    )


async def delete_streams_groups(
    cluster: Cluster, group_ids: Collection[str], deadline: Deadline
) -> Outcomes[str, None]:
    """Delete those of the groups that are streams groups; return None or the error for each group."""

    async def describe(some: list[str]) -> Outcomes[str, StreamsGroupDescription]:
        return await describe_streams_groups(cluster, some, deadline, operations=False)

    return await delete_of_type(cluster, group_ids, deadline, describe)
