"""Interceptors of the blocking client run on the client's thread, whichever thread sends and reads."""

from __future__ import annotations

import threading
from secrets import token_hex
from typing import Any

import pytest

from aiokafkawire import DeserializationError, TopicPartition, blocking
from aiokafkawire.interceptors import ConsumerInterceptor, ProducerInterceptor, ProducerRecord


class Audit(ProducerInterceptor, ConsumerInterceptor):
    """Keeps every call; leaves out the values that are 2."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.threads: set[threading.Thread] = set()

    def keep(self, call: Any) -> None:
        self.calls.append(call)
        self.threads.add(threading.current_thread())

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        self.keep(record.value)
        return record.with_header("h", b"1")

    def on_acknowledgement(self, metadata: Any, error: Exception | None, headers: Any) -> None:
        self.keep((metadata.offset, error, headers))

    def on_consume(self, records: Any) -> Any:
        self.keep([record.value for record in records])
        return [record for record in records if record.value != b"2"]

    def on_commit(self, offsets: Any) -> None:
        self.keep({partition.partition: at.offset for partition, at in offsets.items()})

    def close(self) -> None:
        self.keep("closed")


@pytest.fixture
def topic(kafka: blocking.Client) -> str:
    """A topic with the values 1, 2 and 3."""
    name = f"topic-{token_hex(6)}"
    kafka.admin.create_topics({name: 1})
    with kafka.producer() as producer:
        producer.send_many(name, [b"1", b"2", b"3"])
    return name


def elsewhere(audit: Audit) -> bool:
    return threading.current_thread() not in audit.threads and len(audit.threads) == 1


def test_a_producers_interceptors(kafka: blocking.Client, topic: str) -> None:
    audit = Audit()
    with kafka.producer(interceptors=[audit]) as producer:
        assert producer.send(topic, b"4").offset == 3
        assert producer.enqueue(topic, b"5").result().offset == 4
        producer.enqueue_many(topic, [b"6"])
    headers = (("h", b"1"),)
    assert audit.calls == [b"4", (3, None, headers), b"5", (4, None, headers), b"6", (5, None, headers), "closed"]
    assert elsewhere(audit)


def test_a_consumers_interceptors(kafka: blocking.Client, topic: str) -> None:
    audit, zero = Audit(), TopicPartition(topic, 0)
    options: Any = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with kafka.consumer(topic, interceptors=[audit], **options) as consumer:
        records = iter(consumer)
        assert [next(records).value for _ in range(2)] == [b"1", b"3"]
        consumer.commit()
        consumer.seek(zero, 0)
        assert [record.value for record in consumer.poll()] == [b"1", b"3"]
        consumer.seek(zero, 1)
        assert [record.value for record in consumer.poll(max_records=1, timeout=20)] == []
        assert [record.value for record in next(consumer.batches())] == [b"3"]
    one_by_one = [[b"1"], [b"2"], [b"3"]]
    assert audit.calls == [*one_by_one, {0: 3}, [b"1", b"2", b"3"], [b"2"], [b"3"], "closed"]
    assert elsewhere(audit)


def test_an_iteration_goes_on_after_an_error(kafka: blocking.Client, topic: str) -> None:
    with kafka.producer() as producer:
        producer.send_many(topic, [b"x", b"5"])
    options: Any = {"auto_offset_reset": "earliest", "value_deserializer": int}
    with kafka.consumer(topic, interceptors=[Audit()], **options) as consumer:
        records = iter(consumer)
        assert [next(records).value for _ in range(3)] == [1, 2, 3]
        with pytest.raises(DeserializationError):
            next(records)
        assert next(records).value == 5
