"""Java's clients push their metrics to the in-process broker; ours push metrics of the same names."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from support.java_tools import java_command

from aiokafkawire import Client
from aiokafkawire.admin.config_resources import ConfigResource
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.telemetry.client_metrics import PushedMetrics

pytestmark = [pytest.mark.anyio, pytest.mark.thorough, pytest.mark.kafka, pytest.mark.timeout(300)]

PREFIX = "org.apache.kafka."
RECORDS = 1_000


async def run(tool: str, *argv: str) -> None:
    command = [*java_command(), f"org.apache.kafka.tools.{tool}", *argv]
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    )
    assert done.returncode == 0, done.stdout + done.stderr


def kinds(pushes: list[PushedMetrics]) -> set[tuple[str, str, tuple[str, ...]]]:
    """What is pushed: names, kinds and names of attributes."""
    return {(one.name, one.kind, tuple(sorted(one.attributes))) for push in pushes for one in push.metrics}


REQUIRED = {
    "producer.connection.creation.rate",
    "producer.connection.creation.total",
    "producer.node.request.latency.avg",
    "producer.node.request.latency.max",
    "producer.produce.throttle.time.avg",
    "producer.produce.throttle.time.max",
    "producer.record.queue.time.avg",
    "producer.record.queue.time.max",
    "consumer.connection.creation.rate",
    "consumer.connection.creation.total",
    "consumer.node.request.latency.avg",
    "consumer.node.request.latency.max",
    "consumer.coordinator.commit.latency.avg",
    "consumer.coordinator.commit.latency.max",
    "consumer.coordinator.assigned.partitions",
    "consumer.coordinator.rebalance.latency.avg",
    "consumer.coordinator.rebalance.latency.max",
    "consumer.coordinator.rebalance.latency.total",
    "consumer.fetch.manager.fetch.latency.avg",
    "consumer.fetch.manager.fetch.latency.max",
}
"""What KIP-714 requires of clients; ``consumer.poll.idle.ratio.avg`` is missing, since our consumers have no polls."""


async def test_java_pushes_to_the_broker_and_our_metrics_have_javas_names(tmp_path: Path) -> None:
    async with Broker(client_telemetry=True) as broker:
        broker.create_topic("flights")
        async with Client(broker.bootstrap) as operator:
            settings = {"metrics": f"{PREFIX}producer.,{PREFIX}consumer.", "interval.ms": "100"}
            changes: dict[ConfigResource, Any] = {ConfigResource.client_metrics("test"): settings}
            await operator.admin.incremental_alter_configs(changes)

        producing, consuming = tmp_path / "producer.properties", tmp_path / "consumer.properties"
        producing.write_text("client.id=java-producer\n")
        consuming.write_text("client.id=java-consumer\nclient.rack=r1\n")
        to = ("--bootstrap-server", broker.bootstrap, "--topic", "flights", "--max-messages", str(RECORDS))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, "VerifiableConsumer", *to, "--group-id", "java", "--command-config", str(consuming))
            await run("VerifiableProducer", *to, "--throughput", "300", "--command-config", str(producing))
        pushed = broker.pushed_metrics
        by_producer = [push for push in pushed if push.client_id == "java-producer"]
        by_consumer = [push for push in pushed if push.client_id == "java-consumer"]
        sent = [
            one.value
            for push in by_producer
            for one in push.metrics
            if one.name == f"{PREFIX}producer.record.send.total" and not one.attributes
        ]
        assert 0 < sum(sent) <= RECORDS
        for pushes in (by_producer, by_consumer):
            assert len(pushes) >= 2
            assert len({push.client_instance_id for push in pushes}) == 1
            assert {push.compression_type for push in pushes} == {"zstd"}
        assert by_consumer[-1].is_terminating  # Java's producer often closes without a last push
        resources = [push.metrics[0].resource for push in by_consumer]
        assert {(labels["group_id"], labels["client_rack"]) for labels in resources} == {("java", "r1")}

        async with Client(broker.bootstrap, client_id="ours", enable_metrics_push=True) as kafka:
            options: dict[str, Any] = {"group_id": "ours", "auto_offset_reset": "earliest"}
            async with kafka.producer() as producer, kafka.consumer("flights", **options) as consumer:
                await producer.send_many("flights", [b"x"] * 100)
                await consumer.poll(RECORDS)
                await consumer.commit()
                await broker.requests.wait_for(ApiKey.PUSH_TELEMETRY, 2, client_id="ours")
        ours = [push for push in broker.pushed_metrics if push.client_id == "ours"]
        assert ours[-1].is_terminating
        assert kinds(ours) <= kinds(by_producer) | kinds(by_consumer)
        assert {one.name.removeprefix(PREFIX) for push in ours for one in push.metrics} >= REQUIRED
