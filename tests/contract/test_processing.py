"""What ``Client.process`` promises, whichever broker it runs on."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import sniffio

from aiokafkawire import (
    Client,
    ConsumerRecord,
    DeserializationError,
    KafkaError,
    ProcessSummary,
    Reject,
    Retry,
    TopicPartition,
)
from aiokafkawire.processing.commit_metadata import decode_metadata
from aiokafkawire.processing.failures import Failure, failure_of, with_failure

pytestmark = [pytest.mark.anyio]

Record = ConsumerRecord[Any, Any]
COUNT = 60
QUICK: dict[str, Any] = {"commit_interval_ms": 20, "fetch_max_wait_ms": 50}


class Rejected(Exception):
    """A handler does not like a record."""


async def fill(kafka: Client, topic: str, count: int = COUNT, *, keys: int = 6) -> None:
    """Records with the numbers from 0 on, of a few keys."""
    async with kafka.producer() as producer:
        for number in range(count):
            await producer.enqueue(topic, b"%d" % number, key=b"key %d" % (number % keys))


async def process(kafka: Client, topic: str, handle: Callable[[Any], object], **arguments: Any) -> ProcessSummary:
    with anyio.fail_after(50):
        return await kafka.process(topic, handle, **{"group_id": topic, **QUICK, **arguments})


async def committed(kafka: Client, topic: str) -> dict[int, Any]:
    """What the group has committed, by partition."""
    async with kafka.consumer(group_id=topic) as consumer:
        found = await consumer.committed([TopicPartition(topic, index) for index in range(3)])
    return {partition.partition: offset for partition, offset in found.items() if offset is not None}


async def all_of(kafka: Client, topic: str, count: int) -> list[Record]:
    found: list[Record] = []
    async with kafka.consumer(topic, auto_offset_reset="earliest", fetch_max_wait_ms=50) as consumer:
        with anyio.fail_after(30):
            while len(found) < count:
                found += await consumer.poll()
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_each_key_is_handled_in_order_and_all_is_committed(kafka: Client, topic: str, protocol: Any) -> None:
    await fill(kafka, topic)
    seen: dict[bytes | None, list[int]] = defaultdict(list)
    running: set[bytes | None] = set()
    together, stop = 0, anyio.Event()

    async def handle(record: Record) -> None:
        nonlocal together
        assert record.key not in running
        running.add(record.key)
        together = max(together, len(running))
        await anyio.sleep(0.001)
        running.discard(record.key)
        seen[record.key].append(int(record.value or b""))
        if sum(map(len, seen.values())) == COUNT:
            stop.set()

    summary = await process(kafka, topic, handle, stop=stop, concurrency=4, group_protocol=protocol)
    assert summary == ProcessSummary(processed=COUNT)
    assert seen == {b"key %d" % key: list(range(key, COUNT, 6)) for key in range(6)}
    assert 1 < together <= 4
    assert sum(offset.offset for offset in (await committed(kafka, topic)).values()) == COUNT


async def test_what_is_finished_above_an_unfinished_record_is_skipped_by_the_next_owner(
    kafka: Client, topic: str
) -> None:
    await fill(kafka, topic, keys=12)
    first: list[int] = []
    others_done = anyio.Event()

    async def hang_at_zero(record: Record) -> None:
        if record.value == b"0":
            await anyio.sleep_forever()
        first.append(int(record.value or b""))
        if len(first) == COUNT - 5:  # all but those of the key of 0
            others_done.set()

    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: process(kafka, topic, hang_at_zero, drain_timeout=0, stop=others_done))
    (partial,) = [offset for offset in (await committed(kafka, topic)).values() if offset.metadata]
    assert decode_metadata(partial.offset, partial.metadata)

    second: list[int] = []
    stop = anyio.Event()

    def handle(record: Record) -> None:
        second.append(int(record.value or b""))
        if len(second) == 5:
            stop.set()

    async def handle_async(record: Record) -> None:
        handle(record)

    summary = await process(kafka, topic, handle_async, stop=stop)
    assert second == [0, 12, 24, 36, 48]
    assert summary.skipped >= 1
    assert sum(offset.offset for offset in (await committed(kafka, topic)).values()) == COUNT
    assert not any(offset.metadata for offset in (await committed(kafka, topic)).values())


async def test_failures_are_tried_again_and_written_to_the_dead_letter_topic_before_the_commit(
    kafka: Client, topic: str, new_name: Callable[[], str]
) -> None:
    dead = new_name()
    await kafka.admin.create_topics({dead: 1})
    async with kafka.producer() as producer:
        await producer.send(topic, b"sound", key=b"a", partition=0)
        await producer.send(topic, b"bad", key=b"a", partition=0, headers=[("trace", b"1"), ("none", None)])
        await producer.send(topic, None, key=b"a", partition=0)
    calls: list[bytes | None] = []
    stop = anyio.Event()

    async def handle(record: Record) -> None:
        calls.append(record.value)
        if record.value == b"bad":
            raise Rejected("no")
        if record.value is None:
            stop.set()

    retry = Retry(attempts=3, backoff_ms=1)
    summary = await process(kafka, topic, handle, stop=stop, retry=retry, dead_letter_topic=dead)
    assert calls == [b"sound", b"bad", b"bad", b"bad", None]
    assert (summary.processed, summary.retried, summary.dead_lettered) == (2, 2, 1)
    (record,) = await all_of(kafka, dead, 1)
    assert (record.key, record.value) == (b"a", b"bad")
    assert record.headers[:2] == (("trace", b"1"), ("none", None))
    failure = failure_of(record.headers)
    assert isinstance(failure, Failure)
    assert (failure.origin, failure.group, failure.attempts) == ((topic, 0, 1), topic, 3)
    assert failure.error.endswith("Rejected")
    assert failure.message == "no"
    assert (await committed(kafka, topic))[0].offset == 3


async def test_a_rejected_record_is_not_tried_again_and_headers_that_were_copied_say_nothing(
    kafka: Client, topic: str, new_name: Callable[[], str]
) -> None:
    dead = new_name()
    await kafka.admin.create_topics({dead: 1})
    copied = with_failure([("trace", b"1")], Failure("payroll", 0, 5, 1, topic, 30, "E", "of another topic"))
    async with kafka.producer() as producer:
        await producer.send(topic, b"bad", partition=0, headers=copied)
    calls, stop = 0, anyio.Event()

    async def handle(record: Record) -> None:
        nonlocal calls
        calls += 1
        stop.set()
        raise Reject("never")

    summary = await process(kafka, topic, handle, stop=stop, dead_letter_topic=dead)
    assert (calls, summary.retried, summary.dead_lettered, summary.rejected) == (1, 0, 1, 0)
    (record,) = await all_of(kafka, dead, 1)
    failure = failure_of(record.headers)
    assert failure is not None
    assert (failure.origin, failure.attempts, failure.message) == ((topic, 0, 0), 1, "never")
    assert dict(record.headers)["trace"] == b"1"
    with pytest.raises(Reject):
        await process(kafka, topic, handle, group_id=dead)


async def test_without_a_dead_letter_topic_the_error_ends_it_after_what_runs_has_finished(
    kafka: Client, topic: str
) -> None:
    async with kafka.producer() as producer:
        for key in (b"slow", b"bad", b"after"):
            await producer.send(topic, key, key=key, partition=1)
    slow_began, failed, done = anyio.Event(), anyio.Event(), list[Any]()

    async def handle(record: Record) -> None:
        if record.value == b"bad":
            await slow_began.wait()
            failed.set()
            raise Rejected
        if record.value == b"slow":
            slow_began.set()
            await failed.wait()
            await anyio.sleep(0.05)
        done.append(record.value)

    with pytest.raises(Rejected):
        await process(kafka, topic, handle, retry=Retry(attempts=1))
    assert b"slow" in done
    assert (await committed(kafka, topic))[1].offset == 1


async def test_what_cannot_be_deserialized_is_a_failure_in_its_turn(
    kafka: Client, topic: str, new_name: Callable[[], str]
) -> None:
    dead = new_name()
    await kafka.admin.create_topics({dead: 1})
    async with kafka.producer() as producer:
        for value in (b"1", b"no number", b"2"):
            await producer.send(topic, value, partition=2, key=b"k")
    seen: list[Any] = []
    stop = anyio.Event()

    async def handle(record: Record) -> None:
        seen.append(record.value)
        if record.value == 2:
            stop.set()

    given: dict[str, Any] = {"value_deserializer": int, "stop": stop}
    with pytest.raises(DeserializationError):
        await process(kafka, topic, handle, **given)
    assert seen == [1]
    summary = await process(kafka, topic, handle, dead_letter_topic=dead, **given)
    assert seen == [1, 2]
    assert (summary.retried, summary.dead_lettered) == (0, 1)
    (record,) = await all_of(kafka, dead, 1)
    assert record.value == b"no number"


@pytest.mark.slow
async def test_plain_functions_run_on_threads_and_batches_are_of_one_key(kafka: Client, topic: str) -> None:
    await fill(kafka, topic)
    threads: set[int] = set()
    batches: list[list[Record]] = []
    stop = anyio.Event()
    lock = threading.Lock()

    def handle(records: list[Record]) -> None:
        with lock:
            threads.add(threading.get_ident())
            batches.append(records)

    def told(summary: ProcessSummary) -> None:
        if summary.processed == COUNT:
            stop.set()

    summary = await process(kafka, topic, handle, max_batch=3, concurrency=2, on_progress=told, stop=stop)
    assert summary.processed == COUNT
    assert threading.get_ident() not in threads
    assert max(map(len, batches)) == 3
    assert all(len({record.key for record in batch}) == 1 for batch in batches)


@pytest.mark.parametrize("plain", [False, True])
async def test_a_cancellation_of_the_handlers_own_is_an_error(kafka: Client, topic: str, plain: bool) -> None:
    if sniffio.current_async_library() == "trio":
        pytest.skip("trio's users cannot make a Cancelled")
    async with kafka.producer() as producer:
        await producer.send(topic, b"x")

    async def handle(record: Record) -> None:
        raise asyncio.CancelledError

    def handle_plainly(record: Record) -> None:
        raise asyncio.CancelledError

    with pytest.raises(KafkaError, match="the handler has raised CancelledError, and nobody has cancelled it"):
        await process(kafka, topic, handle_plainly if plain else handle, retry=Retry(attempts=1))


async def test_a_handler_that_hangs_is_cancelled_and_called_again(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        await producer.send(topic, b"x")
    calls, stop = 0, anyio.Event()

    async def handle(record: Record) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            await anyio.sleep_forever()
        stop.set()

    summary = await process(
        kafka, topic, handle, handler_timeout=0.05, retry=Retry(backoff_ms=1, on=(TimeoutError,)), stop=stop
    )
    assert (summary.processed, summary.retried) == (1, 1)


@pytest.mark.slow
async def test_the_health_tells_of_handlers_that_hang_and_of_abandoned_threads(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        await producer.send(topic, b"x")
    stop, release = anyio.Event(), threading.Event()
    found: list[Any] = []

    def handle(record: Record) -> None:
        release.wait(40)

    def told(summary: ProcessSummary) -> None:
        health = kafka.health()
        (one,) = health.processing.values()
        if one.abandoned:
            found.append((health, one))
            stop.set()

    try:
        retry = Retry(attempts=3, backoff_ms=60_000, max_backoff_ms=60_000)
        await process(kafka, topic, handle, handler_timeout=0.3, retry=retry, stop=stop, on_progress=told)
    finally:
        release.set()
    health, one = found[0]
    assert one.stalled
    assert (one.group, one.abandoned, one.running) == (topic, 1, 0)
    assert "1 thread goes on" in health.why
    assert health.live
    assert health.to_dict()["processing"]
    assert not kafka.health().processing


async def test_a_rebalance_waits_for_running_handlers_and_nothing_is_handled_twice(kafka: Client, topic: str) -> None:
    await fill(kafka, topic, 300, keys=30)
    began: list[int] = []
    seen: list[int] = []
    joins, all_done = anyio.Event(), anyio.Event()
    summaries: list[ProcessSummary] = []

    async def handle(record: Record) -> None:
        began.append(int(record.value or b""))
        if len(began) == 20:
            joins.set()
            while (await kafka.admin.describe_groups(topic))[topic].state != "PreparingRebalance":  # noqa: ASYNC110
                await anyio.sleep(0.01)
            await anyio.sleep(0.3)  # meanwhile the partitions are to be revoked
        await anyio.sleep(0.005)
        seen.append(int(record.value or b""))
        if len(set(seen)) == 300:
            all_done.set()

    async def member() -> None:
        given: dict[str, Any] = {"concurrency": 3, "max_in_hand": 30, "heartbeat_interval_ms": 50}
        summaries.append(await process(kafka, topic, handle, stop=all_done, **given))

    async with anyio.create_task_group() as members:
        members.start_soon(member)
        await joins.wait()
        members.start_soon(member)
    assert sorted(seen) == sorted(began) == list(range(300))
    assert sum(summary.processed for summary in summaries) == 300
