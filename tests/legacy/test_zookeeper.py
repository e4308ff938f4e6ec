"""The ZooKeeper client, on a real server, and on servers that lie."""

import itertools
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from support.memory_zookeeper import memory_zookeeper
from support.patience import SOON
from support.ports import free_ports
from support.tcp_servers import cuttable_proxy, tcp_server
from support.zookeeper import ZooKeeperServer

from aiokafkawire.errors import ConfigError, ConnectionLost, KafkaError, RequestTimeout, UsageError, WireError
from aiokafkawire.legacy.consumer import LegacyConsumer
from aiokafkawire.legacy.errors import (
    BadVersion,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    ZooKeeperError,
    zookeeper_error,
)
from aiokafkawire.legacy.producer import LegacyProducer
from aiokafkawire.legacy.zookeeper import EventType, WatchEvent, ZooKeeper

pytestmark = pytest.mark.anyio

_ROOTS = itertools.count()


@asynccontextmanager
async def rooted(server: ZooKeeperServer, **options: Any) -> AsyncIterator[ZooKeeper]:
    """A session below a node that no other test has."""
    root = f"/test-{next(_ROOTS)}"
    async with ZooKeeper(server.address) as first:
        await first.create(root)
    async with ZooKeeper(server.address + root, **options) as session:
        yield session


async def test_nodes_are_made_read_changed_and_deleted(zookeeper: ZooKeeperServer) -> None:
    async with rooted(zookeeper) as session:
        await session.create("/a", b"one")
        await session.ensure("/b/c/d")
        assert sorted(await session.children("/")) == ["a", "b"]
        assert (await session.get("/b/c"))[0] is None
        data, stat = await session.get("/a")
        assert (data, stat.version, stat.ephemeral_owner) == (b"one", 0, 0)
        assert (await session.set("/a", b"two", 0)).version == 1
        with pytest.raises(BadVersion, match="set /a"):
            await session.set("/a", b"three", 0)
        with pytest.raises(NodeExists, match="create /a"):
            await session.create("/a")
        with pytest.raises(NoNode, match="create /x/y"):
            await session.create("/x/y")
        with pytest.raises(NotEmpty, match="delete /b"):
            await session.delete("/b")
        with pytest.raises(NoNode):
            await session.children("/x")
        await session.delete("/a")
        assert await session.exists("/a") is None
        assert await session.children("/b") == ["c"]


async def test_an_ephemeral_node_goes_with_its_session(zookeeper: ZooKeeperServer) -> None:
    async with rooted(zookeeper) as first:
        heard: list[WatchEvent] = []
        gone = anyio.Event()

        def hear(event: WatchEvent) -> None:
            heard.append(event)
            gone.set()

        async with ZooKeeper(zookeeper.address) as second:
            path = f"/ephemeral-{next(_ROOTS)}"
            await second.create(path, b"mine", ephemeral=True)
            async with ZooKeeper(zookeeper.address) as third:
                stat = await third.exists(path, hear)
                assert stat is not None
                assert stat.ephemeral_owner == second.session_id
                await second.delete(path)
                with anyio.fail_after(SOON):
                    await gone.wait()
                assert heard == [WatchEvent(EventType.DELETED, path)]
            await second.create(path, ephemeral=True)
        assert await first.exists("/nobody") is None
        async with ZooKeeper(zookeeper.address) as fourth:
            assert await fourth.exists(path) is None


async def test_watches_are_told_once(zookeeper: ZooKeeperServer) -> None:
    async with rooted(zookeeper) as session:
        heard: list[WatchEvent] = []
        await session.create("/a")
        await session.children("/", heard.append)
        await session.get("/a", heard.append)
        await session.exists("/b", heard.append)
        await session.set("/a", b"x")
        await session.set("/a", b"y")
        await session.create("/b")
        await session.create("/c")
        assert await session.exists("/a") is not None  # answers come behind what happened before
        assert heard == [
            WatchEvent(EventType.DATA_CHANGED, "/a"),
            WatchEvent(EventType.CREATED, "/b"),
            WatchEvent(EventType.CHILDREN_CHANGED, "/"),
        ]


