"""A member of a streams group (KIP-1071) by single requests: an application that reads one topic, without tasks."""

from __future__ import annotations

from typing import Any

from support.raw_client import RawClient

from aiokafkawire.protocol.messages.streams_group import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)

__all__ = ("StreamsMember",)

_NO_TASKS: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}


class StreamsMember:
    """A member of a group whose application reads a topic."""

    def __init__(self, client: RawClient, group: str, topic: str) -> None:
        self.client, self.group, self.topic = client, group, topic
        self.member_id = "m" * 22
        self.epoch = 0
        self.tasks: dict[str, tuple[int, ...]] = {}

    async def join(self) -> None:
        """Join, with the topology."""
        topology = StreamsGroupHeartbeatRequestTopology(epoch=0, subtopologies=[_subtopology(self.topic)])
        await self.heartbeat(rebalance_timeout_ms=30_000, topology=topology, process_id="process", **_NO_TASKS)

    async def heartbeat(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """Send a heartbeat, and take the tasks of its answer."""
        answer = await self.client.ask(
            StreamsGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=self.epoch,
                endpoint_information_epoch=0,
                **fields,
            ),
            0,
        )
        assert not answer.error_code, (answer.error_code, answer.error_message)
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.tasks = {task.subtopology_id: tuple(sorted(task.partitions)) for task in answer.active_tasks}
        return answer

    async def own_tasks(self) -> None:
        """Send the tasks back, as a member does that has begun with them."""
        mine = [TaskIds(subtopology_id=name, partitions=list(indexes)) for name, indexes in self.tasks.items()]
        await self.heartbeat(active_tasks=mine, standby_tasks=[], warmup_tasks=[])

    async def leave(self) -> None:
        """Leave the group."""
        self.epoch = -1
        await self.heartbeat()


def _subtopology(topic: str) -> StreamsGroupHeartbeatRequestSubtopology:
    return StreamsGroupHeartbeatRequestSubtopology(
        subtopology_id="0",
        source_topics=[topic],
        source_topic_regex=[],
        state_changelog_topics=[],
        repartition_sink_topics=[],
        repartition_source_topics=[],
        copartition_groups=[],
    )
