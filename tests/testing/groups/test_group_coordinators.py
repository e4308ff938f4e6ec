"""A group whose coordinator is another broker than before."""

from __future__ import annotations

import anyio
import pytest
from support.group_members import GroupMember, described, error, listed
from support.virtual_groups import GROUP, Join, both, commit, reach, state

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.group_admin import DeleteGroupsRequest
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


three = pytest.mark.parametrize("settings", [{"nodes": 3}])


def another(broker: Broker) -> int:
    return next(node for node in broker.node_ids if node != broker.coordinator(GROUP))


@three
async def test_only_the_coordinator_answers(broker: Broker, new: Join) -> None:
    one = await new(another(broker), member_id="m", generation=1)
    client = one.client
    assert error(await one.join()) == error(await one.sync()) == await one.heartbeat() == "NOT_COORDINATOR"
    assert error(await one.leave()) == error(await one.leave(0)) == "NOT_COORDINATOR"
    assert await commit(one) == "NOT_COORDINATOR"
    assert error(await described(client, GROUP)) == "NOT_COORDINATOR"
    deleted = await client.ask(DeleteGroupsRequest(groups_names=[GROUP]), 2)
    assert error(deleted.results[0]) == "NOT_COORDINATOR"
    assert error(await client.ask(OffsetDeleteRequest(group_id=GROUP, topics=[]), 0)) == "NOT_COORDINATOR"
    asked = OffsetFetchRequestGroup(group_id=GROUP, topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])])
    assert error((await client.ask(OffsetFetchRequest(groups=[asked]), 9)).groups[0]) == "NOT_COORDINATOR"
    request = OffsetFetchRequest(group_id=GROUP, topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])])
    answer = await client.ask(request, 7)
    assert (error(answer), answer.topics) == ("NOT_COORDINATOR", [])
    (partition,) = (await client.ask(request, 1)).topics[0].partitions
    assert (error(partition), partition.committed_offset) == ("NOT_COORDINATOR", -1)


@three
async def test_each_broker_lists_its_own_groups(broker: Broker, new: Join) -> None:
    await (await new()).settle()
    for node_id in broker.node_ids:
        async with await reach(broker, node_id) as client:
            assert list(await listed(client)) == ([GROUP] if node_id == broker.coordinator(GROUP) else [])


@three
async def test_a_stable_group_survives_its_coordinator_s_change(broker: Broker, new: Join) -> None:
    one, other = await both(new, session_timeout_ms=10_000)
    assert await commit(one) == "NONE"
    await anyio.sleep(9)
    old, after = broker.coordinator(GROUP), another(broker)
    broker.move_coordinator(GROUP, after)
    assert broker.coordinator(GROUP) == after
    assert await one.heartbeat() == "NOT_COORDINATOR"
    async with await reach(broker, old) as client:
        found = await client.ask(FindCoordinatorRequest(key=GROUP), 0)
        assert found.node_id == after
    one.client, other.client = await reach(broker, after), await reach(broker, after)
    async with one.client, other.client:
        await anyio.sleep(9)  # sessions began anew
        assert await one.heartbeat() == await other.heartbeat() == "NONE"
        assert (await other.sync()).assignment == b"2"
        assert (await other.join()).generation_id == 2  # what it had said is known as well
        asked = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
        (answer,) = (await one.client.ask(OffsetFetchRequest(groups=[asked]), 9)).groups
        assert [partition.committed_offset for partition in answer.topics[0].partitions] == [1]
        await anyio.sleep(11)
        assert await state(one.client) == ("Empty", 0)


@three
async def test_who_waits_hears_that_the_coordinator_is_another(broker: Broker, new: Join) -> None:
    one, other = await both(new)
    joining = await one.ask_to_join()
    await other.hears_of_rebalance()
    broker.move_coordinator(GROUP, another(broker))
    assert error(await one.joined(joining)) == "NOT_COORDINATOR"
    one.client = await reach(broker, broker.coordinator(GROUP))
    async with one.client:
        assert await one.heartbeat() == "NONE"  # the rebalance was of the old coordinator alone


