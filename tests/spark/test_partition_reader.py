"""What a task reads: whole ranges, cut at their ends, with markers and lost records in them. Spark is not needed."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from support.message_sets import message

from aiokafkawire import Client, KafkaError, NewTopic, RequestTimeout, blocking
from aiokafkawire.errors import ErrorCode, OffsetOutOfRange
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.records.batch import split
from aiokafkawire.spark import lookup
from aiokafkawire.spark.chunk import Chunk
from aiokafkawire.spark.errors import DataLost
from aiokafkawire.spark.lookup import batch_ranges
from aiokafkawire.spark.offsets import OffsetRange
from aiokafkawire.spark.options import ReadOptions, read_options
from aiokafkawire.spark.partition_reader import RangeReader, read_range
from aiokafkawire.spark.schema import arrow_schema
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.broker import Broker


def options(bootstrap: str, **more: str) -> ReadOptions:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": "flights", "includeHeaders": "true"}
    return read_options({**given, **{name.replace("__", "."): text for name, text in more.items()}}, streaming=False)


def read(asked: ReadOptions, start: int, end: int) -> pa.Table:
    batches = list(read_range(asked, OffsetRange("flights", 0, start, end)))
    return pa.Table.from_batches(batches, schema=arrow_schema(headers=asked.include_headers))


def test_a_range_is_cut_out_of_batches_of_any_size(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        for some in range(10):
            values = [b"%d" % (some * 10 + one) for one in range(10)]
            producer.send_many("flights", values, keys=[None if one % 2 else b"k" for one in range(10)])
    for start, end in [(0, 100), (3, 97), (15, 16), (19, 21), (99, 100)]:
        found = read(options(bootstrap), start, end)
        assert found["offset"].to_pylist() == list(range(start, end))
        assert found["value"].to_pylist() == [b"%d" % one for one in range(start, end)]
        assert found["key"].to_pylist() == [None if one % 2 else b"k" for one in range(start, end)]
        assert set(found["topic"].to_pylist()) == {"flights"}
        assert set(found["partition"].to_pylist()) == {0}
    assert read(options(bootstrap), 5, 5).num_rows == 0


def test_record_batches_are_as_spark_wants_them(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        producer.send("flights", b"a", timestamp_ms=1_357_000_000_123)
        producer.send("flights", None, headers=[("x", b"1"), ("x", None)])
        producer.enqueue_many("flights", [b"v" * 100] * 20_000)
    batches = list(read_range(options(bootstrap), OffsetRange("flights", 0, 0, 20_002)))
    assert all(batch.schema.equals(arrow_schema(headers=True)) for batch in batches)
    assert [batch.num_rows > 16_000 for batch in batches] == [True, False]
    for batch in batches:
        batch.validate(full=True)
    first = pa.Table.from_batches(batches).slice(0, 3).to_pylist()
    assert [row["headers"] for row in first] == [None, [{"key": "x", "value": b"1"}, {"key": "x", "value": None}], None]
    assert first[0]["timestamp"].timestamp() == 1_357_000_000.123
    assert first[1]["value"] is None
    assert [row["timestampType"] for row in first] == [0, 0, 0]


def test_a_worker_asks_little_for_each_of_its_tasks() -> None:
    with BackgroundBroker() as broker:
        broker.create_topic("flights", 1)
        with blocking.Client(broker.bootstrap) as kafka, kafka.producer() as producer:
            producer.enqueue_many("flights", [b"v"] * 300)

        def requests() -> Counter[str]:
            """The requests since the last call, by their kind."""
            found = Counter(each.api.name for each in broker.requests.of())
            broker.requests.clear()
            return found

        asked = options(broker.bootstrap)
        requests()
        with blocking.Client(broker.bootstrap) as kafka:
            assert requests() == {"API_VERSIONS": 1, "METADATA": 1}
            found = []
            for start in (0, 100, 200):
                reading = RangeReader(kafka.asynchronous, asked, OffsetRange("flights", 0, start, start + 100))
                batch = kafka.loop.call(reading.next_record_batch)
                assert batch is not None
                assert batch.num_rows == 100
                kafka.loop.call(reading.close)
                found.append(requests())
        # A connection to the leader, and a fetch; the first task looks up the topic.
        assert found[0].keys() == {"API_VERSIONS", "METADATA", "FETCH"}
        assert found[1:] == [{"API_VERSIONS": 1, "FETCH": 1}] * 2


@pytest.mark.slow
def test_a_task_imports_no_pandas(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        producer.send_many("flights", [b"x"] * 3)
    asked = f"{{'kafka.bootstrap.servers': {bootstrap!r}, 'subscribe': 'flights'}}"
    script = f"""
