"""Groups of ours, confluent-kafka and Java on the in-process broker."""

from __future__ import annotations

import pytest
from support.groups_tool import check_what_the_tool_tells
from support.mixed_groups import check_a_change_of_protocol, mixed_group
from support.mixed_shares import mixed_share_group
from support.share_groups_tool import check_a_share_group_of_javas

from aiokafkawire.testing import BackgroundBroker

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("order", [("ours", "confluent"), ("confluent", "ours")], ids=lambda order: f"{order[0]}-leads")
async def test_two_clients_share_whoever_leads(
    bootstrap: str, name: str, strategy: str, order: tuple[str, ...]
) -> None:
    async with mixed_group(bootstrap, name, *order, strategy=strategy, partitions=4) as group:
        await group.all_read()
        before = len(group.numbers())
        await group.write(60)
        await group.all_read()
        assert len(group.numbers()) == before + 60
        await group.leave(order[0])
        await group.shared(4)
        await group.write(60)
        await group.all_read()


async def test_the_protocol_changes_while_the_group_reads(name: str) -> None:
    with BackgroundBroker(group_consumer_heartbeat_interval_ms=200) as broker:
        await check_a_change_of_protocol(broker.bootstrap, name)


@pytest.mark.kafka
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("strategy", "leader"),
    [pytest.param("range", "ours", marks=pytest.mark.thorough), ("cooperative-sticky", "java")],
)
async def test_java_shares_with_us(bootstrap: str, name: str, strategy: str, leader: str) -> None:
    other = "java" if leader == "ours" else "ours"
    async with mixed_group(bootstrap, name, leader, other, strategy=strategy) as group:
        await group.all_read()
        await group.leave(leader)
        await group.shared(6)
        await group.write(60)
        await group.all_read()


@pytest.mark.thorough
@pytest.mark.kafka
@pytest.mark.timeout(300)
async def test_kafkas_tool_tells_of_our_members(bootstrap: str, name: str) -> None:
    await check_what_the_tool_tells(bootstrap, name)


@pytest.mark.thorough
@pytest.mark.kafka
@pytest.mark.timeout(300)
async def test_kafkas_tool_and_our_admin_agree_on_a_share_group(bootstrap: str, name: str) -> None:
    await check_a_share_group_of_javas(bootstrap, name)


@pytest.mark.kafka
@pytest.mark.timeout(300)
async def test_three_clients_share_in_the_consumer_protocol(name: str) -> None:
    members = ("ours-consumer", "java-consumer", "confluent-consumer")
    with BackgroundBroker(group_consumer_heartbeat_interval_ms=200) as broker:
        async with mixed_group(broker.bootstrap, name, *members, strategy="uniform") as group:
            await group.all_read()
            await group.leave("ours-consumer")
            await group.shared(6)
            await group.write(60)
            await group.all_read()


@pytest.mark.slow
async def test_confluent_shares_records_with_us(bootstrap: str, name: str) -> None:
    async with mixed_share_group(bootstrap, name, "ours", "confluent") as group:
        while min(group.read["ours"], group.read["confluent"]) < 20:
            await group.write(200)
            await group.until_all_read()
        assert sorted(group.numbers) == list(range(group.written))


@pytest.mark.kafka
@pytest.mark.timeout(300)
async def test_java_and_confluent_share_records_with_us(bootstrap: str, name: str) -> None:
    async with mixed_share_group(bootstrap, name, "ours", "java", "confluent") as group:
        while min(group.read[member] for member in ("ours", "java", "confluent")) < 20:
            await group.write(200)
            await group.until_all_read()
        assert len(group.numbers) == len(set(group.numbers)) == group.read["ours"] + group.read["confluent"]
