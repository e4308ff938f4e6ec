"""Health probes: the ASGI application, and the file that is touched while a client is live."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from support.patience import PATIENCE
from support.virtual_time import virtual_time

import aiokafkawire
from aiokafkawire import Client, ConfigError, UsageError, blocking
from aiokafkawire.probes import HealthApp, touch_file
from aiokafkawire.testing.broker import Broker

HEALTH = Path(__file__).parents[1] / "docs" / "health.md"


async def ask(app: HealthApp, path: str, method: str = "GET") -> tuple[int, dict[str, str], Any]:
    """Send a request to an ASGI application; return the status, the headers and the body."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app({"type": "http", "method": method, "path": path, "headers": []}, receive, send)
    start, body = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    content = body["body"]
    return start["status"], headers, json.loads(content) if content else None


@pytest.mark.anyio
@virtual_time
async def test_the_probes_answer_200_or_503() -> None:
    async with Broker(port=None) as broker:
        kafka = Client(broker.bootstrap, connector=broker.connect)
        app = HealthApp(kafka)
        not_open = {"live": True, "ready": False, "why": "the client is not open yet"}
        assert (await ask(app, "/ready"))[::2] == (503, not_open)
        assert (await ask(app, "/live"))[::2] == (200, not_open)
        async with kafka:
            well = {"live": True, "ready": True, "why": None}
            status, headers, body = await ask(app, "/health/ready/")
            assert (status, body) == (200, well)
            assert headers["content-type"] == "application/json"
            assert headers["content-length"] == str(len(json.dumps(well)))
            assert (await ask(app, "/health/live"))[::2] == (200, well)
            broker.create_topic("t")
            async with kafka.consumer("t", group_id="g", max_poll_interval_ms=6_000) as consumer:
                await consumer.poll(timeout=3)
                await anyio.sleep(10)
                status, _, body = await ask(app, "/live")
                assert (status, body["live"]) == (503, False)
                assert "max_poll_interval_ms" in body["why"]


class FakeFastAPI:
    """As much of FastAPI as the snippet of docs/health.md uses."""

    def __init__(self, lifespan: Any) -> None:
        self.lifespan = lifespan
        self.state = SimpleNamespace()

    def mount(self, path: str, app: HealthApp) -> None:
        assert path == "/health"
        self.probes = app


@pytest.mark.slow
@pytest.mark.anyio
@virtual_time
async def test_a_service_starts_while_no_broker_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", HEALTH.read_text(), re.DOTALL)
    (snippet,) = (block for block in blocks if "run_kafka" in block)
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        reachable = False

        async def connect(*args: Any, **options: Any) -> Any:
            if not reachable:
                raise ConnectionRefusedError("nobody listens")
            return await broker.connect(*args, **options)

        def make_client(_: str, **options: Any) -> Client:
            return Client(broker.bootstrap, connector=connect, **options)

        monkeypatch.setattr(aiokafkawire, "Client", make_client)
        monkeypatch.setitem(sys.modules, "fastapi", SimpleNamespace(FastAPI=FakeFastAPI))
        names: dict[str, Any] = {}
        exec(snippet, names)
        app = names["app"]
        async with app.lifespan(app):
            await anyio.sleep(3600)
            assert (await ask(app.probes, "/health/live"))[0] == 200
            status, _, body = await ask(app.probes, "/health/ready")
            assert status == 503
            assert body["why"].startswith("the client is not open yet; no broker is reachable: ")
            assert "nobody listens" in body["why"]
            reachable = True
            await anyio.sleep(10)
            assert (await ask(app.probes, "/health/ready"))[0] == 200
            await app.state.producer.send("t", b"1")
        status, _, body = await ask(app.probes, "/health/ready")
        assert (status, body["why"]) == (503, "the client is closed")
        reachable = False
        exec(snippet, names)
        async with names["app"].lifespan(names["app"]):
            await anyio.sleep(60)  # the service ends before a broker has answered


@pytest.mark.anyio
async def test_other_requests() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        app = HealthApp(kafka, details=True)
        assert (await ask(app, "/"))[0] == 404
        assert (await ask(app, "/other"))[0] == 404
        status, headers, _ = await ask(app, "/live", "POST")
        assert (status, headers["allow"]) == (405, "GET, HEAD")
        status, headers, body = await ask(app, "/live", "HEAD")
        assert (status, body) == (200, None)
        assert int(headers["content-length"]) > 0
        assert (await ask(app, "/live"))[2]["brokers"][0]["node_id"] == 1
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message["type"])

        messages = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> dict[str, Any]:
            return {"type": next(messages)}

        await app({"type": "lifespan"}, receive, send)
        await app({"type": "websocket"}, receive, send)
        assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]


