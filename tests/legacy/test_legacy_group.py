"""Groups of 0.7: members that share partitions, with their offsets in a real ZooKeeper."""

import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import anyio
import pytest
from support.legacy_cluster import LegacyCluster, legacy_cluster
from support.patience import SOON
from support.ports import free_ports
from support.tcp_servers import CuttableProxy, cuttable_proxy
from support.zookeeper import ZooKeeperServer

from aiokafkawire.errors import ConfigError, ConnectionLost, OffsetOutOfRange, UsageError, WireError
from aiokafkawire.legacy.client import LegacyClient
from aiokafkawire.legacy.consumer import LegacyConsumer, LegacyRecord
from aiokafkawire.legacy.errors import NotEmpty
from aiokafkawire.legacy.registry import BROKERS, BrokerPartition, GroupPaths
from aiokafkawire.legacy.requests import LATEST, Offsets
from aiokafkawire.legacy.zookeeper import ZooKeeper

pytestmark = pytest.mark.anyio

PATHS = GroupPaths("g")


def member(
    cluster: LegacyCluster, name: str, topics: Any = ("t",), *, proxy: CuttableProxy | None = None, **options: Any
) -> LegacyConsumer:
    given: dict[str, Any] = {"rebalance_backoff_ms": 50, "backoff_ms": 1, "backoff_max_ms": 5, **options}
    servers = cluster.zookeeper if proxy is None else cluster.zookeeper_at(proxy.address)
    return LegacyConsumer(servers, "g", topics, consumer_id=name, connector=cluster.connect, **given)


async def produce(cluster: LegacyCluster, broker: int, partition: int, values: Iterable[bytes], **options: Any) -> None:
    server = cluster.servers[broker]
    async with LegacyClient(server.host, server.port, connector=server.connect, **options) as client:
        await client.produce("t", values, partition=partition)
        await client.confirm()


async def take(consumer: LegacyConsumer, count: int) -> list[LegacyRecord]:
    with anyio.fail_after(SOON):
        return [await anext(consumer) for _ in range(count)]