async def test_a_watch_that_raises_ends_the_session_with_its_error(zookeeper: ZooKeeperServer) -> None:
    def hear(event: WatchEvent) -> None:
        raise ValueError("a mistake in a watch")

    async with rooted(zookeeper) as session:
        await session.create("/a")
        await session.get("/a", hear)
        with pytest.raises(KafkaError, match=r"a mistake in a watch|connection to"):
            await session.set("/a", b"x")
            await session.exists("/a")
        with pytest.raises(KafkaError, match="a mistake in a watch"):
            await session.exists("/a")


async def test_a_session_goes_on_at_another_server_with_its_nodes(zookeeper: ZooKeeperServer) -> None:
    path, heard, told = f"/moving-{next(_ROOTS)}", list[WatchEvent](), anyio.Event()

    def hear(event: WatchEvent) -> None:
        heard.append(event)
        told.set()

    async with (
        cuttable_proxy(zookeeper.port) as first,
        cuttable_proxy(zookeeper.port) as second,
        ZooKeeper(f"{first.address},{second.address}") as session,
        ZooKeeper(zookeeper.address) as other,
    ):
        number = session.session_id
        used, spare = (first, second) if first.dialled else (second, first)
        await session.create(path, b"x", ephemeral=True)
        await session.get(path, hear)
        await used.cut()
        assert await session.exists(path) is not None
        assert (session.session_id, spare.dialled > 0) == (number, True)
        with anyio.fail_after(SOON):
            await told.wait()
        assert heard == [WatchEvent(EventType.RECONNECTED, path)]
        told = anyio.Event()
        await session.get(path, hear)
        await other.set(path, b"changed")
        with anyio.fail_after(SOON):
            await told.wait()
        assert heard[1:] == [WatchEvent(EventType.DATA_CHANGED, path)]


async def test_what_happened_while_nobody_was_connected_is_told(zookeeper: ZooKeeperServer) -> None:
    path, told = f"/meanwhile-{next(_ROOTS)}", anyio.Event()
    async with cuttable_proxy(zookeeper.port) as proxy, ZooKeeper(zookeeper.address) as other:
        await other.create(path)
        async with ZooKeeper(proxy.address, session_timeout_ms=4_000) as session:
            await session.get(path, lambda event: told.set())
            await proxy.cut()
            await other.set(path, b"changed")
            proxy.refuses = False
            with anyio.fail_after(SOON):
                await told.wait()
            assert (await session.get(path))[0] == b"changed"
        await other.delete(path)


async def test_a_session_that_reaches_no_server_in_time_has_expired(zookeeper: ZooKeeperServer) -> None:
    path, heard = f"/lost-{next(_ROOTS)}", list[WatchEvent]()
    async with cuttable_proxy(zookeeper.port) as proxy, ZooKeeper(proxy.address, session_timeout_ms=1_000) as session:
        await session.create(path, ephemeral=True)
        await session.get(path, heard.append)
        await proxy.cut()
        with anyio.fail_after(SOON):
            with pytest.raises(SessionExpired, match=r"no ZooKeeper server was reached for 1 s"):
                await session.exists(path)
        assert session.expired
        assert heard == [WatchEvent(EventType.EXPIRED, path)]
        with pytest.raises(SessionExpired):
            await session.create("/x")
        proxy.refuses = False
        with pytest.raises(SessionExpired):  # it has not begun another
            await session.exists(path)
    async with ZooKeeper(zookeeper.address) as other:
        gone = anyio.Event()
        if await other.exists(path, lambda event: gone.set()) is not None:
            with anyio.fail_after(SOON):
                await gone.wait()
        assert await other.exists(path) is None


async def test_a_server_that_says_no_on_reconnecting_has_ended_the_session() -> None:
    async with memory_zookeeper(10_000) as server, ZooKeeper(server.address) as session:
        await server.leave()
        server.come_back()
        with anyio.fail_after(SOON), pytest.raises(SessionExpired, match="Session has expired"):
            await session.exists("/a")
        assert session.expired
        assert server.sessions == 1


async def test_the_server_decides_on_the_session_timeout(zookeeper: ZooKeeperServer) -> None:
    for asked, granted in ((300, 0.4), (1_000, 1.0), (60_000, 4.0)):  # two to twenty ticks of 200 ms
        async with ZooKeeper(zookeeper.address, session_timeout_ms=asked) as session:
            assert session.session_timeout == pytest.approx(granted)


