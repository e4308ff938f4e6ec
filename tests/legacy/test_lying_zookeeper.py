"""ZooKeeper servers that lie, and what is registered there by who means no good: an error in time, and never a loop."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint
from support.legacy_cluster import LegacyCluster, legacy_cluster
from support.patience import SOON
from support.tcp_servers import CuttableProxy, cuttable_proxy, tcp_server
from support.zookeeper import ZooKeeperServer

from aiokafkawire.errors import ConnectionLost, KafkaError, WireError
from aiokafkawire.legacy.cluster import Registry
from aiokafkawire.legacy.consumer import LegacyConsumer
from aiokafkawire.legacy.errors import NodeExists, NoNode, SessionExpired
from aiokafkawire.legacy.group import LegacyGroupMember
from aiokafkawire.legacy.producer import LegacyProducer
from aiokafkawire.legacy.registry import BrokerPartition, GroupPaths
from aiokafkawire.legacy.zookeeper import Stat, ZooKeeper

pytestmark = pytest.mark.anyio

_NOBODY = Stat(0, 0)
PATHS = GroupPaths("g")


def greeting(timeout_ms: int, session: int = 7) -> bytes:
    """A server's answer to a connect request; a timeout of 0 is no session."""
    return b"\0\0\0\x25" + bytes(4) + timeout_ms.to_bytes(4) + session.to_bytes(8) + b"\0\0\0\x10" + bytes(17)


class Scripted:
    """A server that greets so, and then does what it is told with every connection."""

    def __init__(self, says: bytes, then: Callable[[ByteStream], Awaitable[None]]) -> None:
        self.says, self.then, self.dialled = says, then, 0

    async def serve(self, stream: ByteStream) -> None:
        self.dialled += 1
        await stream.receive()
        await stream.send(self.says)
        await self.then(stream)


async def at_once(stream: ByteStream) -> None:
    """Hang up."""


async def listen(stream: ByteStream) -> None:
    """Take what comes, and say nothing."""
    while True:
        await stream.receive()


async def test_a_server_that_greets_and_hangs_up_is_not_dialled_without_a_pause() -> None:
    server = Scripted(greeting(1_000), at_once)
    async with tcp_server(server.serve) as address:
        with anyio.fail_after(SOON), pytest.raises(KafkaError):
            async with ZooKeeper(address, request_timeout_ms=300) as session:
                await session.exists("/a")
    assert server.dialled < 30  # without one: thousands


async def test_a_server_that_gives_no_session_is_no_server() -> None:
    server = Scripted(greeting(0, 0), at_once)
    async with tcp_server(server.serve) as address:
        failed = rf"no ZooKeeper server of {address} within 0\.5 s: Session has expired"
        with anyio.fail_after(SOON), pytest.raises(ConnectionLost, match=failed):
            async with ZooKeeper(address, request_timeout_ms=500):
                pass
    assert server.dialled < 30


@pytest.mark.parametrize("later", [greeting(0, 0), greeting(0), greeting(1_000, 8)], ids=["none", "over", "another"])
async def test_a_server_that_does_not_go_on_with_a_session_says_that_it_has_expired(later: bytes) -> None:
    async def leave(stream: ByteStream) -> None:
        server.says = later

    server = Scripted(greeting(1_000), leave)
    async with tcp_server(server.serve) as address, ZooKeeper(address) as session:
        with anyio.fail_after(SOON), pytest.raises(SessionExpired, match="the ZooKeeper session is over"):
            await session.exists("/a")
        assert session.expired


@pytest.mark.slow
async def test_a_server_that_promises_days_is_looked_after_all_the_same() -> None:
    server = Scripted(greeting(2**31 - 1), listen)
    async with tcp_server(server.serve) as address, ZooKeeper(address, session_timeout_ms=200) as session:
        assert session.session_timeout <= 60


