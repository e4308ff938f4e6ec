"""What happens to clients on other event loops, on loops that have ended, when nobody closes them, and on Ctrl-C."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvloop
from support.apache_kafka import ApacheKafka
from support.patience import PATIENCE

from aiokafkawire import Client, OffsetSpec, TopicPartition, UsageError
from aiokafkawire.blocking import Client as BlockingClient
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.broker import Broker

WHERE = TopicPartition("t", 0)
LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])


class Elsewhere:
    """A client with a producer and a consumer on one event loop, and a second loop."""

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.own, self.other = new_loop(), new_loop()

    async def open(self) -> None:
        self.broker = await Broker().__aenter__()
        self.client = await Client(self.broker.bootstrap).__aenter__()
        await self.client.admin.create_topics({"t": 1})
        self.producer = await self.client.producer(linger_ms=60_000).__aenter__()
        self.transactional = await self.client.producer(transactional_id="tx").__aenter__()
        self.consumer = await self.client.consumer("t", group_id="g", auto_offset_reset="earliest").__aenter__()
        async with self.client.producer() as producer:
            await producer.send_many("t", [b"1"] * 10)
        assert (await anext(self.consumer)).offset == 0
        await self.producer.partitions_for("t")
        self.delivery = self.producer.send_nowait("t", b"in the open batch")

    async def close(self) -> None:
        await self.consumer.close()
        await self.producer.close()
        await self.transactional.close()
        await self.client.close()
        await self.broker.__aexit__(None, None, None)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[Elsewhere]:
    made = Elsewhere(request.param)
    made.own.run_until_complete(made.open())
    yield made
    made.own.run_until_complete(made.close())
    made.own.close()
    made.other.close()


async def enter(given: Any) -> None:
    async with given:
        raise AssertionError("it was entered")


async def first(given: Any) -> None:
    async for _ in given:
        return


async def transact(e: Elsewhere) -> None:
    async with e.transactional.transaction():
        raise AssertionError("it was entered")


async def now(function: Callable[..., object], *args: Any) -> None:
    function(*args)


async def made(enters: Callable[[], Any]) -> None:
    await enter(enters())


CALLS: dict[str, Callable[[Elsewhere], Coroutine[Any, Any, object]]] = {
    "open a producer": lambda e: made(e.client.producer),
    "open a transactional producer": lambda e: made(lambda: e.client.producer(transactional_id="other")),
    "open a consumer": lambda e: made(lambda: e.client.consumer("t")),
    "open a member": lambda e: made(lambda: e.client.consumer("t", group_id="other")),
    "create topics": lambda e: e.client.admin.create_topics({"u": 1}),
    "describe groups": lambda e: e.client.admin.describe_groups("g"),
    "list offsets": lambda e: e.client.admin.list_offsets({WHERE: OffsetSpec.LATEST}),
    "transform": lambda e: e.client.transform("t", lambda _: [], group_id="x", transactional_id="x"),
    "process": lambda e: e.client.process("t", lambda _: None, group_id="x"),
    "close the client": lambda e: e.client.close(),
    "send": lambda e: e.producer.send("t", b"2"),
    "send to a topic that is not known": lambda e: e.producer.send("unknown", b"2"),
    "await a delivery": lambda e: wait_for(e.delivery),
    "flush": lambda e: e.producer.flush(),
    "partitions": lambda e: e.producer.partitions_for("t"),
    "close the producer": lambda e: e.producer.close(),
    "begin a transaction": transact,
    "close the transactional producer": lambda e: e.transactional.close(),
    "iterate": lambda e: first(e.consumer),
    "iterate batches": lambda e: first(e.consumer.batches()),
    "anext": lambda e: wait_for(anext(e.consumer)),
    "poll": lambda e: e.consumer.poll(),
    "poll without waiting": lambda e: e.consumer.poll(timeout=0),
    "commit": lambda e: e.consumer.commit(),
    "commit offsets": lambda e: e.consumer.commit({WHERE: 1}),
    "committed": lambda e: e.consumer.committed([WHERE]),
    "offsets": lambda e: e.consumer.offsets({WHERE: OffsetSpec.LATEST}),
    "seek": lambda e: now(e.consumer.seek, WHERE, 0),
    "subscribe": lambda e: now(e.consumer.subscribe, "t"),
    "unsubscribe": lambda e: e.consumer.unsubscribe(),
    "close the consumer": lambda e: e.consumer.close(),
}


async def wait_for(awaitable: Any) -> None:
    await awaitable


async def within(seconds: float, call: Coroutine[Any, Any, object]) -> None:
    with anyio.fail_after(seconds):
        await call


def test_whatever_is_called_on_another_loop_is_refused_at_once(elsewhere: Elsewhere) -> None:
    for name, call in CALLS.items():
        with pytest.raises(UsageError, match=r"outside of the event loop .*loop_scope"):
            elsewhere.other.run_until_complete(within(2, call(elsewhere)))
            raise AssertionError(name)
    before = asyncio.all_tasks(elsewhere.other)
    assert not before
    # It goes on where it belongs.
    elsewhere.own.run_until_complete(within(10, wait_for(anext(elsewhere.consumer))))


def test_producers_and_consumers_are_made_in_an_event_loop(elsewhere: Elsewhere) -> None:
    for client in (elsewhere.client, Client("localhost:9092")):
        for make in (client.producer, client.consumer):
            with pytest.raises(UsageError, match=r"call client\.(producer|consumer)\(\) in a coroutine"):
                make()


def test_a_trio_run_is_another_loop(elsewhere: Elsewhere) -> None:
    async def use(call: Callable[[Elsewhere], Coroutine[Any, Any, object]]) -> None:
        with pytest.raises(UsageError, match="outside of the event loop on which it was opened"):
            await within(2, call(elsewhere))

    for call in CALLS.values():
        anyio.run(use, call, backend="trio")


def test_a_second_trio_run_and_asyncio_are_other_loops_than_a_trio_run() -> None:
    client: Client

    async def use() -> None:
        for call in (client.admin.list_topics(), client.close()):
            with pytest.raises(UsageError, match="that loop has ended"):
                await within(2, call)
        await client.close()  # there is nothing to close any more

    async def leave_open(broker: str) -> None:
        nonlocal client
        client = Client(broker)
        await client.open()

    for backend in ("trio", "asyncio"):
        with BackgroundBroker() as broker:
            anyio.run(leave_open, broker.bootstrap, backend="trio")
            anyio.run(use, backend=backend)


@LOOPS
@pytest.mark.parametrize("ending", ["cancelled", "closed"])
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_closing_after_the_end_of_its_loop_never_waits(
    new_loop: Callable[[], asyncio.AbstractEventLoop], ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    with BackgroundBroker() as broker:

        async def open_all() -> list[Any]:
            client = await Client(broker.bootstrap).__aenter__()
            await client.admin.create_topics({"t": 1})
            producer = await client.producer().__aenter__()
            consumer = await client.consumer("t", group_id="g").__aenter__()
            return [consumer, producer, client]

        async def cancel_the_rest() -> None:
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        loop = new_loop()
        opened = loop.run_until_complete(open_all())
        if ending == "cancelled":  # as asyncio.run does
            loop.run_until_complete(cancel_the_rest())
        loop.close()
        other = new_loop()
        for one in opened:
            with pytest.raises(UsageError, match="that loop has ended"):
                other.run_until_complete(within(2, one.close()))
        for one in opened[:2]:
            other.run_until_complete(within(2, one.close()))
        other.close()
        with caplog.at_level(logging.CRITICAL, "asyncio"):  # tasks that were pending when their loop was closed
            del opened, one
            gc.collect()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("kind", ["client", "producer", "consumer"])
def test_what_nobody_closes_warns_and_says_where_it_was_made(kind: str, backend: str) -> None:
    async def leave_open(broker: str) -> None:
        async with Client(broker) as client:
            if kind == "client":
                await Client(broker).open()
            elif kind == "producer":
                await client.producer().__aenter__()
            else:
                consumer = await client.consumer().__aenter__()
                consumer.assign([])
                del consumer
            gc.collect()

    with BackgroundBroker() as broker, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tracemalloc.start()
        try:
            anyio.run(leave_open, broker.bootstrap, backend=backend)
            gc.collect()
            (ours,) = [one for one in caught if "unclosed" in str(one.message)]
            assert str(ours.message).startswith(f"unclosed {kind}, opened at {__file__}:")
        finally:
            tracemalloc.stop()


@pytest.mark.slow
def test_what_is_closed_does_not_warn() -> None:
    async def use(broker: str) -> None:
        async with Client(broker) as client, client.producer(), client.consumer():
            pass

    with BackgroundBroker() as broker, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        anyio.run(use, broker.bootstrap)
        gc.collect()
    assert [str(one.message) for one in warned] == []


INTERRUPTED = Path(__file__).parent / "support" / "interrupted_consumer.py"
RUNS = pytest.mark.parametrize("run", ["asyncio.run", "anyio.run", "trio"])


@contextmanager
def consuming(run: str, bootstrap: str, topic: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(INTERRUPTED), run, bootstrap, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def interrupt(run: str, bootstrap: str, topic: str) -> None:
    """Interrupt a process that has read ten records and waits for more; then see that it has left its group."""
    with BlockingClient(bootstrap) as kafka:
        kafka.admin.create_topics({topic: 1})
        with kafka.producer() as producer:
            producer.send_many(topic, [b"1"] * 10)
        with consuming(run, bootstrap, topic) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "waits\n"
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=PATIENCE)
        assert (out, process.returncode) == ("left\n", 0), errors
        assert errors == ""
        found = kafka.loop.call(kafka.asynchronous.admin.describe_groups, topic)
        assert found[topic].members == ()
        offsets = kafka.admin.list_consumer_group_offsets(topic)
        assert offsets[TopicPartition(topic, 0)].offset == 10


@pytest.mark.slow
@RUNS
def test_an_interrupted_consumer_leaves_its_group(run: str) -> None:
    with BackgroundBroker() as broker:
        interrupt(run, broker.bootstrap, "t")


@RUNS
@pytest.mark.kafka
def test_an_interrupted_consumer_leaves_its_group_on_apache_kafka(run: str, apache_kafka: ApacheKafka) -> None:
    interrupt(run, apache_kafka.bootstrap, f"interrupted-{run}")
