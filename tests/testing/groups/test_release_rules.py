"""Rules of consumer groups that differ between releases since 4.0; Apache Kafka confirms them in `nox -s matrix`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from support.consumer_members import ConsumerMember, NewMember, consumer_group, settle
from support.group_members import error
from support.raw_client import RawClient
from support.virtual_groups import GROUP, Join, reach

from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


def by_release(*rows: tuple[Any, ...], **fields: Any) -> pytest.MarkDecorator:
    """Parametrizes a test by releases and what is expected of them."""
    return pytest.mark.parametrize(
        ("settings", "expected"), [({"max_versions": row[0], **fields}, *row[1:]) for row in rows], ids=str
    )


@pytest.fixture
async def member(broker: Broker) -> AsyncIterator[NewMember]:
    broker.create_topic("u", partitions=2)
    async with AsyncExitStack() as stack:

        async def make(**fields: Any) -> ConsumerMember:
            client = await stack.enter_async_context(await reach(broker, broker.coordinator(GROUP)))
            return ConsumerMember(client, GROUP, **{"topics": ["u"]} | fields)

        yield make


@by_release(("4.0", 1), ("4.2", 1), ("4.3", 2), ("4.4", 2))
@pytest.mark.parametrize("subscription", [{"topics": ["u"]}, {"topics": None, "regex": "u"}])
async def test_the_first_epoch(member: NewMember, expected: int, subscription: dict[str, Any]) -> None:
    one = await member(**subscription)
    joined = await one.join()
    # A regular expression is resolved after the join, which raises the epoch once more where the epochs begin at 1.
    assert joined.member_epoch == (expected if one.topics else 1)


@by_release(("4.1", "FENCED_MEMBER_EPOCH"), ("4.2", "NONE"))
async def test_a_member_joins_again(member: NewMember, expected: str) -> None:
    one, other = await member(), await member()
    await one.join()
    await one.acknowledge()
    await other.join()
    await settle(one, other)
    assert error(await one.join()) == expected


@by_release(("4.2", 1), ("4.3", 2))
async def test_partitions_that_are_not_revoked_yet_are_described(
    client: RawClient, member: NewMember, expected: int
) -> None:
    one, other = await member(), await member()
    await one.join()
    await one.acknowledge()
    await other.join()
    await one.heartbeat()
    found = {seen.member_id: seen for seen in (await consumer_group(client, GROUP)).members}
    (assigned,) = found[one.member_id].assignment.topic_partitions
    assert len(assigned.partitions) == expected


@by_release(("4.3", 1), ("4.4", 0))
async def test_the_last_member_leaves(client: RawClient, member: NewMember, expected: int) -> None:
    one = await member()
    await one.join()
    await one.leave()
    found = await consumer_group(client, GROUP)
    assert (found.group_state, found.group_epoch - found.assignment_epoch) == ("Empty", expected)


@by_release(("4.3", 2), ("4.4", 3))
async def test_another_assignor_is_preferred(member: NewMember, expected: int) -> None:
    one = await member()
    await one.join()
    await one.acknowledge()
    assert (await one.heartbeat(server_assignor="uniform")).member_epoch == 2
    assert (await one.heartbeat(server_assignor="range")).member_epoch == expected


@by_release(("4.3", "GROUP_MAX_SIZE_REACHED"), ("4.4", "NONE"), group_consumer_max_size=1)
async def test_a_static_member_comes_back_to_a_full_group(member: NewMember, expected: str) -> None:
    one, again = await member(instance="a"), await member(instance="a")
    await one.join()
    await one.leave(-2)
    assert error(await again.join()) == expected


@by_release(("4.3", "UNKNOWN_SERVER_ERROR"), ("4.4", "INCONSISTENT_GROUP_PROTOCOL"))
async def test_a_malformed_subscription(member: NewMember, new: Join, expected: str) -> None:
    await (await member()).join()
    classic = await new(protocol_type="consumer", protocols=[("range", b"\0")])
    assert error(await classic.join()) == "MEMBER_ID_REQUIRED"
    assert error(await classic.join()) == expected
