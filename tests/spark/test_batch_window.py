"""Windows of batch jobs: each begins where the last has ended, and is the same again if its job fails."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.partitions import add_partitions_blocking

from aiokafkawire import ConfigError, OffsetAndMetadata, TopicPartition, UsageError, blocking
from aiokafkawire.errors import KafkaError
from aiokafkawire.spark.batch_window import BatchWindow
from aiokafkawire.spark.errors import DataLost
from aiokafkawire.spark.window_plan import WindowPlan, next_window, unfinished_window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = [TopicPartition("flights", index) for index in range(3)]


@given(st.data())
def test_every_record_is_in_one_window_whatever_fails(data: Any) -> None:
    committed: dict[TopicPartition, OffsetAndMetadata] = {}
    ends = dict.fromkeys(PARTITIONS, 0)
    output: dict[str, list[tuple[TopicPartition, int]]] = {}
    for now in range(data.draw(st.integers(1, 8))):
        ends = {partition: end + data.draw(st.integers(0, 3)) for partition, end in ends.items()}
        known = {partition: ends[partition] for partition in PARTITIONS[: data.draw(st.integers(1, 3))]}
        begun = unfinished_window(committed)
        if begun is None:
            plan = next_window(committed, dict.fromkeys(PARTITIONS, 0), known, now // 3)
        else:
            plan, _ = begun
        committed |= some_of(data, plan.begun)
        if committed.items() >= plan.begun.items() and data.draw(st.booleans()):
            output[plan.name] = records_of(plan)
            committed |= some_of(data, plan.finished)
    while (begun := unfinished_window(committed)) is not None:
        output[begun[0].name] = records_of(begun[0])
        committed |= begun[0].finished
    last = next_window(committed, dict.fromkeys(PARTITIONS, 0), ends, 0)
    output[last.name] = records_of(last)
    found = sorted(one for window in output.values() for one in window)
    assert found == sorted((partition, offset) for partition, end in ends.items() for offset in range(end))


def records_of(plan: WindowPlan) -> list[tuple[TopicPartition, int]]:
    return [(each.where, offset) for each in plan.ranges for offset in range(each.start, each.end)]


def some_of(data: Any, commits: dict[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, OffsetAndMetadata]:
    """All commits, or as many as a coordinator accepts that fails for some partitions."""
    return {partition: each for partition, each in commits.items() if data.draw(st.integers(0, 9))}


def test_a_window_is_named_by_the_time_of_its_plan() -> None:
    plan = WindowPlan(1_795_892_592_007, ())
    assert plan.name == "20261128T190312.007Z"
    after = next_window(
        {PARTITIONS[0]: OffsetAndMetadata(3, "akw-window:1795892592007:1:1:3")}, {}, {PARTITIONS[0]: 5}, 4
    )
    assert after.name == "20261128T190312.008Z"
    assert [str(each) for each in after.ranges] == ["flights-0[3:5]"]


@pytest.mark.parametrize("metadata", ["", "akw-window:1:1:2:4", "akw-window:5", "akw-window:x:1:1:3", "mine"])
def test_an_offset_that_was_reset_belongs_to_no_window(metadata: str) -> None:
    assert unfinished_window({PARTITIONS[0]: OffsetAndMetadata(3, metadata)}) is None


@pytest.fixture
def options(kafka: blocking.Client, bootstrap: str) -> dict[str, str]:
    kafka.admin.create_topics({"flights": 2})
    return {"kafka.bootstrap.servers": bootstrap, "subscribe": "flights"}


def fill(options: dict[str, str], *counts: int) -> None:
    # A client of its own: one that has been used may not know a new partition yet.
    with blocking.Client(options["kafka.bootstrap.servers"]) as kafka, kafka.producer() as producer:
        for partition, count in enumerate(counts):
            producer.send_many("flights", [b"x"] * count, partition=partition)


def test_windows_follow_one_another(kafka: blocking.Client, options: dict[str, str]) -> None:
    fill(options, 5, 2)
    with BatchWindow(options, "nightly") as window:
        first = window.name
        assert re.fullmatch(r"\d{8}T\d{6}\.\d{3}Z", first)
        assert [str(each) for each in window.ranges] == ["flights-0[0:5]", "flights-1[0:2]"]
        fill(options, 1, 1)
    add_partitions_blocking(kafka, "flights", 3)
    fill(options, 0, 0, 4)
    with pytest.raises(ZeroDivisionError), BatchWindow(options, "nightly") as window:
        second = window.name
        raise ZeroDivisionError
    fill(options, 7, 7, 7)
    with BatchWindow({**options, "maxRecordsPerPartition": "2"}, "nightly") as window:
        assert window.name == second > first
        parts = ["flights-0[5:6]", "flights-1[2:3]", "flights-2[0:2]", "flights-2[2:4]"]
        assert [str(each) for each in window.ranges] == parts
    with BatchWindow(options, "nightly") as window:
        assert [str(each) for each in window.ranges] == ["flights-0[6:13]", "flights-1[3:10]", "flights-2[4:11]"]
    with BatchWindow(options, "nightly") as window:
        assert window.ranges == []
    committed = kafka.admin.list_consumer_group_offsets("nightly")
    assert {each.partition: found.offset for each, found in committed.items()} == {0: 13, 1: 10, 2: 11}


def test_an_unfinished_window_is_repeated_as_a_whole_or_not_at_all(
    kafka: blocking.Client, options: dict[str, str]
) -> None:
    kafka.admin.create_topics({"flown": 1})
    fill(options, 3, 2)
    both = {**options, "subscribe": "flights,flown"}
    with pytest.raises(ZeroDivisionError), BatchWindow(both, "nightly"):
        raise ZeroDivisionError
    with pytest.raises(
        ConfigError, match="has partitions that the options do not name, or that cannot be seen: flown-0"
    ):
        BatchWindow(options, "nightly").__enter__()
    kafka.admin.delete_topics("flown")
    with pytest.raises(DataLost, match="the group has lost 1 partitions of window"):
        BatchWindow(options, "nightly").__enter__()
    with BatchWindow({**options, "failOnDataLoss": "false"}, "nightly") as window:
        assert [str(each) for each in window.ranges] == ["flights-0[0:3]", "flights-1[0:2]"]


def test_a_run_that_others_have_overtaken_commits_nothing(kafka: blocking.Client, options: dict[str, str]) -> None:
    fill(options, 3)
    with pytest.raises(UsageError, match="another run of group 'nightly' has gone on"), BatchWindow(options, "nightly"):
        with BatchWindow(options, "nightly"):
            pass
        fill(options, 2)
        with BatchWindow(options, "nightly"):
            pass
    assert kafka.admin.list_consumer_group_offsets("nightly")[PARTITIONS[0]].offset == 5


def test_a_window_may_begin_and_end_at_times(kafka: blocking.Client, options: dict[str, str]) -> None:
    with kafka.producer() as producer:
        for number in range(10):
            producer.send("flights", b"x", partition=0, timestamp_ms=1_000 * number)
    given = {**options, "startingTimestamp": "2000", "endingTimestamp": "6000"}
    with BatchWindow(given, "nightly") as window:
        assert [str(each) for each in window.ranges] == ["flights-0[2:6]"]
    with BatchWindow({**given, "endingTimestamp": "8000"}, "nightly") as window:
        assert [str(each) for each in window.ranges] == ["flights-0[6:8]"]


def test_records_that_were_deleted_are_an_error_unless_loss_is_allowed(
    kafka: blocking.Client, options: dict[str, str]
) -> None:
    fill(options, 5)
    with pytest.raises(ZeroDivisionError), BatchWindow(options, "nightly"):
        raise ZeroDivisionError
    kafka.admin.delete_records({PARTITIONS[0]: 3})
    with pytest.raises(DataLost, match="flights-0 begins at offset 3, and the window at 0"):
        BatchWindow(options, "nightly").__enter__()
    with BatchWindow({**options, "failOnDataLoss": "false"}, "nightly") as window:
        assert [str(each) for each in window.ranges] == ["flights-0[3:5]"]


def test_wrong_use_is_one_clear_error(kafka: blocking.Client, options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="startingOffsets: a window begins where the last one has ended"):
        BatchWindow({**options, "startingOffsets": '{"flights":{"0":1,"1":1}}'}, "nightly")
    window = BatchWindow(options, "nightly")
    with pytest.raises(UsageError, match="use it as `with BatchWindow"):
        _ = window.ranges
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(window)
    with kafka.consumer("flights", group_id="busy") as consumer:
        consumer.poll(timeout=0.1)
        with pytest.raises(KafkaError, match="busy"):
            BatchWindow(options, "busy").__enter__()


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_job_that_is_repeated_has_each_record_once(
    spark: SparkSession, kafka: blocking.Client, options: dict[str, str], tmp_path: Path
) -> None:
    fill(options, 30, 20)
    for fails in (True, False, False):
        try:
            with BatchWindow(options, "nightly") as window:
                window.read(spark).write.mode("overwrite").parquet(f"{tmp_path}/window={window.name}")
                if fails:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            fill(options, 5, 5)
    found = spark.read.parquet(str(tmp_path)).groupBy("partition").count().collect()
    assert {row.partition: row["count"] for row in found} == {0: 35, 1: 25}
    assert len(list(tmp_path.glob("window=*"))) == 2
