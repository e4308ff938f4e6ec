"""Members at random ask the in-process broker and Apache Kafka the same, and are answered the same (KIP-848).

The range assignor assigns by the members' ids, which the test chooses, so that both assign alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from support.apache_kafka import ApacheKafka
from support.consumer_members import ConsumerMember, assign_at_once, consumer_group, held
from support.dialling import over_tcp
from support.group_members import GroupMember, error, new_group
from support.raw_client import RawClient

from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aiokafkawire.testing.broker import Broker

if TYPE_CHECKING:
    from aiokafkawire.protocol.messages.metadata import MetadataResponseTopic

from .conftest import Kafka

pytestmark = [pytest.mark.anyio, pytest.mark.kafka, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

COUNTS = (5, 3, 2)
"""The partitions of the topics."""
STEPS = 50


class Life:
    """Members of one group on one of the two, whose steps the seed decides."""

    def __init__(self, seed: int, client: RawClient, group: str, topics: list[MetadataResponseTopic]) -> None:
        self.random = Random(seed)
        self.client = client
        self.group = group
        self.names = [topic.name or "" for topic in topics]
        self.ids = [topic.topic_id for topic in topics]
        self.consumers: dict[str, ConsumerMember] = {}
        self.classics: dict[str, GroupMember] = {}
        self.notes: list[Any] = []

    async def live(self) -> list[Any]:
        """What was asked and answered, step by step; it ends early where the group becomes a classic one."""
        await assign_at_once(self.client, self.group)
        for _ in range(STEPS):
            await self.step()
            found = await consumer_group(self.client, self.group)
            members = sorted(
                (
                    member.member_id,
                    member.member_epoch,
                    member.member_type,
                    self.assigned(member.assignment),
                    self.assigned(member.target_assignment),
                )
                for member in found.members
            )
            self.notes.append((error(found), found.group_state, found.group_epoch, found.assignment_epoch, members))
            if (found.error_message or "").endswith("is not a consumer group."):
                break
        return self.notes

    def assigned(self, assignment: Any) -> list[tuple[int, int]] | None:
        """An assignment, by the topics' places."""
        if assignment is None:
            return None
        return self.places((part.topic_id, index) for part in assignment.topic_partitions for index in part.partitions)

    def places(self, partitions: Iterable[tuple[UUID, int]]) -> list[tuple[int, int]]:
        return sorted((self.ids.index(topic_id), index) for topic_id, index in partitions)

    def some_topics(self) -> list[str]:
        return self.random.sample(self.names, self.random.randint(1, len(self.names)))

    async def step(self) -> None:
        number, action = self.random.randrange(4), self.random.randrange(10)
        luck = self.random.random()
        member, classic = self.consumers.get(f"m{number}"), self.classics.get(f"c{number}")
        if action <= 1 or not self.consumers:
            await self.come(f"m{number}", "static" if luck < 0.3 else None)
        elif action <= 3:
            await self.ask_as_classic(f"c{number}", luck)
        elif action == 4 and classic is not None:
            answer = await classic.leave()
            self.notes.append(("leaves", classic.member_id, [error(left) for left in answer.members]))
            del self.classics[classic.member_id]
        elif action == 5:
            members: list[ConsumerMember | GroupMember] = [*self.consumers.values(), *self.classics.values()]
            await self.commit(self.random.choice(members))
        elif member is not None:
            await self.go_on(member, action, luck)

    # --- members whose coordinator assigns -------------------------------------------------------------------------

    async def come(self, member_id: str, static: str | None) -> None:
        topics = self.some_topics()
        if member_id not in self.consumers:
            instance = static and f"{static}-{member_id}"
            self.consumers[member_id] = ConsumerMember(
                self.client, self.group, topics, instance=instance, member_id=member_id
            )
        member = self.consumers[member_id]
        member.topics = topics
        self.note("joins", member, await member.join(server_assignor="range"))

    async def go_on(self, member: ConsumerMember, action: int, luck: float) -> None:
        if not member.epoch:
            return
        if action == 6:
            epoch = max(member.epoch + self.random.choice([-1, 1]), 1)
            owned = held(member.assigned or set()) if luck < 0.5 else None
            self.note("is odd", member, await member.heartbeat(member_epoch=epoch, topic_partitions=owned))
        elif action == 7 and luck < 0.4:
            leaves = -2 if member.instance is not None and luck < 0.3 else -1
            self.note("leaves", member, await member.leave(leaves))
            if leaves == -1:
                del self.consumers[member.member_id]
        elif action == 7:
            member.topics = self.some_topics()
            self.note("subscribes", member, await member.heartbeat(subscribed_topic_names=member.topics))
        elif luck < 0.3:
            self.note("is there", member, await member.heartbeat())
        else:
            self.note("acknowledges", member, await member.acknowledge(revoke_only=luck < 0.5))

    def note(self, what: str, member: ConsumerMember, answer: Any) -> None:
        assigned = self.assigned(answer.assignment)
        message = (answer.error_message or "").replace(self.group, "the group")
        self.notes.append(
            (what, member.member_id, error(answer), message, answer.member_epoch, assigned)
        )  # fmt: skip

    # --- members of the classic protocol ---------------------------------------------------------------------------

    async def ask_as_classic(self, member_id: str, luck: float) -> None:
        if not (await consumer_group(self.client, self.group)).members:
            return  # it would wait for the others of a classic group
        member = self.classics.setdefault(
            member_id, GroupMember(self.client, self.group, protocol_type="consumer", member_id=member_id)
        )
        if member.generation >= 0 and luck < 0.4:
            self.notes.append(("is there", member_id, await member.heartbeat()))
            return
        if not member.protocols or luck < 0.9:
            member.protocols = self.protocols(self.some_topics(), member)
        joined = await member.join()
        self.notes.append(("joins", member_id, error(joined), joined.generation_id, joined.leader, len(joined.members)))
        if luck < 0.8:
            synced = await member.sync()
            parts = decode(ConsumerProtocolAssignment, 0, bytes(synced.assignment)[2:]) if synced.assignment else None
            told = parts and sorted(
                (self.names.index(part.topic), index) for part in parts.assigned_partitions for index in part.partitions
            )
            self.notes.append(("syncs", member_id, error(synced), told))

    def protocols(self, topics: list[str], member: GroupMember) -> list[tuple[str, bytes]]:
        """It says that it owns some partitions, truly or not."""
        owned = [
            ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=list(range(self.random.randint(0, 2))))
            for topic in topics
        ]
        subscription = ConsumerProtocolSubscription(topics=topics, owned_partitions=owned)
        return [("range", b"\0\1" + encode(subscription, 1))]

    # --- offsets ---------------------------------------------------------------------------------------------------

    async def commit(self, member: ConsumerMember | GroupMember) -> None:
        known = member.epoch if isinstance(member, ConsumerMember) else member.generation
        epoch, place = max(known, 0) + self.random.choice([0, 0, -1, -2, 1]), self.random.randrange(len(COUNTS))
        index = self.random.randrange(COUNTS[place])
        partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=epoch,
            member_id=member.member_id,
            topics=[OffsetCommitRequestTopic(name=self.names[place], partitions=[partition])],
        )
        (topic,) = (await self.client.ask(request, 9)).topics
        self.notes.append(("commits", member.member_id, epoch, place, index, error(topic.partitions[0])))


async def test_apache_kafka_answers_the_same(apache_kafka: ApacheKafka, kafka_release: str | None) -> None:
    async with Broker(max_versions=kafka_release) as broker:
        clusters = [Kafka(lambda: over_tcp(broker.bootstrap)), Kafka(lambda: over_tcp(apache_kafka.bootstrap))]
        topics = [[await kafka.topic(count) for count in COUNTS] for kafka in clusters]
        for seed in range(20):
            notes = []
            for kafka, theirs in zip(clusters, topics, strict=True):
                async with await kafka.client() as client:
                    notes.append(await Life(seed, client, await new_group(client), theirs).live())
            ours, real = (list(map(str, told)) for told in notes)
            for step, (mine, theirs_) in enumerate(zip(ours, real, strict=True)):
                assert mine == theirs_, (seed, ours[max(step - 5, 0) : step])