async def test_a_member_whose_sessions_all_expire_waits_between_them() -> None:
    expired = anyio.Event()

    async def expire(stream: ByteStream) -> None:
        xid = (await stream.receive())[4:8]
        await stream.send(b"\0\0\0\x10" + xid + bytes(8) + (-112).to_bytes(4, signed=True))
        expired.set()
        await stream.receive()  # that it ends the session

    server = Scripted(greeting(10_000), expire)
    async with tcp_server(server.serve) as address:
        consumer = LegacyConsumer(address, "g", ["t"], rebalance_backoff_ms=60_000)
        async with consumer:
            with anyio.fail_after(SOON):
                await expired.wait()
            await anyio.sleep(0.5)  # enough for many sessions
            assert server.dialled == 1


class Lying(ZooKeeper):
    """Says what no real server does, for as long as it is asked."""

    def __init__(self, **says: Any) -> None:
        super().__init__("a")
        self.says, self.asked = says, 0

    async def _say(self, what: str) -> Any:
        self.asked += 1
        assert self.asked < 1_000, "asked for ever"
        await checkpoint()
        said = self.says[what]
        if isinstance(said, Exception):
            raise said
        return said

    async def children(self, path: str, watch: Any = None) -> list[str]:
        found: list[str] = await self._say("children")
        return found

    async def exists(self, path: str, watch: Any = None) -> Stat | None:
        found: Stat | None = await self._say("exists")
        return found

    async def get(self, path: str, watch: Any = None) -> tuple[bytes | None, Stat]:
        return await self._say("get"), _NOBODY

    async def create(self, path: str, data: bytes | None = None, *, ephemeral: bool = False) -> None:
        if path == "/a/b":
            await self._say("create")


async def test_a_node_that_is_there_and_is_not_is_not_asked_for_for_ever() -> None:
    lying = Lying(children=NoNode("children /brokers/ids"), exists=_NOBODY)
    with pytest.raises(NoNode, match="children /brokers/ids"):
        await Registry(lying).brokers()
    assert lying.asked < 100


async def test_a_parent_that_is_there_and_is_not_is_not_made_for_ever() -> None:
    lying = Lying(create=NoNode("create /a/b"))
    with pytest.raises(NoNode, match="create /a/b"):
        await lying.ensure("/a/b")
    assert lying.asked < 100


@pytest.mark.parametrize("name", ["9" * 5_000, "-1", "x", "\u0661", "4294967296"], ids=lambda name: name[:4])
async def test_a_broker_whose_id_is_none_is_told(name: str) -> None:
    lying = Lying(children=[name], get=b"creator:host:9092")
    with pytest.raises(WireError, match="is not the id of a broker") as caught:
        await Registry(lying).brokers()
    assert len(str(caught.value)) < 600


# --- on a real server -----------------------------------------------------------------------------------------------


async def until_expired(proxy: CuttableProxy, session: ZooKeeper, *, comes_back: bool = True) -> None:
    """Cut the connection to ZooKeeper for longer than a session lasts."""
    await proxy.cut()
    with anyio.fail_after(SOON):
        while not session.expired:  # noqa: ASYNC110 - nobody tells of it
            await anyio.sleep(0.01)
    proxy.refuses = not comes_back


def member(cluster: LegacyCluster, *, proxy: CuttableProxy | None = None, **options: Any) -> LegacyConsumer:
    given: dict[str, Any] = {"consumer_id": "me", "rebalance_backoff_ms": 20, **options}
    servers = cluster.zookeeper if proxy is None else cluster.zookeeper_at(proxy.address)
    return LegacyConsumer(servers, "g", ["t"], connector=cluster.connect, **given)


