"""The admin's requests about streams groups (KIP-1071)."""

from collections.abc import Collection
from typing import Final

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import KafkaError
from ..protocol.messages.streams_group import DescribedGroup, StreamsGroupDescribeRequest
from ..types import CoordinatorType
from .coordinator_outcomes import ask_coordinators, ask_one_by_one, call_by_coordinator
from .group_requests import delete_described
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

    async def described(group_id: str) -> StreamsGroupDescription:
        group = found[group_id]
        if isinstance(group, KafkaError):
            raise group
        node = await cluster.coordinator(CoordinatorType.GROUP, group_id, deadline)
        return streams_group_description(group, node.address)

    return await ask_one_by_one(found, described)


async def delete_streams_groups(
    cluster: Cluster, group_ids: Collection[str], deadline: Deadline
) -> Outcomes[str, None]:
    """Delete those of the groups that are streams groups; return None or the error for each group."""

    async def delete(some: list[str]) -> Outcomes[str, None]:
        # DeleteGroups deletes groups of any type.
        described = await describe_streams_groups(cluster, some, deadline, operations=False)
        return await delete_described(cluster, described, deadline)

    return await call_by_coordinator(cluster, CoordinatorType.GROUP, group_ids, deadline, delete)
