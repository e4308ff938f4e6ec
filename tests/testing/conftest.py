"""Kafka as the contract tests see it: our broker over memory and over TCP, and Apache Kafka itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio
import attrs
import pytest
from support.dialling import WAYS, Dial, over_tcp
from support.group_members import GroupMember, New, new_group
from support.kafka_releases import number_of
from support.patience import PATIENCE
from support.raw_client import RawClient

from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from aiokafkawire.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aiokafkawire.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from aiokafkawire.testing.broker import Broker

_HERE = Path(__file__).parent
_names = (f"topic-{number}" for number in count())


@attrs.frozen
class Kafka:
    """One of the three, and how to reach it."""

    connect: Dial

    async def client(self) -> RawClient:
        return RawClient(await self.connect())

    async def topic(self, partitions: int = 1) -> MetadataResponseTopic:
        """A new topic that is ready to be used."""
        name = next(_names)
        async with await self.client() as client:
            topic = CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
            )
            created = await client.ask(CreateTopicsRequest(topics=[topic]), 7)
            assert created.topics[0].error_code == 0, created
            described = await self.described(client, name)
            await self._led(client, name, partitions)
            return described

    async def topic_with(self, client: RawClient, name: str, **configs: str) -> str:
        """A new topic of one partition with these settings (underscores for dots), ready to be used; its name."""
        given = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=given)
        (created,) = (await client.ask(CreateTopicsRequest(topics=[topic]), 7)).topics
        assert created.error_code == 0, created
        await self.described(client, name)
        await self._led(client, name, 1)
        return name

    async def described(self, client: RawClient, name: str, partitions: int = 1) -> MetadataResponseTopic:
        """The topic's metadata, as soon as it is complete and tells of as many partitions; Apache Kafka takes a moment
        after creating them."""
        with anyio.fail_after(PATIENCE):
            while True:
                wanted = [MetadataRequestTopic(name=name)]
                answer = await client.ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), 12)
                topic = answer.topics[0]
                enough = len(topic.partitions) >= partitions
                if enough and not topic.error_code and all(one.leader_id >= 0 for one in topic.partitions):
                    return topic

    async def _led(self, client: RawClient, name: str, partitions: int) -> None:
        """Wait for the leader of each partition, which knows of it last."""
        latest = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=latest)])
        with anyio.fail_after(PATIENCE):
            while any(answer.error_code for answer in (await client.ask(request, 7)).topics[0].partitions):
                pass


@pytest.fixture(params=["memory", "tcp", pytest.param("apache", marks=pytest.mark.kafka)])
def address(request: pytest.FixtureRequest) -> str:
    where = request.getfixturevalue("apache_kafka").bootstrap if request.param == "apache" else request.param
    assert isinstance(where, str)
    return where


@pytest.fixture
def release(kafka_release: str | None) -> str | None:
    """Which release of Kafka it is; None for the newest. Where it is another, `apache_kafka` must be, too."""
    return kafka_release


@pytest.fixture
def first(release: str | None) -> int:
    """The epoch that a new group's first member gets: before 4.3 the epochs of groups began at 0."""
    return 2 if release is None or number_of(release) >= (4, 3) else 1


@pytest.fixture
async def kafka(address: str, release: str | None) -> AsyncIterator[Kafka]:
    if address not in ("memory", "tcp"):
        yield Kafka(partial(over_tcp, address))
        return
    async with Broker(port=None if address == "memory" else 0, max_versions=release) as broker:
        yield Kafka(partial(WAYS[address], broker))


@pytest.fixture
async def client(kafka: Kafka) -> AsyncIterator[RawClient]:
    async with await kafka.client() as client:
        yield client


@pytest.fixture
async def topic(kafka: Kafka) -> MetadataResponseTopic:
    return await kafka.topic()


@pytest.fixture
def name(topic: MetadataResponseTopic) -> str:
    assert topic.name is not None
    return topic.name


@pytest.fixture
async def group(client: RawClient) -> str:
    return await new_group(client)


@pytest.fixture
async def new(kafka: Kafka, group: str) -> AsyncIterator[New]:
    """Makes members of the group, each with a connection of its own."""
    async with AsyncExitStack() as stack:

        async def make(**fields: Any) -> GroupMember:
            return GroupMember(await stack.enter_async_context(await kafka.client()), group, **fields)

        yield make


@pytest.fixture
def unknown_id() -> UUID:
    return UUID(int=77)


_TOGETHER = {"asyncio": ("tcp", "apache"), "uvloop": ("tcp",), "trio": ("memory",)}
"""How contract tests reach Kafka on each event loop.

They ask what is answered, which a broker decides without a loop: so each loop has its turn, and each way. Whether any
loop goes with any way is for the tests of connections, TLS, hostile clients and the broker itself, which are whole;
but Apache Kafka does not know on which loop it is asked, and one is enough.
"""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {item for item in items if _tells_nothing_new(item)}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _tells_nothing_new(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None) if item.path.is_relative_to(_HERE) else None
    names = set(callspec.id.split("-")) if callspec is not None else set()
    loop, way = names & _TOGETHER.keys(), names & {"memory", "tcp", "apache"}
    if len(loop) != 1 or len(way) != 1 or not (item.path.name.startswith("test_contract_") or "apache" in way):
        return False
    return way.pop() not in _TOGETHER[loop.pop()]
