"""The blocking client: on a thread of its own, interrupted by Ctrl-C, useless after a fork, gone after closing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio.from_thread import start_blocking_portal
from support.patience import PATIENCE, SOON

from aiokafkawire import NoBrokerReachable, OffsetSpec, TopicPartition, UsageError, blocking
from aiokafkawire.testing.broker import Broker

FLIGHTS = TopicPartition("flights", 0)


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with start_blocking_portal("asyncio") as portal, portal.wrap_async_context_manager(Broker()) as broker:
        yield broker.bootstrap


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "aiokafkawire-blocking"]


def test_records_go_there_and_back(bootstrap: str) -> None:
    with blocking.Client(bootstrap) as kafka:
        kafka.admin.create_topics({"flights": 1})
        with kafka.producer() as producer:
            assert producer.send("flights", b"0", key=b"UA").offset == 0
            assert [one.offset for one in producer.send_many("flights", [b"1", b"2"])] == [1, 2]
            assert producer.enqueue_many("flights", [b"3", None]) == 2
            producer.flush()
            assert producer.partitions_for("flights") == (0,)
        with kafka.consumer() as consumer:
            consumer.assign({FLIGHTS: OffsetSpec.EARLIEST})
            records = [record for _, record in zip(range(5), consumer, strict=False)]
            assert [record.value for record in records] == [b"0", b"1", b"2", b"3", None]
            assert consumer.position(FLIGHTS) == 5
            consumer.seek(FLIGHTS, 3)
            assert any(batch.next_offset == 5 for batch in consumer.batches())
            assert consumer.poll(timeout=0.01) == []
            assert list(consumer.batches(timeout=0.01)) == []
            assert consumer.assignment == (FLIGHTS,)


def test_the_admin_asks_and_commits_for_groups(bootstrap: str) -> None:
    with blocking.Client(bootstrap) as kafka:
        kafka.admin.create_topics({"flights": 1})
        with kafka.producer() as producer:
            producer.send_many("flights", [b"x"] * 7)
        found = kafka.admin.list_offsets({FLIGHTS: OffsetSpec.LATEST})[FLIGHTS]
        assert found is not None
        assert found.offset == 7
        kafka.admin.alter_consumer_group_offsets("delays", {FLIGHTS: 3})
        assert kafka.admin.list_consumer_group_offsets("delays")[FLIGHTS].offset == 3
        assert kafka.admin.consumer_group_lag("delays") == {FLIGHTS: 4}
        assert kafka.admin.partitions_of("flights") == (0,)
        kafka.admin.delete_topics(["flights"])
        assert kafka.admin.list_topics() == ()


def test_a_consumer_of_a_group_commits(bootstrap: str) -> None:
    with blocking.Client(bootstrap) as kafka:
        kafka.admin.create_topics({"flights": 1})
        with kafka.producer() as producer:
            producer.send("flights", b"0")
        with kafka.consumer("flights", group_id="delays", auto_offset_reset="earliest") as consumer:
            assert len(consumer.poll(timeout=10)) == 1
            consumer.commit()
            committed = consumer.committed([FLIGHTS])[FLIGHTS]
        assert committed is not None
        assert committed.offset == 1


def test_a_transaction_is_committed_or_aborted_as_its_body_ends(bootstrap: str) -> None:
    with blocking.Client(bootstrap) as kafka, kafka.producer(transactional_id="t") as producer:
        kafka.admin.create_topics({"flights": 2})
        with producer.transaction() as transaction, kafka.producer(identity=producer.identity) as guest:
            producer.send("flights", b"kept", partition=0)
            with guest.transaction():
                guest.enqueue_many("flights", [b"kept, too"], partition=1)
            transaction.commit_offsets({FLIGHTS: 1}, group="delays")
        with pytest.raises(ZeroDivisionError), producer.transaction() as transaction:
            producer.send("flights", b"aborted", partition=0)
            transaction.commit_offsets({FLIGHTS: 2}, group="delays")
            raise ZeroDivisionError
        with kafka.consumer(isolation_level="read_committed") as consumer:
            consumer.assign(dict.fromkeys([FLIGHTS, TopicPartition("flights", 1)], OffsetSpec.EARLIEST))
            found: list[bytes | None] = []
            while consumer.position(FLIGHTS) != 4:  # a marker is behind each of its two records
                found += [record.value for record in consumer.poll(timeout=0.05)]
        assert found.count(b"kept") == 1
        assert b"aborted" not in found
        assert kafka.admin.list_consumer_group_offsets("delays")[FLIGHTS].offset == 1
        with pytest.raises(UsageError, match="while a transaction is open"):
            _ = producer.identity


def test_no_thread_is_left_whether_opening_succeeds_or_not(bootstrap: str) -> None:
    with blocking.Client(bootstrap) as kafka:
        assert threads() == ["aiokafkawire-blocking"]
    assert threads() == []
    kafka.close()
    with pytest.raises(UsageError, match="not open"):
        kafka.admin.list_topics()
    with pytest.raises(NoBrokerReachable):
        blocking.Client("127.0.0.1:1", bootstrap_timeout_ms=200).open()
    assert threads() == []


def test_control_c_ends_a_call_and_not_the_client(bootstrap: str) -> None:
    """The signal comes once the call waits: the loop itself sends it, from the task that the call awaits."""
    cancelled = threading.Event()

    async def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    with blocking.Client(bootstrap) as kafka:
        with pytest.raises(KeyboardInterrupt):
            kafka.loop.call(interrupt)
        assert cancelled.wait(10)
        assert kafka.admin.list_topics() == ()


def test_control_c_just_before_a_client_closes_leaves_no_thread(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), blocking.Client(bootstrap) as kafka:
        monkeypatch.setattr(kafka.loop, "require_other_thread", interrupt)
    assert threads() == []


def test_closing_ends_the_calls_of_other_threads(bootstrap: str) -> None:
    ended: list[type[BaseException]] = []
    waiting = threading.Event()

    async def wait() -> None:
        waiting.set()
        await anyio.sleep_forever()

    def call(kafka: blocking.Client) -> None:
        try:
            kafka.loop.call(wait)
        except BaseException as error:
            ended.append(type(error))

    with blocking.Client(bootstrap) as kafka:
        caller = threading.Thread(target=call, args=(kafka,))
        caller.start()
        assert waiting.wait(10)
    caller.join(10)
    assert ended == [CancelledError]


def test_two_threads_may_close_a_client_at_once(bootstrap: str) -> None:
    """The first one ends the thread while the second waits for it."""
    kafka = blocking.Client(bootstrap).open()
    close, calls = kafka.asynchronous.close, list[object]()
    second = threading.Event()

    async def close_once() -> None:
        calls.append(None)
        if len(calls) > 1:
            second.set()
            await anyio.sleep_forever()
        await anyio.to_thread.run_sync(second.wait, PATIENCE)
        await close()

    kafka.asynchronous.close = close_once  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool:
        for closing in [pool.submit(kafka.close) for _ in range(2)]:
            closing.result(PATIENCE)
    assert len(calls) == 2
    assert threads() == []


def test_what_is_left_as_another_thread_closes_the_client_is_closed_without_an_error(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is closed just after the leaving thread has seen that it is open."""
    with blocking.Client(bootstrap) as kafka:
        kafka.admin.create_topics({"flights": 1})
        with kafka.producer() as producer:
            producer.send_many("flights", [b"1", b"2"])
        reading: Any = kafka.read_records("flights")
        next(reading)
        consumer, shared = kafka.consumer("flights"), kafka.share_consumer("flights", group_id="delays")
        leaving = [reading.close, consumer.__enter__().close, shared.__enter__().close]
        loop, running = kafka.loop, kafka.loop.require()
    post = loop.post

    def stopped(*args: Any) -> None:
        loop._running = None
        post(*args)

    monkeypatch.setattr(loop, "post", stopped)
    for leave in (*leaving, kafka.close, kafka.metrics, kafka.health):
        loop._running = running
        leave()


