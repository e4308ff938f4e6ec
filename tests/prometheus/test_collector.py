"""The collector of prometheus_client, with clients of the in-process broker."""

import gc
import math
import subprocess
import sys
import threading
from collections.abc import AsyncIterator

import anyio
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from support.needing import require
from support.prometheus_server import check_metrics, missing_prometheus

from aiokafkawire import Client, TopicPartition, blocking
from aiokafkawire.config import ConsumerOptions
from aiokafkawire.errors import UsageError
from aiokafkawire.metrics.instrument_list import INSTRUMENTS
from aiokafkawire.prometheus import KafkaCollector
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        broker.create_topic("refunds")
        yield broker


def registered(collector: KafkaCollector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


async def produce_and_consume(kafka: Client, *topics: str, records: int = 3) -> None:
    """Send records to every partition, read all of them, and commit."""
    async with kafka.producer() as producer:
        for topic in topics:
            await producer.send_many(topic, [b"%d" % number for number in range(records)])
    options = ConsumerOptions(group_id="readers", auto_offset_reset="earliest", enable_auto_commit=False)
    async with kafka.consumer(*topics, **options) as consumer:
        for _ in range(records * len(topics)):
            await anext(consumer)
        await consumer.commit()


async def test_counters_gauges_and_histograms_have_prometheus_names_and_labels(broker: Broker) -> None:
    async with Client(broker.bootstrap, client_id="shop") as kafka:
        registry = registered(KafkaCollector(kafka))
        await produce_and_consume(kafka, "orders")

        value = registry.get_sample_value
        assert value("kafka_producer_records_sent_total", {"client_id": "shop", "topic": "orders"}) == 3
        sent = value("kafka_producer_sent_bytes_total", {"client_id": "shop", "topic": "orders"})
        assert sent is not None
        assert sent > 3
        assert value("kafka_producer_batch_duration_seconds_count", {"client_id": "shop"}) == 1
        assert value("kafka_producer_batch_duration_seconds_bucket", {"client_id": "shop", "le": "+Inf"}) == 1
        assert value("kafka_consumer_commit_duration_seconds_count", {"client_id": "shop", "group": "readers"}) == 1
        assert value("kafka_connections", {"client_id": "shop", "part": "producer"}) is not None


async def test_automatic_commits_count_and_failures_are_zero_before_the_first(broker: Broker) -> None:
    async with Client(broker.bootstrap, client_id="shop") as kafka:
        value = registered(KafkaCollector(kafka)).get_sample_value
        labels = {"client_id": "shop", "group": "readers"}
        async with kafka.producer() as producer:
            await producer.send("orders", b"x")
        async with kafka.consumer("orders", group_id="readers", auto_offset_reset="earliest") as consumer:
            await anext(consumer)
            await consumer.poll(timeout=0)  # the record is finished
            assert value("kafka_consumer_commit_failures_total", labels) == 0
        assert value("kafka_consumer_commit_duration_seconds_count", labels) == 1
        assert value("kafka_request_failures_total", {"client_id": "shop", "api": "Produce"}) == 0


async def test_the_lag_of_each_partition_is_a_series(broker: Broker) -> None:
    async with Client(broker.bootstrap, client_id="shop") as kafka, kafka.producer() as producer:
        registry = registered(KafkaCollector(kafka))
        for partition, records in ((0, 4), (1, 2)):
            await producer.send_many("orders", [b"x"] * records, partition=partition)
        async with kafka.consumer("orders", auto_offset_reset="earliest") as consumer:
            for _ in range(6):
                await anext(consumer)
            labels = {"client_id": "shop", "group": "", "topic": "orders"}
            lags = [registry.get_sample_value("kafka_consumer_lag", labels | {"partition": at}) for at in ("0", "1")]
        assert lags == [0, 0]


async def test_a_closed_consumer_has_neither_lag_nor_partitions(broker: Broker) -> None:
    async with Client(broker.bootstrap, client_id="shop") as kafka, kafka.producer() as producer:
        registry = registered(KafkaCollector(kafka))
        labels = {"client_id": "shop", "group": ""}
        lag = labels | {"topic": "orders", "partition": "0"}
        await producer.send_many("orders", [b"x"] * 3, partition=0)
        async with kafka.consumer("orders", auto_offset_reset="earliest") as consumer:
            await anext(consumer)
            assert registry.get_sample_value("kafka_consumer_lag", lag) == 2
            assert registry.get_sample_value("kafka_consumer_partitions", labels) == 2
        assert consumer.assignment  # the program may still ask for it
        assert registry.get_sample_value("kafka_consumer_lag", lag) is None
        assert registry.get_sample_value("kafka_consumer_partitions", labels) is None
        found = {(one.group, one.name) for one in kafka.metrics() if "partition" in one.attributes}
        values = {
            one.name: one.value for one in kafka.metrics() if one.name in ("records-lag-max", "assigned-partitions")
        }
    assert found == set()
    assert math.isnan(values["records-lag-max"])
    assert values["assigned-partitions"] == 0


async def test_the_commits_of_a_consumer_without_a_membership_are_not_forgotten_with_it(broker: Broker) -> None:
    async with Client(broker.bootstrap, client_id="shop") as kafka, kafka.producer() as producer:
        registry, labels = registered(KafkaCollector(kafka)), {"client_id": "shop", "group": "readers"}
        await producer.send("orders", b"x", partition=0)

        async def read() -> None:
            async with kafka.consumer(group_id="readers", enable_auto_commit=False) as consumer:
                consumer.assign({TopicPartition("orders", 0): 0})
                await anext(consumer)
                await consumer.commit()

        await read()
        gc.collect()
        assert registry.get_sample_value("kafka_consumer_partitions", labels) is None
        assert registry.get_sample_value("kafka_consumer_commit_duration_seconds_count", labels) == 1
        assert registry.get_sample_value("kafka_consumer_commit_failures_total", labels) == 0


@pytest.mark.slow
async def test_promtool_finds_nothing_to_complain_about(broker: Broker) -> None:
    require(missing_prometheus(), "AIOKAFKAWIRE_REQUIRE_PROMETHEUS")
    async with Client(broker.bootstrap) as kafka:
        registry = registered(KafkaCollector(kafka))
        await produce_and_consume(kafka, "orders", "refunds")
        found = await anyio.to_thread.run_sync(check_metrics, generate_latest(registry).decode())
        assert found == ""
        openmetrics: bytes = generate_openmetrics(registry)  # type: ignore[no-untyped-call]
        assert openmetrics.endswith(b"# EOF\n")


async def test_every_name_is_described_before_it_is_measured(broker: Broker) -> None:
    """So that a registry can filter by name, and refuses a second collector at once."""
    async with Client(broker.bootstrap) as kafka:
        collector = KafkaCollector(kafka)
        described = {family.name for family in collector.describe()}
        registry = registered(collector)
        await produce_and_consume(kafka, "orders")
        assert {family.name for family in collector.collect()} <= described
        assert len(described) == len(INSTRUMENTS)
        only = registry.restricted_registry(["kafka_producer_records_sent_total"])
        assert [family.name for family in only.collect()] == ["kafka_producer_records_sent"]
        with pytest.raises(ValueError, match="Duplicated timeseries"):
            registry.register(KafkaCollector(kafka))
        registry.register(KafkaCollector(kafka, prefix="other"))


async def test_clients_of_one_collector_differ_in_their_client_id(broker: Broker) -> None:
    async with Client(broker.bootstrap, client_id="a") as one, Client(broker.bootstrap, client_id="b") as other:
        collector = KafkaCollector(one)
        collector.add(other)
        collector.add(other)
        registry = registered(collector)
        await produce_and_consume(one, "orders", records=3)
        await produce_and_consume(other, "refunds", records=2)

        value = registry.get_sample_value
        assert value("kafka_producer_records_sent_total", {"client_id": "a", "topic": "orders"}) == 3
        assert value("kafka_producer_records_sent_total", {"client_id": "b", "topic": "refunds"}) == 2
        assert check_one_type_per_name(registry)
        collector.remove(other)
        assert value("kafka_producer_records_sent_total", {"client_id": "a", "topic": "orders"}) == 3
        assert value("kafka_producer_records_sent_total", {"client_id": "b", "topic": "refunds"}) is None


def check_one_type_per_name(registry: CollectorRegistry) -> bool:
    lines = [line for line in generate_latest(registry).decode().splitlines() if line.startswith("# TYPE")]
    return len(lines) == len(set(lines)) > 10


async def test_clients_with_one_id_have_the_sum_of_their_counters_and_the_largest_age(broker: Broker) -> None:
    async with Client(broker.bootstrap) as one, Client(broker.bootstrap) as other:
        registry = registered(KafkaCollector(one, other))
        for kafka in (one, other):
            await produce_and_consume(kafka, "orders")
        labels = {"client_id": "aiokafkawire", "topic": "orders"}
        assert registry.get_sample_value("kafka_producer_records_sent_total", labels) == 6
        del labels["topic"]
        assert registry.get_sample_value("kafka_producer_batch_duration_seconds_count", labels) == 2
        for kafka, seconds in ((one, 200.0), (other, 100.0)):
            metadata = kafka._cluster.metadata
            assert metadata.updated_at is not None
            metadata.updated_at -= seconds
        age = registry.get_sample_value("kafka_metadata_age_seconds", labels)
        assert age is not None
        assert 200 <= age < 260


async def test_a_closed_client_does_not_hide_the_age_of_the_metadata_of_another_with_its_id(broker: Broker) -> None:
    labels = {"client_id": "aiokafkawire"}
    async with Client(broker.bootstrap) as closed:
        registry = registered(collector := KafkaCollector(closed))
    metadata = closed._cluster.metadata
    assert metadata.updated_at is not None
    metadata.updated_at -= 200
    assert registry.get_sample_value("kafka_metadata_age_seconds", labels) is None
    async with Client(broker.bootstrap) as kafka:
        collector.add(kafka)
        age = registry.get_sample_value("kafka_metadata_age_seconds", labels)
        assert age is not None
        assert 0 <= age < 60


@pytest.mark.slow
async def test_labels_can_be_left_out(broker: Broker) -> None:
    async with Client(broker.bootstrap, client_id="shop") as kafka:
        registries = {
            label: registered(KafkaCollector(kafka, without=[label])) for label in ("partition", "topic", "group")
        }
        await produce_and_consume(kafka, "orders", "refunds")
        async with kafka.consumer("orders", "refunds", auto_offset_reset="earliest") as consumer:
            await anext(consumer)
            labels = {
                name: {frozenset(sample.labels) for family in registry.collect() for sample in family.samples}
                for name, registry in registries.items()
            }
            lags = [
                sample.labels
                for family in registries["partition"].collect()
                for sample in family.samples
                if sample.name == "kafka_consumer_lag"
            ]
    assert not any("partition" in each for each in labels["partition"])
    assert not any({"partition", "topic"} & each for each in labels["topic"])
    assert not any("group" in each for each in labels["group"])
    assert any("partition" in each for each in labels["group"])
    assert lags in ([lags[0]], lags[:2])
    sent = registries["topic"].get_sample_value("kafka_producer_records_sent_total", {"client_id": "shop"})
    assert sent == 6


async def test_it_counts_what_a_blocking_client_does(broker: Broker) -> None:
    def work() -> float | None:
        with blocking.Client(broker.bootstrap, client_id="shop") as kafka:
            registry = registered(KafkaCollector(kafka))
            with kafka.producer() as producer:
                producer.send("orders", b"1")
            return registry.get_sample_value(
                "kafka_producer_records_sent_total", {"client_id": "shop", "topic": "orders"}
            )

    assert await anyio.to_thread.run_sync(work) == 1


async def test_the_age_of_the_metadata_is_right_in_another_thread(broker: Broker) -> None:
    async with Client(broker.bootstrap, client_id="shop") as kafka:
        registry = registered(KafkaCollector(kafka))
        age = await anyio.to_thread.run_sync(
            registry.get_sample_value, "kafka_metadata_age_seconds", {"client_id": "shop"}
        )
        assert age is not None
        assert 0 <= age < 30


@pytest.mark.slow
async def test_other_threads_collect_while_topics_producers_and_consumers_come_and_go(broker: Broker) -> None:
    """And each text is complete: no value vanishes from one to the next."""
    done, texts, errors = threading.Event(), list[int](), list[BaseException]()

    def scrape(registry: CollectorRegistry) -> None:
        try:
            while not done.is_set():
                texts.append(generate_latest(registry).count(b"kafka_producer_records_sent_total{"))
        except BaseException as error:
            errors.append(error)

    # Threads take turns a thousand times as often as they do usually.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    async with Client(broker.bootstrap) as kafka:
        thread = threading.Thread(target=scrape, args=(registered(KafkaCollector(kafka)),))
        thread.start()
        try:
            for number in range(60):
                topic = broker.create_topic(f"topic-{number}").name
                async with kafka.producer() as producer, kafka.consumer(group_id=topic) as consumer:
                    await producer.send(topic, b"x")
                    consumer.assign({TopicPartition(topic, 0): 0})
                    await anext(consumer)
                    await consumer.commit()
        finally:
            done.set()
            await anyio.to_thread.run_sync(thread.join)
            sys.setswitchinterval(interval)
    assert errors == []
    assert texts == sorted(texts)
    assert len(texts) > 5


async def test_wrong_arguments_are_named(broker: Broker) -> None:
    async with Client(broker.bootstrap) as kafka:
        with pytest.raises(UsageError, match="kafka must be a client"):
            KafkaCollector("localhost:9092")  # type: ignore[arg-type]
        for prefix in ("", "kafka-", 7):
            with pytest.raises(UsageError, match="prefix must be"):
                KafkaCollector(kafka, prefix=prefix)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=r"without must be of the labels api, group, .*got 'partitions'"):
            KafkaCollector(kafka, without=["partitions"])
        with pytest.raises(UsageError, match="without must be a list"):
            KafkaCollector(kafka, without="topic")


def test_without_the_library_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['prometheus_client'] = None; import aiokafkawire.prometheus"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'aiokafkawire[prometheus]'" in done.stderr
