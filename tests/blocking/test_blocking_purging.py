"""A blocking producer that drops what it has not sent, and closes in time."""

from __future__ import annotations

from secrets import token_hex

import pytest

from aiokafkawire import RecordsPurged, blocking

LONG_MS = 600_000


def test_purging_and_closing_in_time(kafka: blocking.Client) -> None:
    topic = f"topic-{token_hex(6)}"
    kafka.admin.create_topics({topic: 1})
    assert kafka.cluster_id == kafka.admin.describe_cluster().cluster_id
    with kafka.producer(linger_ms=LONG_MS, delivery_timeout_ms=2 * LONG_MS) as producer:
        delivery = producer.enqueue(topic, b"lost")
        assert producer.purge() == 1
        with pytest.raises(RecordsPurged):
            delivery.result()
        kept = producer.enqueue(topic, b"kept")
        producer.close(timeout=LONG_MS / 1000)
        assert kept.result().offset == 0
