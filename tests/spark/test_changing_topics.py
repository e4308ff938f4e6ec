"""Topics that change under a Spark session: partitions are added, topics are deleted and created anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import pytest
from support import spark as support
from support.micro_batches import values_in
from support.needing import require
from support.partitions import add_partitions_blocking

from aiokafkawire import NewTopic, blocking
from aiokafkawire.errors import UnknownTopicOrPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # Spark's own: of pandas, of sockets and processes that it leaves to the end.
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"),
]

ON_BOTH = pytest.mark.parametrize("kind", ["in-process", pytest.param("apache-kafka", marks=pytest.mark.kafka)])


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    require(support.missing())
    with support.running_spark("local[2,4]") as session:
        yield session


@pytest.fixture
def servers(kind: str, request: pytest.FixtureRequest) -> str:
    found: str = (
        request.getfixturevalue("bootstrap")
        if kind == "in-process"
        else request.getfixturevalue("apache_kafka").bootstrap
    )
    return found


@pytest.fixture
def topic(servers: str) -> str:
    """A topic of two partitions."""
    name = f"topic-{token_hex(6)}"
    with blocking.Client(servers) as kafka:
        kafka.admin.create_topics({name: 2})
    return name


def create_anew(servers: str, name: str, partitions: int = 2) -> None:
    """Delete the topic and create it, and wait until brokers know the new one."""
    with blocking.Client(servers) as kafka:
        before = kafka.loop.call(kafka.asynchronous.admin.describe_topic, name).topic_id
        kafka.admin.delete_topics([name])
        kafka.admin.create_topics({name: partitions})
        while True:
            try:
                if kafka.loop.call(kafka.asynchronous.admin.describe_topic, name).topic_id != before:
                    return
            except UnknownTopicOrPartition:
                pass


def fill(servers: str, name: str, partition: int, values: range) -> None:
    with blocking.Client(servers) as kafka, kafka.producer() as producer:
        producer.enqueue_many(name, [b"%0400d" % one for one in values], partition=partition)


def padded(spark: SparkSession, count: int) -> DataFrame:
    """So many numbers as rows of 400 bytes, which make many batches."""
    return spark.range(0, count, 1, 2).selectExpr("cast(id as string) key", "lpad(cast(id as string), 400, '0') value")


def write(frame: DataFrame, servers: str, name: str) -> None:
    options = {"kafka.bootstrap.servers": servers, "topic": name, "kafka.batch.size": "16384"}
    frame.write.format("aiokafkawire").options(**options).mode("append").save()


def reading(spark: SparkSession, servers: str, name: str, **more: str) -> Any:
    options = {"kafka.bootstrap.servers": servers, "subscribe": name, "startingOffsets": "earliest", **more}
    return spark.readStream.format("aiokafkawire").options(**options).load()


def counted(servers: str, name: str, partitions: int = 2) -> Counter[int]:
    """How often each number is in the topic."""
    return Counter(int(value or b"-1") for value in values_in(servers, name, partitions))


def once(count: int) -> Counter[int]:
    return Counter(range(count))


@ON_BOTH
def test_partitions_added_while_a_stream_runs_are_read_from_their_beginning(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path
) -> None:
    fill(servers, topic, 0, range(100))
    writer = reading(spark, servers, topic).writeStream.format("parquet").option("path", str(tmp_path / "out"))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        with blocking.Client(servers) as kafka:
            for count in (3, 4, 5):
                add_partitions_blocking(kafka, topic, count)
                fill(servers, topic, count - 1, range(count * 1_000, count * 1_000 + 100))
                query.processAllAvailable()
        assert query.isActive
        assert query.exception() is None
    finally:
        query.stop()
    rows = spark.read.parquet(str(tmp_path / "out")).selectExpr("partition", "int(string(value)) v").collect()
    wanted = [(0, one) for one in range(100)]
    wanted += [(count - 1, count * 1_000 + one) for count in (3, 4, 5) for one in range(100)]
    assert sorted((row.partition, row.v) for row in rows) == wanted


@ON_BOTH
def test_a_topic_created_anew_between_two_jobs_is_written_once(spark: SparkSession, servers: str, topic: str) -> None:
    frame = padded(spark, 20_000)
    write(frame, servers, topic)
    for partitions in (2, 4):
        create_anew(servers, topic, partitions)
        write(frame, servers, topic)
        assert counted(servers, topic, partitions) == once(20_000)
        options = {"kafka.bootstrap.servers": servers, "subscribe": topic}
        assert spark.read.format("aiokafkawire").options(**options).load().count() == 20_000


@ON_BOTH
def test_a_topic_created_anew_between_two_streams_is_written_once(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path
) -> None:
    if not support.writes_streams():
        pytest.skip("streams are written from Spark 4.1 on")
    target = f"{topic}-target"
    fill(servers, topic, 0, range(10_000))
    fill(servers, topic, 1, range(10_000, 20_000))
    with blocking.Client(servers) as kafka:
        kafka.admin.create_topics({target: 2})
    for number in range(3):
        frame = reading(spark, servers, topic, maxOffsetsPerTrigger="7000").select("key", "value")
        writer = frame.writeStream.format("aiokafkawire").option("kafka.bootstrap.servers", servers)
        writer = (
            writer.option("topic", target)
            .option("kafka.batch.size", "16384")
            .option("checkpointLocation", str(tmp_path / str(number)))
        )
        assert writer.trigger(availableNow=True).start().awaitTermination(200)
        assert counted(servers, target) == once(20_000)
        create_anew(servers, target)


@ON_BOTH
def test_a_task_that_is_tried_again_doubles_nothing_where_its_first_record_failed(
    spark: SparkSession, servers: str
) -> None:
    name = f"topic-{token_hex(6)}"
    with blocking.Client(servers) as kafka:
        kafka.admin.create_topics({name: NewTopic(partitions=2, configs={"max.message.bytes": "1000"})})

    def too_large_at_first(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        for batch in batches:
            values = batch.column("value").to_pylist()
            if task.attemptNumber() == 0:
                values = ["x" * 5_000, *values]
            partition = pa.array([task.partitionId()] * len(values), pa.int32())
            yield pa.record_batch({"value": values, "partition": partition})

    frame = (
        spark.range(0, 2_000, 1, 2)
        .selectExpr("cast(id as string) value")
        .mapInArrow(too_large_at_first, "value string, partition int")
    )
    options = {"kafka.bootstrap.servers": servers, "topic": name, "kafka.batch.size": "200"}
    frame.write.format("aiokafkawire").options(**options).mode("append").save()
    assert counted(servers, name) == once(2_000)
