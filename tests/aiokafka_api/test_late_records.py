"""Records whose calls of aiokafka's producer wait while their transaction ends."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.patience import SOON

from aiokafkawire.aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafkawire.aiokafka.errors import IllegalOperation
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio


async def send(producer: AIOKafkaProducer) -> None:
    await producer.send("new", b"late")


async def send_batch(producer: AIOKafkaProducer) -> None:
    batch = producer.create_batch()
    batch.append(timestamp=None, key=None, value=b"late")
    await producer.send_batch(batch, "new", partition=None)  # type: ignore[arg-type]  # as aiokafka's, at random


@pytest.mark.parametrize("call", [send, send_batch])
async def test_a_record_that_waits_for_metadata_is_in_no_later_transaction(call: Any) -> None:
    async def refused(producer: AIOKafkaProducer) -> None:
        with pytest.raises(IllegalOperation):
            await call(producer)

    with anyio.fail_after(SOON):
        async with Broker(auto_create_topics_enable=False) as broker:
            broker.create_topic("t")
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="x")
            async with producer, anyio.create_task_group() as tasks:
                await producer.partitions_for("t")
                with pytest.raises(ZeroDivisionError):
                    async with producer.transaction():
                        await producer.send_and_wait("t", b"aborted")
                        lookup = broker.on(ApiKey.METADATA, delay=0.001, times=1)
                        tasks.start_soon(refused, producer)
                        await lookup.met()
                        raise ZeroDivisionError
                async with producer.transaction():
                    broker.create_topic("new")
                    await producer.send_and_wait("new", b"committed")
            reader: Any = AIOKafkaConsumer("new", bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
            async with reader as consumer:
                assert (await consumer.getone()).value == b"committed"
