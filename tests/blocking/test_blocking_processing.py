"""``process`` without an event loop: worker threads handle the records, and the caller waits."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from contextlib import suppress
from itertools import count
from secrets import token_hex
from typing import Any

import pytest
from support.interrupting import Interrupt

from aiokafkawire import ConsumerRecord, KafkaError, Retry, UsageError, blocking

COUNT = 40
Record = ConsumerRecord[bytes, bytes]


@pytest.fixture
def topic(kafka: blocking.Client) -> str:
    name = f"topic-{token_hex(6)}"
    kafka.admin.create_topics({name: 2})
    with kafka.producer() as producer:
        producer.send_many(name, [b"%d" % number for number in range(COUNT)])
    return name


def test_threads_handle_the_records_until_the_event_is_set(kafka: blocking.Client, topic: str) -> None:
    stop, lock = threading.Event(), threading.Lock()
    seen: list[int] = []

    def handle(record: Record) -> None:
        assert threading.current_thread() is not threading.main_thread()
        with lock:
            seen.append(int(record.value or b""))
            if len(seen) == COUNT:
                stop.set()

    summary = kafka.process(topic, handle, group_id=topic, stop=stop, commit_interval_ms=20, fetch_max_wait_ms=50)
    assert summary.processed == COUNT
    assert sorted(seen) == list(range(COUNT))
    assert sum(offset.offset for offset in kafka.admin.list_consumer_group_offsets(topic).values()) == COUNT


def test_errors_of_the_handler_are_raised(kafka: blocking.Client, topic: str) -> None:
    def handle(record: Record) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        kafka.process(topic, handle, group_id=topic, retry=Retry(attempts=1))


def test_a_signal_ends_it(kafka: blocking.Client, topic: str) -> None:
    before, signals = signal.getsignal(signal.SIGTERM), [signal.SIGTERM]

    def handle(record: Record) -> None:
        if signals:  # a second one would interrupt the program
            signal.raise_signal(signals.pop())

    summary = kafka.process(topic, handle, group_id=topic, handle_signals=True, concurrency=1, max_in_hand=1)
    assert summary.processed
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("wrong", [{"stop": 5}, {"handle_signals": 1}, {"concurrency": 0}])
def test_wrong_arguments_are_named(kafka: blocking.Client, wrong: dict[str, Any]) -> None:
    with pytest.raises(KafkaError, match=next(iter(wrong))):
        kafka.process("t", print, group_id="g", **wrong)


def test_coroutine_functions_are_refused(kafka: blocking.Client) -> None:
    async def handle(record: Record) -> None: ...

    with pytest.raises(UsageError, match="plain function"):
        kafka.process("t", handle, group_id="g")


def test_a_handler_that_ends_the_program_ends_the_call_and_not_the_client(kafka: blocking.Client, topic: str) -> None:
    def handle(record: Record) -> None:
        sys.exit("no room")

    with pytest.raises(SystemExit, match="no room"):
        kafka.process(topic, handle, group_id=topic)
    assert topic in kafka.admin.list_topics()


def test_an_interrupt_at_any_moment_ends_the_call(kafka: blocking.Client, topic: str) -> None:
    """Above all while it begins: it went on without a caller."""
    stop = threading.Event()
    stop.set()

    def process() -> None:
        kafka.process(topic, lambda record: None, group_id=topic, stop=stop)

    for at in count():
        interrupt = Interrupt(at, but=__file__)
        with suppress(KeyboardInterrupt), interrupt:
            process()
        while running_calls(kafka):
            pass
        if not interrupt.raised:
            break
    assert at > 20  # there were moments


def running_calls(kafka: blocking.Client) -> int:
    """Return the number of the client's tasks that process records."""
    return kafka.loop.call_sync(lambda: sum("ProcessingRun" in str(task) for task in asyncio.all_tasks()))
