"""A real Apache Kafka behind a tap, with this client, Java's console tools and librdkafka."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio
import anyio.to_thread
import pytest
from support.apache_kafka import ApacheKafka
from support.java_tools import java_command
from support.patience import PATIENCE

from aiokafkawire import Client
from aiokafkawire.cli.main import main
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing import RequestOutcome, Tap

pytestmark = [pytest.mark.thorough, pytest.mark.kafka, pytest.mark.timeout(180)]

CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOPICS = "org.apache.kafka.tools.TopicCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture
def name() -> str:
    return f"tap-{token_hex(6)}"


@pytest.fixture
async def tap(apache_kafka: ApacheKafka) -> AsyncIterator[Tap]:
    async with Tap(apache_kafka.bootstrap) as tap:
        yield tap


async def tool(main: str, *argv: str, text: str = "") -> str:
    """Run a tool of Kafka's, and give what it prints."""

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*java_command(), main, *argv], input=text, capture_output=True, text=True, timeout=PATIENCE
        )

    done = await anyio.to_thread.run_sync(run)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# --- this client -------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_this_client_gets_over_faults_on_apache_kafka(tap: Tap, name: str) -> None:
    tap.on(ApiKey.PRODUCE, drop="after")
    tap.on(ApiKey.PRODUCE, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER, topic=name)
    tap.on(ApiKey.FETCH, cut=True)
    tap.on(ApiKey.FIND_COORDINATOR, answer=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    tap.on(ApiKey.JOIN_GROUP, delay_answer=0.05)
    async with Client(tap.bootstrap, request_timeout_ms=5_000) as kafka:
        await kafka.admin.create_topics({name: 2})
        async with kafka.producer() as producer:
            for number in range(20):
                await producer.send(name, b"%d" % number, partition=number % 2)
        read: list[int] = []
        async with kafka.consumer(name, group_id=name, auto_offset_reset="earliest") as consumer:
            with anyio.fail_after(60):
                async for record in consumer:
                    read.append(int(record.value or b"-1"))
                    if len(read) == 20:
                        break
    assert sorted(read) == list(range(20))
    assert all(rule.is_met for rule in tap.orders)


@pytest.mark.anyio
async def test_errors_for_one_topic_of_a_fetch_session_on_apache_kafka(tap: Tap, name: str) -> None:
    async with Client(tap.bootstrap) as kafka:
        await kafka.admin.create_topics({name: 1, f"{name}-other": 1})
        async with (
            kafka.producer() as producer,
            kafka.consumer(name, f"{name}-other", auto_offset_reset="earliest") as consumer,
        ):
            for topic in (name, f"{name}-other"):
                await producer.send(topic, b"first")
            with anyio.fail_after(60):
                assert {(await anext(consumer)).topic for _ in range(2)} == {name, f"{name}-other"}
                rule = tap.on(ApiKey.FETCH, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER, topic=name, times=3)
                await producer.send(name, b"second")
                assert (await anext(consumer)).value == b"second"
                assert rule.is_met


@pytest.mark.anyio
async def test_the_journal_of_apache_kafka_is_decoded(
    apache_kafka: ApacheKafka, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "day.pcap"
    async with Tap(apache_kafka.bootstrap, journal=journal) as tap, Client(tap.bootstrap) as kafka:
        await kafka.admin.create_topics({name: 1})
        async with kafka.producer() as producer, kafka.consumer(name, auto_offset_reset="earliest") as consumer:
            await producer.send(name, b"v")
            with anyio.fail_after(60):
                await anext(consumer)
    assert await anyio.to_thread.run_sync(main, ["wire", "--json", "--file", str(journal)]) == 0
    frames = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"ApiVersions", "Metadata", "CreateTopics", "Produce", "Fetch"} <= {frame["api"] for frame in frames}


# --- other clients -----------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_javas_console_tools_work_through_the_tap(tap: Tap, name: str) -> None:
    tap.on(ApiKey.PRODUCE, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    tap.on(ApiKey.PRODUCE, drop="after")
    server = ("--bootstrap-server", tap.bootstrap)
    await tool(TOPICS, *server, "--create", "--topic", name, "--partitions", "2")
    lines = "".join(f"line {number}\n" for number in range(50))
    await tool(CONSOLE_PRODUCER, *server, "--topic", name, text=lines)
    argv = ("--topic", name, "--group", name, "--from-beginning", "--max-messages", "50", "--timeout-ms", "60000")
    read = await tool(CONSOLE_CONSUMER, *server, *argv)
    assert sorted(read.splitlines()) == sorted(lines.splitlines())
    described = await tool(GROUPS, *server, "--describe", "--group", name)
    assert sum(int(line.split()[3]) for line in described.splitlines() if name in line) == 50
    assert all(rule.is_met for rule in tap.orders)
    outcomes = [asked.outcome for asked in tap.requests.of(ApiKey.PRODUCE, topic=name)]
    assert RequestOutcome.DROPPED in outcomes
    assert tap.requests.of(ApiKey.JOIN_GROUP) or tap.requests.of(ApiKey.CONSUMER_GROUP_HEARTBEAT)


@contextmanager
def recording(tap: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The command, in front of a cluster: its address, and what it has printed when it has ended."""
    command = [sys.executable, "-m", "aiokafkawire", "tap", "--to", tap, "--listen", "127.0.0.1:0", "--json"]
    fault = ["--fault", "Produce delay 20ms"]
    with subprocess.Popen([*command, *fault], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        events: list[dict[str, Any]] = []
        try:
            yield process.stderr.readline().split()[2], events
            process.terminate()
            out, err = process.communicate(timeout=PATIENCE)
            assert (process.returncode, "Traceback" in err) == (0, False)
            events += [json.loads(line) for line in out.splitlines()]
        finally:
            process.kill()


def test_confluent_kafka_goes_through_the_tap_of_apache_kafka(apache_kafka: ApacheKafka, name: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    with recording(apache_kafka.bootstrap) as (address, events):
        producer = confluent_kafka.Producer({"bootstrap.servers": address})
        for number in range(50):
            producer.produce(name, b"%d" % number)
        assert producer.flush(PATIENCE) == 0
        settings = {"bootstrap.servers": address, "group.id": name, "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer(settings)
        consumer.subscribe([name])
        read: list[bytes] = []
        for _ in range(60):
            read += [message.value() for message in consumer.consume(50, timeout=1) if message.error() is None]
            if len(read) >= 50:
                break
        consumer.close()
        assert sorted(read) == sorted(b"%d" % number for number in range(50))
    produced = [event for event in events if (event["event"], event["api_name"]) == ("response", "Produce")]
    assert produced
    assert all(event["duration_ms"] >= 19 and event["fault"] == "delay=0.02" for event in produced)
    assert {"Fetch", "JoinGroup", "Metadata"} <= {event["api_name"] for event in events}