import sys
from aiokafkawire.spark.offsets import OffsetRange
from aiokafkawire.spark.options import read_options
from aiokafkawire.spark.partition_reader import RangeReader, read_range
(batch,) = read_range(read_options({asked}, streaming=False), OffsetRange("flights", 0, 0, 3))
assert batch.num_rows == 3
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_timestamps_type_is_told_for_every_record(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": NewTopic(1, configs={"message.timestamp.type": "LogAppendTime"})})
    with kafka.producer() as producer:
        producer.send_many("flights", [b"x", b"y"], timestamp_ms=5)
    found = read(options(bootstrap), 0, 2).to_pylist()
    assert [row["timestampType"] for row in found] == [1, 1]
    assert all(row["timestamp"].year > 2000 for row in found)


def test_records_of_before_kafka_0_10_have_no_timestamp() -> None:
    """Their timestamp and its type are -1, as in the JVM source."""
    chunk = Chunk("flights", 0, headers=False)
    for each in split(memoryview(b"".join(message(offset, magic=0) for offset in range(3))), "flights-0"):
        chunk.add(each.records("flights", 0).columns(), each.header.timestamp_type, 3)
    rows = chunk.record_batch().to_pylist()
    assert [row["offset"] for row in rows] == [0, 1, 2]
    assert [row["timestampType"] for row in rows] == [-1] * 3
    assert {row["timestamp"].timestamp() for row in rows} == {-0.001}


def test_a_range_ends_behind_the_markers_of_transactions(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 1})

    async def write(client: Client) -> None:
        async with client.producer(transactional_id="t") as producer:
            for abort in (False, True):
                try:
                    async with producer.transaction():
                        await producer.send("flights", b"aborted" if abort else b"committed")
                        assert not abort
                except AssertionError:
                    pass

    kafka.loop.call(write, kafka.asynchronous)
    for level, values in [("read_uncommitted", [b"committed", b"aborted"]), ("read_committed", [b"committed"])]:
        asked = options(bootstrap, kafka__isolation__level=level)
        ranges = kafka.loop.call(batch_ranges, kafka.asynchronous, asked)
        assert ranges == [OffsetRange("flights", 0, 0, 4)]
        assert read(asked, 0, 4)["value"].to_pylist() == values


