"""The current assignments of a group's members, as DescribeGroups returns them (KIP-40)."""

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import ErrorCode, broker_error
from ..protocol.messages.group_admin import DescribeGroupsRequest, DescribeGroupsResponse
from ..types import CoordinatorType, TopicPartition
from .consumer_protocol import decode_assignment

__all__ = ("assigned_in",)


async def assigned_in(
    cluster: Cluster, group_id: str, deadline: Deadline, lane: str
) -> dict[TopicPartition, None] | None:
    """Return all partitions assigned in a group of consumers; None while the group is rebalancing.

    Raises:
        RequestTimeout: the deadline passed.
        WireError: an assignment cannot be decoded.
        KafkaError: another error that is not retriable.
    """

    def check(answer: DescribeGroupsResponse) -> None:
        for group in answer.groups:
            if group.error_code != ErrorCode.NONE:
                raise broker_error(group.error_code, f"DescribeGroups of group {group_id!r}")

    answer = await cluster.ask_coordinator(
        CoordinatorType.GROUP, group_id, DescribeGroupsRequest(groups=[group_id]), deadline, lane=lane, check=check
    )
    stable = [group for group in answer.groups if group.group_id == group_id and group.group_state == "Stable"]
    if not stable:
        return None
    assignments = [bytes(member.member_assignment) for member in stable[0].members if member.member_assignment]
    return {partition: None for assignment in assignments for partition in decode_assignment(assignment).partitions}
