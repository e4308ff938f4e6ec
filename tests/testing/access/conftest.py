"""Kafka with an authorizer, as the contract tests of rights see it: ours over memory and over TCP, and Apache Kafka."""

from __future__ import annotations

from collections.abc import AsyncIterator
from secrets import token_hex

import pytest
from support.authorizing import Authorizing, Names, authorizing_broker, in_process

from aiokafkawire import Client


@pytest.fixture(params=["memory", "tcp", pytest.param("apache", marks=pytest.mark.kafka)])
async def guarded(request: pytest.FixtureRequest, release: str | None) -> AsyncIterator[Authorizing]:
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka_with_acls")
        return
    memory = request.param == "memory"
    async with authorizing_broker(port=None if memory else 0, max_versions=release) as broker:
        yield in_process(broker, memory=memory)


@pytest.fixture
async def admin(guarded: Authorizing) -> AsyncIterator[Client]:
    async with guarded.client() as client:
        yield client


@pytest.fixture
async def names(admin: Client) -> Names:
    """Of a new topic with a leader and a record."""
    topic = f"topic-{token_hex(6)}"
    await admin.admin.create_topics({topic: 1})
    async with admin.producer() as producer:
        await producer.send(topic, b"v")
    described = await admin.admin.describe_topic(topic)
    return Names(topic, described.topic_id, f"group-{token_hex(6)}", f"transaction-{token_hex(6)}")
