"""ZooKeeper is away for longer than a session: members, consumers and producers go on when it returns."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from support.examples import sampled
from support.memory_zookeeper import MemoryZooKeeper, memory_zookeeper
from support.patience import SOON
from support.ports import free_ports
from support.zookeeper import ZooKeeperServer

from aiokafkawire.errors import ConnectionLost
from aiokafkawire.legacy.client import LegacyClient
from aiokafkawire.legacy.consumer import LegacyConsumer
from aiokafkawire.legacy.errors import SessionExpired
from aiokafkawire.legacy.producer import LegacyProducer
from aiokafkawire.legacy.zookeeper import ZooKeeper
from aiokafkawire.testing.legacy.server import LegacyServer
from aiokafkawire.types import Address

pytestmark = pytest.mark.anyio

_OFFSET = "/consumers/g/offsets/t/0-0"
# Sessions of 600 ms, and half a second to find a server: longer than both, and than several attempts.
AWAY = sampled([1.5, 3.0], 1.5)
TIMES: Any = {"session_timeout_ms": 600, "zookeeper_timeout_ms": 500}


async def register(zookeeper: MemoryZooKeeper) -> None:
    """Register a broker with a partition of a topic, as it does itself once its session has expired."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(ZooKeeper(zookeeper.address))
        for parent in ("/brokers/ids", "/brokers/topics/t"):
            await session.ensure(parent)
        await session.create("/brokers/ids/0", b"legacy-1795:legacy:9092")
        await session.create("/brokers/topics/t/0", b"1")


async def produce(server: LegacyServer, *values: bytes) -> None:
    async with LegacyClient("legacy", connector=server.connect) as client:
        await client.produce("t", values, partition=0)
        await client.confirm()


async def until_renewed(producer: LegacyProducer) -> None:
    """Wait until a producer has a new session."""
    with anyio.fail_after(SOON):
        while producer._zookeeper.expired:  # noqa: ASYNC110 - nobody tells of it
            await anyio.sleep(0.01)


