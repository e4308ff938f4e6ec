"""Members of consumer groups (KIP-848) whose heartbeats get lost, or come too late."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from contract.groups.conftest import all_of, write
from support.connecting import eventually
from support.readers import SERVED, reading
from support.virtual_time import virtual_time

from aiokafkawire import Client, Consumer, TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

TOPIC = "flights"


async def test_what_is_in_hand_stays_its_own_while_answers_get_lost() -> None:
    async with Broker(group_consumer_heartbeat_interval_ms=50) as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic(TOPIC, partitions=3)
        broker.create_topic("others")
        await write(kafka, TOPIC, 0, 60)
        options: dict[str, Any] = {"group_id": "g", **SERVED}
        async with reading() as readers, kafka.consumer(TOPIC, **options) as one:
            with anyio.fail_after(30):
                (record,) = await one.poll(1)
                # Its assignment has no partition of the topic any more, and is sent again.
                one.subscribe("others")
                partition = TopicPartition(record.topic, record.partition)
                await eventually(lambda: one.health().partitions[partition].being_given_up)
                two = await readers.join(kafka, "g", TOPIC, group_protocol="consumer")
                await heartbeat(two.consumer)
                await broker.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, drop="after", times=3).met()
                for consumer in (one, two.consumer, one, two.consumer):
                    await heartbeat(consumer)
                assert one.owns(record)
                assert not two.owned
                await one.commit()
                await one.poll(timeout=0)
                await readers.until(lambda: two.owned == all_of(TOPIC))
        assert record.value not in two.values


async def test_a_static_member_gets_in_although_the_answer_to_its_join_is_lost() -> None:
    async with Broker(group_consumer_heartbeat_interval_ms=50) as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic(TOPIC, partitions=3)
        async with reading() as readers:
            rule = broker.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, drop="after", times=1)
            one = await readers.join(kafka, "g", TOPIC, group_protocol="consumer", group_instance_id="i")
            await readers.until(lambda: one.owned == all_of(TOPIC))
            assert rule.count == 1
            assert one.errors == []


@pytest.mark.parametrize("error", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
async def test_a_member_that_may_not_fetch_offsets_yet_sends_a_heartbeat_and_asks_again(error: ErrorCode) -> None:
    """Heartbeats are a minute apart otherwise."""
    async with (
        Broker(port=None, group_consumer_heartbeat_interval_ms=60_000) as broker,
        Client(broker.bootstrap, connector=broker.connect) as kafka,
        reading() as readers,
    ):
        broker.create_topic(TOPIC, partitions=3)
        await write(kafka, TOPIC, 0, 6)
        rule = broker.on(ApiKey.OFFSET_FETCH, answer=error, times=2)
        one = await readers.join(kafka, "g", TOPIC, group_protocol="consumer")
        await readers.until(lambda: len(one.records) == 6)
        assert rule.is_met
        asked = [request.request.groups[0] for request in broker.requests.of(ApiKey.OFFSET_FETCH)]
        member = one.consumer.group_metadata()
        assert {group.member_id for group in asked} == {member.member_id}
        assert asked[-1].member_epoch == member.generation_id
        assert len(broker.requests.of(ApiKey.CONSUMER_GROUP_HEARTBEAT)) >= 4
        assert (one.words(), one.errors) == (["assigned"], [])


async def test_a_member_of_a_classic_group_fetches_offsets_without_its_membership() -> None:
    async with (
        Broker(port=None) as broker,
        Client(broker.bootstrap, connector=broker.connect) as kafka,
        reading() as readers,
    ):
        broker.create_topic(TOPIC, partitions=3)
        one = await readers.join(kafka, "g", TOPIC)
        await readers.until(lambda: one.owned == all_of(TOPIC))
        await one.consumer.committed(all_of(TOPIC))
        asked = [request.request.groups[0] for request in broker.requests.of(ApiKey.OFFSET_FETCH)]
        assert {(group.member_id, group.member_epoch) for group in asked} == {(None, -1)}


async def heartbeat(consumer: Consumer[bytes, bytes]) -> None:
    """Wait for the response to another heartbeat."""
    assert consumer._in_group is not None
    machine = consumer._in_group.machine
    before = machine.confirmed_at
    await eventually(lambda: machine.confirmed_at != before)


@virtual_time
async def test_a_silent_coordinator_is_left_in_time_whatever_the_session_timeout_of_the_client() -> None:
    """A member that has chosen the consumer protocol knows neither the session timeout nor the interval of its own."""
    async with (
        Broker(port=None) as broker,
        Client(broker.bootstrap, connector=broker.connect) as kafka,
        reading() as readers,
    ):
        broker.create_topic(TOPIC, partitions=3)
        times: dict[str, Any] = {"session_timeout_ms": 600_000, "heartbeat_interval_ms": 100_000}
        one = await readers.join(kafka, "g", TOPIC, **{**SERVED, **times, "group_protocol": "auto"})
        await readers.until(lambda: one.owned == all_of(TOPIC))
        await anyio.sleep(10)
        await broker.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, swallow="before", times=1).met()
        began = anyio.current_time()
        await broker.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, delay=0.001, times=1).met()
        # The session would end 45 s after the last heartbeat that was answered.
        assert anyio.current_time() - began == pytest.approx(10, abs=1)
        await anyio.sleep(60)
        assert (one.words(), one.errors) == (["assigned"], [])
