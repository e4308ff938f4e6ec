"""The check, before a query's tasks, that the topic of a sink exists. Spark is not needed, but for two tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aiokafkawire import OffsetSpec, TopicPartition, blocking
from aiokafkawire.errors import UnknownTopicOrPartition
from aiokafkawire.spark import lookup, sink_topic
from aiokafkawire.spark.options import WriteOptions, write_options
from aiokafkawire.spark.sink_topic import check_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTE = (
    "the query writes to topic 'delays', which must exist before the query begins: create it, or set"
    " kafka.allow.auto.create.topics=true where brokers create topics (auto.create.topics.enable)"
)


def sink(bootstrap: str, **more: str) -> WriteOptions:
    return write_options({"kafka.bootstrap.servers": bootstrap, **more})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let brokers agree on topics within three lookups."""
    monkeypatch.setattr(lookup, "_AGREE_AFTER", 0.2)


@pytest.fixture
def no_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a client is made."""
    monkeypatch.setattr(sink_topic, "blocking", None)


@pytest.mark.usefixtures("impatient")
def test_a_topic_that_does_not_exist_is_an_error_before_any_task(kafka: blocking.Client, bootstrap: str) -> None:
    for _ in range(2):  # and the first lookup has not created it
        with pytest.raises(UnknownTopicOrPartition, match="describing topic 'delays'") as raised:
            check_topic(sink(bootstrap, topic="delays"))
        assert raised.value.__notes__ == [NOTE]
    kafka.admin.create_topics({"delays": 1})
    check_topic(sink(bootstrap, topic="delays"))


@pytest.mark.usefixtures("no_lookups")
def test_topics_of_the_column_and_topics_that_are_created_are_not_looked_up() -> None:
    check_topic(sink("localhost:1"))
    check_topic(sink("localhost:1", topic="delays", **{"kafka.allow.auto.create.topics": "true"}))


def test_a_topic_that_was_found_is_not_looked_up_again_for_a_minute(
    kafka: blocking.Client, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.admin.create_topics({"delays": 1})
    check_topic(sink(bootstrap, topic="delays"))
    monkeypatch.setattr(sink_topic, "blocking", None)
    check_topic(sink(bootstrap, topic="delays"))
    monkeypatch.setattr(sink_topic, "_RECENT", 0.0)
    with pytest.raises(AttributeError):
        check_topic(sink(bootstrap, topic="delays"))


def test_a_topic_that_one_broker_does_not_know_yet_is_looked_up_again(
    kafka: blocking.Client, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lookups() -> Iterator[float | None]:
        yield 0.0
        kafka.admin.create_topics({"delays": 1})
        yield None

    monkeypatch.setattr(sink_topic, "until_brokers_agree", lookups)
    check_topic(sink(bootstrap, topic="delays"))


def test_without_an_answer_the_tasks_find_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "aiokafkawire.spark"):
        check_topic(sink("127.0.0.1:1", topic="delays", **{"kafka.bootstrap.timeout.ms": "200"}))
    assert "cannot check that topic 'delays' exists, so the tasks do" in caplog.text


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_spark_says_it_of_a_batch_and_lets_brokers_create_the_topic(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str
) -> None:
    rows = spark.range(3).selectExpr("string(id) value").write.format("aiokafkawire").mode("append")
    rows = rows.option("kafka.bootstrap.servers", bootstrap).option("topic", "delays")
    with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR") as raised:
        rows.save()
    assert NOTE in str(raised.value)
    rows.option("kafka.allow.auto.create.topics", "true").save()
    end = kafka.admin.list_offsets({TopicPartition("delays", 0): OffsetSpec.LATEST})
    assert [one.offset for one in end.values() if one is not None] == [3]


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_spark_says_it_of_a_stream(spark: SparkSession, kafka: blocking.Client, bootstrap: str, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException
    from support.needing import require
    from support.spark import writes_streams

    require(None if writes_streams() else "streaming sinks need Spark 4.1")
    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        producer.send("flights", b"UA 1545")
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "flights", "startingOffsets": "earliest"}
    rows = spark.readStream.format("aiokafkawire").options(**options).load().select("value").writeStream
    rows = rows.format("aiokafkawire").option("kafka.bootstrap.servers", bootstrap).option("topic", "delays")
    rows = rows.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    with pytest.raises(StreamingQueryException) as raised:
        rows.start().awaitTermination(200)
    assert NOTE in str(raised.value)
