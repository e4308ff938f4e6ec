"""Exceptions, signals and settings that few programs have: none ends ``Client.process`` quietly, or hangs it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import sniffio
from anyio.abc import TaskStatus

from aiokafkawire import (
    Client,
    ConfigError,
    KafkaError,
    ProcessSummary,
    Retry,
    RetryTopic,
    SubscriptionPattern,
    TopicPartition,
    UsageError,
)
from aiokafkawire.errors import TopicNotReady
from aiokafkawire.protocol import ApiKey
from aiokafkawire.serialization import SerializationContext
from aiokafkawire.share.record_locks import RecordLocks
from aiokafkawire.testing import Broker
from aiokafkawire.testing.configs.types import ConfigKind
from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.transform import TransformLoop, _Outcome

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]

COUNT = 8


class Stopped(BaseException):
    """An exception of a library that no program is to catch."""


class Raising:
    """A deserializer that awaits, and then raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def deserialize(self, data: bytes, context: SerializationContext) -> bytes:
        await anyio.lowlevel.checkpoint()
        raise self.error


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        for name in ("t", "u", "t.dead"):
            broker.create_topic(name)
        yield broker


@pytest.fixture
async def kafka(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.bootstrap, default_api_timeout_ms=5_000) as kafka:
        async with kafka.producer() as producer:
            for number in range(COUNT):
                await producer.send("t", b"%d" % number, key=b"%d" % number)
        yield kafka


async def process(kafka: Client, handle: Any, **arguments: Any) -> ProcessSummary:
    with anyio.fail_after(60):
        return await kafka.process("t", handle, **{"group_id": "g", **arguments})


async def committed(kafka: Client) -> int:
    async with kafka.consumer(group_id="g") as consumer:
        (offset,) = (await consumer.committed([TopicPartition("t", 0)])).values()
    return 0 if offset is None else offset.offset


@pytest.mark.parametrize(
    "error", [Stopped(), BaseExceptionGroup("both", [KeyboardInterrupt()]), GeneratorExit()], ids=repr
)
async def test_any_exception_of_a_handler_is_raised_once_the_others_have_finished(
    kafka: Client, error: BaseException
) -> None:
    others_run, done = anyio.Event(), list[bytes]()

    async def handle(record: Any) -> None:
        if record.value == b"0":
            await others_run.wait()
            raise error
        others_run.set()
        await anyio.sleep(0.05)
        done.append(record.value)

    with pytest.raises(type(error)):
        await process(kafka, handle, dead_letter_topic="t.dead")
    assert done
    assert await committed(kafka) == 0


@pytest.mark.parametrize("share", [False, True], ids=["group", "share"])
@pytest.mark.parametrize("error", [Stopped(), SystemExit(3), asyncio.CancelledError()], ids=repr)
async def test_any_exception_of_a_deserializer_is_raised_and_the_client_stays_open(
    broker: Broker, kafka: Client, error: BaseException, share: bool
) -> None:
    async def handle(record: Any) -> None: ...

    broker._cluster.configs.replace(ConfigKind.GROUP, "g", {"share.auto.offset.reset": "earliest"})
    is_stray = isinstance(error, asyncio.CancelledError) and sniffio.current_async_library() != "trio"
    with pytest.raises(KafkaError if is_stray else type(error)):
        await process(kafka, handle, value_deserializer=Raising(error), share=share)
    assert await kafka.admin.list_topics()


