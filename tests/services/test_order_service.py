"""The service of examples/order_service.py: with a request client in this process, and as a process with uvicorn."""

from __future__ import annotations

import importlib.util
import json
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import anyio.to_thread
import pytest
from support.guarded_process import GuardedProcess, tail
from support.patience import PATIENCE, SOON
from support.ports import free_ports

from aiokafkawire import Client
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.broker import Broker

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parents[2] / "examples"
ORDERS, INVOICES, GROUP = "service-orders", "service-invoices", "invoicing"


@pytest.fixture
def service() -> Iterator[ModuleType]:
    """The example as a module of its own."""
    spec = importlib.util.spec_from_file_location("order_service", FOLDER / "order_service.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where FastAPI looks for the names of annotations
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=None) as broker:
        yield broker


def order(number: int) -> dict[str, Any]:
    return {"number": number, "customer": f"customer-{number % 7}", "amount": number}


async def invoiced(kafka: Client) -> list[int]:
    """Return the numbers of the orders that have invoices, ascending."""
    return sorted([json.loads(record.value or b"")["order"] async for record in kafka.read_records(INVOICES)])


async def test_orders_are_taken_and_invoiced(
    service: ModuleType, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        service.kafka, "_make_client", lambda: Client(broker.bootstrap, connector=broker.connect, client_id="orders")
    )
    app = service.app
    with anyio.fail_after(SOON):
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as web,
        ):
            for number in range(3):
                answer = await web.post("/orders", json=order(number))
                assert (answer.status_code, set(answer.json())) == (202, {"partition", "offset"})
            assert (await web.post("/orders", json={"number": "x"})).status_code == 422
            async with service.kafka.client.consumer(INVOICES, auto_offset_reset="earliest") as consumer:
                found = [await anext(aiter(consumer)) for _ in range(3)]
            assert sorted(json.loads(record.value)["order"] for record in found) == [0, 1, 2]
            assert (await web.get("/health/live")).json() == {"live": True, "ready": True, "why": None}
            metrics = await web.get("/metrics")
            assert metrics.headers["content-type"].startswith("text/plain")
            assert 'topic="service-orders"' in metrics.text
        assert list(service.registry.collect()) == []
        async with Client(broker.bootstrap, connector=broker.connect) as kafka:
            assert sum((await kafka.admin.consumer_group_lag(GROUP)).values()) == 0


async def test_a_worker_that_fails_stops_the_server(
    service: ModuleType, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = anyio.Event()
    monkeypatch.setattr(service.signal, "raise_signal", lambda number: stopped.set())
    monkeypatch.setattr(
        service.kafka, "_make_client", lambda: Client(broker.bootstrap, connector=broker.connect, client_id="orders")
    )

    async def fails(client: Client, stop: anyio.Event) -> None:
        raise ValueError("no invoices")

    monkeypatch.setattr(service.kafka, "_workers", [fails])
    with pytest.raises(ValueError, match="no invoices"), anyio.fail_after(SOON):
        async with service.app.router.lifespan_context(service.app):
            await stopped.wait()
            transport = httpx.ASGITransport(service.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as web:
                answer = await web.get("/health/ready")
            assert (answer.status_code, answer.json()["why"]) == (
                503,
                "the worker fails has failed: ValueError: no invoices",
            )


# --- with a server -------------------------------------------------------------------------------------------


def request(port: int, path: str, body: Any = None) -> int:
    """Send a request; return the status of the response."""
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data=data, headers={"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@pytest.mark.thorough
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the service has its own loop
async def test_sigterm_loses_no_order(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(FOLDER), "--port", str(port), "order_service:app"]
    with BackgroundBroker() as broker:
        server = GuardedProcess(command, tmp_path / "uvicorn.log", {"KAFKA": broker.bootstrap})
        taken: set[int] = set()

        async def take(number: int) -> None:
            if await anyio.to_thread.run_sync(request, port, "/orders", order(number)) == 202:
                taken.add(number)

        async def start() -> None:
            server.launch()
            await anyio.to_thread.run_sync(server.wait_until, lambda: request(port, "/health/ready") == 200, "uvicorn")

        try:
            for first in (0, 200):
                await start()
                async with anyio.create_task_group() as tasks:
                    for number in range(first, first + 100):
                        tasks.start_soon(take, number)
                assert len(taken) >= first // 2 + 100
                async with anyio.create_task_group() as tasks:
                    # While requests are on their way, and orders wait for their invoices.
                    tasks.start_soon(anyio.to_thread.run_sync, server.end, PATIENCE)
                    for number in range(first + 100, first + 200):
                        tasks.start_soon(take, number)
                assert "Application shutdown complete" in tail(server.log)
            await start()
            async with Client(broker.bootstrap) as kafka:
                orders = sorted(
                    [json.loads(record.value or b"")["number"] async for record in kafka.read_records(ORDERS)]
                )
                async with kafka.consumer(INVOICES, auto_offset_reset="earliest") as consumer:
                    with anyio.fail_after(PATIENCE):
                        for _ in orders:
                            await anext(aiter(consumer))
                await anyio.to_thread.run_sync(server.end, PATIENCE)
                assert taken <= set(orders)
                assert await invoiced(kafka) == orders  # each once
        finally:
            server.kill()
