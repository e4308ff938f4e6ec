"""The two protocols of groups, and how the coordinator is asked who is in a group."""

from typing import Any, Literal, NamedTuple, TypeAlias

from support.group_members import described
from support.raw_client import RawClient

from aiokafkawire.protocol.messages.consumer_group import ConsumerGroupDescribeRequest
from aiokafkawire.protocol.messages.share_group import ShareGroupDescribeRequest
from aiokafkawire.testing.broker import Broker

__all__ = ("COORDINATORS", "SESSION_TIMEOUT_MS", "Protocol", "Taker", "client_ids", "who_shares", "who_takes_part")

Protocol: TypeAlias = Literal["classic", "consumer"]
SESSION_TIMEOUT_MS = 6_000
"""Of members of consumer groups, whose coordinator decides on it."""
COORDINATORS: dict[str, Any] = {
    "group_consumer_session_timeout_ms": SESSION_TIMEOUT_MS,
    "group_consumer_heartbeat_interval_ms": 1_000,
}
"""What the brokers of a run are given."""


class Taker(NamedTuple):
    """A member, as the coordinator has it."""

    client_id: str
    instance_id: str | None


async def who_takes_part(client: RawClient, group: str, protocol: Protocol) -> tuple[str, list[Taker]]:
    """Return the state of the group, and its members."""
    if protocol == "consumer":
        question = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
        (served,) = (await client.ask(question, 1)).groups
        return served.group_state, [Taker(member.client_id, member.instance_id) for member in served.members]
    classic = await described(client, group, 5)  # which releases before 4.0 serve, too
    return classic.group_state, [Taker(member.client_id, member.group_instance_id) for member in classic.members]


async def who_shares(client: RawClient, group: str) -> tuple[str, list[Taker]]:
    """Return the state of the share group, and its members."""
    question = ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    (shared,) = (await client.ask(question, 1)).groups
    return shared.group_state, [Taker(member.client_id, None) for member in shared.members]


def client_ids(broker: Broker, group: str) -> set[str]:
    """The clients whose members the group has at this moment."""
    return {member.client_id for member in broker._cluster.groups.get(group).members.values()}