async def test_a_cancellation_that_nobody_asked_for_does_not_look_like_a_stop(kafka: Client) -> None:
    if sniffio.current_async_library() == "trio":
        pytest.skip("trio's users cannot make a Cancelled")

    def deserialize(data: bytes) -> bytes:
        raise asyncio.CancelledError

    async def handle(record: Any) -> None: ...

    async def handle_last(record: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    with pytest.raises(KafkaError, match="nobody has cancelled it"):
        await process(kafka, handle, value_deserializer=deserialize)
    with pytest.raises(KafkaError, match="nobody has cancelled it"):
        await process(kafka, handle_last)


class Interrupted:
    """Lacks something for the first record, and has its task cancelled when it is called with it again."""

    def __init__(self) -> None:
        self.calls = 0

    async def deserialize(self, data: bytes, context: SerializationContext) -> bytes:
        if data == b"0":
            self.calls += 1
            if self.calls == 1:
                raise ConnectionRefusedError
            await _be_cancelled()
        return data


async def _be_cancelled() -> None:
    """Wait, and let asyncio cancel this task itself, as ``asyncio.run`` cancels all tasks at its end."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)
    await anyio.sleep_forever()


@pytest.mark.parametrize("make_deserializer", [lambda: None, Interrupted], ids=["handler", "deserializer"])
async def test_a_call_whose_task_is_cancelled_has_not_failed(kafka: Client, make_deserializer: Any) -> None:
    if sniffio.current_async_library() == "trio":
        pytest.skip("trio's users cannot cancel a task")
    options: dict[str, Any] = {"retry": Retry(attempts=1), "dead_letter_topic": "t.dead", "ordering": "partition"}

    async def handle(record: Any) -> None:
        await _be_cancelled()

    with pytest.raises(KafkaError, match="nobody has cancelled it"), anyio.fail_after(10):
        await process(kafka, handle, value_deserializer=make_deserializer(), **options)
    assert await committed(kafka) == 0
    assert [record async for record in kafka.read_records("t.dead")] == []


async def test_the_first_signal_is_the_first_although_the_call_is_ending(kafka: Client) -> None:
    stop, done = anyio.Event(), list[bytes]()

    async def handle(record: Any) -> None:
        stop.set()
        await anyio.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)
        await anyio.sleep(0.3)
        done.append(record.value)

    summary = await process(kafka, handle, stop=stop, handle_signals=True, concurrency=1)
    assert (summary.processed, done) == (1, [b"0"])


async def test_a_drain_that_lasts_too_long_after_a_signal_is_cancelled(kafka: Client) -> None:
    async def handle(record: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await anyio.sleep_forever()

    summary = await process(kafka, handle, handle_signals=True, drain_timeout=0.2, concurrency=1)
    assert (summary.processed, summary.in_hand) == (0, COUNT)


async def fail_in_the_end(*, task_status: TaskStatus[None]) -> None:
    try:
        task_status.started()
        await anyio.sleep_forever()
    finally:
        raise ValueError


async def sleep_in_a_nursery() -> None:
    """Raise a group of cancellations when cancelled, as trio does."""
    trio = pytest.importorskip("trio")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(anyio.sleep_forever)


async def sleep_beside_a_task_that_fails() -> None:
    async with anyio.create_task_group() as tasks:
        await tasks.start(fail_in_the_end)
        await anyio.sleep_forever()


@pytest.mark.parametrize("sleep", [sleep_in_a_nursery, sleep_beside_a_task_that_fails])
async def test_a_handler_with_tasks_that_is_cancelled_does_not_end_the_call_with_an_error(
    kafka: Client, sleep: Callable[[], Awaitable[None]]
) -> None:
    if sleep is sleep_in_a_nursery and sniffio.current_async_library() != "trio":
        pytest.skip("a nursery is trio's")
    stop = anyio.Event()

    async def handle(record: Any) -> None:
        stop.set()
        await sleep()

    summary = await process(kafka, handle, stop=stop, drain_timeout=0.1, concurrency=1)
    assert (summary.processed, summary.in_hand) == (0, COUNT)


@pytest.mark.parametrize("share", [False, True], ids=["group", "share"])
async def test_records_whose_handler_returns_since_the_call_is_cancelled_are_not_finished(
    broker: Broker, kafka: Client, share: bool
) -> None:
    broker._cluster.configs.replace(ConfigKind.GROUP, "g", {"share.auto.offset.reset": "earliest"})
    scope, stop, done = anyio.CancelScope(), anyio.Event(), set[bytes]()

    async def handle_wrongly(record: Any) -> None:
        scope.cancel()
        with suppress(anyio.get_cancelled_exc_class()):
            await anyio.sleep_forever()

    async def handle(record: Any) -> None:
        done.add(record.value)
        if len(done) == COUNT:
            stop.set()

    with scope:
        await process(kafka, handle_wrongly, share=share)
    assert scope.cancelled_caught
    with anyio.fail_after(10):
        await process(kafka, handle, share=share, stop=stop)


@pytest.mark.parametrize("sleep", [sleep_in_a_nursery, sleep_beside_a_task_that_fails])
async def test_a_report_of_progress_with_tasks_is_cut_off_by_the_end(
    kafka: Client, sleep: Callable[[], Awaitable[None]]
) -> None:
    if sniffio.current_async_library() != "trio":
        pytest.skip("cancellations are in groups on trio alone")
    stop = anyio.Event()

    async def handle(record: Any) -> None: ...

    async def report(summary: ProcessSummary) -> None:
        stop.set()
        await sleep()

    summary = await process(kafka, handle, stop=stop, on_progress=report)
    assert summary.processed == COUNT


async def test_a_handler_that_returns_since_its_time_is_over_has_failed(kafka: Client) -> None:
    stop, calls = anyio.Event(), 0

    async def handle(record: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            with suppress(anyio.get_cancelled_exc_class()):
                await anyio.sleep_forever()
        if calls == COUNT + 1:
            stop.set()

    summary = await process(kafka, handle, stop=stop, handler_timeout=0.1)
    assert (summary.processed, summary.retried) == (COUNT, 1)


async def test_the_topics_for_failed_records_must_exist_and_a_stop_does_not_wait_for_them(
    broker: Broker, kafka: Client
) -> None:
    async def handle(record: Any) -> None:
        raise ValueError

    short: dict[str, Any] = {"drain_timeout": 0, "retry": Retry(attempts=1)}
    async with Client(broker.bootstrap, default_api_timeout_ms=300, allow_auto_create_topics=False) as impatient:
        with pytest.raises(TopicNotReady, match="missing"):
            await process(impatient, handle, dead_letter_topic="missing", **short)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(4):  # less than default_api_timeout_ms
            tasks.start_soon(_set_soon, stop)
            summary = await process(kafka, handle, retry_topics=[RetryTopic("missing", 5)], stop=stop, **short)
    assert summary == ProcessSummary()


async def _set_soon(stop: anyio.Event) -> None:
    await anyio.sleep(0.1)
    stop.set()


async def test_a_deleted_topic_does_not_hold_up_the_others(broker: Broker, kafka: Client) -> None:
    stop, seen = anyio.Event(), list[bytes]()

    async def handle(record: Any) -> None:
        if record.topic == "u":
            seen.append(record.value)
        if len(seen) == COUNT:
            stop.set()

    async with kafka.producer() as producer, anyio.create_task_group() as tasks:
        with anyio.fail_after(8):  # less than a commit may take
            tasks.start_soon(lambda: kafka.process(["t", "u"], handle, group_id="g", stop=stop))
            await producer.send("u", b"first")
            while not seen:  # noqa: ASYNC110
                await anyio.sleep(0.01)
            broker.delete_topic("t")
            for _ in range(COUNT - 1):
                await producer.send("u", b"more")
                await anyio.sleep(0.05)
            await stop.wait()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"acks": 0, "enable_idempotence": False}, "acks=0 would lose failed records"),
        ({"transactional_id": "x"}, "transactional_id is not for failed records"),
        ({"value_serializer": str.encode}, "value_serializer is not for failed records"),
    ],
)
async def test_a_producer_that_would_lose_or_refuse_failed_records_is_refused(
    kafka: Client, options: Any, told: str
) -> None:
    async def handle(record: Any) -> None: ...

    with pytest.raises(ConfigError, match=told):
        await process(kafka, handle, dead_letter_topic="t.dead", producer_options=options)


async def test_what_only_other_calls_take_is_refused_in_words(kafka: Client) -> None:
    async def handle(record: Any) -> None: ...

    with pytest.raises(ConfigError, match="interceptors are for"):
        await process(kafka, handle, interceptors=[])
    with pytest.raises(ConfigError, match=r"unknown setting 'concurency': did you mean concurrency\?"):
        await process(kafka, handle, concurency=16)
    with pytest.raises(UsageError, match=r"process\(\) takes a SubscriptionPattern with group_protocol='consumer'"):
        await kafka.process(SubscriptionPattern("t.*"), handle, group_id="g")


async def test_a_handler_takes_one_argument(kafka: Client) -> None:
    async def handle(record: Any, more: int) -> None: ...

    async def handle_nothing() -> None: ...

    for wrong in (handle, handle_nothing):
        with pytest.raises(UsageError, match="handle must be a function that takes one argument"):
            await process(kafka, wrong)


@pytest.mark.slow
async def test_a_coordinator_that_is_away_when_partitions_are_assigned_is_waited_for(broker: Broker) -> None:
    stop = anyio.Event()

    async def handle(record: Any) -> None:
        stop.set()

    async with Client(broker.bootstrap, default_api_timeout_ms=200, request_timeout_ms=100) as kafka:
        async with kafka.producer() as producer:
            await producer.send("t", b"x")
        broker.on(ApiKey.OFFSET_FETCH, swallow="before", times=5)
        summary = await process(kafka, handle, stop=stop, fetch_max_wait_ms=50)
    assert summary.processed == 1


@pytest.mark.parametrize("has_commit", [True, False])
async def test_transform_goes_back_in_partitions_whose_batches_had_no_records(has_commit: bool) -> None:
    """As after the end of a compacted log."""
    empty, full = TopicPartition("t", 0), TopicPartition("t", 1)
    back: dict[TopicPartition, int] = {}
    loop: Any = TransformLoop.__new__(TransformLoop)
    loop._in_hand = SimpleNamespace(kept=[empty, full], go_back=back.update)
    loop._count = 0

    async def found(partitions: Any) -> Any:
        return {at: SimpleNamespace(offset=7) if has_commit else None for at in partitions}

    loop._consumer = SimpleNamespace(committed=found)
    records = [SimpleNamespace(topic="t", partition=1, offset=offset) for offset in (5, 6, 7)]
    await loop._go_back(records, _Outcome.UNKNOWN)
    assert back == ({empty: 7, full: 7} if has_commit else {full: 5})
    assert loop._count == (2 if has_commit else 0)


def test_acknowledgements_that_brokers_refuse_are_told_while_it_runs(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of a record cannot be renewed, as on Kafka 4.1, and its handler takes longer."""

    monkeypatch.setattr(RecordLocks, "renew_due", lambda *_: None)

    async def main(sim: Simulation) -> int:
        sim.broker.create_topic("a")
        configs = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "1000"}
        sim.broker._cluster.configs.replace(ConfigKind.GROUP, "g", configs)
        calls, stop = 0, anyio.Event()

        async def handle(record: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == 1:
                await anyio.sleep(5)
            if calls == 3:
                stop.set()

        async with sim.client("one") as kafka, kafka.producer() as producer:
            await producer.send("a", b"x")
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    await kafka.process("a", handle, group_id="g", share=True, stop=stop, concurrency=4)

                tasks.start_soon(run)
                await anyio.sleep(20)
                await producer.send("a", b"y")
                await stop.wait()
        return calls

    assert simulate(main).value >= 3
    assert any("records that were handled may be handled again" in line for line in caplog.messages)
