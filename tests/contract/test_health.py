"""What a client, its producers and its consumers say of themselves, whichever broker they talk to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from aiokafkawire import Client, ProducerFenced

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_client_is_ready_once_its_consumers_have_joined(
    kafka: Client, topic: str, new_name: Callable[[], str], protocol: Any
) -> None:
    assert (kafka.health().ready, kafka.health().why) == (True, None)
    options = {"group_id": new_name(), "group_protocol": protocol, "auto_offset_reset": "earliest"}
    async with kafka.producer() as producer, kafka.consumer(topic, **options) as consumer:
        assert not kafka.health().ready
        with anyio.fail_after(60):
            await producer.send(topic, b"1")
            await anext(consumer)
        health = kafka.health()
        assert (health.ready, health.live) == (True, True)
        assert health.producers[producer.name].why is None
        assert health.consumers[consumer.name].lag == 0
        assert all(broker.error is None for broker in health.brokers)
    assert (dict(kafka.health().producers), dict(kafka.health().consumers)) == ({}, {})


async def test_a_record_that_waits_has_a_reason_and_then_none(kafka: Client, topic: str) -> None:
    async with kafka.producer(linger_ms=60_000) as producer:
        await producer.partitions_for(topic)
        delivery = producer.send_nowait(topic, b"1", partition=0)
        (waiting,) = producer.health().partitions.values()
        assert waiting.records == 1
        assert producer.health().why is not None
        await producer.flush()
        assert (await delivery).offset == 0
        assert producer.health().why is None


async def test_a_fenced_producer_is_not_live(kafka: Client, topic: str, new_name: Callable[[], str]) -> None:
    name = new_name()
    async with kafka.producer(transactional_id=name) as fenced, kafka.producer(transactional_id=name):
        with pytest.raises(ProducerFenced):
            async with fenced.transaction() as transaction:
                await transaction.send(topic, b"1")
        assert not kafka.health().live
        assert fenced.name in (kafka.health().why or "")
    assert kafka.health().live
