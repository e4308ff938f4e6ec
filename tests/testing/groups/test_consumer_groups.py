"""Sessions, rebalance timeouts, coordinators and settings of consumer groups, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest
from support import virtual_groups
from support.consumer_members import ConsumerMember, NewMember, configure_group, consumer_group, settle
from support.group_members import GroupMember, error
from support.raw_client import RawClient
from support.virtual_groups import GROUP, Join, reach, reads

from aiokafkawire.errors import ConfigError, ErrorCode
from aiokafkawire.protocol import ApiKey
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


@pytest.fixture
async def member(broker: Broker) -> AsyncIterator[NewMember]:
    broker.create_topic("u", partitions=2)
    async with AsyncExitStack() as stack:

        async def make(node_id: int = 0, **fields: Any) -> ConsumerMember:
            client = await stack.enter_async_context(await reach(broker, node_id or broker.coordinator(GROUP)))
            return ConsumerMember(client, GROUP, **{"topics": ["u"]} | fields)

        yield make


async def state(client: RawClient) -> tuple[str, int, int]:
    found = await consumer_group(client, GROUP)
    return found.group_state, found.group_epoch, len(found.members)


# --- sessions ------------------------------------------------------------------------------------------------------


async def test_who_sends_no_heartbeat_for_a_session_is_out(client: RawClient, member: NewMember) -> None:
    one, other = await member(), await member(instance="a")
    await one.join()
    await other.join()
    await settle(one, other)
    await anyio.sleep(44.9)
    await one.heartbeat()
    assert await state(client) == ("Stable", 3, 2)
    await anyio.sleep(0.2)
    assert await state(client) == ("Assigning", 4, 1)
    assert error(await other.heartbeat()) == "UNKNOWN_MEMBER_ID"
    await settle(one)
    assert one.indexes == [0, 1]


async def test_a_static_member_has_a_session_to_come_back(client: RawClient, member: NewMember) -> None:
    one = await member(instance="a")
    await one.join()
    await anyio.sleep(30)
    await one.leave(-2)
    await anyio.sleep(14.9)
    assert await state(client) == ("Reconciling", 2, 1)
    await anyio.sleep(0.2)
    assert await state(client) == ("Empty", 3, 0)


async def test_a_group_has_its_own_times(client: RawClient, member: NewMember) -> None:
    await configure_group(
        client, GROUP, consumer_session_timeout_ms="50000", consumer_heartbeat_interval_ms="6000"
    )  # fmt: skip
    one = await member()
    assert (await one.join()).heartbeat_interval_ms == 6_000
    await anyio.sleep(49.9)
    assert await state(client) == ("Stable", 2, 1)
    await anyio.sleep(0.2)
    assert await state(client) == ("Empty", 3, 0)


@pytest.mark.parametrize(
    "settings", [{"group_consumer_session_timeout_ms": 3_000, "group_consumer_heartbeat_interval_ms": 500}]
)
async def test_brokers_have_other_times(client: RawClient, member: NewMember) -> None:
    await configure_group(client, GROUP, consumer_session_timeout_ms="3000")  # as low as the brokers' own
    one = await member()
    assert (await one.join()).heartbeat_interval_ms == 500
    await anyio.sleep(3.1)
    assert await state(client) == ("Empty", 3, 0)


async def test_who_does_not_give_up_in_time_is_out(client: RawClient, member: NewMember) -> None:
    one, other = await member(rebalance_timeout_ms=10_000), await member()
    await one.join()
    await one.acknowledge()
    await other.join()
    await one.heartbeat()
    await anyio.sleep(9.9)
    assert (await one.heartbeat()).error_code == 0
    await anyio.sleep(0.2)
    assert error(await one.heartbeat()) == "UNKNOWN_MEMBER_ID"
    await settle(other)
    assert other.indexes == [0, 1]


async def test_who_gives_up_in_time_stays(member: NewMember) -> None:
    one, other = await member(rebalance_timeout_ms=10_000), await member()
    await one.join()
    await one.acknowledge()
    await other.join()
    await one.heartbeat()
    await one.acknowledge()
    await anyio.sleep(11)
    assert (await one.heartbeat()).error_code == 0


@pytest.mark.parametrize("settings", [{"clock": lambda: int(anyio.current_time() * 1000)}])
async def test_a_young_assignment_is_kept(client: RawClient, member: NewMember) -> None:
    await configure_group(client, GROUP, consumer_assignment_interval_ms="1000")
    one, other = await member(), await member()
    await one.join()
    joined = await other.join()
    assert (joined.member_epoch, other.assigned) == (2, set())
    assert await state(client) == ("Assigning", 3, 2)
    await anyio.sleep(1.1)
    await settle(one, other)
    assert (len(one.indexes), len(other.indexes)) == (1, 1)


# --- coordinators --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"nodes": 3}])
async def test_a_group_survives_its_coordinator_s_change(broker: Broker, member: NewMember) -> None:
    one, other = await member(), await member(rebalance_timeout_ms=20_000)
    await one.join()
    await other.join()
    await settle(one, other)
    held = one.assigned, other.assigned
    await anyio.sleep(40)
    after = next(node for node in broker.node_ids if node != broker.coordinator(GROUP))
    broker.move_coordinator(GROUP, after)
    refused = await one.heartbeat()
    assert (error(refused), refused.error_message) == ("NOT_COORDINATOR", "This is not the correct coordinator.")
    async with await reach(broker, after) as client:
        one.client = other.client = client
        await anyio.sleep(40)  # sessions began anew
        await settle(one, other)
        assert (one.assigned, other.assigned) == held
        assert one.epoch == other.epoch == 3
        await anyio.sleep(46)
        assert await state(client) == ("Empty", 5, 0)


@pytest.mark.parametrize("settings", [{"nodes": 3}])
async def test_a_new_coordinator_waits_for_revocations(broker: Broker, member: NewMember) -> None:
    one, other = await member(rebalance_timeout_ms=10_000), await member()
    await one.join()
    await one.acknowledge()
    await other.join()
    await one.heartbeat()
    after = next(node for node in broker.node_ids if node != broker.coordinator(GROUP))
    broker.move_coordinator(GROUP, after)
    async with await reach(broker, after) as client:
        await anyio.sleep(9.9)
        assert (await state(client))[2] == 2
        await anyio.sleep(0.2)
        assert (await state(client))[2] == 1


async def test_a_group_survives_a_restart(settings: dict[str, Any]) -> None:
    broker = Broker(port=None)
    broker.create_topic("u", partitions=2)
    async with broker, await reach(broker) as client:
        one = ConsumerMember(client, GROUP, ["u"])
        await one.join()
        await one.acknowledge()
    async with broker, await reach(broker) as client:
        one.client = client
        again = await one.heartbeat()
        assert (again.error_code, again.member_epoch) == (0, 2)
        await anyio.sleep(45.1)
        assert await state(client) == ("Empty", 3, 0)


async def test_a_group_ends_with_its_topic(broker: Broker, member: NewMember) -> None:
    one = await member()
    await one.join()
    broker.delete_topic("__consumer_offsets")
    assert error(await one.heartbeat()) == "GROUP_ID_NOT_FOUND"


# --- expiry --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{"clock": lambda: int(anyio.current_time() * 1000), "group_consumer_session_timeout_ms": 1_800_000}],
)
async def test_offsets_expire_seven_days_after_their_commit_unless_members_read_the_topic(
    client: RawClient, member: NewMember
) -> None:
    one = await member()
    await one.join()
    for topic in ("t", "u"):
        assert await commit(one, one.epoch, topic, 0) == "NONE"
    for _ in range(400):  # more than eight days
        await anyio.sleep(1_799)
        assert (await one.heartbeat()).error_code == 0
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])
    (answer,) = (await client.ask(asked, 9)).groups
    assert [topic.name for topic in answer.topics] == ["u"]
    await one.leave()
    assert await state(client) == ("Empty", 3, 0)
    await anyio.sleep(601)
    assert await state(client) == ("", 0, 0)


# --- regular expressions -------------------------------------------------------------------------------------------


async def test_regular_expressions_find_new_topics(broker: Broker, member: NewMember) -> None:
    one = await member(topics=None, regex="[uv]")
    joined = await one.join()
    assert (joined.member_epoch, one.assigned) == (1, set())
    await settle(one)
    assert (one.epoch, len(one.assigned or ())) == (2, 2)
    broker.create_topic("v")
    await one.acknowledge()
    await settle(one)
    assert (one.epoch, len(one.assigned or ())) == (3, 3)
    await one.heartbeat(subscribed_topic_regex="")
    await settle(one)
    assert (one.epoch, one.assigned) == (4, set())


async def test_members_share_a_regular_expression(member: NewMember) -> None:
    one, other = await member(topics=None, regex="u"), await member(topics=None, regex="u")
    await one.join()
    await settle(one)
    await other.join()
    await settle(one, other)
    assert sorted(one.indexes + other.indexes) == [0, 1]
    await one.leave()
    await settle(other)
    assert other.indexes == [0, 1]


# --- settings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"group_consumer_max_size": 1}])
async def test_a_full_group(member: NewMember) -> None:
    one, other = await member(), await member()
    await one.join()
    refused = await other.join()
    assert error(refused) == "GROUP_MAX_SIZE_REACHED"
    assert refused.error_message == "The consumer group has reached its maximum capacity of 1 members."
    assert (await one.join()).error_code == 0


@pytest.mark.parametrize("settings", [{"group_consumer_assignors": ("range",)}])
async def test_one_assignor(client: RawClient, member: NewMember) -> None:
    one = await member()
    refused = await one.join(server_assignor="uniform")
    assert refused.error_message == "ServerAssignor uniform is not supported. Supported assignors: range."
    await one.join()
    assert (await consumer_group(client, GROUP)).assignor_name == "range"


@pytest.mark.parametrize(
    "given",
    [
        {"group_consumer_assignors": ()},
        {"group_consumer_assignors": "range"},
        {"group_consumer_assignors": ("best",)},
        {"group_consumer_migration_policy": "sometimes"},
        {"group_consumer_max_size": 0},
    ],
)
def test_settings_that_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(given))):
        Broker(**given)


@pytest.mark.parametrize("settings", [{"max_versions": "4.2"}])
async def test_before_4_3_commits_need_the_epoch(client: RawClient, member: NewMember) -> None:
    one, other = await member(), await member()
    await one.join()
    await one.acknowledge()
    await other.join()
    await settle(one, other)
    assert one.epoch == 2
    assert await commit(one, 2) == "NONE"
    assert await commit(one, 1) == "STALE_MEMBER_EPOCH"


@pytest.mark.parametrize("settings", [{"max_versions": "3.9"}])
async def test_before_4_0_there_are_no_consumer_groups(client: RawClient, member: NewMember) -> None:
    one = await member()
    refused = await one.join(0)
    assert (error(refused), refused.error_message) == ("UNSUPPORTED_VERSION", None)
    assert error(await consumer_group(client, GROUP, 0)) == "UNSUPPORTED_VERSION"


async def commit(member: ConsumerMember, epoch: int, topic: str = "u", index: int | None = None) -> str:
    index = member.indexes[0] if index is None else index
    partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=epoch,
        member_id=member.member_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    return error((await member.client.ask(request, 9)).topics[0].partitions[0])


# --- classic members -----------------------------------------------------------------------------------------------


async def settled(client: RawClient, new: Join, **fields: Any) -> GroupMember:
    """A classic member of a consumer group, which has asked for its part."""
    one = await new(protocol_type="consumer", protocols=reads("u"), rebalance_timeout_ms=20_000, **fields)
    assert (await one.enter()).protocol_type == "consumer"
    assert (await one.sync()).error_code == 0
    return one


async def test_a_classic_member_has_its_own_session(client: RawClient, member: NewMember, new: Join) -> None:
    one = await member()
    await one.join()
    old = await settled(client, new, session_timeout_ms=10_000)
    await anyio.sleep(9.9)
    assert await old.heartbeat() == "NONE"
    await anyio.sleep(9.9)
    assert (await state(client))[2] == 2
    await anyio.sleep(0.2)
    assert (await state(client))[2] == 1
    assert await old.heartbeat() == "UNKNOWN_MEMBER_ID"


async def test_a_classic_member_has_to_sync_in_time(client: RawClient, member: NewMember, new: Join) -> None:
    await (await member()).join()
    old = await new(protocol_type="consumer", protocols=reads("u"), rebalance_timeout_ms=20_000)
    await old.enter()
    await anyio.sleep(19.9)
    assert (await state(client))[2] == 2
    await anyio.sleep(0.2)
    assert (await state(client))[2] == 1


async def test_a_classic_member_has_to_rejoin_in_time(client: RawClient, member: NewMember, new: Join) -> None:
    one, other = await member(), await member()
    await one.join()
    await one.acknowledge()
    old = await settled(client, new)
    await one.heartbeat()
    await one.acknowledge()
    await other.join()
    assert await old.heartbeat() == "REBALANCE_IN_PROGRESS"
    await anyio.sleep(19.9)
    assert await old.heartbeat() == "REBALANCE_IN_PROGRESS"
    assert (await state(client))[2] == 3
    await anyio.sleep(0.2)
    assert (await state(client))[2] == 2


async def test_a_downgraded_group_goes_on_when_the_session_of_the_last_member_ends(
    client: RawClient, member: NewMember, new: Join
) -> None:
    await (await member()).join()
    old = await settled(client, new, session_timeout_ms=100_000)
    await anyio.sleep(45.1)
    assert await virtual_groups.state(client) == ("PreparingRebalance", 1)
    assert (await old.join()).leader == old.member_id


@pytest.mark.parametrize("settings", [{"group_consumer_migration_policy": "disabled"}])
async def test_without_migration_members_of_the_other_type_are_refused(
    client: RawClient, member: NewMember, new: Join
) -> None:
    one = await member()
    await one.join()
    late = await new(protocol_type="consumer", protocols=reads("u"))
    assert error(await late.join()) == "INCONSISTENT_GROUP_PROTOCOL"
    await one.leave()
    await late.settle()
    refused = await one.join()
    assert refused.error_message == (
        f"Cannot upgrade classic group {GROUP} to consumer group because online upgrade is disabled."
    )


@pytest.mark.parametrize("settings", [{"group_consumer_migration_policy": "upgrade"}])
async def test_without_downgrades_classic_members_stay_in_a_consumer_group(
    client: RawClient, member: NewMember, new: Join
) -> None:
    one = await member()
    await one.join()
    old = await settled(client, new)
    await one.leave()
    assert await state(client) == ("Assigning", 4, 1)
    assert (await old.join()).generation_id == 4


@pytest.mark.parametrize("settings", [{"group_consumer_max_size": 1}])
async def test_a_group_that_is_too_large_is_not_upgraded(member: NewMember, new: Join) -> None:
    first = await new(protocol_type="consumer", protocols=reads("u"))
    await first.settle()
    other = await new(protocol_type="consumer", protocols=reads("u"))
    joining = await other.ask_to_enter()
    await first.hears_of_rebalance()
    await first.join()
    await other.joined(joining)
    one = await member()
    refused = await one.join()
    assert refused.error_message == (
        f"Cannot upgrade classic group {GROUP} to consumer group because the group size exceeds the consumer group "
        "maximum size."
    )


@pytest.mark.parametrize("metadata", [b"", b"\xff\xff", b"\0\0\0"])
async def test_a_malformed_subscription(member: NewMember, new: Join, metadata: bytes) -> None:
    await (await member()).join()
    late = await new(protocol_type="consumer", protocols=[("range", metadata)])
    assert error(await late.join(3)) == "UNKNOWN_SERVER_ERROR"


# --- faults --------------------------------------------------------------------------------------------------------


async def test_faults_of_heartbeats(broker: Broker, client: RawClient, member: NewMember) -> None:
    one = await member()
    rule = broker.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, answer=ErrorCode.COORDINATOR_NOT_AVAILABLE, group=GROUP)
    assert error(await one.join()) == "COORDINATOR_NOT_AVAILABLE"
    assert rule.count == 1
    assert (await one.join()).error_code == 0
    broker.on(ApiKey.CONSUMER_GROUP_DESCRIBE, answer=ErrorCode.NOT_COORDINATOR, group=GROUP)
    assert error(await consumer_group(client, GROUP)) == "NOT_COORDINATOR"
    assert len(broker.requests.of(ApiKey.CONSUMER_GROUP_HEARTBEAT, group=GROUP)) == 2
