"""Groups of ours, confluent-kafka and Java on real Apache Kafka, and what Kafka's tool tells of our members."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex

import pytest
from support.apache_kafka import ApacheKafka
from support.groups_tool import check_what_the_tool_tells
from support.mixed_groups import check_a_change_of_protocol, mixed_group
from support.mixed_shares import mixed_share_group
from support.share_groups_tool import check_a_share_group_of_javas

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.timeout(300),
]

LEADING = [
    ("range", ("ours", "confluent", "java")),
    ("range", ("java", "ours", "confluent")),
    ("cooperative-sticky", ("ours", "confluent", "java")),
    ("cooperative-sticky", ("confluent", "ours", "java")),
]
"""Strategies, and who comes first and leads; the other orders are asked of the in-process broker."""


@pytest.fixture(scope="module")
def apache_kafka_quick(apache_kafka: ApacheKafka) -> Iterator[ApacheKafka]:
    """A server whose consumer groups learn of changes at once."""
    quick = {
        "group.consumer.heartbeat.interval.ms": "200",
        "group.consumer.min.heartbeat.interval.ms": "200",
        "group.consumer.assignment.interval.ms": "0",
    }
    with ApacheKafka(apache_kafka.version, properties=quick) as kafka:
        yield kafka


@pytest.fixture
def name() -> str:
    return f"mixed-{token_hex(4)}"


@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        pytest.param(*each, marks=() if index == 1 else pytest.mark.thorough, id=f"{each[0]}-{each[1][0]}-leads")
        for index, each in enumerate(LEADING)
    ],
)
async def test_three_clients_share_whoever_leads(
    apache_kafka: ApacheKafka, name: str, strategy: str, order: tuple[str, ...]
) -> None:
    async with mixed_group(apache_kafka.bootstrap, name, *order, strategy=strategy) as group:
        await group.all_read()
        before = len(group.numbers())
        await group.write(60)
        await group.all_read()
        # Nothing has changed hands meanwhile, so nothing is read twice.
        assert len(group.numbers()) == before + 60
        assert [len(one.owned) for one in group.members.values()] == [2, 2, 2]
        # The leader goes, and another leads.
        await group.leave(order[0])
        await group.shared(6)
        await group.write(60)
        await group.all_read()


@pytest.mark.thorough  # as of the in-process broker, in every run
async def test_three_clients_share_in_the_consumer_protocol(apache_kafka_quick: ApacheKafka, name: str) -> None:
    members = ("ours-consumer", "java-consumer", "confluent-consumer")
    async with mixed_group(apache_kafka_quick.bootstrap, name, *members, strategy="uniform") as group:
        await group.all_read()
        before = len(group.numbers())
        await group.write(60)
        await group.all_read()
        assert len(group.numbers()) == before + 60
        assert [len(one.owned) for one in group.members.values()] == [2, 2, 2]
        await group.leave("java-consumer")
        await group.shared(6)
        await group.write(60)
        await group.all_read()


@pytest.mark.thorough
async def test_three_clients_share_records(apache_kafka: ApacheKafka, name: str) -> None:
    async with mixed_share_group(apache_kafka.bootstrap, name, "ours", "java", "confluent") as group:
        while min(group.read[member] for member in ("ours", "java", "confluent")) < 20:
            await group.write(200)
            await group.until_all_read()
        assert len(group.numbers) == len(set(group.numbers)) == group.read["ours"] + group.read["confluent"]


async def test_the_protocol_changes_while_the_group_reads(apache_kafka_quick: ApacheKafka, name: str) -> None:
    await check_a_change_of_protocol(apache_kafka_quick.bootstrap, name)


@pytest.mark.thorough  # as of the in-process broker, in every run
async def test_kafkas_tool_tells_of_our_members(apache_kafka: ApacheKafka, name: str) -> None:
    await check_what_the_tool_tells(apache_kafka.bootstrap, name)


@pytest.mark.thorough  # as of the in-process broker, in every run
async def test_kafkas_tool_and_our_admin_agree_on_a_share_group_of_apache_kafka(
    apache_kafka: ApacheKafka, name: str
) -> None:
    await check_a_share_group_of_javas(apache_kafka.bootstrap, name)
