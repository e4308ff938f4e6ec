"""The lifespan of web applications: what it opens and closes, and what becomes of its workers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from support.patience import SOON
from support.virtual_time import virtual_time

from aiokafkawire import Client, ConsumerRecord, KafkaError, NoBrokerReachable, Producer, Retry, UsageError
from aiokafkawire.asgi import KafkaLifespan
from aiokafkawire.probes import HealthApp
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


def on(broker: Broker) -> Callable[[], Client]:
    return lambda: Client(broker.bootstrap, connector=broker.connect)


async def test_an_application_finds_the_client_and_the_producer() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        kafka = KafkaLifespan(on(broker), lambda client: client.producer(value_serializer=str.encode))
        app = SimpleNamespace(state=SimpleNamespace())
        assert kafka.health().why == "the client is not open yet"
        clients = []
        for offset in range(2):  # each run has a client of its own
            async with kafka(app) as yielded:
                assert yielded is None
                assert app.state.kafka is kafka
                assert (await kafka.producer.send("t", "text")).offset == offset
                assert kafka.health().ready
                clients.append(kafka.client)
            assert kafka.health().why == "the client is closed"
        assert clients[0] is not clients[1]
        async with kafka():  # a lifespan without an application
            pass


async def test_it_is_running_only_in_between() -> None:
    async with Broker(port=None) as broker:
        kafka = KafkaLifespan(on(broker))
        with pytest.raises(UsageError, match="the application does not run: give it this object as its lifespan"):
            kafka.client  # noqa: B018
        with pytest.raises(UsageError, match="the application does not run"):
            kafka.producer  # noqa: B018
        async with kafka():
            with pytest.raises(UsageError, match="runs already: give each application its own"):
                async with kafka():
                    raise AssertionError
            with pytest.raises(UsageError, match="add workers before it starts"):

                @kafka.worker
                async def late(client: Client, stop: anyio.Event) -> None: ...

            assert kafka.health().ready
        with pytest.raises(UsageError, match="the application does not run"):
            kafka.client  # noqa: B018


@virtual_time
async def test_a_start_without_a_broker_fails() -> None:
    async def refuse(*_: Any, **__: Any) -> Any:
        raise ConnectionRefusedError("nobody listens")

    kafka = KafkaLifespan(lambda: Client("b:1", connector=refuse))
    for _ in range(2):
        with pytest.raises(NoBrokerReachable):
            async with kafka():
                raise AssertionError
    assert not kafka.health().ready


@pytest.mark.every_loop
async def test_the_end_waits_for_the_workers_and_the_producer_for_their_records() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("in")
        broker.create_topic("out")
        kafka = KafkaLifespan(on(broker), lambda client: client.producer(linger_ms=60_000))
        begun, go_on = anyio.Event(), anyio.Event()

        @kafka.worker
        async def copy(client: Client, stop: anyio.Event) -> None:
            async def handle(record: ConsumerRecord[bytes, bytes]) -> None:
                begun.set()
                await stop.wait()
                await go_on.wait()
                await kafka.producer.enqueue("out", record.value)

            await client.process("in", handle, group_id="g", stop=stop)

        @kafka.worker
        async def release(client: Client, stop: anyio.Event) -> None:
            await stop.wait()
            await anyio.lowlevel.checkpoint()
            go_on.set()

        with anyio.fail_after(SOON):
            async with kafka():
                async with kafka.client.producer() as producer:
                    await producer.send("in", b"1")
                await begun.wait()
            async with Client(broker.bootstrap, connector=broker.connect) as client:
                assert [record.value async for record in client.read_records("out")] == [b"1"]
                assert sum((await client.admin.consumer_group_lag("g")).values()) == 0


@virtual_time
async def test_a_worker_that_does_not_end_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    cancelled = []
    async with Broker(port=None) as broker:
        kafka = KafkaLifespan(on(broker), shutdown_timeout=5)

        @kafka.worker
        async def stubborn(client: Client, stop: anyio.Event) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.append(anyio.current_time())

        async with kafka():
            await anyio.sleep(100)
            began = anyio.current_time()
        assert cancelled == [began + 5]
        assert "the worker stubborn was cancelled: it did not end in 5 s (shutdown_timeout)" in caplog.text


@virtual_time
async def test_a_cancelled_end_cancels_the_workers() -> None:
    ended = []
    async with Broker(port=None) as broker:
        kafka = KafkaLifespan(on(broker))

        @kafka.worker
        async def stubborn(client: Client, stop: anyio.Event) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.append(True)

        with anyio.move_on_after(3) as limit:
            async with kafka():
                await anyio.sleep_forever()
        assert limit.cancelled_caught
        assert ended == [True]


@pytest.mark.every_loop
async def test_a_worker_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        failures: list[Exception] = []
        failed = anyio.Event()

        def on_failure(error: Exception) -> None:
            failures.append(error)
            failed.set()
            raise RuntimeError("this is logged")

        kafka = KafkaLifespan(on(broker), on_failure=on_failure)
        app = HealthApp(kafka)
        answers: list[Any] = []

        async def receive() -> dict[str, Any]:
            raise AssertionError

        async def send(message: Any) -> None:
            answers.append(message)

        @kafka.worker
        async def bill(client: Client, stop: anyio.Event) -> None:
            def handle(record: ConsumerRecord[bytes, bytes]) -> None:
                raise ValueError("no such customer")

            await client.process("t", handle, group_id="g", stop=stop, retry=Retry(attempts=1))

        with pytest.raises(ValueError, match="no such customer") as caught, anyio.fail_after(SOON):
            async with kafka():
                await kafka.producer.send("t", b"1")
                await failed.wait()
                for probe in ("live", "ready"):
                    await app({"type": "http", "method": "GET", "path": f"/{probe}"}, receive, send)
                assert kafka.client.health().why == kafka.health().why
                await kafka.producer.send("t", b"2")  # requests are still answered
        assert [one["status"] for one in answers[::2]] == [503, 503]
        assert b"the worker bill has failed: ValueError: no such customer" in answers[1]["body"]
        assert failures == [caught.value]
        assert caught.value.__notes__ == ["the worker bill of the application has ended with this error"]
        errors = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
        assert errors == [
            "the worker bill has failed, so the application is no longer live: no such customer",
            "on_failure has raised an error: this is logged",
        ]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_several_workers_fail_and_one_cancels_itself() -> None:
    async with Broker(port=None) as broker:
        kafka = KafkaLifespan(on(broker))

        @kafka.worker
        async def first(client: Client, stop: anyio.Event) -> None:
            raise asyncio.CancelledError

        @kafka.worker
        async def second(client: Client, stop: anyio.Event) -> None:
            await stop.wait()
            raise ExceptionGroup("of a task group", [ValueError("x")])

        with pytest.raises(
            KafkaError, match=r"the worker has raised CancelledError, and nobody has cancelled it"
        ) as caught:
            async with kafka():
                await anyio.lowlevel.checkpoint()
        assert caught.value.__notes__[1].startswith("the worker second has failed as well: ExceptionGroup")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_worker_that_the_end_of_the_event_loop_cancels_has_not_failed(
    anyio_backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The server ends without the end of the lifespan, as after a second Ctrl-C."""
    failures: list[Exception] = []

    def serve() -> None:
        async def main() -> None:
            broker = await Broker(port=None).__aenter__()
            kafka = KafkaLifespan(on(broker), on_failure=failures.append)
            works = asyncio.Event()

            @kafka.worker
            async def work(client: Client, stop: anyio.Event) -> None:
                works.set()
                await asyncio.sleep(1000)

            async def live() -> None:
                async with kafka():
                    await asyncio.sleep(1000)

            lifespan = asyncio.create_task(live())
            await works.wait()
            assert not lifespan.done()

        asyncio.run(main())

    await anyio.to_thread.run_sync(serve)
    assert failures == []
    assert [one.getMessage() for one in caplog.records if one.name == "aiokafkawire.asgi"] == []


