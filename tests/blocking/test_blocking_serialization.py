"""Serializers and deserializers that know the record, without an event loop."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import pytest
from support.serializers import Slow, SlowReader

from aiokafkawire import DeserializationError, TopicPartition, blocking


@pytest.fixture
def topic(kafka: blocking.Client) -> str:
    name = f"topic-{token_hex(6)}"
    kafka.admin.create_topics({name: 1})
    return name


def test_every_way_to_write_and_to_read(kafka: blocking.Client, topic: str) -> None:
    slow = Slow()
    with kafka.producer(value_serializer=slow) as producer:
        producer.send(topic, "0")
        producer.enqueue(topic, "1").result()
        producer.send_many(topic, [str(number) for number in range(2, 30)])
        producer.enqueue_many(topic, [str(number) for number in range(30, 40)])
    reader = SlowReader()
    found: list[Any] = []
    with kafka.consumer(topic, auto_offset_reset="earliest", value_deserializer=reader) as consumer:
        for record in consumer:
            found.append(record.value)
            assert consumer.position(TopicPartition(topic, 0)) == len(found)
            if len(found) == 10:
                break
        found += [record.value for record in consumer.poll(10)]
        for batch in consumer.batches():
            found += [record.value for record in batch]
            if len(found) == 40:
                break
    assert found == list(range(40))


def test_an_error_is_raised_in_its_place(kafka: blocking.Client, topic: str) -> None:
    with kafka.producer() as producer:
        producer.enqueue_many(topic, [b"1", b"x", b"3", b"x"])
    found: list[Any] = []
    with kafka.consumer(topic, auto_offset_reset="earliest", value_deserializer=SlowReader()) as consumer:
        for _ in range(2):
            with pytest.raises(DeserializationError):
                for record in consumer:
                    found.append(record.value)
    assert found == [1, 3]


def test_records_that_cannot_be_deserialized_are_left_out(kafka: blocking.Client, topic: str) -> None:
    dead = f"dead-{token_hex(6)}"
    kafka.admin.create_topics({dead: 1})
    with kafka.producer() as producer:
        producer.enqueue_many(topic, [b"1", b"x", b"3", b"x", b"5"])
    for option, expected in (("skip", []), ("dead_letter", [b"x", b"x"])):
        options: Any = {"on_error": option, "dead_letter_topic": dead if option == "dead_letter" else None}
        with kafka.consumer(
            topic, auto_offset_reset="earliest", value_deserializer=SlowReader(), **options
        ) as consumer:
            records = iter(consumer)
            assert [next(records).value for _ in range(3)] == [1, 3, 5]
            assert consumer.undeserializable_records == 2
        assert [record.value for record in kafka.read_records(dead)] == expected
