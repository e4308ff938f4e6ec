"""Dead-letter queues of share groups (KIP-1191), as Apache Kafka 4.4 writes to them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from support.patience import PATIENCE
from support.raw_client import RawClient, records_of
from support.share_members import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    Acks,
    ShareMember,
    acquired,
    configure,
    new_share_group,
)

from aiokafkawire.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from aiokafkawire.protocol.messages.metadata import MetadataResponseTopic
from aiokafkawire.records.batch import BatchBuilder, ConsumerRecord

if TYPE_CHECKING:
    from testing.conftest import Kafka

pytestmark = pytest.mark.anyio

Joined: TypeAlias = Callable[..., Awaitable[ShareMember]]
Letters: TypeAlias = list[ConsumerRecord[bytes, bytes]]

TOPIC, BROKER, GROUP = 2, 4, 32
REJECTED = "Offset rejected by client."
EXHAUSTED = "Offset delivery count exceeded the threshold."
_queues = (f"dlq.{number}" for number in count())


@pytest.fixture
async def share_group(client: RawClient) -> AsyncIterator[str]:
    async for group in new_share_group(client):
        yield group


@pytest.fixture
async def queue(kafka: Kafka, client: RawClient, share_group: str) -> str:
    """A topic that may be a dead-letter queue, and that the group's configs name."""
    name = await kafka.topic_with(client, next(_queues), errors_deadletterqueue_group_enable="true")
    await configure(
        client,
        share_group,
        share_auto_offset_reset="earliest",
        share_delivery_count_limit="2",
        errors_deadletterqueue_topic_name=name,
    )
    return name


@pytest.fixture
async def joined(kafka: Kafka, queue: str, share_group: str, topic: MetadataResponseTopic) -> AsyncIterator[Joined]:
    """Makes members of the share group, each with a connection of its own.

    That takes longer than Apache Kafka needs to apply the configs that were set before.
    """
    async with AsyncExitStack() as stack:

        async def make() -> ShareMember:
            member = ShareMember(await stack.enter_async_context(await kafka.client()), share_group)
            await member.join(topic.name or "")
            return member

        yield make


async def written(client: RawClient, topic: MetadataResponseTopic, *values: bytes, partition: int = 0) -> None:
    builder = BatchBuilder(limit=1 << 20)
    for value in values:
        builder.append(1000, b"key of " + value, value, [("own", b"header")])
    assert not (await client.produce(topic.topic_id, builder.build(), partition=partition)).error_code


async def acknowledged(member: ShareMember, topic: MetadataResponseTopic, *acks: Acks) -> None:
    data = await member.acknowledge(topic.topic_id, *acks)
    assert not data.error_code, data


async def letters(client: RawClient, queue: str, number: int) -> Letters:
    """The records of the queue, as soon as there are so many; no more may be there."""
    found: Letters = []
    with anyio.fail_after(PATIENCE):
        while len(found) < number:
            data = await client.fetch(queue, 0)
            found = [] if data.error_code else records_of(data)
    assert len(found) == number
    return found


def told(found: Letters) -> list[tuple[int, int, str]]:
    """The offset, the delivery count and the cause of each letter."""
    rows = []
    for record in found:
        headers = {name.removeprefix("__dlq.errors."): (value or b"").decode() for name, value in record.headers}
        rows.append((int(headers["offset"]), int(headers["delivery.count"]), headers["message"]))
    return rows


async def configs_of(client: RawClient, kind: int, name: str) -> list[DescribeConfigsResourceResult]:
    asked = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    (result,) = (await client.ask(DescribeConfigsRequest(resources=[asked]), 4)).results
    assert not result.error_code, result
    return result.configs


async def settled(client: RawClient, kind: int, resource: str, name: str, value: str) -> None:
    """Wait until the broker knows a config."""
    with anyio.fail_after(PATIENCE):
        while (name, value) not in [(config.name, config.value) for config in await configs_of(client, kind, resource)]:
            pass


async def create_queues(client: RawClient) -> None:
    """Let the brokers create the topics of dead-letter queues."""
    name = "errors.deadletterqueue.auto.create.topics.enable"
    change = IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=0, value="true")
    brokers = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=BROKER, resource_name="", configs=[change]
    )
    answer = await client.ask(IncrementalAlterConfigsRequest(resources=[brokers], validate_only=False), 1)
    assert not answer.responses[0].error_code, answer
    await settled(client, BROKER, "1", name, "true")


