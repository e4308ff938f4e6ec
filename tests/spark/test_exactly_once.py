"""The exactly-once sink in a real Spark: each micro-batch is seen once and as a whole, whatever fails."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support import spark as support
from support.needing import require

from aiokafkawire import blocking

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


def fill(kafka: blocking.Client, first: int, count: int) -> None:
    with kafka.producer() as producer:
        values = [b"%d" % one for one in range(first, first + count)]
        producer.enqueue_many("flights", values, keys=values, partition=0)


def flights(spark: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": "flights", "startingOffsets": "earliest", **options}
    if not support.limits():
        given.pop("maxOffsetsPerTrigger", None)
    return spark.readStream.format("aiokafkawire").options(**given).load().select("key", "value")


def run(frame: DataFrame, write: Any, checkpoint: Path) -> Any:
    writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(200)
    return query


def committed(spark: SparkSession, bootstrap: str, **options: str) -> list[int]:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": "delays", "kafka.isolation.level": "read_committed"}
    rows = spark.read.format("aiokafkawire").options(**given, **options).load().selectExpr("int(string(value)) v")
    return sorted(row.v for row in rows.collect())


def uncommit(checkpoint: Path, batch: int) -> None:
    """As if the driver had been killed between Kafka's commit and Spark's own."""
    for name in (str(batch), f".{batch}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)


def test_every_batch_is_seen_once_though_spark_hands_the_last_over_again(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str, tmp_path: Path
) -> None:
    from aiokafkawire.spark.exactly_once import ExactlyOnceSink

    kafka.admin.create_topics({"flights": 1, "delays": 3})
    fill(kafka, 0, 100)
    options = {"kafka.bootstrap.servers": bootstrap, "topic": "delays"}
    with ExactlyOnceSink(options, "delays-sink") as sink:
        query = run(flights(spark, bootstrap, maxOffsetsPerTrigger="40"), sink.write, tmp_path)
        batches = [40, 40, 20] if support.limits() else [100]
        assert [one.numInputRows for one in query.recentProgress] == batches
    assert committed(spark, bootstrap) == list(range(100))
    uncommit(tmp_path, len(batches) - 1)
    fill(kafka, 100, 10)
    with ExactlyOnceSink(options, "delays-sink") as sink:
        # Without limits a run has one batch, and the first is what was left over.
        for _ in range(1 if support.limits() else 2):
            run(flights(spark, bootstrap), sink.write, tmp_path)
    assert committed(spark, bootstrap) == list(range(110))


def test_a_query_whose_mark_is_gone_writes_its_last_batch_twice_and_goes_on(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from aiokafkawire.spark.exactly_once import ExactlyOnceSink

    kafka.admin.create_topics({"flights": 1, "delays": 2})
    options = {"kafka.bootstrap.servers": bootstrap, "topic": "delays"}
    for first in (0, 30):
        fill(kafka, first, 30)
        with ExactlyOnceSink(options, "delays-sink") as sink:
            run(flights(spark, bootstrap), sink.write, tmp_path)
    uncommit(tmp_path, 1)
    kafka.loop.call(kafka.asynchronous.admin.delete_groups, "delays-sink-batches")
    assert "no mark" not in caplog.text
    fill(kafka, 60, 30)
    with ExactlyOnceSink(options, "delays-sink") as sink:
        for _ in range(1 if support.limits() else 2):
            run(flights(spark, bootstrap), sink.write, tmp_path)
    assert committed(spark, bootstrap) == sorted([*range(90), *range(30, 60)])
    assert caplog.text.count("has no marker of query") == 1


def test_a_task_that_fails_has_its_batch_written_anew(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aiokafkawire.spark import exactly_once

    kafka.admin.create_topics({"flights": 1, "delays": 2})
    fill(kafka, 0, 60)
    flag, writing = str(tmp_path / "failed"), exactly_once._Writing

    class Lost(writing):  # type: ignore[misc, valid-type]
        """Fails once, when its records are in the log."""

        def __call__(self, batches: Any) -> Any:
            import os

            written = list(writing.__call__(self, batches))
            if written[0].to_pylist()[0]["rows"] == 0:
                yield from written
                return
            try:
                os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield from written
            else:
                raise RuntimeError("a task that fails once")

    monkeypatch.setattr(exactly_once, "_Writing", Lost)
    sink = exactly_once.ExactlyOnceSink({"kafka.bootstrap.servers": bootstrap, "topic": "delays"}, "delays-sink")
    with sink:
        run(flights(spark, bootstrap), sink.write, tmp_path / "checkpoint")
    assert Path(flag).exists()
    assert committed(spark, bootstrap) == list(range(60))


def test_columns_of_no_record_and_an_unknown_query_are_refused(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str
) -> None:
    from aiokafkawire import ConfigError, UsageError
    from aiokafkawire.spark.exactly_once import ExactlyOnceSink

    kafka.admin.create_topics({"delays": 2})
    rows = spark.range(3).selectExpr("string(id) value")
    with ExactlyOnceSink({"kafka.bootstrap.servers": bootstrap, "topic": "delays"}, "delays-sink") as sink:
        with pytest.raises(UsageError, match="the column value must be"):
            sink.write(spark.range(3).selectExpr("id value"), 0)
        with pytest.raises(ConfigError, match="does not give the query's id"):
            sink.write(rows, 0)


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ({"spark.master": "local[2]", "spark.speculation": "true"}, r"needs spark\.speculation=false"),
        ({"spark.master": "yarn"}, r"spark\.stage\.maxConsecutiveAttempts=1"),
        ({"spark.master": "local-cluster[2,1,1024]"}, r"spark\.stage\.maxConsecutiveAttempts=1"),
    ],
)
def test_a_spark_that_may_run_a_task_twice_is_refused(conf: dict[str, str], told: str) -> None:
    require(support.missing())
    from aiokafkawire import UsageError
    from aiokafkawire.spark.exactly_once import ExactlyOnceSink

    batch: Any = SimpleNamespace(sparkSession=SimpleNamespace(conf=conf))
    with (
        ExactlyOnceSink({"kafka.bootstrap.servers": "here:1", "topic": "delays"}, "delays-sink") as sink,
        pytest.raises(UsageError, match=told),
    ):
        sink.write(batch, 0)


def test_a_second_attempt_of_a_task_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    require(support.missing())
    from aiokafkawire import UsageError
    from aiokafkawire.spark import exactly_once
    from aiokafkawire.spark.options import write_options
    from aiokafkawire.types import ProducerIdentity

    context = SimpleNamespace(attemptNumber=lambda: 1, partitionId=lambda: 0)
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: context)
    options = write_options({"kafka.bootstrap.servers": "here:1", "topic": "delays"})
    writing = exactly_once._Writing(options, ProducerIdentity("delays-sink", 1, 0))
    with pytest.raises(UsageError, match="cannot be retried"):
        list(writing([]))
