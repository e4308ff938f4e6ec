"""Members of a consumer group that come, go, stumble and change their minds: nothing is ever read twice."""

from __future__ import annotations

from contextlib import AsyncExitStack
from random import Random

import anyio
import pytest
from support.consumer_members import ConsumerMember, consumer_group, settle
from support.raw_client import RawClient
from support.virtual_groups import GROUP, reach

from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

TOPICS = {"t1": 5, "t2": 3, "t3": 1}


async def check_owners(client: RawClient, members: list[ConsumerMember]) -> None:
    """No two members own the same partition, by what they say of themselves and by what the coordinator says."""
    owned = [part for member in members for part in member.owned]
    assert len(owned) == len(set(owned))
    described = await consumer_group(client, GROUP)
    held = [
        (topic.topic_name, index)
        for member in described.members
        for topic in member.assignment.topic_partitions
        for index in topic.partitions
    ]
    assert len(held) == len(set(held))


class Life:
    def __init__(self, seed: int, broker: Broker, stack: AsyncExitStack) -> None:
        self.random = Random(seed)
        self.broker = broker
        self.stack = stack
        self.members: list[ConsumerMember] = []
        self.away: list[ConsumerMember] = []
        self.instances = 0

    async def come(self) -> None:
        client = await self.stack.enter_async_context(await reach(self.broker, self.broker.coordinator(GROUP)))
        topics = self.random.sample(list(TOPICS), self.random.randint(1, len(TOPICS)))
        member = ConsumerMember(client, GROUP, topics, rebalance_timeout_ms=20_000)
        if self.random.random() < 0.3:
            self.instances += 1
            member.instance = f"i{self.instances}"
        if self.random.random() < 0.2:
            member.topics, member.regex = None, "t[12]"
        await member.join(server_assignor=self.random.choice(["uniform", "range", None]))
        self.members.append(member)

    async def step(self) -> None:
        member = self.random.choice(self.members)
        match self.random.randrange(12):
            case 0:
                await self.come()
            case 1 if len(self.members) > 1:
                await member.leave()
                self.members.remove(member)
            case 2 if member.instance is not None and len(self.members) > 1:
                await member.leave(-2)
                self.members.remove(member)
                self.away.append(member)
            case 3 if self.away:
                back = self.away.pop()
                assert (await back.join()).error_code == 0
                self.members.append(back)
            case 4 if member.topics is not None:
                member.topics = self.random.sample(list(TOPICS), self.random.randint(1, len(TOPICS)))
                assert (await member.heartbeat(subscribed_topic_names=member.topics)).error_code == 0
            case 5 if len(self.members) > 1:
                self.members.remove(member)  # it is heard no more: its partitions stay until its session ends
                await self.pass_time(50)
            case 6 if member.instance is None:
                assert (await member.join()).error_code == 0
            case 7 | 8:
                assert (await member.heartbeat()).error_code == 0
            case 9:
                assert (await member.acknowledge(revoke_only=True)).error_code == 0
            case _:
                assert (await member.acknowledge()).error_code == 0

    async def pass_time(self, seconds: int) -> None:
        """Members send heartbeats meanwhile; those who are away stay away too long."""
        for _ in range(seconds // 5):
            await anyio.sleep(5)
            for member in self.members:
                assert (await member.acknowledge()).error_code == 0
        self.away.clear()


@pytest.mark.parametrize("seed", range(25))
async def test_members_come_go_and_settle(broker: Broker, client: RawClient, seed: int) -> None:
    for topic, partitions in TOPICS.items():
        broker.create_topic(topic, partitions=partitions)
    async with AsyncExitStack() as stack:
        life = Life(seed, broker, stack)
        await life.come()
        for _ in range(60):
            await life.step()
            await check_owners(client, life.members)
        await life.pass_time(60)
        await settle(*life.members)
        found = await consumer_group(client, GROUP)
        assert (found.group_state, len(found.members)) == ("Stable", len(life.members))
        wanted = {topic for member in life.members for topic in member.topics or ["t1", "t2"]}
        owned = [part for member in life.members for part in member.owned]
        assert len(owned) == len(set(owned)) == sum(TOPICS[topic] for topic in wanted)