# --- the records that are dead letters -------------------------------------------------------------------------


async def test_a_rejected_record(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, queue: str, share_group: str
) -> None:
    member = await joined()
    began = time.time_ns() // 1_000_000
    await written(client, topic, b"a", b"b")
    assert await member.fetched(topic.topic_id) == [(0, 1, 1)]
    await acknowledged(member, topic, (0, 1, ACCEPT, REJECT))
    (letter,) = await letters(client, queue, 1)
    assert (letter.key, letter.value) == (None, None)
    assert list(letter.headers) == [
        ("__dlq.errors.topic", (topic.name or "").encode()),
        ("__dlq.errors.partition", b"0"),
        ("__dlq.errors.offset", b"1"),
        ("__dlq.errors.group", share_group.encode()),
        ("__dlq.errors.delivery.count", b"1"),
        ("__dlq.errors.message", REJECTED.encode()),
    ]
    assert letter.timestamp >= began


async def test_rejected_ranges(client: RawClient, topic: MetadataResponseTopic, joined: Joined, queue: str) -> None:
    member = await joined()
    await written(client, topic, b"a", b"b", b"c")
    await written(client, topic, b"d", b"e", b"f")
    assert await member.fetched(topic.topic_id, batch_size=1) == [(0, 2, 1), (3, 5, 1)]
    await acknowledged(member, topic, (0, 2, REJECT), (3, 5, REJECT, GAP, REJECT))
    found = told(await letters(client, queue, 5))
    assert found == [(offset, 1, REJECTED) for offset in (0, 1, 2, 3, 5)]


async def test_records_that_were_released_too_often(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, queue: str
) -> None:
    member = await joined()
    await written(client, topic, b"a", b"b")
    for deliveries in (1, 2):
        assert await member.fetched(topic.topic_id) == [(0, 1, deliveries)]
        await acknowledged(member, topic, (0, 1, RELEASE))
    assert told(await letters(client, queue, 2)) == [(0, 2, EXHAUSTED), (1, 2, EXHAUSTED)]
    assert acquired(await member.fetch(topic.topic_id)) == []


async def test_a_record_that_was_rejected_at_its_last_delivery(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, queue: str
) -> None:
    member = await joined()
    await written(client, topic, b"a")
    assert await member.fetched(topic.topic_id) == [(0, 0, 1)]
    await acknowledged(member, topic, (0, 0, RELEASE))
    assert await member.fetched(topic.topic_id) == [(0, 0, 2)]
    await acknowledged(member, topic, (0, 0, REJECT))
    assert told(await letters(client, queue, 1)) == [(0, 2, REJECTED)]


@pytest.mark.slow
async def test_records_whose_locks_end_too_often(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, queue: str, share_group: str
) -> None:
    await configure(client, share_group, share_record_lock_duration_ms="1000")
    member = await joined()
    await written(client, topic, b"a")
    assert await member.fetched(topic.topic_id) == [(0, 0, 1)]
    assert acquired(await member.fetch(topic.topic_id, max_wait_ms=15_000)) == [(0, 0, 2)]
    assert told(await letters(client, queue, 1)) == [(0, 2, EXHAUSTED)]


async def test_records_of_ended_sessions(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, queue: str
) -> None:
    await written(client, topic, b"a", b"b")
    one, other = await joined(), await joined()
    assert await one.fetched(topic.topic_id) == [(0, 1, 1)]
    assert not (await one.ask(topic.topic_id, (0, 0, ACCEPT), session=-1)).error_code
    assert await other.fetched(topic.topic_id) == [(1, 1, 2)]
    assert not (await other.ask(topic.topic_id, session=-1)).error_code
    assert told(await letters(client, queue, 1)) == [(1, 2, EXHAUSTED)]


# --- copies ----------------------------------------------------------------------------------------------------


