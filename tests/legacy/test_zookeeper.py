"""The ZooKeeper client, on a real server, and on streams that lie."""

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from support.lines import Lines, nowhere, spoken_for
from support.virtual_time import virtual_time
from support.zookeeper import ZooKeeperServer

from aiokafkawire.errors import ConfigError, ConnectionLost, KafkaError, RequestTimeout, UsageError
from aiokafkawire.legacy.errors import BadVersion, NodeExists, NoNode, NotEmpty, SessionExpired
from aiokafkawire.legacy.jute import EventType, WatchEvent
from aiokafkawire.legacy.zookeeper import ZooKeeper
from aiokafkawire.network.connector import connect_tcp

pytestmark = pytest.mark.anyio

_ROOTS = itertools.count()
_PATIENCE = 20.0


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
        assert (data, stat.version, stat.ephemeral_owner, stat.data_length) == (b"one", 0, 0, 3)
        assert (await session.set("/a", b"two", 0)).version == 1
        with pytest.raises(BadVersion, match="set_data /a"):
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
        found = await session.exists("/b")
        assert found is not None
        assert found.num_children == 1


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
                with anyio.fail_after(_PATIENCE):
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


def lines_to(server: ZooKeeperServer) -> Lines:
    """To the real server, whatever it is called."""
    return Lines(lambda host, port: connect_tcp("127.0.0.1", server.port))


async def test_a_session_goes_on_at_another_server_with_its_nodes_and_watches(zookeeper: ZooKeeperServer) -> None:
    lines, heard, told = lines_to(zookeeper), list[WatchEvent](), anyio.Event()

    def hear(event: WatchEvent) -> None:
        heard.append(event)
        told.set()

    path = f"/moving-{next(_ROOTS)}"
    async with ZooKeeper("a:1,b:2", connector=lines) as session, ZooKeeper(zookeeper.address) as other:
        number = session.session_id
        await session.create(path, b"x", ephemeral=True)
        await session.get(path, hear)
        lines.refused = {lines.asked[0]}
        await lines.cut()
        assert await session.exists(path) is not None
        assert session.session_id == number
        assert lines.asked[-1] != lines.asked[0]
        await other.set(path, b"changed")
        with anyio.fail_after(_PATIENCE):
            await told.wait()
        assert heard == [WatchEvent(EventType.DATA_CHANGED, path)]


async def test_what_happened_while_nobody_was_connected_is_told(zookeeper: ZooKeeperServer) -> None:
    lines, told = lines_to(zookeeper), anyio.Event()
    path = f"/meanwhile-{next(_ROOTS)}"
    async with ZooKeeper(zookeeper.address) as other:
        await other.create(path)
        async with ZooKeeper("a", session_timeout_ms=4_000, connector=lines) as session:
            await session.get(path, lambda event: told.set())
            lines.refused = {"a"}
            await lines.cut()
            await other.set(path, b"changed")
            lines.refused = set()
            with anyio.fail_after(_PATIENCE):
                await told.wait()
        await other.delete(path)


async def test_a_session_that_reaches_no_server_in_time_has_expired(zookeeper: ZooKeeperServer) -> None:
    lines, heard = lines_to(zookeeper), list[WatchEvent]()
    path = f"/lost-{next(_ROOTS)}"
    async with ZooKeeper("a", session_timeout_ms=400, connector=lines) as session:
        await session.create(path, ephemeral=True)
        await session.get(path, heard.append)
        lines.refused = {"a"}
        await lines.cut()
        with anyio.fail_after(_PATIENCE):
            with pytest.raises(SessionExpired, match=r"no ZooKeeper server was reached for 0\.4 s"):
                await session.exists(path)
        assert session.expired
        assert heard == [WatchEvent(EventType.NONE, path)]
        with pytest.raises(SessionExpired):
            await session.create("/x")
    async with ZooKeeper(zookeeper.address) as other:
        gone = anyio.Event()
        if await other.exists(path, lambda event: gone.set()) is not None:
            with anyio.fail_after(_PATIENCE):
                await gone.wait()
        assert await other.exists(path) is None


async def test_a_server_that_comes_back_goes_on_with_the_session() -> None:
    from support.apache_kafka import missing
    from support.needing import require

    require(missing())
    server = ZooKeeperServer(tick_ms=3_000)
    try:
        server.start()
        # Longer than it takes to boot on a busy machine; a server grants twenty ticks at most.
        async with ZooKeeper(server.address, session_timeout_ms=60_000) as session:
            await session.create("/stays", b"x", ephemeral=True)
            server.kill()
            await anyio.to_thread.run_sync(server.start)
            assert (await session.get("/stays"))[1].ephemeral_owner == session.session_id
    finally:
        server.stop()


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a/../b", "/."])
async def test_paths_that_are_none_are_refused(zookeeper: ZooKeeperServer, path: str) -> None:
    async with ZooKeeper(zookeeper.address) as session:
        with pytest.raises(UsageError, match="not a path in ZooKeeper"):
            await session.exists(path)


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="session_timeout_ms must be a whole number"):
        ZooKeeper("a", session_timeout_ms=0)
    with pytest.raises(ConfigError):
        ZooKeeper("/root")
    with pytest.raises(ConfigError, match="the port must be a number"):
        ZooKeeper("a:b")


async def test_nothing_listens() -> None:
    with pytest.raises(ConnectionLost, match=r"no ZooKeeper server of a:2181 within 0\.05 s: a:2181: refused"):
        async with ZooKeeper("a", connector=nowhere, request_timeout_ms=50):
            pass


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
        await stream.aclose()

    async with spoken_for(serve) as connect:
        try:
            with anyio.fail_after(_PATIENCE):
                async with ZooKeeper("a", connector=connect, session_timeout_ms=200, request_timeout_ms=300) as session:
                    return await (then(session) if then else session.exists("/a"))
        except KafkaError as error:
            return error


@virtual_time
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

    async with spoken_for(serve) as connect, ZooKeeper("a", connector=connect):
        with anyio.fail_after(_PATIENCE):
            await pings.wait()


@pytest.mark.parametrize("says", [b"HTTP/1.1 400 Bad Request", b"\xff\xff\xff\xff", b"\0\0\0\2ab", b"\0\0\0\0"])
async def test_a_greeting_that_is_none(says: bytes) -> None:
    found = await talk(says)
    assert isinstance(found, ConnectionLost)
    assert "no ZooKeeper server of a:2181 within 0.3 s: a:2181: " in str(found)


@pytest.mark.parametrize(
    "says",
    [
        b"\0\0\0\x10\0\0\0\x63\0\0\0\0\0\0\0\1\0\0\0\0",  # another xid
        b"\0\0\0\x10\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0",  # no node in it
        b"\0\0\0\3abc",
        b"\0\0\0\x18\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x63\0\0\0\3",  # no such event
        b"\x7f\xff\xff\xff",
    ],
)
async def test_an_answer_that_is_none_ends_the_connection(says: bytes) -> None:
    found = await talk(GREETING, says)
    assert isinstance(found, ConnectionLost | RequestTimeout | SessionExpired)


async def test_a_change_whose_answer_never_came_may_have_been_made() -> None:
    found = await talk(GREETING, b"", ends=True, then=lambda session: session.create("/a"))
    assert isinstance(found, ConnectionLost)
    assert "a change that was asked for may have been made" in str(found)


async def test_an_error_of_zookeeper_is_told() -> None:
    found = await talk(GREETING, b"\0\0\0\x10\0\0\0\1\0\0\0\0\0\0\0\1\xff\xff\xff\x9a")
    assert "exists /a: error -102 (not authorised)" in str(found)
