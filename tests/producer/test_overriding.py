"""Overrides of the producer's methods, in subclasses and by mocks, are called by users and by the producer itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock, patch

import pytest

from aiokafkawire.client import Client
from aiokafkawire.producer import _implementation, _pure
from aiokafkawire.producer.producer import Producer
from aiokafkawire.records import batch
from aiokafkawire.records.batch import Delivery
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import RecordMetadata

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def running() -> AsyncIterator[Client]:
    async with Broker(port=None) as broker:
        broker.create_topic("t", partitions=1)
        async with Client(broker.bootstrap, connector=broker.connect) as client:
            yield client


def test_the_implementation_in_use_is_a_base_of_the_producer() -> None:
    assert _implementation.Appender in Producer.__mro__
    assert (_pure.Appender in Producer.__mro__) == (batch.IMPLEMENTATION == "pure")
    for name in ("send", "enqueue", "send_nowait"):
        assert name not in vars(Producer)
        assert getattr(Producer, name) is getattr(_implementation.Appender, name)


class Traced(Producer[bytes, bytes]):
    """A producer as instrumentation subclasses it."""

    calls: list[str]

    async def send(self, *args: Any, **kwargs: Any) -> RecordMetadata:
        self.calls.append("send")
        return await super().send(*args, **kwargs)

    async def enqueue(self, *args: Any, **kwargs: Any) -> Delivery:
        self.calls.append("enqueue")
        return await super().enqueue(*args, **kwargs)

    def send_nowait(self, *args: Any, **kwargs: Any) -> Delivery:
        self.calls.append("send_nowait")
        return super().send_nowait(*args, **kwargs)


async def test_a_subclass_overrides_every_way_to_send() -> None:
    async with running() as client:
        plain = client.producer()
        producer = Traced(plain._cluster, plain._config, "traced")
        producer.calls = []
        async with producer:
            assert (await producer.send("t", b"1")).offset == 0
            assert (await (await producer.enqueue("t", b"2"))).offset == 1
            assert (await producer.send_nowait("t", b"3")).offset == 2
            assert [place.offset for place in await producer.send_many("t", [b"4", b"5"])] == [3, 4]
        assert producer.calls == ["send", "enqueue", "send_nowait", "enqueue", "enqueue"]


async def test_a_transaction_calls_the_overrides() -> None:
    async with running() as client:
        plain = client.producer(transactional_id="x")
        producer = Traced(plain._cluster, plain._config, "traced")
        producer.calls = []
        async with producer, producer.transaction() as transaction:
            await transaction.send("t", b"1")
            await transaction.enqueue("t", b"2")
            transaction.send_nowait("t", b"3")
        assert producer.calls == ["send", "enqueue", "send_nowait"]


async def test_methods_patched_on_the_class_are_called() -> None:
    async with running() as client, client.producer() as producer:
        with patch.object(Producer, "send") as send:
            assert isinstance(send, AsyncMock)
            assert await producer.send("t", b"1") is send.return_value
        with patch.object(Producer, "send_nowait", autospec=True) as send_nowait:
            assert producer.send_nowait("t", b"2", key=b"k") is send_nowait.return_value
            (call,) = send_nowait.call_args_list
            assert (call.args[-2:], call.kwargs) == (("t", b"2"), {"key": b"k"})
        with patch.object(producer, "enqueue") as enqueue:
            assert await producer.enqueue("t", b"3") is enqueue.return_value
        assert (await producer.send("t", b"4")).offset == 0
