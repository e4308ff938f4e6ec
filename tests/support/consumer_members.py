"""Members of consumer groups (KIP-848), one connection each; nothing that they ask is retried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID, uuid4

import anyio
import attrs
from support.raw_client import RawClient

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from aiokafkawire.protocol.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
)
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest

from .patience import PATIENCE

__all__ = (
    "ConsumerMember",
    "NewMember",
    "assign_at_once",
    "configure_group",
    "consumer_group",
    "held",
    "settle",
    "wait_for_configs",
)

_GROUP = 32
_SET = 0
_INTERVAL_SINCE = 5
"""Version of DescribeLogDirs, which is as new as the setting (4.3)."""

Partitions = set[tuple[UUID, int]]


@attrs.define
class ConsumerMember:
    """What a member knows of itself."""

    client: RawClient
    group: str
    topics: list[str] | None
    regex: str | None = None
    instance: str | None = None
    rebalance_timeout_ms: int = 60_000
    member_id: str = attrs.field(factory=lambda: str(uuid4()))
    epoch: int = 0
    owned: Partitions = attrs.field(factory=set)
    assigned: Partitions | None = None
    """The assignment of the last answer that had one."""

    async def join(self, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send the first heartbeat, with all fields."""
        given: dict[str, Any] = {
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "subscribed_topic_names": self.topics,
            "subscribed_topic_regex": self.regex,
            "topic_partitions": [],
            "instance_id": self.instance,
        }
        self.epoch, self.owned = 0, set()
        return await self.heartbeat(version, **(given | fields))

    async def heartbeat(self, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat; what the answer says of the member is remembered."""
        given: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance,
        }
        answer = await self.client.ask(ConsumerGroupHeartbeatRequest(**(given | fields)), version)
        if not answer.error_code:
            self.member_id, self.epoch = answer.member_id or self.member_id, answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {
                    (topic.topic_id, index)
                    for topic in answer.assignment.topic_partitions
                    for index in topic.partitions
                }
        return answer

    async def acknowledge(self, *, revoke_only: bool = False) -> ConsumerGroupHeartbeatResponse:
        """Give up what is not assigned, take what is, and say so."""
        assigned = self.assigned or set()
        self.owned = self.owned & assigned if revoke_only else set(assigned)
        return await self.heartbeat(topic_partitions=held(self.owned))

    async def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        """Leave the group; -2: for now."""
        answer = await self.heartbeat(member_epoch=epoch)
        self.epoch, self.owned = 0, set()
        return answer

    @property
    def indexes(self) -> list[int]:
        """The assigned partitions, without their topics."""
        return sorted(index for _, index in self.assigned or ())


def held(partitions: Partitions) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    """Partitions as a heartbeat reports them."""
    topics: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=indexes)
        for topic_id, indexes in topics.items()
    ]


NewMember = Callable[..., Awaitable[ConsumerMember]]


async def settle(*members: ConsumerMember) -> None:
    """Let members send heartbeats until nobody has anything to give up or to take."""
    with anyio.fail_after(PATIENCE):
        while True:
            before = [(member.epoch, member.assigned) for member in members]
            for member in members:
                answer = await member.acknowledge()
                assert answer.error_code == 0, answer
            if before == [(member.epoch, member.assigned) for member in members]:
                return


async def consumer_group(
    client: RawClient, group: str, version: int = 1, *, operations: bool = False
) -> DescribedGroup:
    """What ConsumerGroupDescribe says of a group."""
    request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=operations)
    return (await client.ask(request, version)).groups[0]


async def assign_at_once(client: RawClient, group: str) -> None:
    """Let the coordinator make an assignment at each change, as releases before 4.3 always do."""
    versions = (await client.ask(ApiVersionsRequest(), 0)).api_keys
    if any(api.api_key == ApiKey.DESCRIBE_LOG_DIRS and api.max_version >= _INTERVAL_SINCE for api in versions):
        await configure_group(client, group, consumer_assignment_interval_ms="0")


async def configure_group(client: RawClient, group: str, **configs: str) -> None:
    """Change settings of a group (underscores for dots), and wait until they are known; Apache Kafka takes a moment."""
    wanted = {name.replace("_", "."): value for name, value in configs.items()}
    given = [
        IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=_SET, value=value)
        for name, value in wanted.items()
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=_GROUP, resource_name=group, configs=given
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    answer = await client.ask(request, 1)
    assert answer.responses[0].error_code == 0, answer
    await wait_for_configs(client, group, wanted)


async def wait_for_configs(client: RawClient, group: str, wanted: Mapping[str, str]) -> None:
    """Wait until the broker knows these configs of a group."""
    asked = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=_GROUP, resource_name=group, configuration_keys=list(wanted))]
    )
    with anyio.fail_after(PATIENCE):
        while True:
            (found,) = (await client.ask(asked, 4)).results
            if {config.name: config.value for config in found.configs} == wanted:
                return
