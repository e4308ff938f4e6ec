"""Serializers that know the record: headers, order, cancellation, and what they may return."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.clusters import QUICK
from support.serializers import Gated, Marking, Slow

from aiokafkawire import Client, ConfigError, KafkaError, UsageError
from aiokafkawire.interceptors import ProducerInterceptor, ProducerRecord
from aiokafkawire.records.batch import ConsumerRecord
from aiokafkawire.serialization import SerializationContext
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=None) as broker:
        yield broker


@pytest.fixture
async def kafka(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.bootstrap, connector=broker.connect, **QUICK) as client:
        await client.admin.create_topics({"a": 1})
        yield client


async def written(kafka: Client) -> list[ConsumerRecord[bytes, bytes]]:
    return [record async for record in kafka.read_records("a")]


async def values(kafka: Client) -> list[bytes | None]:
    return [record.value for record in await written(kafka)]


async def test_serializers_see_the_record_and_add_headers(kafka: Client) -> None:
    key, value = Marking("k"), Marking("v")
    async with kafka.producer(key_serializer=key, value_serializer=value) as producer:
        await producer.send("a", "1", key="2", headers={"h": b"0"})
    (record,) = await written(kafka)
    assert (record.key, record.value) == (b"2", b"1")
    assert record.headers == (("h", b"0"), ("k", b"a, True"), ("v", b"a, False"))


async def test_a_function_and_a_serializer_go_together(kafka: Client) -> None:
    async with kafka.producer(key_serializer=str.encode, value_serializer=Slow()) as producer:
        await producer.send("a", "1", key="2")
    async with kafka.producer(value_serializer=Slow()) as raw_keys:
        await raw_keys.send("a", "3", key=b"4")
        with pytest.raises(UsageError, match="the key is a str, and bytes are needed"):
            await raw_keys.send("a", "5", key="6")  # type: ignore[arg-type]
    assert [(record.key, record.value) for record in await written(kafka)] == [(b"2", b"1"), (b"4", b"3")]


async def test_null_keys_and_values_are_not_serialized(kafka: Client) -> None:
    marking = Marking()
    async with kafka.producer(key_serializer=marking, value_serializer=marking) as producer:
        await producer.send("a", None)
        await producer.enqueue_many("a", [None])
    assert [(record.key, record.value, record.headers) for record in await written(kafka)] == [(None, None, ())] * 2
    assert marking.contexts == []


async def test_every_way_to_send_serializes_in_order(kafka: Client) -> None:
    slow = Slow()
    async with kafka.producer(value_serializer=slow, transactional_id="t") as producer:
        async with producer.transaction() as tx:
            await tx.send("a", "1")
            delivery = await tx.enqueue("a", "2")
            await tx.send_many("a", ["3", "4"])
            assert await producer.enqueue_many("a", ["5", "6"]) == 2
        assert (await delivery).offset == 1
    records = await written(kafka)
    assert [record.value for record in records] == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert {record.headers for record in records} == {(("slow", b"1"),)}
    assert slow.seen == ["1", "2", "3", "4", "5", "6"]


async def test_records_of_one_task_keep_their_order_while_the_topic_is_not_known_yet(broker: Broker) -> None:
    async with (
        Client(broker.bootstrap, connector=broker.connect, allow_auto_create_topics=True, **QUICK) as kafka,
        kafka.producer(value_serializer=Slow()) as producer,
    ):
        for number in range(20):
            await producer.enqueue("a", str(number))
        await producer.flush()
        assert await values(kafka) == [b"%d" % number for number in range(20)]


async def test_send_nowait_takes_serializers_that_do_not_wait(kafka: Client) -> None:
    async with kafka.producer(value_serializer=Marking()) as producer:
        await producer.partitions_for("a")
        assert (await producer.send_nowait("a", "1")).offset == 0
    async with kafka.producer(value_serializer=Slow()) as slow:
        with pytest.raises(UsageError, match=r"send_nowait\(\) cannot wait for an asynchronous serializer"):
            slow.send_nowait("a", "2")
    assert await values(kafka) == [b"1"]


async def test_a_cancelled_call_sends_nothing(kafka: Client) -> None:
    gated = Gated()
    async with kafka.producer(value_serializer=gated) as producer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(producer.send, "a", "1")
            await gated.entered.wait()
            tasks.cancel_scope.cancel()
        gated.gate.set()
        await producer.send("a", "2")
    assert (gated.cancelled, await values(kafka)) == (1, [b"2"])


async def test_a_record_of_a_transaction_that_has_ended_is_refused(kafka: Client) -> None:
    gated = Gated()
    refused: list[UsageError] = []
    async with kafka.producer(value_serializer=gated, transactional_id="t") as producer:

        async def late() -> None:
            with pytest.raises(UsageError, match="the transaction ended while") as caught:
                await tx.send("a", "late")
            refused.append(caught.value)

        async with anyio.create_task_group() as tasks:
            async with producer.transaction() as tx:
                tasks.start_soon(late)
                await gated.entered.wait()
            async with producer.transaction() as following:
                gated.gate.set()
                await following.send("a", "1")
    assert (len(refused), await values(kafka)) == (1, [b"1"])


async def test_a_producer_that_closes_does_not_wait_for_a_serializer(kafka: Client) -> None:
    gated = Gated()
    async with anyio.create_task_group() as tasks:
        async with kafka.producer(value_serializer=gated) as producer:

            async def late() -> None:
                with pytest.raises(UsageError, match="the producer is closed"):
                    await producer.send("a", "1")

            tasks.start_soon(late)
            await gated.entered.wait()
        gated.gate.set()
    with pytest.raises(UsageError, match="the producer is closed"):
        await producer.send("a", "2")
    assert gated.left == 1  # a closed producer calls no serializer


class Returning:
    """Returns, or raises, what the test wants."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def serialize(self, value: Any, context: SerializationContext) -> Any:
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found(context) if callable(self.found) else self.found


