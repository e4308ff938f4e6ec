"""Queries of a real Spark: read, written, streamed and begun again, on a broker that executors reach by its port."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import spark as support

from aiokafkawire import OffsetSpec, TopicPartition, blocking

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # Spark's own: of pandas, of sockets and processes that it leaves to the end.
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"),
]

ZERO, ONE = TopicPartition("flights", 0), TopicPartition("flights", 1)


def reading(spark: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": "flights", **options}
    return spark.read.format("aiokafkawire").options(**given).load()


def streaming(spark: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": "flights", "startingOffsets": "earliest", **options}
    if not support.limits():
        given.pop("maxOffsetsPerTrigger", None)
    return spark.readStream.format("aiokafkawire").options(**given).load()


def run(frame: DataFrame, to: Path, **options: Any) -> Any:
    """Write to parquet until all that is there was read."""
    writer = frame.writeStream.format("parquet").option("path", str(to / "out"))
    query = writer.option("checkpointLocation", str(to / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(200)
    return query


def fill(kafka: blocking.Client, first: int, count: int) -> None:
    with kafka.producer() as producer:
        for partition in (0, 1):
            values = [b"%d" % one for one in range(first, first + count)]
            producer.enqueue_many("flights", values, keys=values, partition=partition)


def test_a_batch_has_the_jvm_sources_columns_and_every_record(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str
) -> None:
    kafka.admin.create_topics({"flights": 2})
    fill(kafka, 0, 1_000)
    with kafka.producer() as producer:
        producer.send("flights", None, partition=1, headers=[("x", b"1")])
    frame = reading(spark, bootstrap, includeHeaders="true", minPartitions="4")
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert frame.rdd.getNumPartitions() == 4
    rows = frame.selectExpr("partition", "offset", "cast(value as string) v", "headers").collect()
    assert sorted((row.partition, row.offset) for row in rows) == [
        *((0, offset) for offset in range(1_000)),
        *((1, offset) for offset in range(1_001)),
    ]
    assert all(row.v == str(row.offset) and row.headers is None for row in rows if row.offset < 1_000)
    assert [(row.v, row.headers[0].key, row.headers[0].value) for row in rows if row.offset == 1_000] == [
        (None, "x", b"1")
    ]


def test_a_topic_without_records_is_an_empty_table(spark: SparkSession, kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 2})
    assert reading(spark, bootstrap).count() == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"subscribe": "nowhere"}, "topic 'nowhere', which must exist"),
        ({"startingOffsets": '{"flights":{"0":5,"1":0}}'}, "flights-0 has offsets 0 to 0, but 5 was requested"),
        ({"startingOffsets": '{"flights":{"0":0}}'}, "it names flights-0, but the query reads flights-0"),
        ({"kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset is not supported"),
        ({"startingTimestamp": "9999999999999"}, "has no record at or after this time"),
    ],
)
def test_what_cannot_be_read_is_said_before_any_task(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str, options: dict[str, str], told: str
) -> None:
    from pyspark.errors import AnalysisException

    kafka.admin.create_topics({"flights": 2})
    with pytest.raises(AnalysisException) as raised:
        reading(spark, bootstrap, **options).count()
    assert told in str(raised.value)


def test_a_misspelt_option_of_a_stream_is_told_when_it_is_loaded(spark: SparkSession, bootstrap: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=r"unknown option 'startingoffset': did you mean startingOffsets\?"):
        streaming(spark, bootstrap, startingOffset="earliest")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"startingOffsets": '{"flights":{0:1}}'}, "startingOffsets must be JSON"),
        ({"kafka.acks": "7", "kafka.group.instance.id": "x"}, "in the options kafka.*"),
    ],
)
@pytest.mark.parametrize("available_now", [True, False])
def test_what_is_wrong_with_a_stream_comes_last_in_its_error(
    spark: SparkSession,
    kafka: blocking.Client,
    bootstrap: str,
    tmp_path: Path,
    options: dict[str, str],
    told: str,
    available_now: bool,
) -> None:
    from pyspark.errors import StreamingQueryException

    kafka.admin.create_topics({"flights": 2})
    writer = streaming(spark, bootstrap, **options).writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(tmp_path))
    with pytest.raises(StreamingQueryException) as raised:
        (writer.trigger(availableNow=True) if available_now else writer).start().awaitTermination(200)
    text, _, _ = str(raised.value).partition("SQLSTATE")
    errors = [line for line in text.splitlines() if "Error: " in line]
    assert errors[-1].startswith(f"aiokafkawire.errors.ConfigError: {told}")


def test_what_is_written_can_be_read(spark: SparkSession, kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 2})
    frame = spark.range(1_000).selectExpr("cast(id as string) key", "cast(id * 2 as string) value", "'flights' topic")
    frame.write.format("aiokafkawire").option("kafka.bootstrap.servers", bootstrap).mode("append").save()
    rows = reading(spark, bootstrap).selectExpr("int(string(key)) k", "int(string(value)) v").collect()
    assert sorted((row.k, row.v) for row in rows) == [(one, 2 * one) for one in range(1_000)]
    with pytest.raises(Exception, match="cannot be overwritten"):
        frame.write.format("aiokafkawire").option("kafka.bootstrap.servers", bootstrap).mode("overwrite").save()


def test_a_stream_begun_again_loses_and_doubles_nothing_and_its_group_sees_the_last_batch(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    from aiokafkawire.spark.listener import CommitsToGroup

    kafka.admin.create_topics({"flights": 2})
    fill(kafka, 0, 500)
    listener = CommitsToGroup(bootstrap, "delays")
    spark.streams.addListener(listener)
    try:
        query = run(streaming(spark, bootstrap, maxOffsetsPerTrigger="300"), tmp_path)
        assert [one.numInputRows for one in query.recentProgress] == (
            [300, 300, 300, 100] if support.limits() else [1_000]
        )
        listener.wait(60)
        committed = kafka.admin.list_consumer_group_offsets("delays")
        assert {where: at.offset for where, at in committed.items()} == {ZERO: 500, ONE: 500}
        assert not support.limits() or listener.behind[str(query.id)].total == 0
        fill(kafka, 500, 200)
        run(streaming(spark, bootstrap), tmp_path)
        listener.wait(60)
        assert kafka.admin.consumer_group_lag("delays") == {ZERO: 0, ONE: 0}
    finally:
        spark.streams.removeListener(listener)
    rows = spark.read.parquet(str(tmp_path / "out")).select("partition", "offset").collect()
    assert sorted(map(tuple, rows)) == [(index, offset) for index in (0, 1) for offset in range(700)]


def test_a_stream_is_written_to_a_topic(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    kafka.admin.create_topics({"flights": 2, "delays": 1})
    fill(kafka, 0, 100)
    writer = streaming(spark, bootstrap).select("key", "value").writeStream.format("aiokafkawire")
    writer = writer.option("kafka.bootstrap.servers", bootstrap).option("topic", "delays")
    writer = writer.queryName("copies").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    if not support.writes_streams():
        with pytest.raises(Exception, match=r"needs Spark 4\.1 or later; with older versions use foreachBatch"):
            writer.start().awaitTermination(200)
        return
    assert writer.start().awaitTermination(200)
    end = kafka.admin.list_offsets({TopicPartition("delays", 0): OffsetSpec.LATEST})
    assert [one.offset for one in end.values() if one is not None] == [200]


def test_updates_are_written_batch_by_batch_and_each_says_what_it_has(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    from aiokafkawire import ConfigError
    from aiokafkawire.spark.foreach_batch import ranges_in, to_topic

    kafka.admin.create_topics({"flights": 2, "delays": 1})
    fill(kafka, 0, 100)
    write, seen = to_topic({"kafka.bootstrap.servers": bootstrap, "topic": "delays"}), []

    def both(batch: DataFrame, number: int) -> None:
        seen.append([str(one) for one in ranges_in(batch)])
        write(batch.select("key", "value"), number)

    frame = streaming(spark, bootstrap, maxOffsetsPerTrigger="120")
    writer = frame.writeStream.outputMode("update").foreachBatch(both).option("checkpointLocation", str(tmp_path))
    assert writer.trigger(availableNow=True).start().awaitTermination(200)
    both_batches = [["flights-0[0:60]", "flights-1[0:60]"], ["flights-0[60:100]", "flights-1[60:100]"]]
    assert seen == (both_batches if support.limits() else [["flights-0[0:100]", "flights-1[0:100]"]])
    end = kafka.admin.list_offsets({TopicPartition("delays", 0): OffsetSpec.LATEST})
    assert [one.offset for one in end.values() if one is not None] == [200]
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers is required"):
        to_topic({"topic": "delays"})


def test_a_topic_created_anew_ends_a_stream_unless_loss_is_allowed(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    kafka.admin.create_topics({"flights": 2})
    fill(kafka, 0, 100)
    run(streaming(spark, bootstrap), tmp_path)
    kafka.admin.delete_topics(["flights"])
    kafka.admin.create_topics({"flights": 2})
    with blocking.Client(bootstrap) as anew:  # one that does not know the old topic
        fill(anew, 0, 40)
    with pytest.raises(StreamingQueryException, match="flights-0 ends at 40, before its next offset 100"):
        run(streaming(spark, bootstrap), tmp_path)
    run(streaming(spark, bootstrap, failOnDataLoss="false"), tmp_path)


def test_ranges_are_planned_by_time_and_read_without_a_data_source(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str
) -> None:
    from aiokafkawire.spark.ranges import OffsetRange, plan_ranges, read_ranges

    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        for one in range(10):
            producer.send("flights", b"%d" % one, timestamp_ms=1_000 * one)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "flights", "startingTimestamp": "3500"}
    options |= {"endingTimestamp": "8000", "maxRecordsPerPartition": "3"}
    ranges = plan_ranges(options)
    assert ranges == [OffsetRange("flights", 0, 4, 6), OffsetRange("flights", 0, 6, 8)]
    frame = read_ranges(spark, ranges, options)
    assert [row.value for row in frame.orderBy("offset").collect()] == [b"4", b"5", b"6", b"7"]
    assert read_ranges(spark, [], options).count() == 0


@pytest.mark.kafka
def test_on_apache_kafka_a_stream_reads_what_a_batch_wrote(
    spark: SparkSession, apache_kafka: Any, tmp_path: Path
) -> None:
    servers = apache_kafka.bootstrap
    with blocking.Client(servers) as kafka:
        kafka.admin.create_topics({"flights": 2})
    frame = spark.range(5_000).selectExpr("string(id) key", "binary(string(id)) value")
    writer = frame.write.format("aiokafkawire").option("kafka.bootstrap.servers", servers)
    writer.option("topic", "flights").option("kafka.compression.type", "zstd").mode("append").save()
    run(streaming(spark, servers, maxOffsetsPerTrigger="2000"), tmp_path)
    found = spark.read.parquet(str(tmp_path / "out"))
    keys = sorted(int(row.k) for row in found.selectExpr("cast(key as string) k").collect())
    assert keys == list(range(5_000))
