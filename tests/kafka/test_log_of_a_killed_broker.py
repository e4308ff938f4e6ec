"""What a client logs while a broker of Apache Kafka is killed and comes back: few lines, with counts and an end."""

from __future__ import annotations

import re
from typing import Any

import anyio
import pytest
from support.apache_kafka import missing
from support.kafka_cluster import KafkaCluster
from support.log_watch import watched_log
from support.needing import require

from aiokafkawire import Client, ElectionType, NewTopic

pytestmark = [pytest.mark.kafka, pytest.mark.thorough, pytest.mark.anyio]


@pytest.fixture
def anyio_backend() -> str:
    """One loop will do."""
    return "asyncio"


async def test_a_broker_that_is_killed_and_comes_back_is_a_few_lines_with_an_end() -> None:
    require(missing())
    with KafkaCluster() as cluster, watched_log() as log:
        async with Client(cluster.bootstrap) as kafka:
            await kafka.admin.create_topics({"flights": NewTopic(assignments=[[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2)})
            options: dict[str, Any] = {"group_id": "delays", "auto_offset_reset": "earliest"}
            async with kafka.producer() as producer, kafka.consumer("flights", **options) as consumer:
                with anyio.fail_after(60):
                    while len(consumer.assignment) < 6:
                        await consumer.poll(timeout=0.1)
                assert [line for line in log.lines if not line.startswith("INFO")] == []
                found = next(record for record in log.records if record.msg.startswith("found the coordinator"))
                node, address = vars(found)["node_id"], vars(found)["broker"]

                async def go_on(until: str, after: int = 0) -> None:
                    with anyio.fail_after(120):
                        while not any(until in line for line in log.lines[after:]):
                            for partition in range(6):
                                await producer.send("flights", b"late", partition=partition)
                            await consumer.poll(timeout=0.1)

                before = len(log.lines)
                await anyio.to_thread.run_sync(cluster.kill, node)
                await go_on(f"broker {address} is unreachable")
                await go_on("found the coordinator of group 'delays': broker", after=before)
                await anyio.to_thread.run_sync(cluster.restart, node)
                await anyio.to_thread.run_sync(cluster.wait_whole)
                await kafka.admin.elect_leaders(ElectionType.PREFERRED)
                await go_on(f"broker {address} is reachable again")
    warnings = [line for line in log.lines if not line.startswith("INFO")]
    assert warnings[0].startswith(f"WARNING network: broker {address} is unreachable, the client tries again: ")
    assert len(warnings) <= 12, warnings
    (back,) = [line for line in log.lines if "is reachable again" in line]
    assert re.search(r"is reachable again after \d+ failures? in \d+ s$", back)
    # A coordinator that has just come back may need more than the second that a member waits for it to answer.
    left = ("INFO group: left group 'delays': the consumer was closed", "INFO group: stopping before the coordinator")
    assert log.lines[-1].startswith(left)
    assert len(log.lines) <= 45, log.lines
