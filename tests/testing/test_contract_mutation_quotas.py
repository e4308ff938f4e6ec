"""Quotas of partitions that a client may create and delete in a second (KIP-599), as Apache Kafka keeps them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import TYPE_CHECKING, TypeVar

import anyio
import attrs
import pytest
from support.patience import PATIENCE

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from aiokafkawire.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from aiokafkawire.protocol.schema import Request, Response

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

R = TypeVar("R", bound=Response)

EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED, None


@attrs.frozen
class Clients:
    """Raw clients of one client id, which no other test slows down, nor its quota other tests."""

    kafka: Kafka
    client_id: str = attrs.field(factory=lambda: f"client-{token_hex(6)}")


@pytest.fixture
def clients(kafka: Kafka) -> Clients:
    return Clients(kafka)


async def ask(clients: Clients, request: Request[R], version: int) -> R:
    """Ask by a connection of its own, since a connection is not read for as long as its client is throttled."""
    async with await clients.kafka.client() as client:
        client.client_id = clients.client_id
        return await client.ask(request, version)


@asynccontextmanager
async def limited(clients: Clients, rate: float) -> AsyncIterator[None]:
    """Set the quota of these clients, until the context ends."""

    async def change(remove: bool) -> None:
        entity = [EntityData(entity_type="client-id", entity_name=clients.client_id)]
        operation = OpData(key="controller_mutation_rate", value=rate, remove=remove)
        entry = AlterClientQuotasRequestEntryData(entity=entity, ops=[operation])
        (answer,) = (await ask(clients, AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)).entries
        assert answer.error_code == 0, answer

    await change(remove=False)
    try:
        yield
    finally:
        await change(remove=True)


def creating(topics: dict[str, int], *, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[])
            for name, count in topics.items()
        ],
        validate_only=validate_only,
    )


async def test_requests_beyond_the_quota_are_refused_and_old_versions_are_slowed_down(clients: Clients) -> None:
    first, second = f"topic-{token_hex(6)}", f"topic-{token_hex(6)}"
    created = await ask(clients, creating({first: 1}), 7)
    assert created.throttle_time_ms == 0
    async with limited(clients, 1):
        # Checks count like creations. Eleven partitions are free, and a client below its quota may exceed it once.
        with anyio.fail_after(PATIENCE):
            while True:  # Apache Kafka knows of the quota a moment after the answer
                answer = await ask(clients, creating({second: 60, "third": 1}, validate_only=True), 7)
                results = {topic.name: (topic.error_code, topic.error_message) for topic in answer.topics}
                if results["third"][0] != ErrorCode.NONE:
                    break
        assert results[second][0] in (ErrorCode.NONE, EXCEEDED[0])
        assert results["third"] == EXCEEDED
        assert 0 < answer.throttle_time_ms <= 60_000

        # A client without tokens gets nothing.
        (made,) = (await ask(clients, creating({second: 1}), 6)).topics
        assert (made.error_code, made.error_message) == EXCEEDED
        more = [CreatePartitionsTopic(name=first, count=2, assignments=None)]
        (grown,) = (
            await ask(clients, CreatePartitionsRequest(topics=more, timeout_ms=5000, validate_only=False), 3)
        ).results
        assert (grown.error_code, grown.error_message) == EXCEEDED
        (gone,) = (
            await ask(clients, DeleteTopicsRequest(topics=[DeleteTopicState(name=first)], timeout_ms=5000), 6)
        ).responses
        assert (gone.error_code, gone.error_message) == EXCEEDED

        # Clients that know nothing of these quotas are served, and wait for their next request.
        old = await ask(clients, creating({second: 1}), 5)
        assert (old.topics[0].error_code, old.throttle_time_ms > 0) == (0, True)
        less = await ask(clients, CreatePartitionsRequest(topics=more, timeout_ms=5000, validate_only=False), 2)
        assert (less.results[0].error_code, less.throttle_time_ms > 0) == (0, True)
        deleted = await ask(clients, DeleteTopicsRequest(topic_names=[first, second], timeout_ms=5000), 4)
        assert [topic.error_code for topic in deleted.responses] == [0, 0]
        assert deleted.throttle_time_ms > 0


async def test_what_is_refused_for_another_reason_costs_nothing(clients: Clients) -> None:
    name = f"topic-{token_hex(6)}"
    await ask(clients, creating({name: 1}), 7)
    async with limited(clients, 0.001):
        for _ in range(3):
            answer = await ask(clients, creating({name: 100}), 7)
            assert answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
            request = CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name=name, count=1, assignments=None)],
                timeout_ms=5000,
                validate_only=False,
            )
            assert (await ask(clients, request, 3)).results[0].error_code == ErrorCode.INVALID_PARTITIONS
            assert answer.throttle_time_ms == 0
