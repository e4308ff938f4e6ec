"""Kafka's own command-line tools believe the broker."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.examples import sampled
from support.java_tools import java_command
from support.patience import PATIENCE

pytestmark = [pytest.mark.thorough, pytest.mark.kafka, pytest.mark.timeout(300)]

TOPICS = "org.apache.kafka.tools.TopicCommand"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONFIGS = "kafka.admin.ConfigCommand"  # in the server's jar
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
SHARE_CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
VERIFIABLE_SHARE_CONSUMER = "org.apache.kafka.tools.VerifiableShareConsumer"

Tool = Callable[..., str]


@pytest.fixture(scope="module")
def java() -> list[str]:
    """The command that runs a tool of Kafka's newest release."""
    return java_command()


@pytest.fixture
def tool(java: list[str], bootstrap: str) -> Tool:
    """Run a tool to its end, and give what it prints."""

    def run(main: str, *argv: str) -> str:
        done = subprocess.run(
            [*java, main, *argv, "--bootstrap-server", bootstrap], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@contextmanager
def events(java: list[str], main: str, *argv: str) -> Iterator[list[dict[str, Any]]]:
    """What a verifiable client tells of itself, a JSON object a line, while it runs."""
    seen: list[dict[str, Any]] = []
    with subprocess.Popen([*java, main, *argv], stdout=subprocess.PIPE, text=True) as process:

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                seen.append(json.loads(line))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield seen
        finally:
            process.terminate()
            reader.join(30)


def until(condition: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_topics_are_made_listed_described_altered_and_deleted(tool: Tool, name: str) -> None:
    made = tool(TOPICS, "--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=60000")
    assert f"Created topic {name}." in made
    assert name in tool(TOPICS, "--list").splitlines()
    described = tool(TOPICS, "--describe", "--topic", name)
    assert "PartitionCount: 2" in described
    assert "retention.ms=60000" in described
    tool(TOPICS, "--alter", "--topic", name, "--partitions", "5")
    assert "PartitionCount: 5" in tool(TOPICS, "--describe", "--topic", name)
    tool(TOPICS, "--delete", "--topic", name)
    assert name not in tool(TOPICS, "--list").splitlines()


def test_a_group_reads_what_the_performance_test_writes(
    tool: Tool, java: list[str], bootstrap: str, name: str, tmp_path: Path
) -> None:
    settings = ["--topic", name, "--num-records", "5000", "--record-size", "100", "--throughput", "-1"]
    written = tool(PERFORMANCE, *settings)
    assert "5000 records sent" in written
    read = tool(CONSOLE, "--topic", name, "--group", name, "--from-beginning", "--max-messages", "5000")
    assert len(read.splitlines()) == 5000
    described = tool(GROUPS, "--describe", "--group", name)
    rows = [line.split() for line in described.splitlines() if name in line]
    assert sum(int(row[3]) for row in rows) == 5000  # committed
    assert sum(int(row[5]) for row in rows) == 0  # lag
    tool(GROUPS, "--reset-offsets", "--group", name, "--topic", name, "--to-earliest", "--execute")
    assert sum(int(row.split()[5]) for row in tool(GROUPS, "--describe", "--group", name).splitlines() if name in row)
    assert name in tool(GROUPS, "--list")
    tool(GROUPS, "--delete", "--group", name)
    assert name not in tool(GROUPS, "--list").splitlines()


def test_a_consumer_group_reads_and_is_described(tool: Tool, name: str) -> None:
    tool(PERFORMANCE, "--topic", name, "--num-records", "100", "--record-size", "100", "--throughput", "-1")
    argv = ["--topic", name, "--group", name, "--from-beginning", "--max-messages", "100"]
    read = tool(CONSOLE, *argv, "--command-property", "group.protocol=consumer")
    assert len(read.splitlines()) == 100
    assert "Consumer" in tool(GROUPS, "--list", "--type", "consumer")
    described = tool(GROUPS, "--describe", "--group", name)
    rows = [line.split() for line in described.splitlines() if name in line]
    assert sum(int(row[3]) for row in rows) == 100  # committed
    assert "Empty" in tool(GROUPS, "--describe", "--group", name, "--state")
    tool(GROUPS, "--delete", "--group", name)


def test_settings_are_described_and_altered(tool: Tool, name: str) -> None:
    tool(TOPICS, "--create", "--topic", name)
    tool(CONFIGS, "--alter", "--entity-type", "topics", "--entity-name", name, "--add-config", "cleanup.policy=compact")
    assert "cleanup.policy=compact" in tool(CONFIGS, "--describe", "--entity-type", "topics", "--entity-name", name)


def test_verifiable_clients_verify(java: list[str], tool: Tool, bootstrap: str, name: str) -> None:
    tool(TOPICS, "--create", "--topic", name, "--partitions", "3")
    at = ["--bootstrap-server", bootstrap, "--topic", name]
    with events(java, VERIFIABLE_CONSUMER, *at, "--group-id", name, "--reset-policy", "earliest") as consumed:
        until(lambda: any(one["name"] == "partitions_assigned" for one in consumed))
        with events(java, VERIFIABLE_PRODUCER, *at, "--max-messages", "500") as produced:
            until(lambda: any(one["name"] == "tool_data" for one in produced))
        assert sum(one["name"] == "producer_send_success" for one in produced) == 500
        until(lambda: sum(one.get("count", 0) for one in consumed if one["name"] == "records_consumed") == 500)
        until(lambda: any(one["name"] == "offsets_committed" and one["success"] for one in consumed))


def test_a_share_group_reads_what_the_performance_test_writes(tool: Tool, name: str) -> None:
    tool(CONFIGS, "--alter", "--group", name, "--add-config", "share.auto.offset.reset=earliest")
    tool(PERFORMANCE, "--topic", name, "--num-records", "5000", "--record-size", "100", "--throughput", "-1")
    read = tool(SHARE_CONSOLE, "--topic", name, "--group", name, "--max-messages", "5000")
    assert len(read.splitlines()) == 5000
    assert name in tool(SHARE_GROUPS, "--list").splitlines()
    described = tool(SHARE_GROUPS, "--describe", "--group", name, "--offsets")
    rows = [line.split() for line in described.splitlines() if line.startswith(name)]
    assert [int(row[4]) for row in rows] == [0, 0, 0]  # lag
    assert "Empty" in tool(SHARE_GROUPS, "--describe", "--group", name, "--state")
    tool(SHARE_GROUPS, "--reset-offsets", "--group", name, "--topic", name, "--to-earliest", "--execute")
    described = tool(SHARE_GROUPS, "--describe", "--group", name, "--offsets")
    rows = [line.split() for line in described.splitlines() if line.startswith(name)]
    assert sum(int(row[4]) for row in rows) == 5000
    tool(SHARE_GROUPS, "--delete-offsets", "--group", name, "--topic", name)
    tool(SHARE_GROUPS, "--delete", "--group", name)
    assert name not in tool(SHARE_GROUPS, "--list").splitlines()


@pytest.mark.parametrize("mode", sampled(["auto", "sync", "async"], "sync"))
def test_verifiable_share_consumers_share(java: list[str], tool: Tool, bootstrap: str, name: str, mode: str) -> None:
    tool(TOPICS, "--create", "--topic", name, "--partitions", "1")
    tool(CONFIGS, "--alter", "--group", name, "--add-config", "share.auto.offset.reset=earliest")
    at = ["--bootstrap-server", bootstrap, "--topic", name]
    share = [VERIFIABLE_SHARE_CONSUMER, *at, "--group-id", name, "--acknowledgement-mode", mode]
    with events(java, *share) as one, events(java, *share) as other:
        with events(java, VERIFIABLE_PRODUCER, *at, "--max-messages", "500") as produced:
            until(lambda: any(event["name"] == "tool_data" for event in produced))

        def total(of: str) -> int:
            return sum(event.get("count", 0) for event in (*one, *other) if event["name"] == of)

        until(lambda: total("records_consumed") == 500)
        until(lambda: total("offsets_acknowledged") == 500)
