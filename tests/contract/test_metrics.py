"""The metrics of clients after work whose extent is known, whichever broker they talk to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from support.patience import PATIENCE

from aiokafkawire import Client, NewTopic
from aiokafkawire.errors import BufferFull
from aiokafkawire.metrics import Metric
from aiokafkawire.metrics.definitions import DEFINITIONS
from aiokafkawire.metrics.instrument import Buckets

from .conftest import BOTH_TRANSACTION_VERSIONS, Where

pytestmark = pytest.mark.anyio

FETCH = "consumer-fetch-manager-metrics"
COORDINATOR = "consumer-coordinator-metrics"


class Found:
    """The metrics of a client, to look up."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self.all = list(metrics)

    def __call__(self, group: str, name: str, **tags: str) -> float:
        wanted = {tag.replace("_", "-"): value for tag, value in tags.items()}
        [value] = [
            one.value
            for one in self.all
            if (one.group, one.name) == (group, name)
            and {tag: value for tag, value in one.attributes.items() if tag != "client-id"} == wanted
        ]
        return value


async def produced(kafka: Client, topic: str, count: int, size: int = 100) -> None:
    async with kafka.producer() as producer:
        for number in range(count):
            await producer.send(topic, b"x" * size, partition=number % 2)
        found = Found(kafka.metrics())
        assert found("producer-metrics", "buffer-total-bytes") > 0
        assert found("producer-metrics", "buffer-available-bytes") == found("producer-metrics", "buffer-total-bytes")
        assert found("producer-metrics", "connection-count") >= 1


async def test_metrics_of_a_producer(cluster: Where, new_name: Callable[[], str]) -> None:
    name = new_name()
    async with cluster.client(client_id="orders-service") as kafka:
        kafka.metrics()
        await kafka.admin.create_topics({name: NewTopic(2, 1)})
        await produced(kafka, name, 20)
        found = Found(kafka.metrics())
    assert {one.attributes["client-id"] for one in found.all} == {"orders-service"}
    sent = 20 + found("producer-metrics", "record-retry-total")  # a new topic may refuse the first records
    assert found("producer-metrics", "record-send-total") == sent
    assert found("producer-topic-metrics", "record-send-total", topic=name) == sent
    assert 0.5 < found("producer-metrics", "record-send-rate") <= sent / 30
    assert found("producer-topic-metrics", "byte-total", topic=name) > 20 * 100
    assert 100 < found("producer-metrics", "record-size-avg") < 200
    assert found("producer-metrics", "batch-size-max") >= found("producer-metrics", "batch-size-avg") > 100
    assert found("producer-metrics", "compression-rate-avg") == pytest.approx(1, abs=0.01)
    assert found("producer-metrics", "records-per-request-avg") > 0.99
    assert found("producer-metrics", "request-latency-max") >= found("producer-metrics", "request-latency-avg") > 0
    assert found("producer-metrics", "record-queue-time-avg") >= 0
    for name in ("record-error-total", "requests-in-flight", "produce-throttle-time-max"):
        assert found("producer-metrics", name) == 0
    assert 0 <= found("producer-metrics", "metadata-age") < 60
    assert found("producer-node-metrics", "request-total", node_id="node-1") >= 20 / 5
    assert found("producer-node-metrics", "outgoing-byte-total", node_id="node-1") > 20 * 100
    assert found("admin-client-metrics", "connection-count") == 2
    assert not any(one.group.startswith("consumer") for one in found.all)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_metrics_of_a_consumer(cluster: Where, new_name: Callable[[], str], protocol: str) -> None:
    name, group = new_name(), new_name()
    async with cluster.client() as kafka:
        await kafka.admin.create_topics({name: NewTopic(2, 1)})
        kafka.metrics()
        await produced(kafka, name, 20)
        options: Any = {"group_id": group, "group_protocol": protocol, "auto_offset_reset": "earliest"}
        async with kafka.consumer(name, enable_auto_commit=False, **options) as consumer:
            with anyio.fail_after(PATIENCE):
                read = 0
                while read < 5:
                    read += len(await consumer.poll(max_records=1))
                await consumer.commit()
            found = Found(kafka.metrics())
            lags = [found(FETCH, "records-lag", topic=name, partition=str(number)) for number in range(2)]
            known = [lag for lag in lags if not math.isnan(lag)]
            assert found(FETCH, "records-lag-max") == max(known) >= 10 - 5
            assert found(COORDINATOR, "assigned-partitions") == 2
            with anyio.fail_after(PATIENCE):
                while read < 20:
                    read += len(await consumer.poll())
            found = Found(kafka.metrics())
            assert [found(FETCH, "records-lag", topic=name, partition=str(number)) for number in range(2)] == [0, 0]
            assert [found(FETCH, "records-lead", topic=name, partition=str(number)) for number in range(2)] == [10, 10]
    assert found(FETCH, "records-lag-max") == 0
    assert found(FETCH, "records-lead-min") == 10
    assert found(FETCH, "records-consumed-total") == found(FETCH, "records-consumed-total", topic=name) == 20
    assert found(FETCH, "bytes-consumed-total", topic=name) > 20 * 100
    assert found(FETCH, "fetch-total") >= 1
    assert found(FETCH, "fetch-throttle-time-avg") == 0
    assert found(COORDINATOR, "commit-total") == 1
    assert found(COORDINATOR, "rebalance-total") >= 1
    assert found(COORDINATOR, "heartbeat-total") >= 1
    assert found(COORDINATOR, "join-total") >= (1 if protocol == "classic" else 0)
    assert found(COORDINATOR, "last-rebalance-seconds-ago") >= 0
    assert found("consumer-metrics", "connection-count") >= 2
    assert found("consumer-metrics", "last-poll-seconds-ago") >= 0
    assert {(one.group, frozenset(one.attributes.keys() - {"client-id"}), one.name) for one in found.all} == {
        (each.group, frozenset(each.tags), each.name)
        for each in DEFINITIONS
        if not each.group.startswith("consumer-share")
    }


