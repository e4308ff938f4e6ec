"""How a handler ends a call of ``Client.process``: by exceptions that end programs, by threads that never return."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from aiokafkawire import Client, KafkaError, ProcessSummary, Retry, SubscriptionPattern, TopicPartition, UsageError
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kafka() -> AsyncIterator[Client]:
    """A client of a broker with a topic of eight records, and a dead-letter topic."""
    async with Broker() as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic("t")
        broker.create_topic("t.dead")
        async with kafka.producer() as producer:
            for number in range(8):
                await producer.send("t", b"%d" % number, key=b"%d" % number)
        yield kafka


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("plain", [False, True])
async def test_an_exception_that_ends_programs_is_raised_as_it_is_after_a_commit(
    kafka: Client, kind: type[BaseException], plain: bool
) -> None:
    def handle(record: Any) -> None:
        if record.value == b"3":
            raise kind(3)

    async def handle_async(record: Any) -> None:
        handle(record)

    chosen: Any = handle if plain else handle_async
    with anyio.fail_after(60), pytest.raises(kind) as raised:
        await kafka.process("t", chosen, group_id="g", ordering="partition")
    assert raised.value.args == (3,)
    async with kafka.consumer(group_id="g") as consumer:
        (offset,) = (await consumer.committed([TopicPartition("t", 0)])).values()
    assert offset is not None
    assert offset.offset == 3


async def test_threads_that_never_return_end_the_call_before_there_are_too_many(kafka: Client) -> None:
    release, calls = threading.Event(), list[bytes]()

    def handle(record: Any) -> None:
        calls.append(record.value)
        release.wait(60)

    try:
        with anyio.fail_after(60), pytest.raises(KafkaError, match="2 threads go on with calls of the handler"):
            await kafka.process(
                "t",
                handle,
                group_id="g",
                concurrency=2,
                handler_timeout=0.05,
                retry=Retry(attempts=1),
                dead_letter_topic="t.dead",
            )
    finally:
        release.set()
    assert len(calls) <= 4


@pytest.mark.every_loop
async def test_a_thread_that_goes_on_does_not_keep_another_call_from_its_own(kafka: Client) -> None:
    release, both, stop = threading.Event(), threading.Barrier(2), anyio.Event()
    found: list[ProcessSummary] = []

    def handle(record: Any) -> None:
        if record.value == b"0":
            release.wait(60)
        elif record.key is None:  # these two need each other
            both.wait(60)

    def stop_after_ten(summary: ProcessSummary) -> None:
        if summary.processed + summary.dead_lettered == 10:
            stop.set()

    async def process() -> None:
        arguments: Any = {"retry": Retry(attempts=1), "dead_letter_topic": "t.dead", "on_progress": stop_after_ten}
        found.append(
            await kafka.process("t", handle, group_id="g", concurrency=2, handler_timeout=1, stop=stop, **arguments)
        )

    try:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks, kafka.producer() as producer:
                tasks.start_soon(process)
                async with kafka.consumer("t.dead", auto_offset_reset="earliest") as consumer:
                    assert (await anext(consumer)).value == b"0"
                await producer.send_many("t", [b"8", b"9"])
    finally:
        release.set()
        both.abort()
    assert [(summary.processed, summary.dead_lettered) for summary in found] == [(9, 1)]


@pytest.mark.thorough
async def test_a_pattern_that_matches_the_dead_letter_topic_is_refused(kafka: Client) -> None:
    with anyio.fail_after(60), pytest.raises(UsageError, match=r"the pattern matches 't\.dead', the dead_letter_topic"):
        await kafka.process(
            SubscriptionPattern("t.*"), print, group_id="g", group_protocol="consumer", dead_letter_topic="t.dead"
        )
