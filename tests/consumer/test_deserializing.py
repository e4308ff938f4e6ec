"""Deserializers that know the record, and records that cannot be deserialized."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.clusters import QUICK
from support.serializers import Gated, SlowReader, Unmarking

from aiokafkawire import Client, ConfigError, Consumer, DeserializationError, KafkaError, TopicPartition, UsageError
from aiokafkawire.consumer import background_deserialization
from aiokafkawire.errors import ErrorCode
from aiokafkawire.interceptors import ConsumerInterceptor
from aiokafkawire.processing.failures import failure_of
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.records.batch import ConsumerRecord
from aiokafkawire.serialization import SerializationContext
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

A0 = TopicPartition("a", 0)
START: Any = {"auto_offset_reset": "earliest"}


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=None) as broker:
        yield broker


@pytest.fixture
async def kafka(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.bootstrap, connector=broker.connect, **QUICK) as client:
        await client.admin.create_topics({"a": 1, "dead": 1})
        yield client


async def fill(kafka: Client, *values: bytes | None, together: bool = False) -> None:
    """Write records, each in a batch of its own, or all in one."""
    async with kafka.producer(linger_ms=1000 if together else 0) as producer:
        if together:
            await producer.enqueue_many("a", values)
        else:
            for value in values:
                await producer.send("a", value, key=b"k", headers={"h": b"0"})


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


async def dead_letters(kafka: Client) -> list[ConsumerRecord[bytes, bytes]]:
    return [record async for record in kafka.read_records("dead")]


# --- in every way to read ------------------------------------------------------------------------------------------


async def test_deserializers_see_the_record(kafka: Client) -> None:
    await fill(kafka, b"1")
    key, value = Unmarking(), Unmarking()
    async with kafka.consumer("a", key_deserializer=key, value_deserializer=value, **START) as consumer:
        record = await anext(consumer)
    assert (record.key, record.value, record.raw_key, record.raw_value) == ("k", "1", b"k", b"1")
    assert record.headers == (("h", b"0"),)
    (of_key,), (of_value,) = key.contexts, value.contexts
    assert (of_key.topic, of_key.is_key, of_value.topic, of_value.is_key) == ("a", True, "a", False)


@pytest.mark.parametrize("together", [False, True])
async def test_every_way_to_read_deserializes_in_order(kafka: Client, together: bool) -> None:
    await fill(kafka, *numbers(40), together=together)
    reader = SlowReader()
    found: list[Any] = []
    async with kafka.consumer("a", value_deserializer=reader, **START) as consumer:
        found.append((await anext(consumer)).value)
        async for record in consumer:
            found.append(record.value)
            assert consumer.position(A0) == record.offset + 1
            if len(found) == 10:
                break
        found += [record.value for record in await consumer.poll(5)]
        assert consumer.position(A0) == len(found)
        while len(found) < 40:
            batch = await anext(consumer.batches())
            found += [record.value for record in batch]
            assert consumer.position(A0) == batch.next_offset
        assert await consumer.poll(timeout=0.01) == []
    assert found == list(range(40))
    assert reader.seen == numbers(40)


async def test_null_keys_and_values_are_not_deserialized(kafka: Client) -> None:
    async with kafka.producer() as producer:
        await producer.send("a")
    unmarking = Unmarking()
    async with kafka.consumer("a", key_deserializer=unmarking, value_deserializer=unmarking, **START) as consumer:
        record = await anext(consumer)
    assert (record.key, record.value, unmarking.contexts) == (None, None, [])


async def test_a_bounded_read_deserializes_nothing_after_its_end(kafka: Client) -> None:
    await fill(kafka, *numbers(10), together=True)
    reader = SlowReader()
    records = kafka.read_records("a", start={A0: 2}, end={A0: 7}, value_deserializer=reader)
    assert [record.value async for record in records] == [2, 3, 4, 5, 6]
    assert reader.seen == numbers(10)[2:7]


class Odd(ConsumerInterceptor):
    def on_consume(self, records: list[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        return [record for record in records if (record.value or 0) % 2]


async def test_interceptors_get_deserialized_records(kafka: Client) -> None:
    await fill(kafka, *numbers(6), together=True)
    async with kafka.consumer("a", value_deserializer=SlowReader(), interceptors=[Odd()], **START) as consumer:
        assert [(await anext(consumer)).value for _ in range(3)] == [1, 3, 5]


async def test_a_batch_has_the_raw_columns_of_the_records_that_were_not_iterated(kafka: Client) -> None:
    await fill(kafka, *numbers(3), together=True)
    async with kafka.consumer("a", value_deserializer=Unmarking(), **START) as consumer:
        batch = await anext(consumer.batches())
        assert next(iter(batch)).value == "0"
        assert batch.joined_values() == (2, b"1\n2\n")
        assert list(batch) == []
        consumer.seek(A0, 1)
        assert (await anext(consumer.batches())).to_arrow().column("offset").to_pylist() == [1, 2]


async def until_it_waits(consumer: Consumer[Any, Any], gated: Gated) -> None:
    """Poll until the deserializer waits for its gate."""
    while not gated.entered.is_set():
        assert await consumer.poll(timeout=0.01) == []


# --- while deserializers wait --------------------------------------------------------------------------------------


async def test_a_cancelled_poll_loses_nothing(kafka: Client) -> None:
    await fill(kafka, b"1", b"2")
    gated = Gated()
    async with kafka.consumer("a", value_deserializer=gated, **START) as consumer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consumer.poll)
            await gated.entered.wait()
            tasks.cancel_scope.cancel()
        assert consumer.position(A0) == 0
        assert await consumer.poll(timeout=0.01) == []
        gated.gate.set()
        assert [(await anext(consumer)).value for _ in range(2)] == ["1", "2"]
    assert (gated.left, gated.cancelled) == (2, 0)  # the first one went on meanwhile


async def test_a_seek_drops_what_is_being_deserialized(kafka: Client) -> None:
    await fill(kafka, *numbers(4), together=True)
    gated = Gated()
    async with kafka.consumer("a", value_deserializer=gated, **START) as consumer:
        await until_it_waits(consumer, gated)
        consumer.seek(A0, 2)
        gated.entered = anyio.Event()
        await until_it_waits(consumer, gated)
        gated.gate.set()
        assert (await anext(consumer)).value == "2"
    assert gated.cancelled == 1


async def test_a_paused_partition_keeps_what_is_deserialized(kafka: Client) -> None:
    await fill(kafka, b"1")
    gated = Gated()
    async with kafka.consumer("a", value_deserializer=gated, **START) as consumer:
        await until_it_waits(consumer, gated)
        consumer.pause(A0)
        gated.gate.set()
        assert await consumer.poll(timeout=0.01) == []
        consumer.resume(A0)
        assert (await anext(consumer)).value == "1"
    assert gated.left == 1


@pytest.mark.parametrize("reads", ["iteration", "poll", "batches"])
async def test_closing_ends_a_call_whose_deserializer_waits(kafka: Client, reads: str) -> None:
    await fill(kafka, b"1")
    gated = Gated()
    async with anyio.create_task_group() as tasks, kafka.consumer("a", value_deserializer=gated, **START) as consumer:

        async def read() -> None:
            if reads == "poll":
                assert await consumer.poll() == []
            else:
                async for _ in consumer if reads == "iteration" else consumer.batches():
                    raise AssertionError("there was no record")

        tasks.start_soon(read)
        await gated.entered.wait()
        await consumer.close()
    assert (gated.left, gated.cancelled) == (0, 1)


async def test_records_that_are_deserialized_ahead_are_not_committed(kafka: Client) -> None:
    await fill(kafka, *numbers(3), together=True)
    async with kafka.consumer("a", group_id="g", value_deserializer=SlowReader(), **START) as consumer:
        async for record in consumer:
            if record.offset == 1:
                break
        await consumer.commit()
        committed = (await consumer.committed([A0]))[A0]
    assert committed is not None
    assert committed.offset == 2


async def test_only_one_batch_is_deserialized_at_a_time(kafka: Client) -> None:
    await kafka.admin.create_topics({"b": 1})
    async with kafka.producer() as producer:
        await producer.send("a", b"1")
        await producer.send("b", b"2")
    gated = Gated()
    async with kafka.consumer("a", "b", value_deserializer=gated, **START) as consumer:
        await until_it_waits(consumer, gated)
        gated.entered = anyio.Event()
        assert await consumer.poll(timeout=0.05) == []
        assert not gated.entered.is_set()
        gated.gate.set()
        assert sorted([(await anext(consumer)).value or "" for _ in range(2)]) == ["1", "2"]


# --- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reads", ["iteration", "poll", "batches"])
async def test_an_error_has_the_raw_record_and_the_next_call_continues(kafka: Client, reads: str) -> None:
    await fill(kafka, b"1", b"x", b"3")
    gated = Gated()
    gated.gate.set()
    found: list[Any] = []
    async with kafka.consumer("a", value_deserializer=gated, **START) as consumer:

        async def take() -> None:
            if reads == "poll":
                found.extend(record.value for record in await consumer.poll(1))
            elif reads == "iteration":
                found.append((await anext(consumer)).value)
            else:
                found.extend(record.value for record in await anext(consumer.batches()))

        await take()
        with pytest.raises(DeserializationError, match="a-0, offset 1: the value could not") as caught:
            await take()
        assert consumer.position(A0) == 2
        await take()
    assert found == ["1", "3"]
    error: DeserializationError = pickle.loads(pickle.dumps(caught.value))
    assert (error.partition, error.offset, error.failed) == (A0, 1, "value")
    assert (error.raw_key, error.raw_value, error.headers) == (b"k", b"x", (("h", b"0"),))
    assert isinstance(caught.value.__cause__, ValueError)


async def test_no_batch_is_empty_however_slow_the_deserializer_is(
    kafka: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_deserialization, "_CHUNK_SECONDS", -1.0)
    await fill(kafka, b"1", b"2")
    await fill(kafka, b"3", b"4", together=True)
    gated = Gated()
    gated.gate.set()
    found: list[list[Any]] = []
    async with kafka.consumer("a", value_deserializer=gated, **START) as consumer:
        async for batch in consumer.batches():
            found.append([record.value for record in batch])
            if sum(map(len, found)) == 4:
                break
    assert found == [["1"], ["2"], ["3"], ["4"]]


class Stray:
    """Raises the error of a cancelled task once, at once or after others have run."""

    def __init__(self, waits: bool) -> None:
        self.waits, self.calls = waits, 0

    def deserialize(self, data: bytes, context: SerializationContext) -> Any:
        self.calls += 1
        if self.calls > 1:
            return data
        if not self.waits:
            raise asyncio.CancelledError
        return self._later()

    async def _later(self) -> None:
        await anyio.lowlevel.checkpoint()
        raise asyncio.CancelledError


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("waits", [False, True])
async def test_a_deserializer_that_raises_a_cancellation_loses_no_record(kafka: Client, waits: bool) -> None:
    await fill(kafka, b"1")
    expected: type[BaseException] = KafkaError if waits else asyncio.CancelledError
    async with kafka.consumer("a", value_deserializer=Stray(waits), **START) as consumer:
        with pytest.raises(expected):
            await anext(consumer)
        assert consumer.position(A0) == 0
        assert (await anext(consumer)).value == b"1"


async def test_what_cannot_be_a_deserializer_is_refused(kafka: Client) -> None:
    async def later(data: bytes) -> bytes:
        return data

    wrong: list[Any] = [Unmarking, later, 5]
    for deserializer in wrong:
        with pytest.raises(ConfigError, match="value_deserializer must"):
            kafka.consumer(value_deserializer=deserializer)
        with pytest.raises(ConfigError, match="key_deserializer must"):
            kafka.share_consumer(group_id="g", key_deserializer=deserializer)


# --- on_error ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deserializer", [int, SlowReader()])
async def test_skipped_records_are_counted_and_the_log_is_not_flooded(
    kafka: Client, caplog: pytest.LogCaptureFixture, deserializer: Any
) -> None:
    await fill(kafka, *[b"x"] * 50, b"1", b"x", b"2", together=True)
    async with kafka.consumer("a", value_deserializer=deserializer, on_error="skip", **START) as consumer:
        assert [(await anext(consumer)).value for _ in range(2)] == [1, 2]
        assert consumer.position(A0) == 53
        assert consumer.undeserializable_records == 51
    lines = [record.getMessage() for record in caplog.records if "skipped the record" in record.getMessage()]
    reason = "invalid literal for int() with base 10: b'x'"
    assert lines == [f"skipped the record at offset 0 of a-0: its value cannot be deserialized: {reason}"]


async def test_many_skipped_batches_do_not_keep_other_tasks_from_running(kafka: Client) -> None:
    await fill(kafka, *[b"x"] * 100, b"1")
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with (
        kafka.consumer("a", value_deserializer=int, on_error="skip", **START) as consumer,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(count)
        assert (await anext(consumer)).value == 1
        tasks.cancel_scope.cancel()
    assert turns >= 100


async def test_dead_letters_have_the_raw_record_and_its_origin(kafka: Client) -> None:
    await fill(kafka, b"1", b"x", b"3")
    options: Any = {"on_error": "dead_letter", "dead_letter_topic": "dead", "group_id": "g", **START}
    async with kafka.consumer("a", value_deserializer=int, **options) as consumer:
        assert [(await anext(consumer)).value for _ in range(2)] == [1, 3]
        assert consumer.undeserializable_records == 1
    (letter,) = await dead_letters(kafka)
    assert (letter.key, letter.value, letter.headers[0]) == (b"k", b"x", ("h", b"0"))
    failure = failure_of(letter.headers)
    assert failure is not None
    assert (failure.topic, failure.partition, failure.offset, failure.group) == ("a", 0, 1, "g")
    assert (failure.error, failure.attempts) == ("builtins.ValueError", 1)
    assert "invalid literal" in failure.message
    assert "invalid literal" in failure.stack
    assert failure.timestamp_ms > 0


async def test_a_dead_letter_that_fails_again_goes_back_to_the_topic_of_dead_letters(kafka: Client) -> None:
    """The headers of its first failure say no more than any headers that a record may have."""
    await fill(kafka, b"x")
    await kafka.admin.create_topics({"again": 1})
    async with kafka.consumer(
        "a", value_deserializer=int, on_error="dead_letter", dead_letter_topic="dead", **START
    ) as c:
        while not c.undeserializable_records:
            await c.poll(timeout=0.01)
    async with kafka.consumer(
        "dead", value_deserializer=int, on_error="dead_letter", dead_letter_topic="again", **START
    ) as c:
        while not c.undeserializable_records:
            await c.poll(timeout=0.01)
    (letter,) = [record async for record in kafka.read_records("again")]
    failure = failure_of(letter.headers)
    assert failure is not None
    assert (failure.origin, failure.attempts) == (("dead", 0, 0), 1)


async def test_the_position_does_not_pass_a_dead_letter_that_is_not_written(broker: Broker, kafka: Client) -> None:
    await fill(kafka, b"1", b"x", b"3", together=True)
    options: Any = {"on_error": "dead_letter", "dead_letter_topic": "dead", **START}
    async with kafka.consumer("a", value_deserializer=int, **options) as consumer:
        rule = broker.on(ApiKey.PRODUCE, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED, times=2)
        assert (await anext(consumer)).value == 1
        for _ in range(2):
            with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
                await anext(consumer)
            assert "offset 1" in "".join(caught.value.__notes__)
            assert consumer.position(A0) == 1
        assert rule is not None
        assert (await anext(consumer)).value == 3
    assert [letter.value for letter in await dead_letters(kafka)] == [b"x"]


async def test_a_consumer_of_its_own_dead_letters_says_so(kafka: Client) -> None:
    async with kafka.producer() as producer:
        await producer.send("dead", b"x")
    with pytest.raises(ConfigError, match="dead_letter_topic must not be a topic that the consumer reads"):
        kafka.consumer("dead", on_error="dead_letter", dead_letter_topic="dead")
    options: Any = {"on_error": "dead_letter", "dead_letter_topic": "dead", **START}
    async with kafka.consumer(value_deserializer=int, **options) as consumer:
        consumer.assign([TopicPartition("dead", 0)])
        with pytest.raises(UsageError, match="reads its own dead_letter_topic"):
            await anext(consumer)


@pytest.mark.parametrize("options", [{"on_error": "dead_letter"}, {"dead_letter_topic": "dead"}])
async def test_dead_letters_need_a_topic(kafka: Client, options: Any) -> None:
    with pytest.raises(ConfigError, match="on_error='dead_letter' and dead_letter_topic need one another"):
        kafka.consumer("a", **options)
    with pytest.raises(ConfigError, match="on_error='dead_letter' and dead_letter_topic need one another"):
        kafka.share_consumer("a", group_id="g", **options)


async def test_closing_does_not_wait_long_for_a_dead_letter(broker: Broker, kafka: Client) -> None:
    await fill(kafka, b"x")
    asked = anyio.Event()

    async def never(*_: Any) -> None:
        asked.set()
        await anyio.sleep_forever()

    options: Any = {"on_error": "dead_letter", "dead_letter_topic": "dead", **START}
    async with anyio.create_task_group() as tasks, kafka.consumer("a", value_deserializer=int, **options) as consumer:
        failures = consumer._failures
        assert failures is not None
        failures.handle = never  # type: ignore[method-assign, assignment]
        tasks.start_soon(consumer.poll)
        await asked.wait()
        await consumer.close()
    assert await dead_letters(kafka) == []
