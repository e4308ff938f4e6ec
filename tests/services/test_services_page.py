"""The programs of docs/services.md run as they stand, with FastAPI and Litestar."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
from support.patience import SOON
from support.ports import free_ports

import aiokafkawire
from aiokafkawire import Client
from aiokafkawire.testing.broker import Broker

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("litestar")

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs" / "services.md"


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    """Litestar configures logging."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def snippet(word: str) -> str:
    (found,) = (block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if word in block)
    return str(found)


@asynccontextmanager
async def running(word: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, Any]]:
    """Run the snippet with this word with clients of an in-process broker."""
    async with Broker(port=None) as broker:
        broker.create_topic("orders")
        monkeypatch.setattr(aiokafkawire, "Client", lambda _: Client(broker.bootstrap, connector=broker.connect))
        module = ModuleType("snippet")
        monkeypatch.setitem(sys.modules, "snippet", module)  # where frameworks look for the names of annotations
        names = vars(module)
        exec(snippet(word), names)
        with anyio.fail_after(SOON):
            yield names


async def test_the_service_with_fastapi(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async with running("import FastAPI", monkeypatch) as names:
        app, billed = names["app"], anyio.Event()

        async def bill(record: Any) -> None:
            await old(record)
            billed.set()

        old, names["bill"] = names["bill"], bill
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as web,
        ):
            assert (await web.post("/orders/7")).json() == {"offset": 0}
            await billed.wait()
            assert capsys.readouterr().out == "billed b'7'\n"
            assert (await web.get("/health/live")).json() == {"live": True, "ready": True, "why": None}
            assert app.state.kafka is names["kafka"]


async def test_the_service_with_litestar(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running("import Litestar", monkeypatch) as names:
        app = names["app"]
        async with (
            app.lifespan(),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as web,
        ):
            assert (await web.post("/orders/7")).json() == {"offset": 0}
            assert (await web.get("/health/ready")).json() == {"live": True, "ready": True, "why": None}
            assert app.state.kafka is names["kafka"]
        assert names["kafka"].health().state == "closed"


async def test_the_test_of_a_service(monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    module = ModuleType("snippet")
    monkeypatch.setitem(sys.modules, "snippet", module)
    for word in ("import FastAPI", "async def test_an_order"):
        exec(snippet(word).replace("9092", str(port)), vars(module))
    with anyio.fail_after(SOON):
        await vars(module)["test_an_order"](None)
