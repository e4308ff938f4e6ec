"""kafka-python believes the broker."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from support.patience import PATIENCE

kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
admin = pytest.importorskip("kafka.admin")

COUNT = 200


def produce(bootstrap: str, topic: str, **options: Any) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, **options)
    sent = [producer.send(topic, b"v%d" % number, key=b"k%d" % (number % 7)) for number in range(COUNT)]
    for one in sent:
        one.get(timeout=PATIENCE)
    producer.close()


@pytest.mark.parametrize("options", [{}, {"acks": "all", "compression_type": "gzip"}])
def test_what_is_produced_is_consumed_in_a_group(bootstrap: str, name: str, options: dict[str, Any]) -> None:
    produce(bootstrap, name, **options)
    reader = kafka.KafkaConsumer(
        name, bootstrap_servers=bootstrap, group_id=name, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    found = set()
    for record in reader:
        found.add(record.value)
        if len(found) == COUNT:
            break
    assert found == {b"v%d" % number for number in range(COUNT)}
    reader.commit()
    assert sum(reader.committed(kafka.TopicPartition(name, index)) or 0 for index in range(3)) == COUNT
    reader.close()


@pytest.mark.slow
def test_two_members_share_the_partitions(bootstrap: str, name: str) -> None:
    produce(bootstrap, name)
    shares, done = [0, 0], threading.Event()

    def member(number: int) -> None:
        reader = kafka.KafkaConsumer(name, bootstrap_servers=bootstrap, group_id=name, heartbeat_interval_ms=300)
        while not done.is_set():
            reader.poll(1000)  # it may lose track of a rebalance that ends between two polls
            shares[number] = len(reader.assignment())
        reader.close()

    # Its poll waits for the group, so one thread cannot be two members.
    threads = [threading.Thread(target=member, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE
    while (found := sorted(shares)) != [1, 2] and time.monotonic() < deadline:
        done.wait(0.05)
    done.set()  # the first to leave takes its share from the other, so what counts was found before
    for thread in threads:
        thread.join(20)
    assert found == [1, 2]


def test_its_admin_client_works(bootstrap: str, name: str) -> None:
    client = admin.KafkaAdminClient(bootstrap_servers=bootstrap)
    client.create_topics([admin.NewTopic(name=name, num_partitions=2, replication_factor=1)])
    assert name in client.list_topics()
    client.delete_topics([name])
    client.close()
