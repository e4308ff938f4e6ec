"""Descriptions of streams groups of all shapes, several groups, and brokers without streams groups."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.admin_errors import failing
from support.clusters import QUICK

from aiokafkawire import (
    Client,
    StreamsGroupMemberAssignment,
    StreamsGroupSubtopologyDescription,
    StreamsTopicInfo,
    UnsupportedVersion,
    WireError,
)
from aiokafkawire.admin.admin import Admin
from aiokafkawire.errors import ErrorCode, GroupAuthorizationFailed
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.streams_group import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeResponseSubtopology,
    StreamsGroupDescribeResponseTopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
)
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]


@asynccontextmanager
async def running(release: str | None = None, nodes: int = 1) -> AsyncIterator[tuple[Broker, Admin]]:
    async with (
        Broker(nodes, port=None, max_versions=release) as broker,
        Client(broker.bootstrap, connector=broker.connect, **QUICK) as kafka,
    ):
        yield broker, kafka.admin


def described(group_id: str, **fields: Any) -> DescribedGroup:
    given: dict[str, Any] = {
        "error_code": ErrorCode.NONE,
        "group_state": "NotReady",
        "group_epoch": 3,
        "assignment_epoch": 2,
        "members": [],
    }
    return DescribedGroup(group_id=group_id, **(given | fields))


def member() -> Member:
    tasks = [TaskIds(subtopology_id="1", partitions=[2, 0]), TaskIds(subtopology_id="0", partitions=[1])]
    return Member(
        member_id="m",
        member_epoch=2,
        instance_id="static",
        rack_id="shelf",
        client_id="app",
        client_host="/127.0.0.1",
        topology_epoch=4,
        process_id="process",
        user_endpoint=Endpoint(host="localhost", port=7070),
        client_tags=[KeyValue(key="zone", value="a")],
        task_offsets=[TaskOffset(subtopology_id="0", partition=1, offset=7)],
        task_end_offsets=[TaskOffset(subtopology_id="0", partition=1, offset=9)],
        assignment=Assignment(active_tasks=tasks, standby_tasks=[], warmup_tasks=[]),
        target_assignment=Assignment(active_tasks=[], standby_tasks=tasks[1:], warmup_tasks=tasks[:1]),
        is_classic=True,
    )


def topology() -> StreamsGroupDescribeResponseTopology:
    log = TopicInfo(
        name="log", partitions=0, replication_factor=0, topic_configs=[KeyValue(key="cleanup.policy", value="compact")]
    )
    again = TopicInfo(name="again", partitions=4, replication_factor=3, topic_configs=[])
    subtopology = StreamsGroupDescribeResponseSubtopology(
        subtopology_id="0",
        source_topics=["b", "a"],
        repartition_sink_topics=["again"],
        state_changelog_topics=[log],
        repartition_source_topics=[again],
    )
    return StreamsGroupDescribeResponseTopology(epoch=4, subtopologies=[subtopology])


async def test_a_group_is_described_with_all_that_a_broker_tells() -> None:
    async with running("4.4") as (broker, admin):
        group = described("g", members=[member()], topology=topology(), assignor_name="sticky", authorized_operations=8)
        broker.on(ApiKey.STREAMS_GROUP_DESCRIBE, answer=StreamsGroupDescribeResponse(groups=[group]))
        found = (await admin.describe_streams_groups("g", include_authorized_operations=True))["g"]
    assert (found.group_id, found.state, found.assignor) == ("g", "NotReady", "sticky")
    assert (found.group_epoch, found.assignment_epoch, found.topology_epoch) == (3, 2, 4)
    assert found.authorized_operations == frozenset({"READ"})
    assert found.subtopologies == (
        StreamsGroupSubtopologyDescription(
            "0",
            ("a", "b"),
            ("again",),
            (StreamsTopicInfo("log", 0, 0, {"cleanup.policy": "compact"}),),
            (StreamsTopicInfo("again", 4, 3, {}),),
        ),
    )
    (known,) = found.members
    assert (known.group_instance_id, known.rack, known.user_endpoint) == ("static", "shelf", Address("localhost", 7070))
    assert (known.topology_epoch, known.client_tags, known.is_classic) == (4, {"zone": "a"}, True)
    assert (known.task_offsets, known.task_end_offsets) == ({("0", 1): 7}, {("0", 1): 9})
    assert known.assignment == StreamsGroupMemberAssignment({"1": (0, 2), "0": (1,)}, {}, {})
    assert known.target_assignment == StreamsGroupMemberAssignment({}, {"0": (1,)}, {"1": (0, 2)})


async def test_a_group_whose_topology_is_not_known_has_none() -> None:
    async with running() as (broker, admin):
        epoch_only = StreamsGroupDescribeResponseTopology(epoch=1, subtopologies=None)
        for topology_, epoch in ((None, None), (epoch_only, 1)):
            group = described("g", topology=topology_)
            broker.on(ApiKey.STREAMS_GROUP_DESCRIBE, answer=StreamsGroupDescribeResponse(groups=[group]))
            found = (await admin.describe_streams_groups("g"))["g"]
            assert (found.topology_epoch, found.subtopologies, found.assignor) == (epoch, (), None)


async def test_groups_are_described_although_another_one_is_refused() -> None:
    async with running() as (broker, admin):
        refused = described("h", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, error_message="not yours")
        answer = StreamsGroupDescribeResponse(groups=[described("g"), refused])
        broker.on(ApiKey.STREAMS_GROUP_DESCRIBE, answer=answer)
        told = "describing streams groups failed for 1 of 2: .*StreamsGroupDescribe of group 'h': not yours"
        with failing(told) as failed:
            await admin.describe_streams_groups("g", "h")
        assert list(failed.value.results) == ["g"]
        assert isinstance(failed.value.errors["h"], GroupAuthorizationFailed)
        broker.on(ApiKey.STREAMS_GROUP_DESCRIBE, answer=StreamsGroupDescribeResponse(groups=[]))
        with pytest.raises(WireError, match="the StreamsGroupDescribe response lacks the requested group 'g'"):
            await admin.describe_streams_groups("g")


@pytest.mark.parametrize("release", ["2.8", "4.0", "4.1"])
async def test_brokers_without_streams_groups(release: str) -> None:
    async with running(release) as (_, admin):
        for call in (admin.describe_streams_groups, admin.delete_streams_groups):
            for groups in (["g"], ["g", "h"]):
                with pytest.raises(UnsupportedVersion, match=r"^streams groups need brokers since 4.2"):
                    await call(groups)
