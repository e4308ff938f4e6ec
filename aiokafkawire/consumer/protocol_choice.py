"""The choice of the group protocol for ``group_protocol="auto"``."""

from typing import Final, Literal

from ..cluster.cluster import Cluster
from ..errors import BrokerError, ErrorCode, KafkaError, UnsupportedVersion, broker_error
from ..event_log import EventLog
from ..protocol.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from ..protocol.messages.group_admin import DescribeGroupsRequest, DescribeGroupsResponse
from ..types import CoordinatorType

__all__ = ("choose_protocol",)

_log = EventLog("aiokafkawire.group")

_CHOSEN_WITHIN: Final = 10.0
"""Seconds that a member waits for the descriptions of its group before it joins."""
_WITHOUT_MEMBERS: Final = ("Empty", "Dead", "")


async def choose_protocol(cluster: Cluster, group_id: str, lane: str) -> Literal["classic", "consumer"]:
    """Return the protocol for a member that is about to join the group.

    That is the consumer protocol if the coordinator offers it and the group has no members of the classic protocol,
    which would be converted; otherwise the classic one. If the group cannot be described, it is the classic one too.
    """
    deadline = cluster.deadline(_CHOSEN_WITHIN)

    def check(answer: ConsumerGroupDescribeResponse | DescribeGroupsResponse) -> None:
        for group in answer.groups:
            if group.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                raise broker_error(group.error_code, f"describing group {group_id!r}")

    try:
        kind, question = (
            CoordinatorType.GROUP,
            ConsumerGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False),
        )
        consumers = await cluster.ask_coordinator(kind, group_id, question, deadline, lane=lane, check=check)
        if any(group.error_code == ErrorCode.NONE for group in consumers.groups):
            return "consumer"
        classic = await cluster.ask_coordinator(
            kind, group_id, DescribeGroupsRequest(groups=[group_id]), deadline, lane=lane, check=check
        )
    except (UnsupportedVersion, BrokerError) as error:
        _log.debug("group %(group)r: the classic protocol, since %(error)s", group=group_id, error=error)
        return "classic"
    except KafkaError as error:
        message = "group %(group)r: the classic protocol, since the group cannot be described: %(error)s"
        _log.warning(message, group=group_id, error=error)
        return "classic"
    has_members = any(group.group_state not in _WITHOUT_MEMBERS for group in classic.groups)
    return "classic" if has_members else "consumer"
