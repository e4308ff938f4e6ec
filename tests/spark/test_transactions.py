"""One transaction for each micro-batch: seen once and as a whole, or not at all. Spark is not needed."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa
import pytest
from anyio.from_thread import start_blocking_portal
from support.micro_batches import seen, seen_at_last, task
from support.partitions import add_partitions_blocking

from aiokafkawire import ConfigError, KafkaError, OffsetSpec, TopicPartition, UsageError, blocking
from aiokafkawire.errors import InvalidProducerEpoch, InvalidTxnState, ProducerFenced
from aiokafkawire.spark.options import WriteOptions, write_options
from aiokafkawire.spark.row_partitioner import placed
from aiokafkawire.spark.transactions import BatchTransactions
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import ProducerIdentity


class Lost(Exception):
    """What a Spark job raises, say."""


@pytest.fixture(params=["in-process", pytest.param("apache", marks=pytest.mark.kafka)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Of the in-process broker, or of a real Kafka."""
    if request.param == "in-process":
        return str(request.getfixturevalue("broker"))
    return str(request.getfixturevalue("apache_kafka").bootstrap)


@pytest.fixture
def broker() -> Iterator[str]:
    with start_blocking_portal("asyncio") as portal, portal.wrap_async_context_manager(Broker()) as broker:
        yield broker.bootstrap


@pytest.fixture
def sink(kafka: blocking.Client, bootstrap: str) -> WriteOptions:
    topic = f"delays-{uuid4().hex}"
    kafka.admin.create_topics({topic: 2})
    return write_options({"kafka.bootstrap.servers": bootstrap, "topic": topic})


@pytest.fixture
def transactional_id(sink: WriteOptions) -> str:
    return f"{sink.topic}-sink"


@pytest.fixture
def driver(sink: WriteOptions, transactional_id: str) -> Iterator[BatchTransactions]:
    made = BatchTransactions(sink, transactional_id)
    yield made
    made.close()


def test_what_tasks_write_is_seen_when_the_batch_is_whole(sink: WriteOptions, driver: BatchTransactions) -> None:
    def work(identity: ProducerIdentity) -> None:
        task(sink, identity, 0, b"0a", b"0b")
        task(sink, identity, 1, b"1a")
        assert seen(sink) == []

    assert driver.write("q", 0, work)
    assert seen_at_last(sink) == [b"0a", b"0b", b"1a"]
    assert driver.write("q", 1, lambda identity: task(sink, identity, 1, b"1b"))
    assert seen_at_last(sink) == [b"0a", b"0b", b"1a", b"1b"]


def test_a_batch_that_was_written_is_left_out_by_the_next_driver_too(
    sink: WriteOptions, driver: BatchTransactions, transactional_id: str
) -> None:
    assert driver.write("q", 0, lambda identity: task(sink, identity, 0, b"once"))
    assert not driver.write("q", 0, lambda identity: task(sink, identity, 0, b"twice"))
    later = BatchTransactions(sink, transactional_id)
    try:
        assert not later.write("q", 0, lambda identity: task(sink, identity, 0, b"twice"))
        assert later.write("q", 1, lambda identity: task(sink, identity, 0, b"next"))
        # A query with a new checkpoint counts from 0 again.
        assert later.write("another", 0, lambda identity: task(sink, identity, 0, b"other"))
    finally:
        later.close()
    assert seen_at_last(sink) == [b"next", b"once", b"other"]


def test_a_batch_that_fails_is_aborted_and_written_anew(sink: WriteOptions, driver: BatchTransactions) -> None:
    given: list[ProducerIdentity] = []

    def work(identity: ProducerIdentity) -> None:
        given.append(identity)
        task(sink, identity, 0, b"%d" % len(given))
        if len(given) < 3:
            raise Lost("an executor")

    assert driver.write("q", 0, work)
    assert seen_at_last(sink) == [b"3"]
    assert seen(sink, committed=False) == [b"1", b"2", b"3"]
    assert len({identity.producer_epoch for identity in given}) == 3

    def always(identity: ProducerIdentity) -> None:
        raise Lost("again")

    with pytest.raises(Lost, match="again"):
        driver.write("q", 1, always)
    assert driver.write("q", 1, lambda identity: task(sink, identity, 1, b"mended"))
    assert seen_at_last(sink) == [b"3", b"mended"]