async def test_copies_of_records(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, queue: str, share_group: str
) -> None:
    await configure(client, share_group, errors_deadletterqueue_copy_record_enable="true")
    member = await joined()
    await written(client, topic, b"a", b"b", b"c")
    assert await member.fetched(topic.topic_id) == [(0, 2, 1)]
    await acknowledged(member, topic, (0, 2, ACCEPT, REJECT, REJECT))
    found = await letters(client, queue, 2)
    assert [(letter.key, letter.value) for letter in found] == [(b"key of b", b"b"), (b"key of c", b"c")]
    assert told(found) == [(1, 1, REJECTED), (2, 1, REJECTED)]
    assert all(name.startswith("__dlq.") for letter in found for name, _ in letter.headers)


async def test_copies_that_are_too_large_for_the_queue(
    kafka: Kafka, client: RawClient, topic: MetadataResponseTopic, joined: Joined, share_group: str
) -> None:
    small = await kafka.topic_with(
        client, next(_queues), errors_deadletterqueue_group_enable="true", max_message_bytes="1000"
    )
    await configure(
        client,
        share_group,
        errors_deadletterqueue_copy_record_enable="true",
        errors_deadletterqueue_topic_name=small,
    )
    member = await joined()
    await written(client, topic, b"x" * 2000)
    await written(client, topic, *[b"y" * 300] * 4)
    assert await member.fetched(topic.topic_id, batch_size=1) == [(0, 0, 1), (1, 4, 1)]
    await acknowledged(member, topic, (1, 4, REJECT))
    found = await letters(client, small, 4)
    assert [letter.value for letter in found] == [b"y" * 300] * 4
    await acknowledged(member, topic, (0, 0, REJECT))
    assert [letter.value for letter in await letters(client, small, 5)][4:] == [None]


# --- queues ----------------------------------------------------------------------------------------------------


async def test_partitions_of_a_queue(kafka: Kafka, client: RawClient, queue: str, share_group: str) -> None:
    topic = await kafka.topic(partitions=3)
    async with await kafka.client() as connection:
        member = ShareMember(connection, share_group)
        await member.join(topic.name or "", partitions=3)
        await written(client, topic, b"a", partition=2)
        with anyio.fail_after(PATIENCE):
            answer = await member.ask(topic.topic_id, partitions=(2,), max_wait_ms=500)
            while not any(acquired(data) for found in answer.responses for data in found.partitions):
                answer = await member.ask(None, max_wait_ms=500)
        assert not (await member.acknowledge(topic.topic_id, (0, 0, REJECT), partition=2)).error_code
        (letter,) = await letters(client, queue, 1)
    assert dict(letter.headers)["__dlq.errors.partition"] == b"2"


@pytest.mark.parametrize("name", ["without-prefix", "dlq.not-enabled"])
async def test_topics_that_are_no_queues(
    kafka: Kafka,
    client: RawClient,
    topic: MetadataResponseTopic,
    joined: Joined,
    queue: str,
    share_group: str,
    name: str,
) -> None:
    enabled = str(name == "without-prefix").lower()
    wrong = await kafka.topic_with(
        client, f"{name}-{next(_queues).removeprefix('dlq.')}", errors_deadletterqueue_group_enable=enabled
    )
    await configure(client, share_group, errors_deadletterqueue_topic_name=wrong)
    member = await joined()
    await written(client, topic, b"a", b"b")
    assert await member.fetched(topic.topic_id) == [(0, 1, 1)]
    await acknowledged(member, topic, (0, 0, REJECT))
    await configure(client, share_group, errors_deadletterqueue_topic_name=queue)
    await settled(client, GROUP, share_group, "errors.deadletterqueue.topic.name", queue)
    await joined()
    await acknowledged(member, topic, (1, 1, REJECT))
    assert told(await letters(client, queue, 1)) == [(1, 1, REJECTED)]
    assert records_of(await client.fetch(wrong, 0)) == []
    assert acquired(await member.fetch(topic.topic_id)) == []


async def test_a_queue_is_created(
    client: RawClient, topic: MetadataResponseTopic, joined: Joined, share_group: str
) -> None:
    name = next(_queues)
    await create_queues(client)
    await configure(client, share_group, errors_deadletterqueue_topic_name=name)
    member = await joined()
    await written(client, topic, b"a")
    assert await member.fetched(topic.topic_id) == [(0, 0, 1)]
    await acknowledged(member, topic, (0, 0, REJECT))
    assert told(await letters(client, name, 1)) == [(0, 1, REJECTED)]
    own = {config.name: config.value for config in await configs_of(client, TOPIC, name) if config.config_source == 1}
    assert own == {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
