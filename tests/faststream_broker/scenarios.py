"""Scenarios of FastStream applications on the in-process broker; test_broker.py runs them in a process of their own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from faststream import AckPolicy
from faststream.exceptions import IncorrectState
from support.patience import SOON

from aiokafkawire import Client
from aiokafkawire.aiokafka.errors import IllegalOperation, KafkaConnectionError
from aiokafkawire.faststream import KafkaBroker, KafkaMessage, KafkaRouter, TestKafkaBroker
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio
PAGE = Path(__file__).parents[2] / "docs" / "faststream.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def cluster() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        for topic in ("orders", "invoices"):
            broker.create_topic(topic)
        yield broker


class Received:
    """Values that handlers have received."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._more = asyncio.Condition()

    async def add(self, *values: Any) -> None:
        async with self._more:
            self.values += values
            self._more.notify_all()

    async def wait_for(self, count: int) -> None:
        async with self._more:
            with anyio.fail_after(SOON):
                await self._more.wait_for(lambda: len(self.values) >= count)


async def values_in(cluster: Broker, topic: str, **options: Any) -> list[bytes | None]:
    async with Client(cluster.bootstrap) as kafka:
        return [record.value async for record in kafka.read_records(topic, **options)]


async def test_publishers_subscribers_and_routers_share_one_client(cluster: Broker) -> None:
    received, router = Received(), KafkaRouter()

    @router.subscriber("orders", group_id="g", auto_offset_reset="earliest")
    @router.publisher("invoices")
    async def bill(order: str) -> str:
        return order.upper()

    async with KafkaBroker(cluster.bootstrap, routers=[router]) as broker:

        @broker.subscriber("invoices", auto_offset_reset="earliest")
        async def mail(invoice: str, message: KafkaMessage) -> None:
            consumer: Any = message.consumer
            assert consumer._client.wire_client is broker.client
            await received.add(invoice)

        await broker.start()
        metadata = await broker.publish("ewr", "orders", key=b"k", headers={"a": "b"})
        assert (metadata.topic, metadata.offset) == ("orders", 0)
        await received.wait_for(1)
        assert await broker.client.admin.list_topics()
    assert received.values == ["EWR"]


async def test_batches(cluster: Broker) -> None:
    received = Received()
    async with KafkaBroker(cluster.bootstrap) as broker:

        @broker.subscriber("orders", batch=True, auto_offset_reset="earliest")
        async def bill(orders: list[str]) -> None:
            await received.add(*orders)

        await broker.publish_batch("1", "2", "3", topic="orders")
        await broker.start()
        await received.wait_for(3)
    assert received.values == ["1", "2", "3"]


async def test_a_failed_message_is_received_again_with_nack_on_error(cluster: Broker) -> None:
    received = Received()
    async with KafkaBroker(cluster.bootstrap, logger=None) as broker:

        @broker.subscriber("orders", group_id="g", auto_offset_reset="earliest", ack_policy=AckPolicy.NACK_ON_ERROR)
        async def bill(order: str) -> None:
            await received.add(order)
            if len(received.values) == 1:
                raise ValueError(order)

        await broker.publish("1", "orders")
        await broker.start()
        await received.wait_for(2)
    assert received.values == ["1", "1"]
    async with Client(cluster.bootstrap) as kafka:
        (committed,) = (await kafka.admin.list_consumer_group_offsets("g")).values()
    assert committed.offset == 1


async def test_rejected_and_acknowledged_messages_are_committed_in_a_manual_policy(cluster: Broker) -> None:
    received = Received()
    async with KafkaBroker(cluster.bootstrap) as broker:

        @broker.subscriber("orders", group_id="g", auto_offset_reset="earliest", ack_policy=AckPolicy.MANUAL)
        async def bill(order: str, message: KafkaMessage) -> None:
            await (message.reject() if order == "1" else message.ack())
            await received.add(order)

        await broker.publish("1", "orders")
        await broker.publish("2", "orders")
        await broker.start()
        await received.wait_for(2)
        (committed,) = (await broker.client.admin.list_consumer_group_offsets("g")).values()
    assert committed.offset == 2