async def test_a_server_that_comes_back_goes_on_with_the_session() -> None:
    from support.apache_kafka import missing
    from support.needing import require

    require(missing())
    server = ZooKeeperServer(tick_ms=3_000)
    try:
        server.start()
        # Longer than it takes to boot on a busy machine; a server grants twenty ticks at most.
        async with ZooKeeper(server.address, session_timeout_ms=30_000) as session:
            await session.create("/stays", b"x", ephemeral=True)
            server.kill()
            await anyio.to_thread.run_sync(server.start)
            assert (await session.get("/stays"))[1].ephemeral_owner == session.session_id
    finally:
        server.stop()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a/../b", "/.", "/\ud800"])
async def test_paths_that_are_none_are_refused(zookeeper: ZooKeeperServer, path: str) -> None:
    async with ZooKeeper(zookeeper.address) as session:
        with pytest.raises(UsageError, match=r"not a path in ZooKeeper|cannot be written as UTF-8"):
            await session.exists(path)


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="session_timeout_ms must be a whole number"):
        ZooKeeper("a", session_timeout_ms=0)
    with pytest.raises(ConfigError):
        ZooKeeper("/root")
    with pytest.raises(ConfigError, match="the port must be a number"):
        ZooKeeper("a:b")


@pytest.mark.slow
async def test_nothing_listens() -> None:
    (port,) = free_ports(1)
    failed = rf"no ZooKeeper server of 127\.0\.0\.1:{port} within 2 s: .*127\.0\.0\.1:{port}: Connection refused"
    with pytest.raises(ConnectionLost, match=failed):
        async with ZooKeeper(f"127.0.0.1:{port}", request_timeout_ms=2_000):
            pass


# --- the library and its thread -------------------------------------------------------------------------------------


async def none_is_left() -> None:
    """Wait until no thread of a session is left."""
    with anyio.fail_after(SOON):
        while any(thread.name.startswith("aiokafkawire-zookeeper") for thread in threading.enumerate()):  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_a_session_has_one_thread_and_closing_ends_it(zookeeper: ZooKeeperServer) -> None:
    async with ZooKeeper(zookeeper.address):
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("aiokafkawire-zookeeper") == 1
    await none_is_left()


async def test_opening_that_is_cancelled_leaves_no_thread() -> None:
    (port,) = free_ports(1)
    with anyio.move_on_after(0.2) as limit:
        async with ZooKeeper(f"127.0.0.1:{port}"):
            pass
    assert limit.cancelled_caught
    await none_is_left()


def test_a_loop_that_ends_without_closing_leaves_no_thread(zookeeper: ZooKeeperServer) -> None:
    async def forget() -> None:
        await ZooKeeper(zookeeper.address).__aenter__()

    anyio.run(forget)
    anyio.run(none_is_left)


async def silent(stream: ByteStream) -> None:
    """Begin a session, and answer nothing."""
    await stream.receive()
    await stream.send(GREETING)
    while True:
        await stream.receive()


async def test_closing_takes_bounded_time_where_the_server_says_nothing() -> None:
    async with tcp_server(silent) as address:
        with anyio.fail_after(SOON):
            async with ZooKeeper(address, session_timeout_ms=60_000):
                pass
    await none_is_left()


@pytest.mark.slow
async def test_closing_takes_bounded_time_where_nobody_accepts_connections() -> None:
    with socket.socket() as server, socket.socket() as queued:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        queued.connect(server.getsockname())
        with anyio.fail_after(SOON), pytest.raises(ConnectionLost, match=r"no ZooKeeper server of .* within 0\.3 s"):
            async with ZooKeeper(f"127.0.0.1:{server.getsockname()[1]}", request_timeout_ms=300):
                pass
        await none_is_left()


