"""What a task of the sink writes. Spark is not needed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from aiokafkawire import DeliveryFailed, OffsetSpec, TopicPartition, UsageError, blocking
from aiokafkawire.spark.options import WriteOptions, write_options
from aiokafkawire.spark.writing import write_batches


def options(bootstrap: str, **more: str) -> WriteOptions:
    return write_options({"kafka.bootstrap.servers": bootstrap, **more})


def records(kafka: blocking.Client, topic: str, partitions: int = 2) -> list[tuple[int, bytes | None, bytes | None]]:
    with kafka.consumer() as consumer:
        where = [TopicPartition(topic, index) for index in range(partitions)]
        ends = consumer.offsets(dict.fromkeys(where, OffsetSpec.LATEST))
        consumer.assign(dict.fromkeys(where, OffsetSpec.EARLIEST))
        count = sum(one.offset for one in ends.values() if one is not None)
        found = [record for _, record in zip(range(count), consumer, strict=False)]
    return sorted(((one.partition, one.key, one.value) for one in found), key=str)


def test_rows_go_to_the_topic_and_partition_they_name(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 2, "delays": 2})
    rows = {
        "topic": ["flights", "delays", "flights"],
        "partition": pa.array([1, 0, 0], pa.int32()),
        "key": pa.array([b"k", None, b"l"]),
        "value": ["one", "two", None],
    }
    assert write_batches(options(bootstrap), [pa.record_batch(rows)]) == 3
    assert records(kafka, "flights") == [(0, b"l", None), (1, b"k", b"one")]
    assert records(kafka, "delays") == [(0, None, b"two")]


def test_rows_that_name_no_partition_go_by_their_key(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 2})
    rows = {"partition": pa.array([None, 1, None], pa.int32()), "key": [b"k", b"k", b"k"], "value": ["1", "2", "3"]}
    assert write_batches(options(bootstrap, topic="flights"), [pa.record_batch(rows)]) == 3
    found = records(kafka, "flights")
    assert sorted(value or b"" for _, _, value in found) == [b"1", b"2", b"3"]
    assert (1, b"k", b"2") in found


def test_the_option_topic_wins_over_the_column(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 2})
    batch = pa.record_batch({"topic": pa.array([None, "elsewhere"]), "value": [b"1", b"2"]})
    write_batches(options(bootstrap, topic="flights"), [batch, batch.slice(1)])
    assert [value for _, _, value in records(kafka, "flights")].count(b"2") == 2


def test_headers_go_along_with_their_row(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 1})
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    pair = {"key": "x", "value": b"1"}
    headers = pa.array([None, [pair], [pair], [pair, {"key": "y", "value": None}], []], kind)
    batch = pa.record_batch({"value": [b"%d" % one for one in range(5)], "headers": headers})
    write_batches(options(bootstrap, topic="flights"), [batch])
    with kafka.consumer() as consumer:
        consumer.assign({TopicPartition("flights", 0): OffsetSpec.EARLIEST})
        found = [record for _, record in zip(range(5), consumer, strict=False)]
    assert [record.value for record in found] == [b"0", b"1", b"2", b"3", b"4"]
    one, both = (("x", b"1"),), (("x", b"1"), ("y", None))
    assert [record.headers for record in found] == [(), one, one, both, ()]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"key": [b"k"]}, "a column named value is needed"),
        ({"value": [b"v"]}, "a topic is needed"),
        ({"value": [1], "topic": ["t"]}, "the column value must be a string or binary, and is int64"),
        ({"value": [b"v"], "topic": ["t"], "colour": ["red"]}, "no part of a record: column colour"),
        ({"value": [b"v"], "topic": pa.array([None], pa.string())}, "a row has null in the column topic"),
        ({"value": [b"v"], "topic": ["t"], "headers": ["h"]}, "the column headers must be an array of pairs"),
    ],
)
def test_rows_that_are_no_records_are_refused(bootstrap: str, columns: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        write_batches(options(bootstrap), [pa.record_batch(columns)])


def test_a_record_that_is_not_taken_fails_the_task(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 1})
    batch = pa.record_batch({"value": [b"v"], "partition": pa.array([7], pa.int32())})
    with pytest.raises((UsageError, DeliveryFailed), match="flights"):
        write_batches(options(bootstrap, topic="flights"), [batch])