@pytest.mark.every_loop
async def test_an_async_on_failure_is_awaited_also_in_the_end() -> None:
    async with Broker(port=None) as broker:
        failures: list[Exception] = []

        async def on_failure(error: Exception) -> None:
            await anyio.lowlevel.checkpoint()
            failures.append(error)

        kafka = KafkaLifespan(on(broker), on_failure=on_failure)

        @kafka.worker
        async def fails_in_the_end(client: Client, stop: anyio.Event) -> None:
            await stop.wait()
            raise ValueError("x")

        with pytest.raises(ValueError, match="x") as caught, anyio.fail_after(SOON):
            async with kafka():
                pass
        assert failures == [caught.value]


@pytest.mark.every_loop
async def test_a_worker_that_exits_fails_and_requests_are_answered() -> None:
    async with Broker(port=None) as broker:
        failed = anyio.Event()
        kafka = KafkaLifespan(on(broker), on_failure=lambda _: failed.set())

        @kafka.worker
        async def exits(client: Client, stop: anyio.Event) -> None:
            raise SystemExit(3)

        with pytest.raises(KafkaError, match=r"the worker has raised SystemExit\(3\)"), anyio.fail_after(SOON):
            async with kafka():
                await failed.wait()
                assert not kafka.health().live


async def test_a_worker_that_is_added_twice_runs_twice() -> None:
    async with Broker(port=None) as broker:
        kafka = KafkaLifespan(on(broker))
        runs = []

        async def work(client: Client, stop: anyio.Event) -> None:
            runs.append(True)

        kafka.worker(kafka.worker(work))
        async with kafka():
            pass
        assert runs == [True, True]


