"""The streaming reader and the listener, called as Spark calls them; no JVM is started."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from support import spark as support
from support.needing import require
from support.partitions import add_partitions_blocking

from aiokafkawire import ConfigError, KafkaError, RequestTimeout, TopicPartition, blocking
from aiokafkawire.errors import UnknownTopicOrPartition
from aiokafkawire.spark import lookup
from aiokafkawire.spark.errors import DataLost
from aiokafkawire.spark.offsets import OffsetRange
from aiokafkawire.spark.options import read_options
from aiokafkawire.spark.progress import Behind, behind, offsets_in, reached
from aiokafkawire.testing.broker import Broker

ZERO, ONE = TopicPartition("flights", 0), TopicPartition("flights", 1)


pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def needs_pyspark() -> None:
    require(support.missing())


@pytest.fixture
def broker() -> Iterator[Broker]:
    with start_blocking_portal("asyncio") as portal, portal.wrap_async_context_manager(Broker()) as one:
        yield one


@pytest.fixture
def bootstrap(broker: Broker) -> str:
    return broker.bootstrap


@pytest.fixture
def readers(bootstrap: str) -> Iterator[Any]:
    from aiokafkawire.spark.stream import StreamReader

    made: list[StreamReader] = []

    def reader(**options: str) -> StreamReader:
        given = {"kafka.bootstrap.servers": bootstrap, "subscribePattern": "fl.*", "startingOffsets": "earliest"}
        made.append(StreamReader(read_options({**given, **options}, streaming=True)))
        return made[-1]

    yield reader
    for one in made:
        one.stop()


def fill(kafka: blocking.Client, topic: str, count: int) -> None:
    kafka.admin.create_topics({topic: 1})
    with kafka.producer() as producer:
        producer.send_many(topic, [b"x"] * count, partition=0)


def everything() -> Any:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    return ReadAllAvailable()


def test_a_topic_that_comes_later_is_read_from_its_beginning(kafka: blocking.Client, readers: Any) -> None:
    fill(kafka, "flights", 5)
    reader = readers()
    start = reader.initialOffset()
    assert start == {"flights": {"0": 0}}
    end = reader.latestOffset(start, everything())
    assert [part.value for part in reader.partitions(start, end)] == [OffsetRange("flights", 0, 0, 5)]
    fill(kafka, "flown", 3)
    later = reader.latestOffset(end, everything())
    assert later == {"flights": {"0": 5}, "flown": {"0": 3}}
    assert [part.value for part in reader.partitions(end, later)] == [OffsetRange("flown", 0, 0, 3)]
    assert reader.partitions(later, later) == []
    limited = readers(maxOffsetsPerTrigger="2")
    assert limited.latestOffset(end, limited.getDefaultReadLimit()) == {"flights": {"0": 5}, "flown": {"0": 2}}
    assert reader.reportLatestOffset() == later


def test_a_partition_that_comes_later_is_read_from_its_beginning(
    kafka: blocking.Client, bootstrap: str, readers: Any
) -> None:
    fill(kafka, "flights", 5)
    reader = readers(subscribePattern="flights")
    start = reader.latestOffset(reader.initialOffset(), everything())
    for count in (2, 3, 4):  # the reader's client knows the topic with fewer
        add_partitions_blocking(kafka, "flights", count)
        where = TopicPartition("flights", count - 1)
        with blocking.Client(bootstrap) as anew, anew.producer() as producer:
            producer.send_many("flights", [b"y"] * count, partition=where.partition)
        end = reader.latestOffset(start, everything())
        assert end["flights"][str(where.partition)] == count
        parts = reader.partitions(start, end)
        assert [part.value for part in parts] == [OffsetRange("flights", where.partition, 0, count)]
        assert sum(batch.num_rows for batch in reader.read(parts[0])) == count
        start = end


def test_a_topic_that_is_gone_is_an_error_unless_loss_is_allowed(kafka: blocking.Client, readers: Any) -> None:
    fill(kafka, "flights", 5)
    fill(kafka, "flown", 5)
    reader = readers()
    start = reader.latestOffset(reader.initialOffset(), everything())
    kafka.admin.delete_topics(["flown"])
    end = reader.latestOffset(start, everything())
    with pytest.raises(DataLost, match="flown-0 was deleted, and its next offset was 5"):
        reader.partitions(start, end)
    assert readers(failOnDataLoss="false").partitions(start, end) == []


def test_a_partition_of_the_checkpoint_is_not_gone_because_one_broker_lags_behind(
    kafka: blocking.Client, readers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.admin.create_topics({"flights": 2})
    lagging, known = [[ZERO]], lookup.partitions_of

    async def partitions_of(*args: Any) -> list[TopicPartition]:
        return lagging.pop() if lagging else await known(*args)

    monkeypatch.setattr(lookup, "partitions_of", partitions_of)
    start = {"flights": {"0": 0, "1": 0}}
    assert readers().latestOffset(start, everything()) == start
    assert not lagging


def test_a_partition_of_the_checkpoint_is_not_gone_because_a_broker_lags_behind_as_the_ends_are_fixed(
    kafka: blocking.Client, readers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the trigger availableNow, the ends are looked up before Spark tells the checkpoint's partitions."""
    kafka.admin.create_topics({"flights": 2})
    with kafka.producer() as producer:
        producer.send_many("flights", [b"x"] * 4, partition=0)
    lagging, known = [[ZERO]], lookup.partitions_of

    async def partitions_of(*args: Any) -> list[TopicPartition]:
        return lagging.pop() if lagging else await known(*args)

    monkeypatch.setattr(lookup, "partitions_of", partitions_of)
    reader = readers()
    reader.prepareForTriggerAvailableNow()
    with kafka.producer() as producer:
        for partition in (0, 1):
            producer.send_many("flights", [b"late"] * 3, partition=partition)
    start = {"flights": {"0": 0, "1": 0}}
    end = reader.latestOffset(start, limit_of(100))
    assert end == {"flights": {"0": 4, "1": 3}}
    assert [str(part.value) for part in reader.partitions(start, end)] == ["flights-0[0:4]", "flights-1[0:3]"]