@BOTH_TRANSACTION_VERSIONS
async def test_metrics_of_transactions(cluster: Where, new_name: Callable[[], str]) -> None:
    name = new_name()
    async with cluster.client() as kafka:
        await kafka.admin.create_topics({name: 1})
        kafka.metrics()
        async with kafka.producer(transactional_id=new_name()) as producer:
            async with producer.transaction():
                await producer.send(name, b"1")
            with pytest.raises(LookupError):
                async with producer.transaction():
                    await producer.send(name, b"2")
                    raise LookupError
        found = Found(kafka.metrics())
        for step in ("init", "commit", "abort"):
            assert found("producer-metrics", f"txn-{step}-time-ns-total") >= 0
        ended = [one for one in kafka._client_metrics().instruments() if one.name == "producer.transaction.duration"]
        assert {one.attributes["result"]: one.value.count for one in ended if isinstance(one.value, Buckets)} == {
            "committed": 1,
            "aborted": 1,
        }


async def test_nothing_is_counted_before_the_first_call(cluster: Where, new_name: Callable[[], str]) -> None:
    name = new_name()
    async with cluster.client() as kafka:
        await kafka.admin.create_topics({name: NewTopic(2, 1)})
        async with kafka.producer() as producer:
            await producer.send(name, b"x")
            found = Found(kafka.metrics())
            assert found("producer-metrics", "record-send-total") == 0
            assert found("producer-metrics", "connection-count") == 1
            await producer.send(name, b"x")
        assert Found(kafka.metrics())("producer-metrics", "record-send-total") == 1


async def test_calls_that_wait_for_buffer_space(cluster: Where, new_name: Callable[[], str]) -> None:
    name = new_name()
    async with cluster.client() as kafka:
        await kafka.admin.create_topics({name: 1})
        kafka.metrics()
        options: Any = {"buffer_memory": 2000, "batch_size": 2000, "linger_ms": 100, "max_block_ms": 30000}
        async with kafka.producer(**options) as producer, anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(producer.send, name, b"x" * 500)
            with anyio.fail_after(PATIENCE):
                while not Found(kafka.metrics())("producer-metrics", "waiting-threads"):
                    await anyio.lowlevel.checkpoint()
        found = Found(kafka.metrics())
        async with kafka.producer(buffer_memory=2000, linger_ms=60_000, max_block_ms=1) as producer:
            accepted = [await producer.enqueue(name, b"x" * 500) for _ in range(2)]
            with pytest.raises(BufferFull):
                for _ in range(1000):
                    await producer.enqueue(name, b"x" * 900)
        assert [await one for one in accepted]
    assert found("producer-metrics", "waiting-threads") == 0
    assert found("producer-metrics", "bufferpool-wait-time-ns-total") > 1000
    assert found("producer-metrics", "buffer-exhausted-total") == 0
    assert Found(kafka.metrics())("producer-metrics", "buffer-exhausted-total") == 1


async def test_instruments_say_the_same(cluster: Where, new_name: Callable[[], str]) -> None:
    name = new_name()
    async with cluster.client() as kafka:
        await kafka.admin.create_topics({name: NewTopic(2, 1)})
        measurements = kafka._client_metrics()
        await produced(kafka, name, 20)
        # Exporters read in threads of their own.
        instruments = await anyio.to_thread.run_sync(lambda: list(measurements.instruments()))
        metrics = Found(await anyio.to_thread.run_sync(kafka.metrics))
    values = {(one.name, *sorted(one.attributes.items())): one for one in instruments}
    assert len(values) == len(instruments)
    retried = metrics("producer-metrics", "record-retry-total")
    [sent] = [one for one in instruments if one.name == "producer.records_sent"]
    assert (sent.kind, sent.unit, sent.value, sent.attributes["topic"]) == ("counter", "{record}", 20 + retried, name)
    by_api = {one.attributes["api"]: one.value for one in instruments if one.name == "request.duration"}
    produce = by_api["Produce"]
    assert isinstance(produce, Buckets)
    assert produce.count == sum(produce.counts) >= 4
    assert len(produce.counts) == len(produce.bounds) + 1
    sizes = [one.value for one in instruments if one.name == "network.bytes_sent"]
    parts = ("producer", "admin-client")
    assert sum(sizes) == sum(metrics(f"{part}-metrics", "outgoing-byte-total") for part in parts)  # type: ignore[arg-type]
    assert all(one.kind == "histogram" or isinstance(one.value, int | float) for one in instruments)