@three
async def test_a_generation_that_was_being_formed_is_lost(broker: Broker, new: Join) -> None:
    one, other, third = *(await both(new)), await new()
    joining = [await third.ask_to_enter()]
    await one.hears_of_rebalance()
    joining.append(await other.ask_to_join())
    await one.join()
    await third.joined(joining[0])
    await other.joined(joining[1])
    waiting = await third.ask_to_sync()
    assert await one.heartbeat() == "NONE"
    broker.move_coordinator(GROUP, another(broker))
    assert error(await third.synced(waiting)) == "NOT_COORDINATOR"
    for member, heard in ((one, "ILLEGAL_GENERATION"), (third, "UNKNOWN_MEMBER_ID")):
        async with await reach(broker, broker.coordinator(GROUP)) as member.client:
            assert await member.heartbeat() == heard
            assert (await state(member.client))[0] == "Stable"


@three
async def test_a_new_coordinator_may_take_its_time(broker: Broker, new: Join) -> None:
    one = await new(session_timeout_ms=10_000)
    await one.settle()
    broker.move_coordinator(GROUP, another(broker), loading=30)
    async with await reach(broker, broker.coordinator(GROUP)) as one.client:
        found = await one.client.ask(FindCoordinatorRequest(key=GROUP), 0)
        assert (found.error_code, found.node_id) == (0, broker.coordinator(GROUP))
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.name
        assert error(await one.join()) == error(await one.sync()) == error(await one.leave()) == loading
        assert await commit(one) == error(await described(one.client, GROUP)) == loading
        assert await one.heartbeat() == "NONE"  # Kafka alarms nobody
        await anyio.sleep(29)
        assert error(await one.sync()) == loading
        await anyio.sleep(1.1)
        assert (await one.sync()).assignment == b"mine"
        await anyio.sleep(9.8)
        assert await state(one.client) == ("Stable", 1)
        await anyio.sleep(0.3)
        assert await state(one.client) == ("Empty", 0)


@three
async def test_loading_ends_with_the_coordinator_that_loads(broker: Broker, new: Join) -> None:
    one = await new()
    await one.settle()
    first = broker.coordinator(GROUP)
    broker.move_coordinator(GROUP, another(broker), loading=30)
    broker.move_coordinator(GROUP, first)
    assert await one.heartbeat() == "NONE"
    await anyio.sleep(40)
    assert await one.heartbeat() == "NONE"


@three
async def test_another_coordinates_when_a_broker_stops(broker: Broker, new: Join) -> None:
    one = await new()
    await one.settle()
    stopped = broker.coordinator(GROUP)
    await broker.stop_node(stopped)
    assert broker.coordinator(GROUP) not in (stopped, -1)
    async with await reach(broker, broker.coordinator(GROUP)) as one.client:
        assert await one.heartbeat() == "NONE"
        assert (await one.sync()).assignment == b"mine"


async def test_a_group_outlives_its_only_broker(broker: Broker, new: Join) -> None:
    one = await new(session_timeout_ms=10_000)
    await one.settle()
    await broker.stop_node(1)
    await anyio.sleep(60)
    await broker.start_node(1)
    async with await reach(broker) as one.client:
        assert await one.heartbeat() == "NONE"


async def test_groups_outlive_a_restart() -> None:
    broker = Broker(port=None)
    async with broker, await reach(broker) as client:
        broker.create_topic("t")
        one = GroupMember(client, GROUP)
        await one.settle()
        assert await commit(one) == "NONE"
    async with broker, await reach(broker) as one.client:
        assert await one.heartbeat() == "NONE"
        assert (await one.sync()).assignment == b"mine"
        await anyio.sleep(61)
        assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"