async def test_kazoo_says_nothing_in_the_log_above_debug(
    zookeeper: ZooKeeperServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with cuttable_proxy(zookeeper.port) as proxy, ZooKeeper(proxy.address, session_timeout_ms=1_000) as session:
        await proxy.cut()
        with anyio.fail_after(SOON), pytest.raises(SessionExpired):
            await session.exists("/a")
    assert [record for record in caplog.records if "kazoo" in record.name] == []


def test_without_kazoo_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    monkeypatch.delitem(sys.modules, "aiokafkawire.legacy.kazoo_thread", raising=False)
    make: list[Callable[[], object]] = [
        lambda: ZooKeeper("z"),
        lambda: LegacyConsumer("z", "g", ["t"]),
        lambda: LegacyProducer("z"),
    ]
    for call in make:
        with pytest.raises(ConfigError, match=r"pip install 'aiokafkawire\[legacy\]'"):
            call()


def test_brokers_that_are_given_need_no_kazoo() -> None:
    program = (
        "import sys; import aiokafkawire.legacy.client, aiokafkawire.legacy.consumer, aiokafkawire.legacy.migration;"
        " from aiokafkawire.legacy.client import LegacyClient; LegacyClient('b'); assert 'kazoo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --- servers that are none ------------------------------------------------------------------------------------------

GREETING = b"\0\0\0\x25\0\0\0\0\0\0\x03\xe8\0\0\0\0\0\0\0\7\0\0\0\x10" + b"p" * 16 + b"\0"


async def talk(*says: bytes, ends: bool = False, then: Callable[[ZooKeeper], Any] | None = None) -> Any:
    """What becomes of a session with a server that answers each write so, and then nothing, or hangs up."""

    async def serve(stream: ByteStream) -> None:
        for data in says:
            await stream.receive()
            await stream.send(data)
        while not ends:
            await stream.receive()

    async with tcp_server(serve) as address:
        try:
            with anyio.fail_after(SOON):
                async with ZooKeeper(address, session_timeout_ms=200, request_timeout_ms=300) as session:
                    return await (then(session) if then else session.exists("/a"))
        except KafkaError as error:
            return error


async def test_a_session_is_kept_by_pings() -> None:
    pings = anyio.Event()

    async def serve(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(GREETING)
        for _ in range(3):
            assert await stream.receive() == b"\0\0\0\x08\xff\xff\xff\xfe\0\0\0\x0b"
            await stream.send(b"\0\0\0\x10" + b"\xff\xff\xff\xfe" + bytes(12))
        pings.set()
        await stream.receive()

    async with tcp_server(serve) as address, ZooKeeper(address):
        with anyio.fail_after(SOON):
            await pings.wait()


@pytest.mark.parametrize("says", [b"HTTP/1.1 400 Bad Request", b"\xff\xff\xff\xff", b"\0\0\0\2ab", b"\0\0\0\0"])
async def test_a_greeting_that_is_none(says: bytes) -> None:
    found = await talk(says)
    assert isinstance(found, ConnectionLost)
    assert "within 0.3 s: " in str(found)


@pytest.mark.parametrize(
    "says",
    [
        b"\0\0\0\x10\0\0\0\x63\0\0\0\0\0\0\0\1\0\0\0\0",  # another xid
        b"\0\0\0\x10\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0",  # no node in it
        b"\0\0\0\x10\0\0\0\1\0\0\0\0\0\0\0\1\xff\xff\xfc\x19",  # no such error
        b"\0\0\0\3abc",
        b"\0\0\0\x18\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x63\0\0\0\3",  # no such event
        b"\x7f\xff\xff\xff",
    ],
)
async def test_an_answer_that_is_none_is_an_error_in_time(says: bytes) -> None:
    found = await talk(GREETING, says)
    assert isinstance(found, ConnectionLost | RequestTimeout | SessionExpired | WireError), found


async def test_a_change_whose_answer_never_came_may_have_been_made() -> None:
    found = await talk(GREETING, b"", ends=True, then=lambda session: session.create("/a"))
    assert isinstance(found, ConnectionLost)
    assert "a change that was asked for may have been made" in str(found)


async def test_an_error_of_zookeeper_is_told() -> None:
    found = await talk(GREETING, b"\0\0\0\x10\0\0\0\1\0\0\0\0\0\0\0\1\xff\xff\xff\x9a")
    assert "exists /a: error -102 (not authorised)" in str(found)


def test_errors_have_classes() -> None:
    assert isinstance(zookeeper_error(-101, "get /a"), NoNode)
    assert str(zookeeper_error(-101, "get /a")).startswith("get /a: There is no node")
    assert isinstance(zookeeper_error(-112, ""), SessionExpired)
    other = zookeeper_error(-102, "get /a")
    assert (type(other), other.code, str(other)) == (ZooKeeperError, -102, "get /a: error -102 (not authorised)")
    assert "unknown to this release" in str(zookeeper_error(-999, "get /a"))
