"""Kafka with an authorizer, as the contract tests of rights see it: ours over memory and over TCP, and Apache Kafka."""

from __future__ import annotations

from collections.abc import AsyncIterator
from secrets import token_hex

import anyio
import pytest
from support.authorizing import ADMIN, Authorizing, Names, authorizing_broker, in_process
from support.made import made
from support.patience import PATIENCE

from aiokafkawire import Client
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.group_offsets import OffsetFetchRequest
from aiokafkawire.protocol.primitives import ZERO_UUID


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
async def names(guarded: Authorizing, admin: Client) -> Names:
    """Of a new topic with a leader and a record; the coordinators of groups are there."""
    names = Names(f"topic-{token_hex(6)}", ZERO_UUID, f"group-{token_hex(6)}", f"transaction-{token_hex(6)}")
    await admin.admin.create_topics({names.topic: 1})
    async with admin.producer() as producer:
        await producer.send(names.topic, b"v")
    described = await admin.admin.describe_topic(names.topic)
    fetch = made(OffsetFetchRequest, groups=[{"group_id": names.group, "topics": None}])
    async with guarded.raw(ADMIN) as client:
        with anyio.fail_after(PATIENCE):
            while (await client.ask(fetch, 8)).groups[0].error_code:
                await client.ask(made(FindCoordinatorRequest, coordinator_keys=[names.group]), 4)
    return names._replace(topic_id=described.topic_id)
