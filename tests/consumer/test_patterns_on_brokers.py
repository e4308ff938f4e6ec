"""Subscriptions to a pattern that the brokers match: the consumer asks about the assigned topics only."""

from __future__ import annotations

import anyio
import pytest
from support.patience import SOON

from aiokafkawire import Client, SubscriptionPattern, TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]


def is_by_id(request: MetadataRequest) -> bool:
    return any(topic.topic_id != ZERO_UUID for topic in request.topics or ())


def lacks_topics(_: MetadataRequest, answer: MetadataResponse) -> MetadataResponse:
    """Answer as a broker that does not know the topics yet."""
    for topic in answer.topics:
        topic.error_code, topic.name, topic.partitions = ErrorCode.UNKNOWN_TOPIC_ID, None, []
    return answer


async def test_only_the_assigned_topics_are_asked_for() -> None:
    async with Broker(port=None, group_consumer_heartbeat_interval_ms=50) as broker:
        for name in ("orders-1", "orders-2", "payments"):
            broker.create_topic(name)
        async with Client(broker.bootstrap, connector=broker.connect) as writer, writer.producer() as producer:
            for name in ("orders-1", "orders-2", "payments"):
                await producer.send(name, name.encode())
        async with Client(broker.bootstrap, connector=broker.connect, client_id="reader", retry_backoff_ms=1) as client:
            lacking = broker.on(ApiKey.METADATA, answer=lacks_topics, where=is_by_id)
            consumer = client.consumer(group_id="g", group_protocol="consumer", auto_offset_reset="earliest")
            async with consumer:
                consumer.subscribe(SubscriptionPattern("orders-.*"))
                read = set[bytes | None]()
                with anyio.fail_after(SOON):
                    while len(read) < 2:
                        read |= {record.value for record in await consumer.poll()}
                assert read == {b"orders-1", b"orders-2"}
                assert set(consumer.assignment) == {TopicPartition("orders-1", 0), TopicPartition("orders-2", 0)}
            named = [one.request.topics for one in broker.requests.of(ApiKey.METADATA, client_id="reader")]
        assert lacking.count == 1
        assert None not in named
        assert {topic.name for topics in named for topic in topics if topic.name} == {"orders-1", "orders-2"}