async def take(consumer: LegacyConsumer, count: int) -> list[bytes]:
    with anyio.fail_after(SOON):
        return [(await anext(consumer)).value for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("away", AWAY)
async def test_a_member_joins_again_and_reads_on_from_what_is_committed(away: float) -> None:
    async with memory_zookeeper() as zookeeper, LegacyServer() as server:
        await register(zookeeper)
        await produce(server, b"a", b"b", b"c")
        consumer = LegacyConsumer(
            zookeeper.address, "g", ["t"], connector=server.connect, rebalance_backoff_ms=50, **TIMES
        )
        async with consumer:
            assert await take(consumer, 1) == [b"a"]
            await consumer.commit()
            assert await take(consumer, 1) == [b"b"]
            before = zookeeper.sessions
            await zookeeper.leave()
            await anyio.sleep(away)
            assert consumer.assignment == []
            with pytest.raises(SessionExpired, match="was not committed, and will be read again"):
                await consumer.commit()
            zookeeper.come_back()
            assert await take(consumer, 2) == [b"b", b"c"]
            await consumer.commit()
            assert zookeeper.sessions == before + 1
            assert {path: node.data for path, node in zookeeper.nodes.items() if node.owner} == {
                "/consumers/g/ids/" + consumer.member: b'{ "t": 1 }',
                "/consumers/g/owners/t/0-0": f"{consumer.member}-0".encode(),
            }
            assert zookeeper.nodes[_OFFSET].data == b"33"


@pytest.mark.slow
async def test_what_reads_meanwhile_waits(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aiokafkawire")
    async with memory_zookeeper() as zookeeper, LegacyServer() as server:
        await register(zookeeper)
        await produce(server, b"a")
        consumer = LegacyConsumer(
            zookeeper.address, "g", ["t"], connector=server.connect, rebalance_backoff_ms=50, **TIMES
        )
        async with consumer, anyio.create_task_group() as tasks:
            assert await take(consumer, 1) == [b"a"]
            await consumer.commit()
            await zookeeper.leave()
            found: list[bytes] = []

            async def read() -> None:
                found.append((await anext(consumer)).value)

            tasks.start_soon(read)
            await anyio.sleep(1.5)
            await produce(server, b"b")
            await anyio.sleep(1.5)
            assert found == []  # others may own the partition by now
            zookeeper.come_back()
        assert found == [b"b"]
    told = [one.getMessage() for one in caplog.records if one.name == "aiokafkawire.legacy"]
    assert "the ZooKeeper session expired; the member gives up 1 partitions" in told[0]
    failed = f"cannot join again, retrying: no ZooKeeper server of {zookeeper.address} within 0.5 s"
    assert all(failed in message for message in told[1:-1])
    assert 2 < len(told) < 10
    assert "joining again with a new ZooKeeper session after " in told[-1]


async def test_a_broker_that_comes_back_at_another_address_is_read_on_there() -> None:
    async with memory_zookeeper() as zookeeper, LegacyServer() as server:
        await register(zookeeper)
        await produce(server, b"a", b"b")
        reached = server

        async def connect(host: str, port: int) -> ByteStream:
            return await reached.connect(host, port)

        consumer = LegacyConsumer(
            zookeeper.address, "g", ["t"], connector=connect, rebalance_backoff_ms=50, backoff_ms=1, **TIMES
        )
        async with consumer:
            assert await take(consumer, 2) == [b"a", b"b"]
            await server.hang_up()
            async with LegacyServer(server.logs, host="elsewhere") as reached:
                async with LegacyClient("elsewhere", connector=reached.connect) as client:
                    await client.produce("t", [b"c"], partition=0)
                    await client.confirm()
                consumer.gained([], {0: Address(reached.host, reached.port)})  # as the member does in a rebalance
                assert await take(consumer, 1) == [b"c"]


async def test_a_member_that_never_had_a_session_says_so_in_time() -> None:
    (port,) = free_ports(1)
    async with LegacyConsumer(f"127.0.0.1:{port}", "g", ["t"], **TIMES) as consumer:
        failed = f"no ZooKeeper server of 127.0.0.1:{port} within 0.5 s"
        with anyio.fail_after(SOON), pytest.raises(ConnectionLost, match=failed):
            await anext(consumer)


@pytest.mark.slow
@pytest.mark.parametrize("away", AWAY)
async def test_a_producer_sends_on_to_what_it_knows(away: float) -> None:
    async with memory_zookeeper() as zookeeper, LegacyServer() as server:
        await register(zookeeper)
        async with LegacyProducer(zookeeper.address, connector=server.connect, **TIMES) as producer:
            await producer.send("t", [b"before"])
            await zookeeper.leave()
            await anyio.sleep(away)
            await producer.send("t", [b"meanwhile"])
            begun = anyio.current_time()
            with pytest.raises(ConnectionLost, match=r"the partitions of u are not known.* \(zookeeper_timeout_ms\)"):
                await producer.send("u", [b"x"])
            assert 0.5 <= anyio.current_time() - begun < 10
            zookeeper.come_back()
            await until_renewed(producer)
            await producer.send("u", [b"new"])
            await producer.send("t", [b"after"])
            await producer.confirm()
    assert server.logs.content("t", 0) == [b"before", b"meanwhile", b"after"]
    assert server.logs.content("u", 0) == [b"new"]


@asynccontextmanager
async def registered(zookeeper: ZooKeeperServer) -> AsyncIterator[None]:
    """A broker's own session, as short as those of the clients; what its last one has left goes first."""
    async with ZooKeeper(zookeeper.address, session_timeout_ms=1_500) as session:
        for path, data in (("/brokers/ids/0", b"legacy-1795:legacy:9092"), ("/brokers/topics/t/0", b"1")):
            await session.ensure(path.rpartition("/")[0])
            with anyio.fail_after(SOON):
                while await session.exists(path) is not None:  # noqa: ASYNC110 - the server's own clock decides
                    await anyio.sleep(0.01)
            await session.create(path, data, ephemeral=True)
        yield


@pytest.mark.thorough
async def test_a_real_zookeeper_that_is_killed_and_comes_back() -> None:
    """Sessions of 1.5 s, a second to find a server, and away for longer than both."""
    async with AsyncExitStack() as stack, LegacyServer() as server:
        zookeeper = stack.enter_context(ZooKeeperServer())
        given: Any = {"connector": server.connect, "session_timeout_ms": 1_500, "zookeeper_timeout_ms": 1_000}
        consumer = LegacyConsumer(zookeeper.address, "g", ["t"], rebalance_backoff_ms=50, **given)
        async with registered(zookeeper):
            producer = await stack.enter_async_context(LegacyProducer(zookeeper.address, **given))
            await stack.enter_async_context(consumer)
            await producer.send("t", [b"a", b"b"])
            assert await take(consumer, 1) == [b"a"]
            await consumer.commit()
            zookeeper.kill()
            with anyio.fail_after(SOON):
                while consumer.assignment:  # noqa: ASYNC110 - nobody tells of it
                    await anyio.sleep(0.01)
                await anyio.sleep(2.5)  # two whole attempts to find it
            await producer.send("t", [b"c"])
        await anyio.to_thread.run_sync(zookeeper.start)
        await until_renewed(producer)
        await producer.send("t", [b"d"])  # the broker has not registered itself again
        async with registered(zookeeper):
            assert await take(consumer, 3) == [b"b", b"c", b"d"]
            await producer.send("t", [b"e"])
            assert await take(consumer, 1) == [b"e"]
            await consumer.commit()
            assert len(consumer.assignment) == 1