def test_a_callback_may_look_at_the_client(bootstrap: str) -> None:
    told: SimpleQueue[object] = SimpleQueue()

    def look(*_: object) -> None:
        told.put((kafka.health().ready, len(kafka.metrics()) > 0))

    with blocking.Client(bootstrap) as kafka, kafka.producer() as producer:
        kafka.admin.create_topics({"flights": 1})
        producer.enqueue("flights", b"1").add_callback(look)
        assert told.get(timeout=PATIENCE) == (True, True)


def test_a_callback_cannot_close_the_client_which_goes_on(bootstrap: str) -> None:
    told: SimpleQueue[BaseException | None] = SimpleQueue()

    def close(*_: object) -> None:
        try:
            kafka.close()
        except BaseException as error:
            told.put(error)
        else:
            told.put(None)

    with blocking.Client(bootstrap) as kafka, kafka.producer() as producer:
        kafka.admin.create_topics({"flights": 1})
        producer.enqueue("flights", b"1").add_callback(close)
        assert isinstance(told.get(timeout=PATIENCE), UsageError)
        assert producer.send("flights", b"2").offset == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_after_a_fork_a_call_is_refused_and_leaving_does_nothing(bootstrap: str) -> None:
    """In a process of its own: a fork of one with threads is warned of, and pytest would go on in the child."""
    source = f"""
import os, sys, warnings
from aiokafkawire import UsageError, blocking
warnings.simplefilter("ignore")
with blocking.Client({bootstrap!r}) as kafka:
    child = os.fork()
    if child == 0:
        try:
            kafka.admin.list_topics()
        except UsageError as error:
            told = "after a fork" in str(error)
        kafka.close()
        os._exit(7 if told else 8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert kafka.admin.list_topics() == ()
"""
    subprocess.run([sys.executable, "-c", source], check=True, timeout=PATIENCE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_client_that_was_not_open_at_the_fork_is_opened_after_it(bootstrap: str) -> None:
    """As workers do that a server forks once it has imported the application."""
    source = f"""
import os
from aiokafkawire import UsageError, blocking
kafka = blocking.Client({bootstrap!r})
child = os.fork()
if child == 0:
    told = ""
    try:
        kafka.admin.list_topics()
    except UsageError as error:
        told = str(error)
    with kafka:
        topics = kafka.admin.list_topics()
    os._exit(7 if topics == () and "not open" in told else 8)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
with kafka:
    assert kafka.admin.list_topics() == ()
"""
    subprocess.run([sys.executable, "-c", source], check=True, timeout=PATIENCE)


def test_a_client_that_nobody_closes_keeps_no_process_from_ending(bootstrap: str) -> None:
    source = f"from aiokafkawire import blocking; blocking.Client({bootstrap!r}).open()"
    done = subprocess.run([sys.executable, "-c", source], timeout=PATIENCE, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "leave",
    [
        "kafka = blocking.Client(bootstrap).open(); reading = kafka.read_records('flights'); next(reading)",
        "reading = iterate(); next(reading)",
        "reading = send(); next(reading)",
    ],
)
def test_what_is_closed_at_the_end_of_the_interpreter_does_not_keep_it_from_ending(bootstrap: str, leave: str) -> None:
    with blocking.Client(bootstrap) as kafka, kafka.producer() as producer:
        kafka.admin.create_topics({"flights": 1})
        producer.send_many("flights", [b"0", b"1"])
    source = f"""
from aiokafkawire import blocking
bootstrap = {bootstrap!r}

def iterate():
    with blocking.Client(bootstrap) as kafka, kafka.consumer("flights", auto_offset_reset="earliest") as consumer:
        yield from consumer

def send():
    with blocking.Client(bootstrap) as kafka, kafka.producer(transactional_id="x") as producer, producer.transaction():
        yield producer.enqueue("flights", b"2")

{leave}
"""
    done = subprocess.run([sys.executable, "-c", source], timeout=SOON, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