@pytest.mark.slow
async def test_a_producer_whose_session_expired_recovers_after_zookeeper_does(
    zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster, cuttable_proxy(zookeeper.port) as proxy:
        await cluster.topic(0, "t")
        servers = cluster.zookeeper_at(proxy.address)
        async with LegacyProducer(servers, connector=cluster.connect, session_timeout_ms=1_000) as producer:
            await producer.send("t", [b"one"])
            await until_expired(proxy, producer._zookeeper, comes_back=False)
            with monkeypatch.context() as patch:
                nobody_there = partial(ZooKeeper, proxy.address, request_timeout_ms=20)
                patch.setattr(producer, "_new_session", nobody_there)
                patch.setattr(producer, "_patience", 1.0)
                await producer.send("t", [b"meanwhile"])  # its partitions are known, as Java's producer knows them
                for _ in range(2):
                    with pytest.raises(
                        ConnectionLost, match=r"the partitions of u are not known.*no ZooKeeper server of"
                    ):
                        await producer.send("u", [b"lost"])
            proxy.refuses = False
            await producer.send("u", [b"x"])
            await producer.send("t", [b"two"])
            await producer.confirm()
        assert cluster.logs(0).content("t", 0) == [b"one", b"meanwhile", b"two"]
        assert cluster.logs(0).content("u", 0) == [b"x"]


async def test_a_producer_keeps_its_partitions_when_zookeeper_is_back_for_a_moment(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster, cuttable_proxy(zookeeper.port) as proxy:
        await cluster.topic(0, "t")
        servers = cluster.zookeeper_at(proxy.address)
        async with LegacyProducer(servers, connector=cluster.connect, session_timeout_ms=1_000) as producer:
            await producer.send("t", [b"one"])
            await proxy.cut(refuse=False)
            with anyio.fail_after(SOON):
                while producer._partitions:  # noqa: ASYNC110 - nobody tells of it
                    await anyio.sleep(0.01)
            await until_expired(proxy, producer._zookeeper, comes_back=False)
            await producer.send("t", [b"two"])
            await producer.confirm()
        assert cluster.logs(0).content("t", 0) == [b"one", b"two"]


@pytest.mark.slow
async def test_a_member_whose_name_is_taken_is_told(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster, ZooKeeper(cluster.zookeeper) as other:
        await other.ensure("/consumers/g/ids")
        await other.create("/consumers/g/ids/g_me", b'{ "t": 1 }', ephemeral=True)
        consumer = member(cluster, session_timeout_ms=1_000)
        async with consumer:
            told = "another member of group 'g' is registered as 'g_me'"
            with anyio.fail_after(SOON), pytest.raises(NodeExists, match=told):
                await anext(consumer)
            with pytest.raises(NodeExists):
                await consumer.settled()


async def test_who_waits_for_an_old_session_of_its_own_registers_when_it_goes(
    zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, whose = anyio.Event(), LegacyGroupMember._is_ours

    async def look(self: LegacyGroupMember, *args: Any) -> bool:
        looked.set()
        return await whose(self, *args)

    monkeypatch.setattr(LegacyGroupMember, "_is_ours", look)
    async with legacy_cluster(zookeeper, 1) as cluster, ZooKeeper(cluster.zookeeper) as before:
        await cluster.topic(0, "t")
        await before.ensure("/consumers/g/ids")
        await before.create("/consumers/g/ids/g_me", b'{ "t": 1 }', ephemeral=True)
        async with member(cluster, session_timeout_ms=10_000) as consumer:
            with anyio.fail_after(SOON):
                await looked.wait()
                await before.delete("/consumers/g/ids/g_me")
                await consumer.settled()
            assert consumer.assignment == [("t", (0, 0))]


async def test_a_session_that_expires_in_the_middle_of_a_rebalance_is_begun_anew(
    zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, sessions = LegacyGroupMember._claim, list[int]()

    async def claim_late(self: LegacyGroupMember, session: ZooKeeper, place: Any, thread: str) -> bool:
        if not sessions and place[1].partition == 1:  # one is claimed, the other is not yet
            sessions.append(session.session_id)
            await until_expired(proxy, session)
        return await claim(self, session, place, thread)

    monkeypatch.setattr(LegacyGroupMember, "_claim", claim_late)
    async with (
        legacy_cluster(zookeeper, 2) as cluster,
        cuttable_proxy(zookeeper.port) as proxy,
        ZooKeeper(cluster.zookeeper) as other,
    ):
        await cluster.topic(0, "t")
        async with member(cluster, session_timeout_ms=1_000, proxy=proxy) as consumer:
            with anyio.fail_after(SOON):
                await consumer.settled()
            assert consumer.assignment == [("t", (0, 0)), ("t", (0, 1))]
            for partition in range(2):
                owner = await other.exists(PATHS.owner("t", BrokerPartition(0, partition)))
                assert owner is not None
                assert owner.ephemeral_owner not in sessions
