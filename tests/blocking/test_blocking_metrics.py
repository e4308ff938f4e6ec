"""The metrics of the blocking client: before it is opened, while it is open, and after it is closed."""

from __future__ import annotations

from aiokafkawire import blocking
from aiokafkawire.testing import BackgroundBroker


def records_sent(kafka: blocking.Client) -> float:
    return sum(
        one.value for one in kafka.metrics() if one.name == "record-send-total" and "topic" not in one.attributes
    )


def test_metrics_may_be_read_before_a_client_is_opened_and_after_it_is_closed() -> None:
    with BackgroundBroker() as broker:
        broker.create_topic("t")
        kafka = blocking.Client(broker.bootstrap)
        assert records_sent(kafka) == 0  # counts from now on
        with kafka:
            with kafka.producer() as producer:
                producer.send("t", b"1")
            assert records_sent(kafka) == 1
        assert records_sent(kafka) == 1
