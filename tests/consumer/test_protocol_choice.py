"""The choice of the group protocol: what the group's descriptions decide, and the classic protocol if it is refused."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import pytest
from support.virtual_time import virtual_time

from aiokafkawire import Client, Consumer, UnsupportedVersion
from aiokafkawire.consumer.protocol_choice import choose_protocol
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

DESCRIBE = ApiKey.CONSUMER_GROUP_DESCRIBE


@asynccontextmanager
async def running(release: str | None = None) -> AsyncIterator[tuple[Broker, Client]]:
    """A topic with one record."""
    async with Broker(port=None, max_versions=release) as broker:
        broker.create_topic("a")
        async with Client(broker.bootstrap, connector=broker.connect, retry_backoff_ms=1) as client:
            async with client.producer() as producer:
                await producer.send("a", b"1")
            yield broker, client


@asynccontextmanager
async def reading(
    client: Client, protocol: Literal["classic", "consumer", "auto"], **options: Any
) -> AsyncIterator[Consumer[bytes, bytes]]:
    """A member of the group that has read the record."""
    options = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "group_protocol": protocol, **options}
    async with client.consumer("a", group_id="g", **options) as consumer:
        with anyio.fail_after(20):
            await anext(consumer)
        yield consumer


async def choice(client: Client) -> str:
    return await choose_protocol(client._cluster, "g", "lane")


def joins(broker: Broker) -> tuple[bool, bool]:
    """Return whether members have joined by the classic and by the consumer protocol."""
    return bool(broker.requests.of(ApiKey.JOIN_GROUP)), bool(broker.requests.of(ApiKey.CONSUMER_GROUP_HEARTBEAT))


# --- the choice ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "chosen"), [("2.0", "classic"), ("3.9", "classic"), ("4.0", "consumer")])
async def test_the_release_decides_for_a_new_group(release: str, chosen: str) -> None:
    async with running(release) as (broker, client):
        assert await choice(client) == chosen
        broker.requests.clear()
        async with reading(client, "auto"):
            assert joins(broker) == (chosen == "classic", chosen == "consumer")
            assert len(broker.requests.of(DESCRIBE)) <= 1


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_the_members_of_a_group_decide(protocol: Literal["classic", "consumer"]) -> None:
    async with running() as (_, client):
        async with reading(client, protocol):
            assert await choice(client) == protocol
        # A group without members has no protocol.
        assert await choice(client) == "consumer"


async def test_a_classic_group_with_offsets_alone_takes_the_consumer_protocol() -> None:
    async with running() as (broker, client):
        async with reading(client, "classic") as consumer:
            await consumer.commit()
        broker.requests.clear()
        async with client.consumer("a", group_id="g", group_protocol="auto") as consumer:
            with anyio.fail_after(20):
                while not consumer.assignment:
                    await consumer.poll(timeout=0.05)
            assert joins(broker) == (False, True)


@pytest.mark.parametrize("api", [DESCRIBE, ApiKey.DESCRIBE_GROUPS])
async def test_a_group_that_may_not_be_described_takes_the_classic_protocol(api: ApiKey) -> None:
    async with running() as (broker, client):
        rule = broker.on(api, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        assert await choice(client) == "classic"
        await rule.met()
        assert await choice(client) == "consumer"


@pytest.mark.parametrize("api", [DESCRIBE, ApiKey.DESCRIBE_GROUPS])
async def test_a_coordinator_that_has_moved_is_asked_again(api: ApiKey) -> None:
    async with running() as (broker, client):
        rule = broker.on(api, answer=ErrorCode.NOT_COORDINATOR, times=2)
        assert await choice(client) == "consumer"
        await rule.met()


@virtual_time
async def test_a_silent_coordinator_is_waited_for_and_then_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as (broker, client):
        broker.on(DESCRIBE, swallow="before", times=None)
        began = anyio.current_time()
        assert await choice(client) == "classic"
        assert anyio.current_time() - began == pytest.approx(10, abs=0.5)
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert record.getMessage().startswith("group 'g': the classic protocol, since the group cannot be described: ")


# --- a coordinator that refuses ------------------------------------------------------------------------------------


async def test_a_refusal_of_the_join_leads_to_the_classic_protocol() -> None:
    async with running() as (broker, client):
        broker.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, answer=ErrorCode.UNSUPPORTED_VERSION, times=None)
        async with reading(client, "auto") as consumer:
            assert joins(broker) == (True, True)
            await consumer.commit()
            membership = consumer.health().membership
            assert membership is not None
            assert membership.group == consumer.group_metadata()
        assert len(broker.requests.of(ApiKey.LEAVE_GROUP)) == 1


async def test_a_refusal_is_an_error_for_those_who_chose_the_protocol_themselves() -> None:
    async with running() as (broker, client):
        broker.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, answer=ErrorCode.UNSUPPORTED_VERSION)
        async with client.consumer("a", group_id="g", group_protocol="consumer") as consumer:
            with anyio.fail_after(20), pytest.raises(UnsupportedVersion, match="use group_protocol='auto' or"):
                await anext(consumer)
        assert joins(broker) == (False, True)


async def test_an_old_broker_refuses_the_consumer_protocol() -> None:
    async with running("3.9") as (_, client):
        consumer = client.consumer("a", group_id="g", group_protocol="consumer")
        with anyio.fail_after(20), pytest.raises(UnsupportedVersion, match=r"needs brokers of Kafka 4\.0 or later"):
            async with consumer:
                await anext(consumer)


async def test_a_member_that_is_removed_chooses_again() -> None:
    async with running() as (broker, client), reading(client, "auto") as consumer:
        broker.on(DESCRIBE, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        broker.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, answer=ErrorCode.UNKNOWN_MEMBER_ID)
        broker.create_topic("b")
        consumer.subscribe("a", "b")
        with anyio.fail_after(20):
            while not broker.requests.of(ApiKey.SYNC_GROUP):
                await consumer.poll(timeout=0.05)
