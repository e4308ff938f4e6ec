"""What ``Client.process`` promises of retry topics, whichever broker it runs on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from contract.conftest import Where

from aiokafkawire import Client, ProcessSummary, Retry, RetryTopic, TopicNotReady, TopicPartition
from aiokafkawire.processing.failures import Failure, failure_of, with_failure

pytestmark = [pytest.mark.anyio]

Record = Any
ONCE = Retry(attempts=1)
QUICK: dict[str, Any] = {"commit_interval_ms": 20, "fetch_max_wait_ms": 50, "retry": ONCE}
LONG = 600_000


class Refused(Exception):
    """A handler does not like a record."""


async def process(kafka: Client, topic: str, handle: Callable[[Any], object], **arguments: Any) -> ProcessSummary:
    with anyio.fail_after(50):
        return await kafka.process(topic, handle, **{"group_id": topic, **QUICK, **arguments})


async def committed(kafka: Client, topic: str, group: str) -> int:
    """How many records of a topic with one partition are committed."""
    async with kafka.consumer(group_id=group) as consumer:
        (offset,) = (await consumer.committed([TopicPartition(topic, 0)])).values()
    return 0 if offset is None else offset.offset


async def failures_in(kafka: Client, topic: str) -> list[Failure | None]:
    return [failure_of(record.headers) async for record in kafka.read_records(topic)]


@pytest.mark.slow
async def test_a_record_goes_through_the_retry_topics_to_the_dead_letters(
    kafka: Client, topic: str, new_name: Callable[[], str]
) -> None:
    first, second, dead = new_name(), new_name(), new_name()
    await kafka.admin.create_topics({first: 1, second: 1, dead: 1})
    async with kafka.producer() as producer:
        await producer.send(topic, b"bad", key=b"k", partition=0, headers=[("trace", b"1")])
        await producer.send(topic, b"soon good", key=b"k", partition=0)
        await producer.send(topic, b"good", key=b"k", partition=0)
    calls: dict[bytes, list[str]] = defaultdict(list)
    stop = anyio.Event()

    async def handle(record: Record) -> None:
        calls[record.value].append(record.topic)
        if record.value == b"bad" or (record.value == b"soon good" and record.topic == topic):
            raise Refused(record.topic)

    def told(summary: ProcessSummary) -> None:
        if (summary.processed, summary.dead_lettered) == (2, 1):
            stop.set()

    topics = [RetryTopic(first, 30), RetryTopic(second, 30)]
    summary = await process(
        kafka, topic, handle, retry_topics=topics, dead_letter_topic=dead, stop=stop, on_progress=told
    )
    assert calls == {b"bad": [topic, first, second], b"soon good": [topic, first], b"good": [topic]}
    assert (summary.processed, summary.deferred, summary.dead_lettered, summary.waiting) == (2, 3, 1, 0)
    moved = await failures_in(kafka, first)
    assert [failure and failure.offset for failure in moved] == [0, 1]
    assert all(failure is not None and failure.not_before_ms > 0 for failure in moved)
    (letter,) = await failures_in(kafka, dead)
    assert letter is not None
    assert (letter.origin, letter.attempts, letter.message, letter.not_before_ms) == ((topic, 0, 0), 3, second, 0)
    assert [await committed(kafka, name, topic) for name in (first, second)] == [2, 1]


@pytest.mark.slow
async def test_the_source_goes_on_while_records_wait_and_the_end_does_not_wait_for_them(
    kafka: Client, topic: str, new_name: Callable[[], str]
) -> None:
    retry = new_name()
    await kafka.admin.create_topics({retry: 1})
    seen: list[bytes] = []
    stop, waits = anyio.Event(), anyio.Event()

    async def handle(record: Record) -> None:
        if record.value == b"bad":
            raise Refused
        if record.topic == retry:
            return
        seen.append(record.value)
        if len(seen) == 20:
            stop.set()

    def told(summary: ProcessSummary) -> None:
        if summary.waiting and summary.deferred == 5 and summary.processed:
            waits.set()

    async def write() -> None:
        async with kafka.producer() as producer:
            await producer.send(retry, b"by hand")  # is due at once
            for _ in range(5):  # more than may be in hand
                await producer.send(topic, b"bad", key=b"k")
            await waits.wait()
            (health,) = kafka.health().processing.values()
            assert health.waiting > 0
            assert await committed(kafka, retry, topic) == 1  # a crash now would lose none
            for number in range(20):
                await producer.send(topic, b"%d" % number, key=b"k")

    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            summary = await process(
                kafka,
                topic,
                handle,
                retry_topics=[RetryTopic(retry, LONG)],
                stop=stop,
                max_in_hand=2,
                on_progress=told,
            )
    assert seen == [b"%d" % number for number in range(20)]
    assert (summary.processed, summary.deferred) == (21, 5)
    assert summary.waiting == 1  # the partition is not read further
    assert await committed(kafka, retry, topic) == 1

    # The next member handles them when they are due; this one thinks that they are.
    again: list[bytes] = []
    last = anyio.Event()

    async def handle_again(record: Record) -> None:
        again.append(record.value)
        if len(again) == 5:
            last.set()

    late = [RetryTopic(retry, 1)]
    options: dict[str, Any] = {"retry_topics": late, "stop": last, "auto_offset_reset": "latest"}
    assert (await process(kafka, topic, handle_again, **options)).processed == 5
    assert await committed(kafka, retry, topic) == 6


async def test_a_retry_topic_whose_oldest_records_are_deleted_is_read_from_the_first_that_is_left(
    kafka: Client, topic: str, new_name: Callable[[], str]
) -> None:
    retry = new_name()
    await kafka.admin.create_topics({retry: 1})
    at = TopicPartition(retry, 0)
    async with kafka.producer() as producer:
        for number in range(6):
            await producer.send(retry, b"%d" % number)
    await kafka.admin.alter_consumer_group_offsets(topic, {at: 1})
    await kafka.admin.delete_records({at: 3})
    seen: list[bytes] = []
    stop = anyio.Event()

    async def handle(record: Record) -> None:
        seen.append(record.value)
        if len(seen) == 3:
            stop.set()

    options: dict[str, Any] = {"retry_topics": [RetryTopic(retry, LONG)], "stop": stop, "auto_offset_reset": "latest"}
    await process(kafka, topic, handle, ordering="partition", **options)
    assert seen == [b"3", b"4", b"5"]


@pytest.mark.slow
async def test_what_retry_does_not_name_is_a_dead_letter_at_once_and_other_groups_keep_their_records(
    kafka: Client, topic: str, new_name: Callable[[], str]
) -> None:
    retry, dead = new_name(), new_name()
    await kafka.admin.create_topics({retry: 1, dead: 1})
    foreign = Failure(topic, 0, 0, 0, "another group", 1, "E", "m")
    async with kafka.producer() as producer:
        await producer.send(retry, b"foreign", headers=with_failure((), foreign))
        await producer.send(retry, b"by hand")
        await producer.send(topic, b"bad")
    seen: list[bytes] = []
    stop = anyio.Event()

    async def handle(record: Record) -> None:
        seen.append(record.value)
        if record.value == b"bad":
            raise Refused

    def told(summary: ProcessSummary) -> None:
        if (summary.processed, summary.dead_lettered, summary.skipped) == (1, 1, 1):
            stop.set()

    given: dict[str, Any] = {"retry": Retry(attempts=1, on=(OSError,)), "on_progress": told, "stop": stop}
    topics = [RetryTopic(retry, LONG)]
    summary = await process(kafka, topic, handle, retry_topics=topics, dead_letter_topic=dead, **given)
    assert sorted(seen) == [b"bad", b"by hand"]
    assert summary.deferred == 0


async def test_a_retry_topic_that_does_not_exist_is_refused_at_the_beginning(
    cluster: Where, topic: str, new_name: Callable[[], str]
) -> None:
    async with cluster.client(topic_metadata_propagation_max_ms=300) as impatient:
        with pytest.raises(TopicNotReady, match="does not exist"):
            await process(impatient, topic, print, retry_topics=[RetryTopic(new_name(), 5)])
