"""Rebalances of a group of 0.7 that a lost connection interrupts, or another client that deletes the group."""

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from support.patience import SOON

from aiokafkawire.errors import ConnectionLost
from aiokafkawire.legacy.errors import NodeExists, NoNode, SessionExpired
from aiokafkawire.legacy.group import Claim, GroupPartition, LegacyGroupMember
from aiokafkawire.legacy.registry import BROKERS, TOPICS, BrokerPartition, GroupPaths, LegacySubscription
from aiokafkawire.legacy.zookeeper import ANY_VERSION, Stat, ZooKeeper
from aiokafkawire.types import Address

pytestmark = pytest.mark.anyio

PATHS = GroupPaths("g")
FIRST, SECOND = ("t", BrokerPartition(0, 0)), ("t", BrokerPartition(0, 1))
OWNER = PATHS.owner(*SECOND)


class Session(ZooKeeper):
    """A session on nodes in memory, without watches.

    ``lost`` has the calls that lose the connection, each once: "before set" does nothing, "after set" has set the node.
    ``meanwhile`` has functions to call before a call, once.
    """

    def __init__(self, nodes: dict[str, tuple[bytes | None, int]], session_id: int) -> None:
        super().__init__("a")
        self.nodes, self.session_id = nodes, session_id
        self.lost: list[str] = []
        self.meanwhile: dict[str, Callable[[], object]] = {}

    async def _enter(self, call: str) -> None:
        await checkpoint()
        self.meanwhile.pop(call, lambda: None)()
        self._lose(f"before {call.partition(' ')[0]}")

    def _lose(self, when: str) -> None:
        if when in self.lost:
            self.lost.remove(when)
            raise ConnectionLost(when)

    def _node(self, path: str) -> tuple[bytes | None, Stat]:
        if path not in self.nodes:
            raise NoNode(path)
        data, owner = self.nodes[path]
        return data, Stat(0, owner)

    async def create(self, path: str, data: bytes | None = None, *, ephemeral: bool = False) -> None:
        await self._enter(f"create {path}")
        parent = path.rpartition("/")[0]
        if parent:
            self._node(parent)
        if path in self.nodes:
            raise NodeExists(path)
        self.nodes[path] = data, self.session_id if ephemeral else 0
        self._lose("after create")

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._enter(f"delete {path}")
        self._node(path)
        del self.nodes[path]
        self._lose("after delete")

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        await self._enter(f"set {path}")
        self._node(path)
        self.nodes[path] = data, 0
        self._lose("after set")
        return Stat(0, 0)

    async def get(self, path: str, watch: Any = None) -> tuple[bytes | None, Stat]:
        await self._enter(f"get {path}")
        return self._node(path)

    async def exists(self, path: str, watch: Any = None) -> Stat | None:
        await self._enter(f"exists {path}")
        return self._node(path)[1] if path in self.nodes else None

    async def children(self, path: str, watch: Any = None) -> list[str]:
        await self._enter(f"children {path}")
        self._node(path)
        return [name.rpartition("/")[2] for name in self.nodes if name.rpartition("/")[0] == path]


class Reading:
    """What reads a member's partitions, and the offsets that it has finished."""

    def __init__(self) -> None:
        self.read: dict[GroupPartition, int | None] = {}
        self.offsets: dict[GroupPartition, int] = {}

    def gained(self, claims: list[Claim], brokers: Mapping[int, Address]) -> None:
        self.read |= {claim.partition: claim.committed for claim in claims}

    def lost(self, partitions: list[GroupPartition]) -> dict[GroupPartition, int]:
        found = {partition: self.offsets.pop(partition) for partition in partitions if partition in self.offsets}
        for partition in partitions:
            self.read.pop(partition, None)
        return found

    def finished(self) -> dict[GroupPartition, int]:
        return dict(self.offsets)

    def committed(self, offsets: Mapping[GroupPartition, int]) -> None:
        """Take no notice."""

    def expired(self, partitions: list[GroupPartition], error: SessionExpired, *, uncommitted: bool) -> None:
        self.lost(partitions)


