"""A producer sends nothing while a broker throttles it, and its requests then count as sent in time (KIP-219)."""

from __future__ import annotations

import anyio
import pytest
from support.virtual_time import virtual_time

from aiokafkawire import Client
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, virtual_time]


async def test_a_producer_that_is_throttled_for_long_keeps_its_connection_and_its_records() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t", 2)
        async with (
            Client(broker.bootstrap, connector=broker.connect, request_timeout_ms=30_000) as kafka,
            kafka.producer() as producer,
        ):
            await producer.send("t", b"first", partition=0)
            broker.throttle(None, 40_000)
            await producer.send("t", b"second", partition=0)
            broker.throttle(None, 0)
            began = anyio.current_time()
            deliveries = [producer.send_nowait("t", b"later", partition=index % 2) for index in range(10)]
            await producer.flush()
            assert anyio.current_time() - began == pytest.approx(40)
            assert [(await delivery).offset for delivery in deliveries] == [2, 0, 3, 1, 4, 2, 5, 3, 6, 4]
            assert len({request.connection for request in broker.requests.of(ApiKey.PRODUCE)}) == 1


async def test_records_that_cannot_wait_that_long_fail() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        async with (
            Client(broker.bootstrap, connector=broker.connect, request_timeout_ms=1_000) as kafka,
            kafka.producer(delivery_timeout_ms=5_000, linger_ms=0) as producer,
        ):
            await producer.send("t", b"first")
            broker.throttle(None, 40_000)
            await producer.send("t", b"second")
            broker.throttle(None, 0)
            began = anyio.current_time()
            with pytest.raises(TimeoutError):
                await producer.send("t", b"too late")
            assert anyio.current_time() - began == pytest.approx(5, abs=0.5)
            assert len(broker.requests.of(ApiKey.PRODUCE)) == 2
            await anyio.sleep(40)
            assert (await producer.send("t", b"again")).offset == 2
