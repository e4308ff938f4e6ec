"""A broker goes away and comes back under the same address: clients go on, and lose nothing."""

import socket

import anyio
import pytest
from support.patience import PATIENCE

from aiokafkawire import Client, TopicPartition
from aiokafkawire.errors import RequestTimeout
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


async def test_records_sent_while_the_broker_is_away_arrive_once_it_is_back(free_port: int) -> None:
    where = TopicPartition("flights", 0)
    broker = Broker(port=free_port)
    with anyio.fail_after(PATIENCE):
        async with broker:
            broker.create_topic("flights")
            client = Client(broker.bootstrap)
            await client.open()
            producer = await client.producer().__aenter__()
            consumer = await client.consumer(auto_offset_reset="earliest").__aenter__()
            consumer.assign([where])
            assert (await producer.send("flights", b"before")).offset == 0
            assert (await anext(consumer)).value == b"before"
        away = [await producer.enqueue("flights", b"away %d" % number) for number in range(3)]
        async with broker:
            assert [(await delivery).offset for delivery in away] == [1, 2, 3]
            assert [(await anext(consumer)).value for _ in range(3)] == [b"away 0", b"away 1", b"away 2"]
            await producer.close()
            await consumer.close()
            await client.close()


async def test_a_broker_that_stays_away_fails_the_record_in_time(free_port: int) -> None:
    with anyio.fail_after(PATIENCE):
        async with Broker(port=free_port) as broker:
            broker.create_topic("flights")
            client = Client(broker.bootstrap)
            await client.open()
            producer = await client.producer(delivery_timeout_ms=1_000).__aenter__()
            await producer.send("flights", b"before")
        with pytest.raises(RequestTimeout, match=r"flights-0 took no records for 1 s .*at last ConnectionLost"):
            await producer.send("flights", b"lost")
        await producer.close()
        await client.close()
