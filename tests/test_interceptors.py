"""Interceptors: their order, what they may change, and what becomes of their errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import anyio
import attrs
import pytest
from support.clusters import QUICK
from support.log_watch import watched_log
from support.patience import SOON
from support.rows import every_row

from aiokafkawire import Client, ConfigError, KafkaError, RecordTooLarge, TopicPartition
from aiokafkawire.config.properties import settings_from
from aiokafkawire.errors import DeserializationError, ErrorCode, UsageError
from aiokafkawire.interceptors import ConsumerInterceptor, ProducerInterceptor, ProducerRecord
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.records.batch import ConsumerRecord
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

A0 = TopicPartition("a", 0)


class Seen(ProducerInterceptor):
    """Keeps every call, and marks each record with a header."""

    def __init__(self, name: str, calls: list[Any]) -> None:
        self.name, self.calls = name, calls

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        self.calls.append((self.name, "send", record.value))
        return record.with_header(self.name, b"1")

    def on_acknowledgement(self, metadata: Any, error: Exception | None, headers: Any) -> None:
        names = "".join(name for name, _ in headers)
        self.calls.append((self.name, metadata[:3], type(error).__name__ if error else None, names))

    def close(self) -> None:
        self.calls.append((self.name, "closed"))


class Broken(ProducerInterceptor):
    """Fails in each method."""

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        raise LookupError("no trace")

    def on_acknowledgement(self, metadata: Any, error: Exception | None, headers: Any) -> None:
        raise LookupError("no audit")

    def close(self) -> None:
        raise LookupError("no log")


class Nameless(Broken):
    """Fails even to be shown."""

    def __repr__(self) -> str:
        raise LookupError("no name")


class Cancelling(ProducerInterceptor):
    """Raises the error of a cancelled task, as code does that waits for a cancelled future."""

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        raise asyncio.CancelledError

    def close(self) -> None:
        raise asyncio.CancelledError

    def on_acknowledgement(self, metadata: Any, error: Exception | None, headers: Any) -> None:
        raise asyncio.CancelledError


class CancellingReader(ConsumerInterceptor):
    def on_consume(self, records: list[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        raise asyncio.CancelledError

    def on_commit(self, offsets: Any) -> None:
        raise asyncio.CancelledError


class Read(ConsumerInterceptor):
    """Keeps every call; passes the values that are not ``without``."""

    def __init__(self, calls: list[Any], without: bytes | None = None) -> None:
        self.calls, self.without = calls, without

    def on_consume(self, records: list[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        self.calls.append([record.value for record in records])
        return [record for record in records if record.value != self.without]

    def on_commit(self, offsets: Any) -> None:
        self.calls.append({partition.partition: at.offset for partition, at in offsets.items()})

    def close(self) -> None:
        self.calls.append("closed")


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=None) as broker:
        broker.create_topic("a")
        yield broker


@pytest.fixture
async def kafka(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.bootstrap, connector=broker.connect, **QUICK) as client:
        yield client


async def fill(kafka: Client, *values: bytes | None) -> None:
    async with kafka.producer() as producer:
        for value in values:
            await producer.send("a", value)


# --- producers -----------------------------------------------------------------------------------------------------


async def test_a_cancelled_error_of_an_interceptor_delays_no_record(
    kafka: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with kafka.producer(interceptors=[Cancelling()]) as producer:
        with anyio.fail_after(SOON):
            results = [await producer.send("a", b"1"), await producer.send("a", b"2")]
    assert [result.offset for result in results] == [0, 1]
    for method in ("on_send", "on_acknowledgement", "close"):
        assert f"{method} of the interceptor" in caplog.text


async def test_an_interceptor_that_fails_and_cannot_be_shown_stops_no_record(
    kafka: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with kafka.producer(interceptors=[Nameless()]) as producer:
        with anyio.fail_after(SOON):
            assert (await producer.send("a", b"1")).offset == 0
    for method in ("on_send", "on_acknowledgement", "close"):
        assert f"{method} of the interceptor <Nameless instance at " in caplog.text


async def test_auto_commits_go_on_after_a_cancelled_error_of_an_interceptor(
    kafka: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(kafka, b"1", b"2")
    options: Any = {"group_id": "g", "auto_offset_reset": "earliest", "auto_commit_interval_ms": 10}
    async with kafka.consumer("a", interceptors=[CancellingReader()], **options) as consumer:
        with anyio.fail_after(SOON):
            for offset in (1, 2):
                assert [record.offset for record in await consumer.poll(1)] == [offset - 1]
                consumer.pause(A0)
                assert await consumer.poll(timeout=0) == []  # the record before is finished
                committed = -1
                while committed < offset:
                    committed = getattr((await consumer.committed([A0]))[A0], "offset", -1)
                consumer.resume(A0)
    for method in ("on_consume", "on_commit"):
        assert f"{method} of the interceptor" in caplog.text


async def test_interceptors_are_called_in_order_with_what_those_before_have_made(kafka: Client) -> None:
    calls: list[Any] = []
    async with kafka.producer(interceptors=[Seen("x", calls), Seen("y", calls)]) as producer:
        done = await producer.send("a", b"1", headers={"h": b"0"})
    assert calls == [
        ("x", "send", b"1"),
        ("y", "send", b"1"),
        ("x", done[:3], None, "hxy"),
        ("y", done[:3], None, "hxy"),
        ("x", "closed"),
        ("y", "closed"),
    ]
    async with kafka.consumer("a", auto_offset_reset="earliest") as consumer:
        assert (await anext(consumer)).headers == (("h", b"0"), ("x", b"1"), ("y", b"1"))


async def test_every_way_to_send_passes_the_interceptors(kafka: Client) -> None:
    calls: list[Any] = []
    options: Any = {"interceptors": [Seen("x", calls)], "transactional_id": "t", "value_serializer": str.encode}
    async with kafka.producer(**options) as producer:
        async with producer.transaction() as open_one:
            await open_one.send("a", "1")
            await (await open_one.enqueue("a", "2"))
            await open_one.send_many("a", ["3", "4"])
        async with producer.transaction():
            await producer.send_nowait("a", "5")
            assert await producer.enqueue_many("a", ["6", "7"]) == 2
    assert [call[2] for call in calls if call[1] == "send"] == ["1", "2", "3", "4", "5", "6", "7"]
    # The markers of the transactions take offsets, too.
    offsets = [call[1][2] for call in calls if len(call) == 4]
    assert offsets == [0, 1, 2, 3, 5, 6, 7]


async def test_a_broken_interceptor_is_logged_and_left_out(kafka: Client) -> None:
    calls: list[Any] = []
    with watched_log(logging.WARNING) as log:
        async with kafka.producer(interceptors=[Seen("x", calls), Broken(), Seen("y", calls)]) as producer:
            await producer.send("a", b"1")
    assert [call[0] for call in calls] == ["x", "y", "x", "y", "x", "y"]
    lines = [line.getMessage() for line in log.records]
    assert [line.split(" of ")[0] for line in lines] == ["on_send", "on_acknowledgement", "close"]
    assert all(line.exc_info for line in log.records)


class Flaky(ProducerInterceptor):
    """Fails until it is mended."""

    def __init__(self) -> None:
        self.is_broken = True

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        if self.is_broken:
            raise LookupError("no trace")
        return record


async def test_an_interceptor_that_fails_for_each_record_does_not_flood_the_log(kafka: Client) -> None:
    flaky = Flaky()
    with watched_log(logging.INFO) as log:
        async with kafka.producer(interceptors=[flaky]) as producer:
            await producer.send("a", b"1")
            for _ in range(999):
                producer.send_nowait("a", b"1")
            assert len([one for one in log.records if one.name == "aiokafkawire.interceptors"]) == 1
            flaky.is_broken = False
            await producer.send("a", b"1")
    first, last = [one for one in log.records if one.name == "aiokafkawire.interceptors"]
    assert first.levelno == logging.WARNING
    assert first.exc_info is not None
    assert last.getMessage().startswith("on_send of the interceptor ")
    assert " works again after 1000 failures in " in last.getMessage()


class NoRecord(ProducerInterceptor):
    def on_send(self, record: ProducerRecord[Any, Any]) -> Any:
        return None


async def test_what_is_no_record_is_not_sent(kafka: Client) -> None:
    with watched_log(logging.WARNING) as log:
        async with kafka.producer(interceptors=[NoRecord()]) as producer:
            assert (await producer.send("a", b"1")).offset == 0
    [line] = log.records
    assert "goes on as it was" in line.getMessage()


class Elsewhere(ProducerInterceptor):
    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        return attrs.evolve(record, topic="b", partition=1, value=b"other", key=b"k", timestamp_ms=7)


async def test_an_interceptor_may_change_each_part_of_a_record(broker: Broker, kafka: Client) -> None:
    broker.create_topic("b", partitions=2)
    async with kafka.producer(interceptors=[Elsewhere()]) as producer:
        assert await producer.send("a", b"1", partition=0) == ("b", 1, 0, 7)
    async with kafka.consumer("b", auto_offset_reset="earliest") as consumer:
        record = await anext(consumer)
    assert (record.key, record.value, record.timestamp) == (b"k", b"other", 7)


async def test_records_that_fail_before_they_are_sent_are_acknowledged_with_the_error(kafka: Client) -> None:
    calls: list[Any] = []
    options: Any = {"interceptors": [Seen("x", calls)], "max_request_size": 1000}
    async with kafka.producer(**options) as producer:
        with pytest.raises(RecordTooLarge):
            await producer.send("a", b"1" * 2000, partition=0)
        with pytest.raises(KafkaError):
            producer.send_nowait("unknown", b"1")
        with pytest.raises(UsageError):
            await producer.enqueue("a", "text")
    with pytest.raises(UsageError):
        await producer.send("a", b"late")
    results = [call[1:] for call in calls if len(call) == 4]
    assert [error for _, error, _ in results] == ["RecordTooLarge", "TopicNotReady", "UsageError", "UsageError"]
    assert [metadata for metadata, _, _ in results[:2]] == [("a", 0, -1), ("unknown", -1, -1)]
    assert {headers for _, _, headers in results} == {"x"}


async def test_a_call_that_is_cancelled_before_its_record_is_accepted_is_reported(kafka: Client) -> None:
    calls: list[Any] = []
    async with kafka.producer(interceptors=[Seen("x", calls)]) as producer:
        with anyio.move_on_after(0.05):
            await producer.send("unknown", b"1")
    assert calls[1] == ("x", ("unknown", -1, -1), "KafkaError", "x")


async def test_a_batch_that_fails_is_reported_record_by_record(broker: Broker, kafka: Client) -> None:
    broker.on(ApiKey.PRODUCE, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    calls: list[Any] = []
    async with kafka.producer(interceptors=[Seen("x", calls)], linger_ms=10) as producer:
        deliveries = [producer.enqueue("a", b"%d" % number) for number in range(3)]
        for delivery in [await one for one in deliveries]:
            with pytest.raises(KafkaError):
                await delivery
    failed = ("x", ("a", 0, -1), "TopicAuthorizationFailed", "x")
    assert [call for call in calls if len(call) == 4] == [failed] * 3


async def test_records_of_a_batch_that_is_split_are_reported_once(broker: Broker, kafka: Client) -> None:
    broker.on(ApiKey.PRODUCE, answer=ErrorCode.MESSAGE_TOO_LARGE)
    calls: list[Any] = []
    async with kafka.producer(interceptors=[Seen("x", calls)], linger_ms=10) as producer:
        found = await producer.send_many("a", [b"1", b"2", b"3"])
    assert [call[1] for call in calls if len(call) == 4] == [one[:3] for one in found]


async def test_the_interceptors_see_a_result_before_the_user(kafka: Client) -> None:
    calls: list[Any] = []
    async with kafka.producer(interceptors=[Seen("x", calls)]) as producer:
        await producer.send("a", b"1")
        assert len(calls) == 2


# --- consumers -----------------------------------------------------------------------------------------------------


async def test_on_consume_gets_the_records_as_the_user_does(kafka: Client) -> None:
    await fill(kafka, b"1", b"2", b"3", b"4")
    calls: list[Any] = []
    options: Any = {"auto_offset_reset": "earliest", "value_deserializer": bytes.decode, "interceptors": [Read(calls)]}
    async with kafka.consumer("a", **options) as consumer:
        assert (await anext(consumer)).value == "1"
        async for record in consumer:
            assert record.value == "2"
            break
        assert [record.value for record in await consumer.poll()] == ["3", "4"]
        assert await consumer.poll(timeout=0.01) == []
    assert calls == [["1"], ["2"], ["3", "4"], "closed"]


async def test_records_that_are_left_out_count_as_read(kafka: Client) -> None:
    await fill(kafka, b"no", b"1", b"no", b"2", b"no")
    calls: list[Any] = []
    async with kafka.consumer("a", auto_offset_reset="earliest", interceptors=[Read(calls, b"no")]) as consumer:
        assert (await anext(consumer)).value == b"1"
        assert consumer.position(TopicPartition("a", 0)) == 2
        assert [record.value for record in await consumer.poll(max_records=1, timeout=5)] == []
        assert [record.value for record in await consumer.poll(max_records=1)] == [b"2"]
        await consumer.poll(timeout=0.01)
        assert consumer.position(TopicPartition("a", 0)) == 5


class Twice(ConsumerInterceptor):
    def on_consume(self, records: list[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        return [record for record in records for _ in range(2)]


async def test_an_interceptor_may_return_more_records(kafka: Client) -> None:
    await fill(kafka, b"1", b"2")
    async with kafka.consumer("a", auto_offset_reset="earliest", interceptors=[Twice()]) as consumer:
        found = [(await anext(consumer)).value for _ in range(3)]
        found += [record.value for record in await consumer.poll()]
    assert found == [b"1", b"1", b"2", b"2"]


async def test_batches_pass_the_interceptors_when_they_are_iterated(kafka: Client) -> None:
    async with kafka.producer() as producer:
        await producer.send_many("a", [b"1", b"2", b"3"])
    calls: list[Any] = []
    async with kafka.consumer("a", auto_offset_reset="earliest", interceptors=[Read(calls, b"2")]) as consumer:
        values: list[Any] = []
        while len(values) < 2:
            values += [record.value for record in await anext(consumer.batches())]
        consumer.seek(TopicPartition("a", 0), 0)
        assert (await anext(consumer.batches())).joined_values() == (3, b"1\n2\n3\n")
    assert values == [b"1", b"3"]
    assert b"".join(value for call in calls if call != "closed" for value in call) == b"123"


async def test_a_batch_raises_its_error_after_the_records_before_it(kafka: Client) -> None:
    async with kafka.producer() as producer:
        await producer.send_many("a", [b"1", b"x", b"3"])
    calls: list[Any] = []
    options: Any = {"auto_offset_reset": "earliest", "value_deserializer": int, "interceptors": [Read(calls)]}
    async with kafka.consumer("a", **options) as consumer:
        batch = await anext(consumer.batches())
        values: list[Any] = []
        with pytest.raises(DeserializationError):
            for record in batch:
                values.append(record.value)
        values += [record.value for record in batch]
    assert values == [1, 3]


class BrokenReader(ConsumerInterceptor):
    def on_consume(self, records: Any) -> Any:
        return [b"no record"]

    def on_commit(self, offsets: Any) -> None:
        raise LookupError("no audit")


async def test_a_consumers_broken_interceptor_is_logged_and_left_out(kafka: Client) -> None:
    await fill(kafka, b"1")
    calls: list[Any] = []
    options: Any = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with watched_log(logging.WARNING) as log:
        async with kafka.consumer("a", interceptors=[BrokenReader(), Read(calls)], **options) as consumer:
            assert (await anext(consumer)).value == b"1"
            await consumer.commit()
    assert calls == [[b"1"], {0: 1}, "closed"]
    assert [line.getMessage().split(" of ")[0] for line in log.records] == ["on_consume", "on_commit"]


async def test_on_commit_gets_the_commits_of_the_user_and_auto_commits(broker: Broker, kafka: Client) -> None:
    await fill(kafka, b"1", b"2", b"3")
    calls: list[Any] = []
    options: Any = {"group_id": "g", "auto_offset_reset": "earliest", "auto_commit_interval_ms": 60_000}
    async with kafka.consumer("a", interceptors=[Read(calls)], **options) as consumer:
        await anext(consumer)
        await consumer.commit({TopicPartition("a", 0): 1})
        broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
        with pytest.raises(KafkaError):
            await consumer.commit({TopicPartition("a", 0): 2})
        await consumer.poll()
        await consumer.poll(timeout=0.01)
    assert calls == [[b"1"], {0: 1}, [b"2", b"3"], {0: 3}, "closed"]


# --- what is refused -----------------------------------------------------------------------------------------------


class Waiting:
    async def on_send(self, record: Any) -> Any: ...

    async def on_consume(self, records: Any) -> Any: ...


def named(*methods: str) -> Any:
    """Return an object with methods of these names."""
    return type("Mine", (), {name: lambda self, record: record for name in methods})()


@every_row(
    ("given", "why"),
    [
        ("abc", "must be a list of objects"),
        (7, "must be a list of objects"),
        (None, "must be a list of objects"),
        ([Seen], "must be an object with methods"),
        ([object()], "must be an object with methods"),
        ([Waiting()], "must not be a coroutine function"),
        ([named("on_sendd")], r"Mine has an unknown method on_sendd of interceptors: did you mean on_send\?"),
        (
            [named("on_send", "on_consume", "on_xyz")],
            "the methods are on_send, on_acknowledgement, on_consume, on_c",
        ),
    ],
)
def test_what_cannot_intercept_is_refused(given: Any, why: str) -> None:
    kafka = Client("localhost:9092")
    for make in (kafka.producer, partial(kafka.consumer, "a")):
        with pytest.raises(ConfigError, match=why):
            make(interceptors=given)


async def test_an_interceptor_may_have_other_methods(kafka: Client) -> None:
    for name in ("send", "on_revoked", "batch_ended", "_on_sendd", "online"):
        kafka.producer(interceptors=[named("on_send", name)])


async def test_without_interceptors_the_plain_classes_are_used(kafka: Client) -> None:
    assert type(kafka.producer(interceptors=[])).__name__ == "Producer"
    assert type(kafka.consumer("a", interceptors=())._iteration).__name__ == "RecordIteration"


# --- property files ------------------------------------------------------------------------------------------------


class Both(ProducerInterceptor, ConsumerInterceptor):
    """For producers and for consumers."""


class Nothing:
    """Has no method of an interceptor."""


def test_property_files_name_python_classes() -> None:
    found = settings_from(f"interceptor.classes={__name__}:Both, {__name__}:Twice")
    assert [type(one) for one in found.producer_interceptors] == [Both]
    assert [type(one) for one in found.consumer_interceptors] == [Both, Twice]
    empty = settings_from("interceptor.classes=")
    assert (empty.producer_interceptors, empty.consumer_interceptors) == ((), ())


@every_row(
    ("given", "why"),
    [
        ("com.example.Audit", "name a Python class as 'package.module:Class'"),
        ("no.such.module:Audit", "ModuleNotFoundError"),
        (f"{__name__}:Missing", "AttributeError"),
        (f"{__name__}:Seen", "TypeError"),
        (f"{__name__}:Nothing", "none of the methods"),
        ([7], "must be names of classes"),
        (7, "must be names of classes"),
    ],
)
def test_a_property_that_names_no_interceptor_is_refused(given: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        settings_from({"interceptor.classes": given})
