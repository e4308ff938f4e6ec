"""Three brokers of Apache Kafka behind one tap: each has its port, and one of them is killed."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pytest
from support.apache_kafka import missing
from support.kafka_cluster import KafkaCluster
from support.needing import require

from aiokafkawire import Client
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing import RequestOutcome, Tap

pytestmark = [pytest.mark.anyio, pytest.mark.kafka, pytest.mark.faults, pytest.mark.timeout(300)]


async def test_all_brokers_go_through_the_tap_and_one_may_die() -> None:
    require(missing())
    with KafkaCluster() as cluster:
        async with Tap(cluster.bootstrap) as tap, Client(tap.bootstrap) as kafka:
            await kafka.admin.create_topics({"t": 3})
            async with kafka.producer() as producer:
                for number in range(30):
                    await producer.send("t", b"%d" % number, partition=number % 3)
                assert set(tap.nodes) == {1, 2, 3}
                assert {asked.node for asked in tap.requests.of(ApiKey.PRODUCE)} == {1, 2, 3}
                await anyio.to_thread.run_sync(cluster.kill, 2)
                with anyio.fail_after(120):
                    for number in range(30, 60):
                        await producer.send("t", b"%d" % number, partition=number % 3)
            read: list[int] = []
            async with kafka.consumer("t", group_id="g", auto_offset_reset="earliest") as consumer:
                with anyio.fail_after(120):
                    async for record in consumer:
                        read.append(int(record.value or b"-1"))
                        if len(read) == 60:
                            break
            assert sorted(read) == list(range(60))
            answered = [asked for asked in tap.requests if asked.outcome is RequestOutcome.ANSWERED]
            assert {asked.node for asked in answered[-10:]} <= {1, 3, -1}
