"""The marks of micro-batches that were written, and what becomes of a query when Kafka has forgotten them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from support.apache_kafka import ApacheKafka, missing
from support.micro_batches import seen_at_last, task
from support.needing import require

from aiokafkawire import blocking
from aiokafkawire.spark.batch_markers import is_unknown, is_written, mark_of
from aiokafkawire.spark.options import WriteOptions, write_options
from aiokafkawire.spark.transactions import BatchTransactions
from aiokafkawire.testing.broker import Broker


def test_a_mark_is_of_its_query_alone() -> None:
    mark = mark_of("q", 4)
    assert [is_written(mark, "q", batch) for batch in (3, 4, 5)] == [True, True, False]
    assert not is_written(mark, "another", 4)
    assert not is_written(None, "q", 0)


def test_a_query_without_a_mark_cannot_tell_but_of_its_first_batch() -> None:
    assert [is_unknown(None, "q", batch) for batch in (0, 1)] == [False, True]
    assert [is_unknown(mark_of("another", 4), "q", batch) for batch in (0, 4)] == [False, True]
    assert not is_unknown(mark_of("q", 4), "q", 5)


class Calendar:
    """An in-process broker whose clock can be set on."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal, self._now = portal, time.time_ns() // 1_000_000
        self.broker = Broker(clock=lambda: self._now)

    def topic(self) -> WriteOptions:
        self._portal.call(self.broker.create_topic, "delays", 2)
        return write_options({"kafka.bootstrap.servers": self.broker.bootstrap, "topic": "delays"})

    def pass_by(self, days: float) -> None:
        """So many days pass, and the broker looks for offsets that it may forget."""
        self._now += int(days * 86_400_000)
        self._portal.call(self.broker.apply_offsets_retention)

    def forget(self, transactional_id: str) -> None:
        """As after a week without a transaction."""
        self._portal.call(self.broker.expire_transactional_id, transactional_id)


@pytest.fixture
def calendar() -> Iterator[Calendar]:
    with start_blocking_portal("asyncio") as portal:
        calendar = Calendar(portal)
        with portal.wrap_async_context_manager(calendar.broker):
            yield calendar


def writes(sink: WriteOptions, *batches: int) -> list[bool]:
    """What a driver of its own writes, as after a restart: a record for each batch, which is its number."""
    with closing(BatchTransactions(sink, f"{sink.topic}-sink")) as driver:
        return [write(driver, sink, batch) for batch in batches]


def write(driver: BatchTransactions, sink: WriteOptions, batch: int) -> bool:
    return driver.write("q", batch, lambda identity: task(sink, identity, 0, b"%d" % batch))


def test_a_batch_whose_mark_is_forgotten_is_written_twice_and_the_log_says_so(
    calendar: Calendar, caplog: pytest.LogCaptureFixture
) -> None:
    sink = calendar.topic()
    assert writes(sink, 0, 1) == [True, True]
    calendar.pass_by(days=6.9)
    assert writes(sink, 1) == [False]
    assert caplog.messages == []
    calendar.pass_by(days=0.2)
    calendar.forget("delays-sink")
    assert writes(sink, 1, 2) == [True, True]
    (told,) = caplog.messages
    assert told.startswith(
        "group delays-sink-batches has no marker of query q, which may have expired (offsets.retention.minutes)"
    )
    assert told.endswith("was killed before Spark's checkpoint")
    # What is written has a mark again.
    assert writes(sink, 2) == [False]
    assert seen_at_last(sink) == [b"0", b"1", b"1", b"2"]


def test_a_driver_that_lives_on_tells_nothing_however_long_it_waits(
    calendar: Calendar, caplog: pytest.LogCaptureFixture
) -> None:
    sink = calendar.topic()
    with closing(BatchTransactions(sink, "delays-sink")) as driver:
        for batch in (0, 1, 2):
            assert write(driver, sink, batch)
            calendar.pass_by(days=8)
    assert seen_at_last(sink) == [b"0", b"1", b"2"]
    assert caplog.messages == []


@pytest.mark.spark  # it takes a minute
@pytest.mark.timeout(300)
def test_apache_kafka_forgets_marks_as_well(caplog: pytest.LogCaptureFixture) -> None:
    require(missing())
    # A minute is the least there is.
    given = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "100"}
    with ApacheKafka(properties=given) as server, blocking.Client(server.bootstrap) as kafka:
        kafka.admin.create_topics({"delays": 2})
        sink = write_options({"kafka.bootstrap.servers": server.bootstrap, "topic": "delays"})
        assert writes(sink, 0, 1) == [True, True]
        assert writes(sink, 1) == [False]
        deadline = time.monotonic() + 150
        while kafka.admin.list_consumer_group_offsets("delays-sink-batches"):
            assert time.monotonic() < deadline, "the mark is still there"
            time.sleep(0.1)
        assert writes(sink, 1, 2) == [True, True]
        assert writes(sink, 2) == [False]
        assert seen_at_last(sink) == [b"0", b"1", b"1", b"2"]
    assert ["no marker of query q" in one for one in caplog.messages] == [True]