def test_a_task_that_comes_late_gets_nothing_in(sink: WriteOptions, driver: BatchTransactions) -> None:
    given: list[ProducerIdentity] = []

    def work(identity: ProducerIdentity) -> None:
        given.append(identity)
        task(sink, identity, 0, b"%d" % len(given))
        if len(given) == 1:
            raise Lost("its executor, as far as the driver knows")
        with pytest.raises(KafkaError):
            task(sink, given[0], 1, b"late")

    assert driver.write("q", 0, work)
    with pytest.raises(KafkaError):
        task(sink, given[1], 1, b"later")
    assert seen_at_last(sink) == [b"2"]
    assert seen(sink, committed=False) == [b"1", b"2"]


def test_a_driver_that_is_gone_leaves_nothing_that_is_seen(
    sink: WriteOptions, driver: BatchTransactions, transactional_id: str
) -> None:
    later = BatchTransactions(sink, transactional_id)

    def work(identity: ProducerIdentity) -> None:
        task(sink, identity, 0, b"half")
        # The first driver hangs, and the query is started elsewhere.
        assert later.write("q", 0, lambda theirs: task(sink, theirs, 0, b"whole"))

    try:
        with pytest.raises((ProducerFenced, InvalidProducerEpoch)) as raised:
            driver.write("q", 0, work)
        assert "another query has this transactional id" in "".join(raised.value.__notes__)
    finally:
        later.close()
    assert seen_at_last(sink) == [b"whole"]
    # The query is started here again, with the same sink.
    assert not driver.write("q", 0, work)
    assert driver.write("q", 1, lambda identity: task(sink, identity, 0, b"next"))
    assert seen_at_last(sink) == [b"next", b"whole"]


def test_a_transaction_that_was_open_for_too_long_is_not_committed(
    kafka: blocking.Client, sink: WriteOptions, bootstrap: str, transactional_id: str
) -> None:
    topic = sink.topic or ""
    given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "kafka.transaction.timeout.ms": "200"}
    hasty = write_options(given)
    end = {TopicPartition(topic, 0): OffsetSpec.LATEST}

    def work(identity: ProducerIdentity) -> None:
        task(sink, identity, 0, b"slow")
        with kafka.consumer(isolation_level="read_committed") as consumer:
            # The end of what is committed moves when the broker has given the transaction up.
            while [at.offset for at in consumer.offsets(end).values() if at is not None] == [0]:
                pass

    late = BatchTransactions(hasty, transactional_id)
    try:
        with pytest.raises((ProducerFenced, InvalidProducerEpoch, InvalidTxnState)) as raised:
            late.write("q", 0, work)
        assert "kafka.transaction.timeout.ms" in "".join(raised.value.__notes__)
    finally:
        late.close()
    assert seen_at_last(sink) == []
    again = BatchTransactions(sink, transactional_id)
    try:
        assert again.write("q", 0, lambda identity: task(sink, identity, 0, b"quick"))
    finally:
        again.close()
    assert seen_at_last(sink) == [b"quick"]


def test_partitions_that_are_added_are_known_with_the_next_batch(
    kafka: blocking.Client, sink: WriteOptions, driver: BatchTransactions
) -> None:
    """A row may name one: it failed the query until the driver's metadata were old enough."""
    assert driver.partitions() == (0, 1)
    add_partitions_blocking(kafka, sink.topic or "", 3)
    assert driver.partitions() == (0, 1, 2)


def test_what_cannot_be_is_refused(sink: WriteOptions, bootstrap: str) -> None:
    with pytest.raises(ConfigError, match="the option topic is required"):
        BatchTransactions(write_options({"kafka.bootstrap.servers": bootstrap}), "t")
    with pytest.raises(ConfigError, match="tries must be at least 1"):
        BatchTransactions(sink, "t", tries=0)


def test_rows_have_the_partition_they_name_or_that_of_their_key_or_one_in_turn() -> None:
    rows = pa.record_batch({"key": [b"k", b"l", None, None], "value": ["1", "2", "3", "4"]})
    first, second = placed(rows, 3, 0)["partition"].to_pylist(), placed(rows, 3, 1)["partition"].to_pylist()
    assert first[:2] == second[:2]
    assert [first[2:], second[2:]] == [[2, 0], [0, 1]]
    named = pa.record_batch({"value": ["1", "2"], "partition": pa.array([2, None], pa.int32())})
    assert placed(named, 3, 0)["partition"].to_pylist() == [2, 1]
    with pytest.raises(UsageError, match="a row has partition 2, but the topic has 2"):
        placed(named, 2, 0)
