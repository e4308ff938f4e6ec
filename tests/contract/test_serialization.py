"""Serializers that know the record, and records that cannot be deserialized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.serializers import Gated, Slow, SlowReader

from aiokafkawire import Client, TopicPartition
from aiokafkawire.processing.failures import failure_of

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]


async def test_records_pass_asynchronous_serializers_in_order(kafka: Client, topic: str) -> None:
    at = TopicPartition(topic, 0)
    async with kafka.producer(value_serializer=Slow(), key_serializer=str.encode) as producer:
        await producer.send(topic, "0", key="k", partition=0)
        for number in range(1, 50):
            await producer.enqueue(topic, str(number), key="k", partition=0)
        await producer.enqueue_many(topic, ["50", "51"], keys=["k", "k"], partition=0)
    async with kafka.consumer(auto_offset_reset="earliest", value_deserializer=SlowReader()) as consumer:
        consumer.assign([at])
        found: list[Any] = []
        async for record in consumer:
            found.append(record.value)
            assert (record.key, record.headers) == (b"k", (("slow", b"1"),))
            if len(found) == 52:
                break
        assert found == list(range(52))
        assert consumer.position(at) == 52


async def test_dead_letters_are_written_before_the_position_passes_them(
    kafka: Client, topic: str, new_name: Callable[[], str]
) -> None:
    at, dead, group = TopicPartition(topic, 0), new_name(), new_name()
    await kafka.admin.create_topics({dead: 1})
    async with kafka.producer() as producer:
        await producer.send_many(topic, [b"1", b"x", b"3"], keys=[b"k"] * 3, partition=0)
    gated = Gated()
    gated.gate.set()
    options: Any = {"on_error": "dead_letter", "dead_letter_topic": dead, "auto_offset_reset": "earliest"}
    async with kafka.consumer(group_id=group, value_deserializer=gated, **options) as consumer:
        consumer.assign([at])
        assert [(await anext(consumer)).value for _ in range(2)] == ["1", "3"]
        assert consumer.undeserializable_records == 1
        await consumer.commit()
        committed = (await consumer.committed([at]))[at]
    assert committed is not None
    assert committed.offset == 3
    (letter,) = [record async for record in kafka.read_records(dead)]
    failure = failure_of(letter.headers)
    assert failure is not None
    assert (letter.key, letter.value) == (b"k", b"x")
    assert (*failure.origin, failure.group) == (topic, 0, 1, group)
