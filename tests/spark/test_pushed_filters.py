"""Which offsets the conditions of a query leave to read. Spark is not needed, but for the last test."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import spark as support

from aiokafkawire import TopicPartition, blocking
from aiokafkawire.spark.lookup import batch_ranges
from aiokafkawire.spark.options import read_options
from aiokafkawire.spark.pushed_filters import PushedFilters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = {TopicPartition(topic, index): 10 * index for topic in ("flights", "flown") for index in range(3)}
END = {partition: at + 40 for partition, at in START.items()}
HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: one == other,
    "in": lambda one, other: one in other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
}
COMPARED = st.sampled_from(("=", ">", ">=", "<", "<="))
CONDITIONS = st.one_of(
    st.tuples(st.just("offset"), COMPARED, st.integers(-5, 80)),
    st.tuples(st.just("partition"), st.just("="), st.integers(0, 4)),
    st.tuples(st.just("partition"), st.just("in"), st.lists(st.integers(0, 4), max_size=3)),
    st.tuples(st.just("partition"), COMPARED, st.integers(0, 4)),
    st.tuples(st.just("topic"), st.just("="), st.sampled_from(("flights", "flown", "other"))),
    st.tuples(st.just("topic"), st.just("in"), st.lists(st.sampled_from(("flights", "other")), max_size=2)),
    st.tuples(st.just("offset"), st.just("in"), st.lists(st.integers(0, 80), max_size=3)),
)


@given(st.lists(CONDITIONS, max_size=5))
def test_the_records_that_meet_all_conditions_are_left(conditions: list[tuple[str, str, Any]]) -> None:
    pushed = PushedFilters()
    unchecked = [condition for condition in conditions if not pushed.push(*condition)]
    admitted = {partition: at for partition, at in START.items() if pushed.admits(partition)}
    starts, ends = pushed.narrow(admitted, END, {})
    left = {(each, offset) for each, at in starts.items() for offset in range(at, ends[each])}

    def meets(partition: TopicPartition, offset: int, checked: list[tuple[str, str, Any]]) -> bool:
        row = {"topic": partition.topic, "partition": partition.partition, "offset": offset}
        return all(HOLDS[operator](row[column], value) for column, operator, value in checked)

    everything = {(each, offset) for each, at in START.items() for offset in range(at, END[each])}
    assert {each for each in left if meets(*each, unchecked)} == {
        each for each in everything if meets(*each, conditions)
    }


def test_only_records_before_the_first_that_is_late_enough_are_left_out() -> None:
    pushed = PushedFilters()
    noon = datetime(2026, 11, 28, 12, tzinfo=UTC)
    assert not pushed.push("timestamp", ">", noon)
    assert not pushed.push("timestamp", ">=", noon - timedelta(hours=1))
    assert not pushed.push("timestamp", "<", noon)
    assert not pushed.push("timestamp", ">", datetime(1960, 1, 1, tzinfo=UTC))
    assert pushed.since == int(noon.timestamp() * 1000)
    one, other = (TopicPartition("flights", index) for index in range(2))
    starts, ends = pushed.narrow({one: 0, other: 0}, {one: 9, other: 9}, {one: 4, other: None})
    assert (starts, ends) == ({one: 4, other: 9}, {one: 9, other: 9})


def test_a_time_before_1970_leaves_out_no_record_without_a_timestamp() -> None:
    """Such a record has the time -1 ms, and is before the first one with a timestamp from 0 on."""
    pushed = PushedFilters()
    assert not pushed.push("timestamp", ">=", datetime(1960, 1, 1, tzinfo=UTC))
    assert pushed.since is None


@pytest.mark.parametrize(
    "condition",
    [
        ("value", "=", b"x"),
        ("offset", "=", None),
        ("timestamp", "=", 5),
        ("timestamp", "=", datetime(1, 1, 1)),
        ("offset", "in", (1,)),
        ("partition", ">", 1),
    ],
)
def test_other_conditions_are_left_to_spark(condition: tuple[str, str, Any]) -> None:
    pushed = PushedFilters()
    assert not pushed.push(*condition)
    assert pushed == PushedFilters()


def test_the_broker_is_asked_for_the_time(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 2})
    with kafka.producer() as producer:
        for number in range(10):
            producer.send("flights", b"x", partition=0, timestamp_ms=1_000 * number)
    options = read_options({"kafka.bootstrap.servers": bootstrap, "subscribe": "flights"}, streaming=False)
    pushed = PushedFilters()
    pushed.push("timestamp", ">=", datetime.fromtimestamp(6.5, UTC))
    pushed.push("offset", "<", 9)
    found = kafka.loop.call(batch_ranges, kafka.asynchronous, options, pushed)
    assert [str(one) for one in found] == ["flights-0[7:9]"]


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_spark_reads_only_what_a_query_wants(spark: SparkSession, kafka: blocking.Client, bootstrap: str) -> None:
    if not support.filters():
        pytest.skip("Spark passes the conditions of queries to Python sources since 4.1")
    kafka.admin.create_topics({"flights": 3})
    with kafka.producer() as producer:
        for partition in range(3):
            for number in range(100):
                producer.enqueue("flights", b"%d" % number, partition=partition, timestamp_ms=1_000 * number)
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": "flights", "pushFilters": "true"}
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("aiokafkawire").options(**given).load()
        found = frame.where("partition = 2 and offset >= 90 and value != '95'")
        assert found.rdd.getNumPartitions() == 1
        assert sorted(row.offset for row in found.collect()) == [90, 91, 92, 93, 94, 96, 97, 98, 99]
        late = frame.where("partition in (0, 1) and timestamp >= timestamp_millis(97000)")
        assert sorted((row.partition, row.offset) for row in late.collect()) == [
            (partition, offset) for partition in (0, 1) for offset in (97, 98, 99)
        ]
        assert frame.where("partition = 7").count() == 0
        assert frame.where("not (partition = 2)").count() == 200
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    with pytest.raises(Exception, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
        spark.read.format("aiokafkawire").options(**given).load().count()