async def test_an_error_of_the_application_comes_first() -> None:
    async with Broker(port=None) as broker:
        kafka = KafkaLifespan(on(broker))

        @kafka.worker
        async def fails(client: Client, stop: anyio.Event) -> None:
            await stop.wait()
            raise ValueError("later")

        with pytest.raises(RuntimeError, match="first"):
            async with kafka():
                raise RuntimeError("first")


async def test_wrong_arguments() -> None:
    wrong: Any
    for wrong in (None, "localhost:9092", Client("b:1")):
        with pytest.raises(UsageError, match="make_client must be a function"):
            KafkaLifespan(wrong)
    make: Any = lambda: Client("b:1")  # noqa: E731
    options: list[dict[str, Any]] = [
        {"make_producer": 5},
        {"on_failure": 5},
        {"shutdown_timeout": "1"},
        {"shutdown_timeout": None},
    ]
    for given in options:
        with pytest.raises(UsageError, match=f"{next(iter(given))} must be"):
            KafkaLifespan(make, **given)
    for wrong in (None, print, Client):
        with pytest.raises(UsageError, match="a worker must be a coroutine function of a client and an event"):
            KafkaLifespan(make).worker(wrong)
    with pytest.raises(UsageError, match=r"make_client must return an aiokafkawire\.Client, got 'b:1'"):
        async with KafkaLifespan(lambda: wrong_client)():
            raise AssertionError
    async with Broker(port=None) as broker:
        make_producer: Any = lambda client: client  # noqa: E731
        with pytest.raises(UsageError, match="make_producer must return a producer of the client"):
            async with KafkaLifespan(on(broker), make_producer)():
                raise AssertionError


wrong_client: Any = "b:1"


async def test_with_starlette_on_each_loop() -> None:
    httpx = pytest.importorskip("httpx")
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Mount, Route

    async with Broker(port=None) as broker:
        broker.create_topic("orders")
        kafka = KafkaLifespan(on(broker))

        async def order(request: Request) -> JSONResponse:
            producer: Producer[Any, Any] = request.app.state.kafka.producer
            return JSONResponse({"offset": (await producer.send("orders", await request.body())).offset})

        routes = [Route("/orders", order, methods=["POST"]), Mount("/health", HealthApp(kafka))]
        app = Starlette(routes=routes, lifespan=kafka)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as web,
        ):
            assert (await web.post("/orders", content=b"1")).json() == {"offset": 0}
            assert (await web.get("/health/ready")).json() == {"live": True, "ready": True, "why": None}
        assert kafka.health().state == "closed"