async def later(found: Any) -> Any:
    await anyio.lowlevel.checkpoint()
    return found


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "returned a NoneType"),
        ("text", "returned a str"),
        (5, "returned a int"),
        (lambda _: later(None), "returned a NoneType"),
        (lambda _: later(later(b"1")), "returned a coroutine, and bytes are needed; an asynchronous serializer is"),
    ],
)
async def test_a_serializer_has_to_return_bytes(kafka: Client, found: Any, message: str) -> None:
    async with kafka.producer(value_serializer=Returning(found)) as producer:
        with pytest.raises(UsageError, match=message):
            await producer.send("a", "1")
    assert await values(kafka) == []


@pytest.mark.parametrize("found", [bytearray(b"1"), memoryview(b"1"), lambda _: later(bytearray(b"1"))])
async def test_a_serializer_may_return_other_buffers(kafka: Client, found: Any) -> None:
    async with kafka.producer(value_serializer=Returning(found)) as producer:
        await producer.send("a", "1")
    assert await values(kafka) == [b"1"]


@pytest.mark.parametrize("error", [LookupError("no"), asyncio.CancelledError()])
async def test_the_error_of_a_serializer_is_raised_and_nothing_is_sent(kafka: Client, error: BaseException) -> None:
    returning = Returning(error)
    async with kafka.producer(value_serializer=returning) as producer:
        with pytest.raises(type(error)):
            await producer.enqueue("a", "1")
        returning.found = b"2"
        await producer.send("a", "2")
    assert await values(kafka) == [b"2"]


async def test_invalid_headers_of_a_serializer_are_refused(kafka: Client) -> None:
    def add(context: SerializationContext) -> bytes:
        context.headers.append(("h", "text"))  # type: ignore[arg-type]
        return b"1"

    async with kafka.producer(value_serializer=Returning(add)) as producer:
        with pytest.raises(UsageError, match="a header must be a string and bytes or None, got 'h': 'text'"):
            await producer.send("a", "1")


async def test_a_context_that_is_changed_later_changes_nothing(kafka: Client) -> None:
    marking = Marking()
    headers = [("h", b"0")]
    async with kafka.producer(value_serializer=marking, linger_ms=10_000) as producer:
        delivery = await producer.enqueue("a", "1", headers=headers)
        marking.contexts[0].headers.append(("later", b"1"))
        await producer.flush()
        await delivery
    assert headers == [("h", b"0")]
    assert (await written(kafka))[0].headers == (("h", b"0"), ("format", b"a, False"))


async def test_a_function_that_returns_an_awaitable_gets_a_hint(kafka: Client) -> None:
    wrong: Any = lambda value: later(value)  # noqa: E731
    for serializers in ({"value_serializer": wrong}, {"value_serializer": wrong, "key_serializer": Marking()}):
        async with kafka.producer(**serializers) as producer:
            with pytest.raises(UsageError, match="an asynchronous serializer is an object with a method"):
                await producer.send("a", b"1")


async def test_what_cannot_be_a_serializer_is_refused(kafka: Client) -> None:
    wrong: list[Any] = [Marking, later, 5]
    for serializer in wrong:
        with pytest.raises(ConfigError, match="value_serializer must"):
            kafka.producer(value_serializer=serializer)
        with pytest.raises(ConfigError, match="key_serializer must"):
            kafka.producer(key_serializer=serializer)


class Named(ProducerInterceptor):
    """Names the record in its value, and keeps the results."""

    def __init__(self) -> None:
        self.results: list[Exception | None] = []

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        return ProducerRecord(topic=record.topic, value=f"<{record.value}>", headers=(("named", b"1"),))

    def on_acknowledgement(self, metadata: Any, error: Exception | None, headers: Any) -> None:
        self.results.append(error)


async def test_interceptors_come_before_serializers(kafka: Client) -> None:
    named = Named()
    async with kafka.producer(value_serializer=Slow(), interceptors=[named]) as producer:
        await producer.send("a", "1")
    async with kafka.producer(value_serializer=Returning(LookupError("no")), interceptors=[named]) as failing:
        with pytest.raises(LookupError):
            await failing.send("a", "2")
    (record,) = await written(kafka)
    assert (record.value, record.headers) == (b"<1>", (("named", b"1"), ("slow", b"1")))
    assert [type(result) for result in named.results] == [type(None), LookupError]


async def test_brokers_without_headers_refuse_the_record_clearly() -> None:
    async with (
        Broker(port=None, max_versions="0.10.2") as broker,
        Client(broker.bootstrap, connector=broker.connect, allow_auto_create_topics=True, **QUICK) as kafka,
        kafka.producer(value_serializer=Marking(), enable_idempotence=False) as producer,
    ):
        with pytest.raises(KafkaError, match="header"):
            await producer.send("a", "1")