def test_a_stream_goes_on_though_one_broker_does_not_know_its_topic_yet(
    kafka: blocking.Client, readers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a broker that has just started, and has not got the cluster's metadata."""
    fill(kafka, "flights", 5)
    known = lookup.partitions_of

    def lag() -> None:
        answers: list[KafkaError] = [UnknownTopicOrPartition("flights"), ConfigError("no partition flights-0")]

        async def partitions_of(*args: Any) -> list[TopicPartition]:
            if answers:
                raise answers.pop()
            return await known(*args)

        monkeypatch.setattr(lookup, "partitions_of", partitions_of)

    reader = readers(subscribePattern="flights")
    lag()
    start = reader.initialOffset()
    lag()
    assert reader.latestOffset(start, everything()) == {"flights": {"0": 5}}


def test_a_new_topic_that_is_gone_when_its_batch_is_repeated_is_an_error_unless_loss_is_allowed(
    kafka: blocking.Client, readers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_AGREE_AFTER", 0.2)
    fill(kafka, "flights", 5)
    reader = readers()
    start = reader.latestOffset(reader.initialOffset(), everything())
    fill(kafka, "flown", 3)
    end = reader.latestOffset(start, everything())
    reader.prepareForTriggerAvailableNow()
    kafka.admin.delete_topics(["flown"])
    # A driver that starts again plans the last batch of the checkpoint anew.
    given = {"kafka.default.api.timeout.ms": "2000"}
    with pytest.raises(DataLost, match="flown-0 is new, and was deleted before its offsets up to 3 were read"):
        readers(**given).partitions(start, end)
    assert readers(failOnDataLoss="false", **given).partitions(start, end) == []
    assert reader.latestOffset(start, limit_of(2)) == end


def limit_of(rows: int) -> Any:
    from pyspark.sql.streaming.datasource import ReadMaxRows

    return ReadMaxRows(rows)


def test_limits_hold_unless_the_trigger_wants_everything(kafka: blocking.Client, readers: Any) -> None:
    fill(kafka, "flights", 50)
    reader = readers(maxOffsetsPerTrigger="20", minOffsetsPerTrigger="15")
    limit = reader.getDefaultReadLimit()
    assert limit.max_rows == 20
    start = reader.initialOffset()
    assert reader.latestOffset(start, limit) == {"flights": {"0": 20}}
    assert reader.latestOffset({"flights": {"0": 40}}, limit) == {"flights": {"0": 40}}
    assert reader.latestOffset(start, everything()) == {"flights": {"0": 50}}
    reader.prepareForTriggerAvailableNow()
    with kafka.producer() as producer:
        producer.send_many("flights", [b"late"] * 9)
    assert reader.latestOffset({"flights": {"0": 40}}, limit) == {"flights": {"0": 50}}
    assert reader.latestOffset({"flights": {"0": 50}}, limit) == {"flights": {"0": 50}}


def test_a_reader_that_has_a_client_can_be_sent_to_tasks(kafka: blocking.Client, readers: Any) -> None:
    fill(kafka, "flights", 2)
    reader = readers()
    part = reader.partitions(reader.initialOffset(), reader.latestOffset())[0]
    sent, its = pickle.loads(pickle.dumps((reader, part)))
    assert sum(batch.num_rows for batch in sent.read(its)) == 2


def test_a_checkpoint_of_something_else_is_refused(kafka: blocking.Client, readers: Any) -> None:
    fill(kafka, "flights", 2)
    with pytest.raises(ConfigError, match="the checkpoint must be like"):
        readers().partitions({"logOffset": 3}, {"flights": {"0": 2}})


# --- the listener ----------------------------------------------------------------------------------------------------


def started(name: str | None = None, query: str = "q") -> Any:
    return SimpleNamespace(id=query, runId=f"run of {query}", name=name)


def progressed(end: str, latest: str | None = None, name: str | None = None, query: str = "q") -> Any:
    source = SimpleNamespace(endOffset=end, latestOffset=latest)
    return SimpleNamespace(progress=SimpleNamespace(id=query, name=name, sources=[source]))


def test_a_commit_that_fails_is_made_with_the_next_batch(broker: Broker, kafka: blocking.Client) -> None:
    from aiokafkawire.spark.listener import CommitsToGroup

    fill(kafka, "flights", 9)
    listener = CommitsToGroup(broker.bootstrap, "delays", default_api_timeout_ms=300)
    listener.onQueryStarted(started())
    consumer = kafka.consumer("flights", group_id="delays")
    with consumer:
        while not consumer.assignment:  # a member: nobody else may commit
            consumer.poll(timeout=0.1)
        listener.onQueryProgress(progressed('{"flights":{"0":4}}'))
        assert isinstance(listener.error, KafkaError)
        assert listener.committed == {}
    with pytest.raises(RequestTimeout, match="1 queries have not ended"):
        listener.wait(0)
    listener.onQueryProgress(progressed('{"flights":{"0":6}}', '{"flights":{"0":9}}'))
    listener.onQueryTerminated(started())
    listener.wait(0)
    assert listener.committed == {ZERO: 6}
    assert listener.behind == {"q": Behind(3, 3, 3.0, 3)}
    assert kafka.admin.consumer_group_lag("delays") == {ZERO: 3}


def test_offsets_of_a_deleted_topic_are_not_committed_for_ever(bootstrap: str, kafka: blocking.Client) -> None:
    from aiokafkawire.spark.listener import CommitsToGroup

    fill(kafka, "flights", 9)
    fill(kafka, "flown", 9)
    listener = CommitsToGroup(bootstrap, "delays", default_api_timeout_ms=300)
    listener.onQueryStarted(started())
    kafka.admin.delete_topics(["flown"])
    listener.onQueryProgress(progressed('{"flights":{"0":4},"flown":{"0":2}}'))
    assert isinstance(listener.error, KafkaError)
    listener.onQueryProgress(progressed('{"flights":{"0":6}}'))
    listener.onQueryTerminated(started())
    listener.wait(0)
    assert listener.committed == {ZERO: 6}


def test_offsets_of_a_topic_that_was_deleted_with_its_query_hinder_no_other_query(
    bootstrap: str, kafka: blocking.Client
) -> None:
    from aiokafkawire.spark.listener import CommitsToGroup

    fill(kafka, "flights", 9)
    fill(kafka, "flown", 9)
    listener = CommitsToGroup(bootstrap, "delays", default_api_timeout_ms=300)
    for query in ("ends", "goes on"):
        listener.onQueryStarted(started(query=query))
    kafka.admin.delete_topics(["flown"])
    listener.onQueryProgress(progressed('{"flown":{"0":2}}', query="ends"))
    listener.onQueryProgress(progressed('{"flights":{"0":4}}', query="goes on"))
    assert isinstance(listener.error, KafkaError)
    assert listener.committed == {ZERO: 4}
    listener.onQueryTerminated(started(query="ends"))
    listener.onQueryProgress(progressed('{"flights":{"0":6}}', query="goes on"))
    assert listener.error is None
    listener.onQueryTerminated(started(query="goes on"))
    listener.wait(0)
    assert listener.committed == {ZERO: 6}


def test_a_listener_follows_the_query_it_was_given(bootstrap: str, kafka: blocking.Client) -> None:
    from aiokafkawire.spark.listener import CommitsToGroup

    fill(kafka, "flights", 9)
    listener = CommitsToGroup(bootstrap, "delays", query_name="mine")
    listener.onQueryStarted(started("other"))
    listener.onQueryProgress(progressed('{"flights":{"0":4}}', name="other"))
    listener.wait(0)
    assert listener.committed == {}
    listener.onQueryStarted(started("mine"))
    listener.onQueryProgress(progressed('{"flights":{"0":5}}', name="mine"))
    listener.onQueryTerminated(started("mine"))
    assert listener.committed == {ZERO: 5}


def test_progress_of_other_sources_is_passed_over() -> None:
    assert offsets_in("null") is None
    assert offsets_in(None) is None
    assert offsets_in("17") is None
    assert offsets_in('{"logOffset":3}') is None
    assert reached(['{"flights":{"0":4,"1":2}}', "0", '{"flights":{"0":3}}']) == {ZERO: 3, ONE: 2}
    assert behind({ZERO: 3, ONE: 5}, {ZERO: 9, ONE: 5}) == Behind(0, 6, 3.0, 6)
    assert behind({ZERO: 3}, {}) is None