def test_records_that_are_gone_are_an_error_or_left_out(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        producer.send_many("flights", [b"x"] * 5)
    with pytest.raises(DataLost, match=r"cannot read flights-0\[7:9\] from offset 7: the partition has offsets 0 to 5"):
        read(options(bootstrap), 7, 9)
    assert read(options(bootstrap, failOnDataLoss="false"), 7, 9).num_rows == 0


def test_records_that_the_log_has_not_got_are_an_error_or_left_out(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        producer.send_many("flights", [b"x"] * 5)
    with pytest.raises(DataLost, match=r"cannot read flights-0\[3:9\] from offset 5: the partition has offsets 0 to 5"):
        read(options(bootstrap, kafkaConsumer__pollTimeoutMs="2000"), 3, 9)
    found = read(options(bootstrap, kafkaConsumer__pollTimeoutMs="2000", failOnDataLoss="false"), 3, 9)
    assert found["offset"].to_pylist() == [3, 4]


def test_records_of_a_deleted_topic_are_an_error_or_left_out(
    kafka: blocking.Client, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_AGREE_AFTER", 0.2)
    kafka.admin.create_topics({"flights": 1})
    kafka.admin.delete_topics(["flights"])
    with pytest.raises(DataLost, match=r"cannot read flights-0\[0:5\] from offset 0: there is no such partition"):
        read(options(bootstrap, kafka__default__api__timeout__ms="2000"), 0, 5)
    asked = options(bootstrap, kafka__default__api__timeout__ms="2000", failOnDataLoss="false")
    assert read(asked, 0, 5).num_rows == 0


@pytest.mark.parametrize("fails", ["true", "false"])
def test_records_of_a_topic_that_is_created_anew_in_mid_task_are_an_error_or_left_out(
    kafka: blocking.Client, bootstrap: str, fails: str
) -> None:
    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        producer.enqueue_many("flights", [b"v" * 100] * 40_000)
    asked = options(bootstrap, failOnDataLoss=fails, kafka__max__partition__fetch__bytes="100000")
    reading = RangeReader(kafka.asynchronous, asked, OffsetRange("flights", 0, 0, 40_000))
    assert kafka.loop.call(reading.next_record_batch) is not None
    kafka.admin.delete_topics(["flights"])
    kafka.admin.create_topics({"flights": 1})
    try:
        if fails == "true":
            with pytest.raises(DataLost, match="the partition has offsets 0 to 0"):
                while kafka.loop.call(reading.next_record_batch) is not None:
                    pass
        else:
            while kafka.loop.call(reading.next_record_batch) is not None:
                pass
    finally:
        kafka.loop.call(reading.close)


def test_records_that_are_there_again_are_read() -> None:
    with BackgroundBroker() as broker:
        broker.create_topic("flights", 1)
        with blocking.Client(broker.bootstrap) as kafka, kafka.producer() as producer:
            producer.send_many("flights", [b"x"] * 5)
        asked = options(broker.bootstrap, failOnDataLoss="false")
        broker.on(ApiKey.FETCH, answer=ErrorCode.OFFSET_OUT_OF_RANGE, topic="flights")
        assert read(asked, 2, 5)["offset"].to_pylist() == [2, 3, 4]
        broker.on(ApiKey.FETCH, answer=ErrorCode.OFFSET_OUT_OF_RANGE, topic="flights", times=None)
        with pytest.raises(OffsetOutOfRange):
            read(asked, 2, 5)


def test_nothing_that_comes_is_an_error_in_time(kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 1})
    asked = options(bootstrap, kafka__isolation__level="read_committed", kafkaConsumer__pollTimeoutMs="300")
    with kafka.producer(transactional_id="t") as producer, producer.transaction():
        producer.send_many("flights", [b"x"] * 3)
        with pytest.raises(
            RequestTimeout, match=r"reading flights-0\[0:3\] at offset 0: no records were received for 0.3 s"
        ):
            read(asked, 0, 3)


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal("asyncio") as one:
        yield one


@pytest.mark.slow
def test_a_broker_lost_in_mid_task_is_one_error(portal: BlockingPortal) -> None:
    with portal.wrap_async_context_manager(Broker()) as broker:
        broker.create_topic("flights", partitions=1)
        with blocking.Client(broker.bootstrap) as kafka, kafka.producer() as producer:
            producer.enqueue_many("flights", [b"v" * 1000] * 60_000)
        asked = options(broker.bootstrap, kafka__default__api__timeout__ms="500")
        rows = read_range(asked, OffsetRange("flights", 0, 0, 60_000))
        assert next(rows).num_rows > 1_000
    with pytest.raises(KafkaError, match=r"cannot fetch flights-0 for 0\.5 s"):
        for _ in rows:
            pass


def test_nothing_behind_the_range_is_fetched(portal: BlockingPortal) -> None:
    with portal.wrap_async_context_manager(Broker()) as broker:
        broker.create_topic("flights", partitions=1)
        with blocking.Client(broker.bootstrap) as kafka, kafka.producer() as producer:
            for _ in range(10):
                producer.send("flights", b"v" * 40_000)
        asked = options(broker.bootstrap, kafka__max__partition__fetch__bytes="100000")
        assert read(asked, 0, 6).num_rows == 6
        fetches = [one.request.topics for one in broker.requests if one.api is ApiKey.FETCH]
        asked_for = {each.fetch_offset for topics in fetches for topic in topics for each in topic.partitions}
        assert asked_for == {0, 2, 4}


@pytest.mark.slow
def test_a_reader_that_is_closed_early_leaves_no_thread(kafka: blocking.Client, bootstrap: str) -> None:
    import threading

    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        producer.enqueue_many("flights", [b"v" * 1000] * 40_000)
    before = threading.active_count()
    rows = read_range(options(bootstrap), OffsetRange("flights", 0, 0, 40_000))
    next(rows)
    assert threading.active_count() > before
    rows.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
