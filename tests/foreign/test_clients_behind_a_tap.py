"""librdkafka reaches brokers of this process through `aiokafkawire tap`, and nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.patience import PATIENCE

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")


@pytest.fixture
def tapped(bootstrap: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The tap of the module's broker: its address, and the process."""
    command = [sys.executable, "-W", "error", "-m", "aiokafkawire", "tap", "--to", bootstrap, "--listen", "127.0.0.1:0"]
    faults = ["--fault", "Produce drop after once", "--fault", "Fetch delay answer 10ms"]
    with subprocess.Popen(
        [*command, "--json", *faults], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().split()[2], process
        finally:
            process.kill()


def test_confluent_kafka_produces_and_consumes_through_the_tap(
    tapped: tuple[str, subprocess.Popen[str]], name: str
) -> None:
    address, process = tapped
    settings = {"bootstrap.servers": address, "client.id": name}
    producer = confluent_kafka.Producer({**settings, "enable.idempotence": True})
    reports: list[Any] = []
    for number in range(200):
        producer.produce(name, b"%d" % number, on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(PATIENCE) == 0
    assert reports == [None] * 200
    consumer = confluent_kafka.Consumer({**settings, "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe([name])
    read: list[bytes] = []
    for _ in range(60):
        read += [message.value() for message in consumer.consume(200, timeout=0.5) if message.error() is None]
        if len(read) >= 200:
            break
    consumer.commit(asynchronous=False)
    consumer.close()
    assert sorted(read) == sorted(b"%d" % number for number in range(200))  # each once, though a response was lost
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    events = [json.loads(line) for line in out.splitlines()]
    answered = {event["api_name"] for event in events if event["event"] == "response" and event["client_id"] == name}
    assert {"Produce", "Fetch", "FindCoordinator", "JoinGroup", "OffsetCommit", "LeaveGroup"} <= answered
    assert [event["outcome"] for event in events if event.get("fault") == "drop='after'"] == ["dropped"]
    assert "Traceback" not in err