class Group:
    """A member of a group that reads a topic of two partitions, and another member that comes and goes."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes | None, int]] = {}
        self.session, self.other = Session(self.nodes, 1), Session(self.nodes, 2)
        self.reading = Reading()
        self.member = LegacyGroupMember(
            lambda: self.session,
            "g",
            "g_a",
            LegacySubscription({"t": 1}),
            self.reading,
            commit_interval=None,
            backoff=0.0,
        )

    async def join(self) -> None:
        for path, data in ((f"{BROKERS}/0", b"host:host:9092"), (f"{TOPICS}/t/0", b"2")):
            await self.other.ensure(path)
            await self.other.set(path, data)
        assert await self.member._register(self.session)
        assert await self.member._rebalance(self.session)
        assert sorted(self.reading.read) == [FIRST, SECOND]

    async def other_comes(self) -> None:
        await self.other.create(PATHS.member("g_b"), b'{ "t": 1 }', ephemeral=True)

    async def other_goes(self) -> None:
        await self.other.delete(PATHS.member("g_b"))

    async def rebalance(self) -> bool:
        return await self.member._tried(self.session, self.member._rebalance)


@pytest.fixture
async def group() -> Group:
    group = Group()
    await group.join()
    return group


@pytest.mark.parametrize("lost", ["before set", "after set", "before delete", "after delete"])
async def test_a_partition_that_is_wanted_again_before_it_was_given_up_is_read(group: Group, lost: str) -> None:
    await group.session.ensure(PATHS.offset(*SECOND))
    group.reading.offsets[SECOND] = 27
    await group.other_comes()
    group.session.lost = [lost]
    assert not await group.rebalance()
    await group.other_goes()
    assert await group.rebalance()
    assert group.reading.read == {FIRST: None, SECOND: 27}
    assert group.nodes[OWNER] == (b"g_a-0", 1)


async def test_a_commit_has_the_offsets_of_partitions_whose_release_was_interrupted(group: Group) -> None:
    group.reading.offsets = {FIRST: 11, SECOND: 27}
    await group.other_comes()
    group.session.lost = ["before set"]
    assert not await group.rebalance()
    group.member._zookeeper = group.session
    await group.member.commit()
    assert [group.nodes[PATHS.offset(*partition)][0] for partition in (FIRST, SECOND)] == [b"11", b"27"]


async def test_a_claim_that_was_deleted_already_is_not_deleted_again_once_it_is_anothers(group: Group) -> None:
    await group.other_comes()
    group.session.lost = ["after delete"]
    assert not await group.rebalance()
    await group.other.create(OWNER, b"g_b-0", ephemeral=True)
    assert await group.rebalance()
    assert group.nodes[OWNER] == (b"g_b-0", 2)
    assert list(group.reading.read) == [FIRST]


@pytest.mark.parametrize("lost", ["after create", "before get"])
async def test_a_claim_that_was_interrupted_does_not_keep_the_partition_from_others(group: Group, lost: str) -> None:
    await group.other_comes()
    assert await group.rebalance()
    await group.other_goes()

    def lose() -> None:
        group.session.lost = [lost]

    group.session.meanwhile[f"create {OWNER}"] = lose
    assert not await group.rebalance()
    assert group.nodes[OWNER] == (b"g_a-0", 1)
    await group.other_comes()
    assert await group.rebalance()
    assert OWNER not in group.nodes


@pytest.mark.parametrize("call", [f"create {PATHS.member('g_a')}", f"create {OWNER}"], ids=["member", "owner"])
async def test_a_group_that_is_deleted_during_a_rebalance_is_joined_again(call: str) -> None:
    group = Group()

    def delete() -> None:
        for path in [path for path in group.nodes if path.startswith("/consumers")]:
            del group.nodes[path]

    group.session.meanwhile[call] = delete
    with anyio.fail_after(SOON):
        for path, data in ((f"{BROKERS}/0", b"host:host:9092"), (f"{TOPICS}/t/0", b"2")):
            await group.other.ensure(path)
            await group.other.set(path, data)
        while not await group.member._tried(group.session, group.member._register):
            await checkpoint()
        while not await group.rebalance():
            await checkpoint()
    assert sorted(group.reading.read) == [FIRST, SECOND]
