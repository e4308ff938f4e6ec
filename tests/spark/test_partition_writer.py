"""What a task of the sink writes. Spark is not needed."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from aiokafkawire import DeliveryFailed, NewTopic, OffsetSpec, TopicPartition, UsageError, blocking
from aiokafkawire.errors import MessageTooLarge
from aiokafkawire.spark.options import WriteOptions, write_options
from aiokafkawire.spark.partition_writer import write_batches
from aiokafkawire.spark.schema import HEADERS


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
    pair = {"key": "x", "value": b"1"}
    headers = pa.array([None, [pair], [pair], [pair, {"key": "y", "value": None}], []], HEADERS)
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
        ({"key": [b"k"]}, "the column value is missing"),
        ({"value": [b"v"]}, "a topic is missing"),
        ({"value": [1], "topic": ["t"]}, "the column value must be a string or binary, and is int64"),
        ({"value": [b"v"], "topic": ["t"], "colour": ["red"]}, "unknown column colour"),
        ({"value": [b"v"], "topic": pa.array([None], pa.string())}, "a row has null in the column topic"),
        ({"value": [b"v"], "topic": ["t"], "headers": ["h"]}, "the column headers must be an array of pairs"),
        ({"value": [b"v"], "topic": ["t"], "headers": pa.array([[None]], HEADERS)}, "a header must be a string and"),
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


def test_a_task_writes_nothing_after_a_record_that_failed(kafka: blocking.Client, bootstrap: str) -> None:
    """Spark tries the task again, and would double what comes after."""
    kafka.admin.create_topics({"flights": NewTopic(partitions=1, configs={"max.message.bytes": "1000"})})
    values = [b"x" * 5_000, *(b"%d" % one for one in range(2_000))]
    sink = options(bootstrap, topic="flights", **{"kafka.batch.size": "200"})
    with pytest.raises(DeliveryFailed, match="2001 records not delivered, the first because of MessageTooLarge"):
        write_batches(sink, [pa.record_batch({"value": values})])
    assert records(kafka, "flights", 1) == []


def test_a_task_takes_no_rows_after_a_record_that_failed(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": NewTopic(partitions=1, configs={"max.message.bytes": "1000"})})
    taken = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(100_000):
            taken.append(number)
            yield pa.record_batch({"value": [b"x" * 5_000]})
        pytest.fail("it went on to the end")

    with pytest.raises(MessageTooLarge):
        write_batches(options(bootstrap, topic="flights", **{"kafka.linger.ms": "0"}), batches())
    assert records(kafka, "flights", 1) == []


def test_a_task_whose_rows_fail_writes_nothing_that_is_not_sent_yet(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 2})

    class Upstream(Exception):
        pass

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": [b"0"] * 100})
        raise Upstream

    with pytest.raises(Upstream) as raised:
        write_batches(options(bootstrap, topic="flights", **{"kafka.linger.ms": "60000"}), batches())
    assert "100 records not delivered" in raised.value.__notes__[0]
    assert "not sent: the task failed before that (Upstream)" in raised.value.__notes__[0]
    assert records(kafka, "flights") == []


def test_a_task_that_fails_waits_for_what_is_in_flight(kafka: blocking.Client, bootstrap: str) -> None:
    """What the brokers write of it, they have written before Spark tries the task again."""
    kafka.admin.create_topics({"flights": 1})

    class Upstream(Exception):
        pass

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(3):
            yield pa.record_batch({"value": [b"0" * 900] * 1_000})
        raise Upstream

    with pytest.raises(Upstream) as raised:
        write_batches(options(bootstrap, topic="flights", **{"kafka.linger.ms": "0"}), batches())
    written = len(records(kafka, "flights", 1))
    told = "".join(getattr(raised.value, "__notes__", []))
    dropped = int(told.removeprefix("besides, ").split(" ")[0]) if told else 0
    assert written + dropped == 3_000
