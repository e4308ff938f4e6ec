"""``Client.process`` as a member of a share group, on the in-process broker and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from contract.conftest import Where
from support.committed import raw
from support.share_members import configure

from aiokafkawire import Client, Reject, Retry, ShareRecord
from aiokafkawire.processing.failures import failure_of

pytestmark = pytest.mark.anyio

COUNT = 40


@pytest.fixture
async def cluster(quick_cluster: Where) -> Where:
    return quick_cluster


@pytest.fixture
async def share_group(cluster: Where, group: str) -> str:
    """A share group that begins at the logs' start, whose locks are short."""
    async with raw(cluster) as client:
        await configure(client, group, share_auto_offset_reset="earliest", share_record_lock_duration_ms="1000")
    return group


@pytest.mark.slow
async def test_every_record_is_accepted_once_and_failures_become_dead_letters(
    kafka: Client, share_group: str, new_name: Callable[[], str]
) -> None:
    topic, dead = new_name(), new_name()
    await kafka.admin.create_topics({topic: 1, dead: 1})
    async with kafka.producer() as producer:
        for number in range(COUNT):
            await producer.enqueue(topic, b"none" if number == 7 else b"%d" % number, key=b"k")
    seen: list[int] = []
    stop = anyio.Event()

    async def handle(record: ShareRecord[bytes, int]) -> None:
        assert isinstance(record.value, int)
        if record.value == 3:
            raise ValueError("three")
        if record.value == 5:
            await anyio.sleep(1.5)  # longer than the lock, which is renewed
        seen.append(record.value)
        if len(seen) == COUNT - 2:
            stop.set()

    arguments: dict[str, Any] = {
        "group_id": share_group,
        "share": True,
        "value_deserializer": int,
        "retry": Retry(attempts=2, backoff_ms=1),
        "dead_letter_topic": dead,
        "concurrency": 3,
    }
    with anyio.fail_after(50):
        summary = await kafka.process(topic, handle, stop=stop, **arguments)
    assert sorted(seen) == [number for number in range(COUNT) if number not in (3, 7)]
    assert (summary.processed, summary.retried, summary.dead_lettered) == (COUNT - 2, 1, 2)
    causes: list[Any] = []
    async with kafka.consumer(dead, auto_offset_reset="earliest") as consumer:
        with anyio.fail_after(20):
            while len(causes) < 2:
                for record in await consumer.poll():
                    failure = failure_of(record.headers)
                    assert failure is not None
                    causes.append((record.value, failure.offset, failure.attempts))
    assert sorted(causes) == [(b"3", 3, 2), (b"none", 7, 1)]
    async with kafka.share_consumer(topic, group_id=share_group) as rest:
        assert await rest.poll(timeout=1.5) == []


@pytest.mark.slow
async def test_a_rejected_record_is_handed_out_no_more(
    kafka: Client, share_group: str, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    await kafka.admin.create_topics({topic: 1})
    async with kafka.producer() as producer:
        for number in range(3):
            await producer.send(topic, b"%d" % number)
    calls: list[bytes] = []
    stop = anyio.Event()

    async def handle(record: ShareRecord[bytes, bytes]) -> None:
        calls.append(record.value or b"")
        if len(calls) == 3:
            stop.set()
        if record.value == b"1":
            raise Reject

    with anyio.fail_after(50):
        summary = await kafka.process(topic, handle, group_id=share_group, share=True, stop=stop)
    assert sorted(calls) == [b"0", b"1", b"2"]
    assert (summary.processed, summary.rejected, summary.in_hand) == (2, 1, 0)
    async with kafka.share_consumer(topic, group_id=share_group) as rest:
        assert await rest.poll(timeout=1.5) == []


async def test_an_error_without_a_dead_letter_topic_releases_the_record(
    kafka: Client, share_group: str, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    await kafka.admin.create_topics({topic: 1})
    async with kafka.producer() as producer:
        await producer.send(topic, b"x")

    def handle(record: ShareRecord[bytes, bytes]) -> None:
        raise ValueError(record.value)

    with anyio.fail_after(30), pytest.raises(ValueError, match="x"):
        await kafka.process(topic, handle, group_id=share_group, share=True, retry=Retry(attempts=1))
    async with kafka.share_consumer(topic, group_id=share_group) as consumer:
        with anyio.fail_after(20):
            (record,) = await consumer.poll()
        assert record.delivery_count >= 2  # a fetch in flight may have acquired it once more
        assert record.raw_value == b"x"
        assert record.raw_key is None


async def test_records_that_the_handler_acknowledges_itself_are_no_longer_in_hand(
    kafka: Client, share_group: str, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    await kafka.admin.create_topics({topic: 1})
    async with kafka.producer() as producer:
        for _ in range(3):
            await producer.send(topic, b"x")
    count, stop = 0, anyio.Event()

    async def handle(record: ShareRecord[bytes, bytes]) -> None:
        nonlocal count
        async with record:
            count += 1
        if count == 3:
            stop.set()

    with anyio.fail_after(30):
        summary = await kafka.process(topic, handle, group_id=share_group, share=True, max_in_hand=1, stop=stop)
    assert (summary.processed, summary.in_hand) == (3, 0)