@pytest.mark.parametrize("wrong", [None, "localhost:9092"])
def test_what_is_no_client(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"kafka must be .*; with a blocking client, answer"):
        HealthApp(wrong)
    with pytest.raises(UsageError, match="kafka must be"):
        touch_file("/tmp/alive", wrong)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": ""}, "path must be the path of a file"),
        ({"path": b"x"}, "path must be the path of a file"),
        ({"every": 0}, "every must be a number of seconds, more than 0"),
        ({"every": True}, "every must be"),
        ({"every": float("nan")}, "every must be"),
        ({"probe": "alive"}, "probe must be 'live' or 'ready', got 'alive'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        touch_file(**{"path": "/tmp/alive", "kafka": Client("b:1"), **arguments})
    with pytest.raises(UsageError, match="details must be"):
        HealthApp(Client("b:1"), details="yes")  # type: ignore[arg-type]


def age_out(path: Path) -> None:
    os.utime(path, (0, 0))


@pytest.mark.anyio
@virtual_time
async def test_the_file_is_touched_while_the_client_is_live(tmp_path: Path) -> None:
    path = tmp_path / "alive"
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        broker.create_topic("t")
        async with (
            kafka.consumer("t", group_id="g", max_poll_interval_ms=60_000) as consumer,
            touch_file(path, kafka, every=5),
        ):
            assert json.loads(path.read_text())["live"] is True
            assert time.time() - path.stat().st_mtime < 60
            await consumer.poll(timeout=3)
            age_out(path)
            await anyio.sleep(1)
            assert path.stat().st_mtime == 0
            await anyio.sleep(2)
            assert path.stat().st_mtime > 0
            await anyio.sleep(60)  # without a poll
            age_out(path)
            await anyio.sleep(30)
            assert path.stat().st_mtime == 0
            await consumer.poll(timeout=10)
            assert path.stat().st_mtime > 0
            assert os.listdir(tmp_path) == ["alive"]
        assert os.listdir(tmp_path) == []


@pytest.mark.anyio
@virtual_time
async def test_a_file_that_shows_readiness(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    async with (
        Broker(port=None) as broker,
        Client(broker.bootstrap, connector=broker.connect) as kafka,
        touch_file(path, kafka, probe="ready"),
    ):
        assert path.exists()
        await broker.stop_node(1)
        await anyio.sleep(20)
        age_out(path)
        await anyio.sleep(20)
        assert path.stat().st_mtime == 0
        await broker.start_node(1)
        await anyio.sleep(20)
        assert path.stat().st_mtime > 0


@pytest.mark.anyio
async def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        for path in (tmp_path / "no" / "alive", tmp_path):
            with pytest.raises(ConfigError, match=f"cannot write {path}: .*; give a file in a folder that exists"):
                async with touch_file(path, kafka):
                    raise AssertionError
    assert os.listdir(tmp_path) == []


@pytest.mark.anyio
async def test_a_path_that_cannot_be_written_is_refused_also_while_the_client_is_not_ready(tmp_path: Path) -> None:
    async with (
        Broker(port=None) as broker,
        Client(broker.bootstrap, connector=broker.connect) as kafka,
        kafka.consumer("t", group_id="g"),
    ):
        assert not kafka.health().ready
        for path in (tmp_path / "no" / "ready", tmp_path):
            with pytest.raises(ConfigError, match=f"cannot write {path}: "):
                async with touch_file(path, kafka, probe="ready"):
                    raise AssertionError
        (tmp_path / "ready").touch()  # of a process that was killed
        async with touch_file(tmp_path / "ready", kafka, probe="ready"):
            assert os.listdir(tmp_path) == []


@pytest.mark.anyio
@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
async def test_no_link_in_the_folder_leads_the_file_elsewhere(tmp_path: Path) -> None:
    """As another user may lay it where all may write, such as in /tmp."""
    folder, precious = tmp_path / "folder", tmp_path / "precious"
    folder.mkdir()
    precious.write_text("precious")
    path = folder / "alive"
    for link in (folder / f".alive.{os.getpid()}", path):
        link.symlink_to(precious)
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        async with touch_file(path, kafka):
            assert not path.is_symlink()
            assert json.loads(path.read_text())["live"] is True
        assert os.listdir(folder) == []
    assert precious.read_text() == "precious"


@pytest.mark.anyio
@virtual_time
async def test_a_folder_that_disappears_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    async with (
        Broker(port=None) as broker,
        Client(broker.bootstrap, connector=broker.connect) as kafka,
        touch_file(folder / "alive", kafka, every=1),
    ):
        (folder / "alive").unlink()
        folder.rmdir()
        await anyio.sleep(10)
        assert [one.levelname for one in caplog.records if one.name == "aiokafkawire.health"] == ["WARNING"]
        folder.mkdir()
        await anyio.sleep(2)
        assert (folder / "alive").exists()


@pytest.mark.anyio
async def test_a_file_needs_an_open_client_and_the_right_with(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not open"):
        async with touch_file(tmp_path / "alive", Client("b:1")):
            raise AssertionError
    with pytest.raises(UsageError, match="as 'async with', not as 'with'"), touch_file("x", Client("b:1")):
        raise AssertionError
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        file = touch_file(tmp_path / "alive", kafka)
        async with file:
            await kafka.close()
        with pytest.raises(UsageError, match="used before"):
            async with file:
                raise AssertionError
    assert os.listdir(tmp_path) == []


@pytest.mark.anyio
async def test_the_blocking_client_touches_a_file_on_its_thread(tmp_path: Path) -> None:
    path = tmp_path / "alive"

    def work(bootstrap: str) -> None:
        client = blocking.Client(bootstrap)
        assert client.health().why == "the client is not open yet"
        with client as kafka, touch_file(path, kafka, every=0.01):
            assert kafka.health().ready
            with kafka.producer() as producer:
                producer.send("t", b"1")
                assert (producer.health().why, producer.name) == (None, "produce-1")
                assert list(kafka.health().producers) == ["produce-1"]
            age_out(path)
            until = time.monotonic() + PATIENCE
            while path.stat().st_mtime == 0 and time.monotonic() < until:
                time.sleep(0.005)
            assert path.stat().st_mtime > 0
        assert not path.exists()
        assert client.health().why == "the client is closed"

    async with Broker() as broker:
        broker.create_topic("t")
        await anyio.to_thread.run_sync(work, broker.bootstrap)