async def test_workers_run_at_once(cluster: Broker) -> None:
    together, received = asyncio.Barrier(3), Received()
    async with KafkaBroker(cluster.bootstrap) as broker:

        @broker.subscriber("orders", max_workers=3, auto_offset_reset="earliest")
        async def bill(order: str) -> None:
            await together.wait()
            await received.add(order)

        await broker.start()
        for order in ("1", "2", "3"):
            await broker.publish(order, "orders")
        await received.wait_for(3)


async def test_transactions_commit_together_or_not_at_all(cluster: Broker) -> None:
    async with KafkaBroker(cluster.bootstrap, transactional_id="t") as broker:
        async with broker.transaction():
            await broker.publish("1", "orders")
            await broker.publish("2", "invoices")
        with pytest.raises(ValueError, match="no"):
            async with broker.transaction():
                await broker.publish("3", "orders")
                raise ValueError("no")
    assert await values_in(cluster, "orders", isolation_level="read_committed") == [b"1"]
    assert await values_in(cluster, "invoices", isolation_level="read_committed") == [b"2"]


async def test_stop_sends_what_has_been_published_and_the_broker_starts_again(cluster: Broker) -> None:
    broker = KafkaBroker(cluster.bootstrap)
    for _ in range(2):
        await broker.start()
        for number in range(500):
            await broker.publish(str(number), "orders", no_confirm=True)
        await broker.stop()
    assert len(await values_in(cluster, "orders")) == 1000


async def test_a_subscriber_that_fails_to_stop_loses_nothing_and_the_broker_starts_again(
    cluster: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = KafkaBroker(cluster.bootstrap, linger_ms=60_000)
    received = Received()

    @broker.subscriber("invoices", auto_offset_reset="earliest")
    async def receive(text: str) -> None:
        await received.add(text)

    stop = type(broker.subscribers[0]).stop

    async def fail(subscriber: Any) -> None:
        await stop(subscriber)
        raise LookupError("no")

    await broker.start()
    await broker.publish("one", "orders", no_confirm=True)
    with monkeypatch.context() as patched, pytest.raises(ExceptionGroup, match="subscribers"):
        patched.setattr(type(broker.subscribers[0]), "stop", fail)
        await broker.stop()
    assert await values_in(cluster, "orders") == [b"one"]
    await broker.start()
    await broker.publish("two", "invoices", no_confirm=True)
    await broker.stop()
    assert await values_in(cluster, "invoices") == [b"two"]


async def test_errors_say_what_is_wrong(cluster: Broker) -> None:
    broker = KafkaBroker(cluster.bootstrap)
    with pytest.raises(IncorrectState, match="not connected"):
        _ = broker.client
    with pytest.raises(IncorrectState, match="not connected"):
        broker.transaction()
    async with broker:
        with pytest.raises(IllegalOperation):
            await broker.transaction().__aenter__()
    unreachable = KafkaBroker("127.0.0.1:1", request_timeout_ms=300)
    with pytest.raises(KafkaConnectionError, match=r"127\.0\.0\.1:1"):
        await unreachable.start()
    with pytest.raises(IncorrectState):
        _ = unreachable.client


async def test_the_test_broker_answers_requests() -> None:
    broker = KafkaBroker()

    @broker.subscriber("orders")
    async def bill(order: str) -> str:
        return order.upper()

    async with TestKafkaBroker(broker):
        response = await broker.request("ewr", "orders")
        assert await response.decode() == "EWR"


async def test_the_application_of_the_page_bills(cluster: Broker) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    exec(BLOCKS[0].replace("localhost:9092", cluster.bootstrap), names)
    broker: KafkaBroker = names["broker"]
    received = Received()

    @broker.subscriber("invoices", auto_offset_reset="earliest")
    async def mail(invoice: dict[str, int]) -> None:
        await received.add(invoice)

    async with broker:
        await broker.start()
        await broker.publish({"number": 1, "amount": 5}, "orders")
        await received.wait_for(1)
    assert received.values == [{"number": 1, "cents": 500}]


async def test_the_transaction_of_the_page_commits(cluster: Broker) -> None:
    cluster.create_topic("accounts")
    names: dict[str, Any] = {"__name__": "page"}
    exec(BLOCKS[1], names)
    await names["transfer"](cluster.bootstrap)
    assert sorted(value or b"" for value in await values_in(cluster, "accounts")) == [b"+100", b"-100"]