async def owns(consumer: LegacyConsumer, count: int) -> list[tuple[str, BrokerPartition]]:
    """Wait until a member reads so many partitions."""

    async def reads_so_many() -> bool:
        await consumer.settled()
        return len(consumer.assignment) == count

    await until(reads_so_many)
    return consumer.assignment


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what others do, which arrives here by ZooKeeper."""
    with anyio.fail_after(SOON):
        while True:
            if await holds():
                return
            await anyio.sleep(0.005)


async def nodes(cluster: LegacyCluster, path: str) -> dict[str, bytes | None]:
    async with ZooKeeper(cluster.zookeeper) as session:
        return {name: (await session.get(f"{path}/{name}"))[0] for name in sorted(await session.children(path))}


async def test_one_member_reads_all_and_commits_as_javas_do(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 2, 1) as cluster:
        for broker, partition in ((0, 0), (0, 1), (1, 0)):
            await cluster.topic(broker, "t")
            await produce(cluster, broker, partition, [b"%d-%d" % (broker, partition), b"more"])
        async with member(cluster, "c1") as consumer:
            found = await take(consumer, 6)
            assert sorted(one.value for one in found) == [b"0-0", b"0-1", b"1-0", b"more", b"more", b"more"]
            assert await nodes(cluster, PATHS.ids) == {"g_c1": b'{ "t": 1 }'}
            owners = await nodes(cluster, PATHS.owners("t"))
            assert owners == dict.fromkeys(("0-0", "0-1", "1-0"), b"g_c1-0")
            await consumer.commit()
            assert await nodes(cluster, PATHS.offsets("t")) == dict.fromkeys(("0-0", "0-1", "1-0"), b"27")
        assert await nodes(cluster, PATHS.ids) == {}
        assert await nodes(cluster, PATHS.owners("t")) == {}
        async with member(cluster, "c2") as consumer:
            await owns(consumer, 3)
            await produce(cluster, 0, 1, [b"new"])
            assert [one.value for one in await take(consumer, 1)] == [b"new"]


async def test_members_come_and_go_and_nothing_is_lost_or_doubled(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 4) as cluster:
        await cluster.topic(0, "t")
        for partition in range(4):
            await produce(cluster, 0, partition, [b"%d-a" % partition])
        async with member(cluster, "c1") as first:
            assert len(await owns(first, 4)) == 4
            seen = [one.value for one in await take(first, 4)]
            await first.commit()
            async with member(cluster, "c2") as second:
                assert await owns(second, 2) == [("t", (0, 2)), ("t", (0, 3))]
                assert await owns(first, 2) == [("t", (0, 0)), ("t", (0, 1))]
                async with member(cluster, "c3") as third:
                    assert await owns(third, 1) == [("t", (0, 3))]
                    assert await owns(second, 1) == [("t", (0, 2))]
                    for partition in range(4):
                        await produce(cluster, 0, partition, [b"%d-b" % partition])
                    seen += [one.value for one in await take(first, 2)]
                    seen += [one.value for one in await take(second, 1)]
                    seen += [one.value for one in await take(third, 1)]
                    await third.commit()
                    await second.commit()
                assert await owns(second, 2) == [("t", (0, 2)), ("t", (0, 3))]
            assert len(await owns(first, 4)) == 4
            await produce(cluster, 0, 3, [b"3-c"])
            seen += [one.value for one in await take(first, 1)]
        assert sorted(seen) == sorted([b"%d-%s" % (n, x) for n in range(4) for x in (b"a", b"b")] + [b"3-c"])


async def test_groups_of_their_own_get_every_message(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 2) as cluster:
        await cluster.topic(0, "t")
        for partition in range(2):
            await produce(cluster, 0, partition, [b"%d-a" % partition, b"%d-b" % partition])
        async with (
            member(cluster, "c1") as one,
            LegacyConsumer(cluster.zookeeper, "h", ["t"], connector=cluster.connect, backoff_ms=1) as other,
        ):
            for consumer in (one, other):
                assert sorted(found.value for found in await take(consumer, 4)) == [b"0-a", b"0-b", b"1-a", b"1-b"]


@pytest.mark.slow
async def test_what_is_finished_is_committed_before_a_partition_is_given_up(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 2) as cluster:
        await cluster.topic(0, "t")
        await produce(cluster, 0, 1, [b"a", b"b", b"c"])
        async with member(cluster, "c1", auto_commit_interval_ms=None) as first:
            assert [one.value for one in await take(first, 2)] == [b"a", b"b"]  # b is in hand: not finished
            async with member(cluster, "c2", auto_commit_interval_ms=None) as second:
                assert [one.value for one in await take(second, 2)] == [b"b", b"c"]
                await owns(first, 1)
                await produce(cluster, 0, 0, [b"mine"])
                assert [one.value for one in await take(first, 1)] == [b"mine"]


async def test_offsets_are_committed_at_intervals(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster:
        await cluster.topic(0, "t")
        await produce(cluster, 0, 0, [b"a", b"b"])
        async with (
            member(cluster, "c1", auto_commit_interval_ms=1) as consumer,
            ZooKeeper(cluster.zookeeper) as session,
        ):
            await take(consumer, 2)
            path = PATHS.offset("t", BrokerPartition(0, 0))

            async def committed() -> bool:
                return await session.exists(path) is not None and (await session.get(path))[0] == b"11"

            await until(committed)


async def test_a_compressed_message_is_read_again_as_a_whole(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster:
        await cluster.topic(0, "t")
        await produce(cluster, 0, 0, [b"a", b"b", b"c"], compression_type="gzip")
        async with member(cluster, "c1") as consumer:
            await take(consumer, 2)
            await consumer.commit()
        async with member(cluster, "c2") as consumer:
            assert [one.value for one in await take(consumer, 3)] == [b"a", b"b", b"c"]
            await consumer.commit()
        assert await nodes(cluster, PATHS.offsets("t")) == {
            "0-0": b"%d" % len(cluster.logs(0).logs["t", 0].segments[0].data)
        }


async def test_messages_at_hand_leave_others_their_turns(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster:
        await cluster.topic(0, "t")
        await produce(cluster, 0, 0, [b""] * 10_000, compression_type="gzip")
        async with member(cluster, "c1") as consumer:
            await take(consumer, 1)
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    await anyio.lowlevel.checkpoint()
                    turns += 1

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(count)
                for _ in range(9_999):  # not by take(), whose deadline is a turn
                    await anext(consumer)
                tasks.cancel_scope.cancel()
            assert turns >= 10


@pytest.mark.slow
async def test_a_member_that_is_cut_off_loses_its_share_with_its_session(
    zookeeper: ZooKeeperServer,
) -> None:
    async with legacy_cluster(zookeeper, 2) as cluster, cuttable_proxy(zookeeper.port) as proxy:
        await cluster.topic(0, "t")
        await produce(cluster, 0, 0, [b"a"])
        cut_off = member(cluster, "c1", session_timeout_ms=1_000, proxy=proxy)
        async with cut_off as first, member(cluster, "c2") as second:
            assert await owns(first, 1) == [("t", (0, 0))]
            assert await owns(second, 1) == [("t", (0, 1))]
            await proxy.cut()
            assert len(await owns(second, 2)) == 2
            assert [one.value for one in await take(second, 1)] == [b"a"]

            async def has_let_go() -> bool:
                return not first.assignment

            await until(has_let_go)
            proxy.refuses = False  # it comes back, by a session of its own
            assert await owns(first, 1) == [("t", (0, 0))]
            assert await owns(second, 1) == [("t", (0, 1))]


async def test_a_session_that_expires_while_a_claim_has_to_wait_is_begun_anew(zookeeper: ZooKeeperServer) -> None:
    async with (
        legacy_cluster(zookeeper, 2) as cluster,
        cuttable_proxy(zookeeper.port) as proxy,
        ZooKeeper(cluster.zookeeper) as other,
    ):
        await cluster.topic(0, "t")
        await produce(cluster, 0, 1, [b"a"])
        await other.ensure(PATHS.owners("t"))
        taken = PATHS.owner("t", BrokerPartition(0, 1))
        await other.create(taken, b"g_somebody-0", ephemeral=True)
        waiting = member(cluster, "c1", session_timeout_ms=1_000, proxy=proxy)
        async with waiting as consumer:

            async def owns_what_is_free() -> bool:
                return consumer.assignment == [("t", (0, 0))]

            await until(owns_what_is_free)
            await proxy.cut()

            async def has_let_go() -> bool:
                return not consumer.assignment

            await until(has_let_go)
            proxy.refuses = False
            await until(owns_what_is_free)
            await other.delete(taken)
            assert len(await owns(consumer, 2)) == 2
            assert [one.value for one in await take(consumer, 1)] == [b"a"]


async def test_a_broker_that_hangs_up_is_asked_again(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster:
        await cluster.topic(0, "t")
        async with member(cluster, "c1") as consumer:
            for value in (b"a", b"b", b"c"):
                await produce(cluster, 0, 0, [value])
                assert [one.value for one in await take(consumer, 1)] == [value]
                await cluster.servers[0].hang_up()


async def test_what_is_registered_and_cannot_be_read_is_told(zookeeper: ZooKeeperServer) -> None:
    async with (
        legacy_cluster(zookeeper, 1) as cluster,
        ZooKeeper(cluster.zookeeper) as other,
        member(cluster, "c1") as consumer,
    ):
        await owns(consumer, 0)
        await other.create(f"{BROKERS}/7", b"nonsense")
        with anyio.fail_after(SOON), pytest.raises(WireError, match="/brokers/ids/7 holds b'nonsense'"):
            await anext(consumer)


async def test_brokers_and_topics_that_come_are_read(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1, 2) as cluster, member(cluster, "c1", (), pattern="t|u") as consumer:
        await owns(consumer, 0)
        await cluster.topic(0, "t")
        assert await owns(consumer, 1) == [("t", (0, 0))]
        await cluster.topic(1, "t")
        assert len(await owns(consumer, 3)) == 3
        await cluster.topic(1, "v")
        await cluster.topic(1, "u")
        assert len(await owns(consumer, 5)) == 5
        assert await nodes(cluster, PATHS.ids) == {"g_c1": b"*1*t|u"}
        await cluster.leave(1)
        assert await owns(consumer, 1) == [("t", (0, 0))]


async def test_an_offset_that_is_gone_is_reset_or_told(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster:
        await cluster.topic(0, "t")
        await produce(cluster, 0, 0, [b"a"])
        async with ZooKeeper(cluster.zookeeper) as session:
            path = PATHS.offset("t", BrokerPartition(0, 0))
            await session.ensure(path)
            await session.set(path, b"99")
            async with member(cluster, "c1", auto_offset_reset="none") as consumer:
                with pytest.raises(OffsetOutOfRange):
                    await take(consumer, 1)
            async with member(cluster, "c1") as consumer:
                assert [one.value for one in await take(consumer, 1)] == [b"a"]
            await session.set(path, b"99")
            async with member(cluster, "c1", auto_offset_reset="latest") as consumer:
                found: list[LegacyRecord] = []

                async def read() -> None:
                    found.extend(await take(consumer, 1))

                async def has_asked() -> bool:
                    return Offsets("t", 0, LATEST, 1) in cluster.servers[0].requests

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(read)
                    await until(has_asked)
                    await produce(cluster, 0, 0, [b"new"])
                assert [one.value for one in found] == [b"new"]
            await session.set(path, b"nonsense")
            async with member(cluster, "c1") as consumer:
                with pytest.raises(WireError, match="holds b'nonsense', not an offset"):
                    await take(consumer, 1)
                with pytest.raises(WireError):
                    await consumer.settled()


async def test_an_offset_below_0_that_java_committed_is_out_of_range(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster, ZooKeeper(cluster.zookeeper) as session:
        await cluster.topic(0, "t")
        await produce(cluster, 0, 0, [b"a", b"b"])
        path = PATHS.offset("t", BrokerPartition(0, 0))
        await session.ensure(path)
        await session.set(path, b"-1")
        async with member(cluster, "c1", auto_offset_reset="none") as consumer:
            for _ in range(2):
                with pytest.raises(OffsetOutOfRange, match="t 0-0: the group has committed -1"):
                    await take(consumer, 1)
        assert (await session.get(path))[0] == b"-1"
        async with member(cluster, "c1") as consumer:
            assert [one.value for one in await take(consumer, 1)] == [b"a"]
            await consumer.commit()
        assert (await session.get(path))[0] == b"11"
        await session.set(path, b"-1")
        async with member(cluster, "c1", auto_offset_reset="latest") as consumer:
            found: list[LegacyRecord] = []

            async def read() -> None:
                found.extend(await take(consumer, 1))

            async def has_asked() -> bool:
                return Offsets("t", 0, LATEST, 1) in cluster.servers[0].requests

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await until(has_asked)
                await produce(cluster, 0, 0, [b"new"])
            assert [one.value for one in found] == [b"new"]


async def test_a_member_whose_group_is_deleted_joins_again(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster, ZooKeeper(cluster.zookeeper) as session:
        await cluster.topic(0, "t")
        await produce(cluster, 0, 0, [b"a", b"b"])
        async with member(cluster, "c1") as consumer:
            assert [one.value for one in await take(consumer, 1)] == [b"a"]

            # The member notices when its registration is gone, so that comes last: it may be back a moment later.
            for path in (PATHS.owner("t", BrokerPartition(0, 0)), "/consumers/g/owners/t", "/consumers/g/owners"):
                await session.delete(path)
            await session.delete(f"{PATHS.ids}/g_c1")
            with contextlib.suppress(NotEmpty):
                await session.delete(PATHS.ids)

            async def is_back() -> bool:
                return await session.exists(PATHS.owner("t", BrokerPartition(0, 0))) is not None

            await until(is_back)
            assert await nodes(cluster, PATHS.ids) == {"g_c1": b'{ "t": 1 }'}
            await owns(consumer, 1)
            assert (await take(consumer, 1))[0].value in (b"a", b"b")  # what was in hand was not finished


@pytest.mark.slow
async def test_a_filter_that_java_refuses_is_not_registered(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster, ZooKeeper(cluster.zookeeper) as session:
        with pytest.raises(ConfigError, match=r"pz-\[a-z\]\{3,3\}"):
            member(cluster, "c1", (), pattern="pz-[a-z]{3,3}")
        assert await session.exists("/consumers") is None
        for topic in ("a", "b", "c"):
            await cluster.topic(0, topic)
        async with member(cluster, "c1", (), pattern="'a, b'") as consumer:
            assert await owns(consumer, 2) == [("a", (0, 0)), ("b", (0, 0))]
            assert await nodes(cluster, PATHS.ids) == {"g_c1": b"*1*a|b"}


async def test_a_partition_that_cannot_be_read_holds_up_no_other(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 2) as cluster, ZooKeeper(cluster.zookeeper) as session:
        await cluster.topic(0, "t")
        for partition in range(2):
            path = PATHS.offset("t", BrokerPartition(0, partition))
            await session.ensure(path)
            await session.set(path, b"0" if partition else b"99")
        await produce(cluster, 0, 1, [b"a", b"b"])
        await produce(cluster, 0, 0, [b"x"])
        async with member(cluster, "c1", auto_offset_reset="none") as consumer:
            await owns(consumer, 2)
            found: list[bytes] = []
            for _ in range(10):
                try:
                    found += [one.value for one in await take(consumer, 1)]
                except OffsetOutOfRange:
                    continue
                if len(found) == 2:
                    break
            assert found == [b"a", b"b"]


async def test_zookeeper_is_not_there() -> None:
    (port,) = free_ports(1)
    consumer = LegacyConsumer(f"127.0.0.1:{port}", "g", ["t"], zookeeper_timeout_ms=50)
    async with consumer:
        failed = f"no ZooKeeper server of 127.0.0.1:{port} within"
        with anyio.fail_after(SOON), pytest.raises(ConnectionLost, match=failed):
            await anext(consumer)


def test_arguments_are_checked() -> None:
    for topics, pattern in (("t", None), ((), None), (["t"], "t"), ({"t": 0}, None), ((), "(")):
        with pytest.raises(ConfigError):
            LegacyConsumer("z", "g", topics, pattern=pattern)
    with pytest.raises(ConfigError, match="auto_offset_reset must be one of"):
        LegacyConsumer("z", "g", ["t"], auto_offset_reset="smallest")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the group has to be a name"):
        LegacyConsumer("z", "g/h", ["t"])
