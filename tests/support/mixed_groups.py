"""Members of one group by three clients: ours, librdkafka (confluent-kafka) and Java's own."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, Protocol

import anyio
import pytest
from anyio.from_thread import BlockingPortal
from support.java_tools import java_command
from support.readers import QUICK, Reader, Readers, reading
from support.transactional import settled

from aiokafkawire import Client, GroupDescription, TopicPartition

from .patience import PATIENCE

__all__ = ("Member", "MixedGroup", "check_a_change_of_protocol", "mixed_group")

_BY_THE_COORDINATOR: Final = "-consumer"
"""The end of the names of members with group.protocol=consumer (KIP-848), whose coordinator assigns."""
_VERIFIABLE_CONSUMER: Final = "org.apache.kafka.tools.VerifiableConsumer"
_JAVAS_NAMES: Final = {"range": "RangeAssignor", "cooperative-sticky": "CooperativeStickyAssignor"}


class Member(Protocol):
    """One member, whoever wrote it."""

    @property
    def owned(self) -> set[TopicPartition]:
        """What it says that it has."""

    @property
    def numbers(self) -> list[int]:
        """What it has read."""

    async def leave(self) -> None:
        """Close it in order."""


class Ours:
    """aiokafkawire."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @property
    def owned(self) -> set[TopicPartition]:
        return self._reader.owned

    @property
    def numbers(self) -> list[int]:
        assert self._reader.errors == []
        return [int(value or b"") for value in self._reader.values]

    async def leave(self) -> None:
        await self._reader.close()


class Confluent:
    """confluent-kafka, polled in a thread; with its classic protocol or with the one of KIP-848."""

    def __init__(
        self, bootstrap: str, topic: str, strategy: str, tell: Callable[[], object], protocol: str = "classic"
    ) -> None:
        confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "client.id": "confluent",
            "auto.offset.reset": "earliest",
            "group.protocol": protocol,
        }
        if protocol == "classic":
            settings |= {
                "partition.assignment.strategy": strategy,
                "session.timeout.ms": QUICK["session_timeout_ms"],
                "heartbeat.interval.ms": QUICK["heartbeat_interval_ms"],
            }
        self.owned: set[TopicPartition] = set()
        self.numbers: list[int] = []
        self._tell = tell
        self._consumer: Any = confluent_kafka.Consumer(settings)
        self._consumer.subscribe([topic])
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    async def leave(self) -> None:
        self._leaving.set()
        await anyio.to_thread.run_sync(self._thread.join)

    def _poll(self) -> None:
        while not self._leaving.is_set():
            message = self._consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.numbers.append(int(message.value()))
            owned = {TopicPartition(one.topic, one.partition) for one in self._consumer.assignment()}
            if message is not None or owned != self.owned:
                self.owned = owned
                self._tell()
        self._consumer.close()


class Java:
    """VerifiableConsumer, which tells of itself by lines of JSON."""

    def __init__(
        self, bootstrap: str, topic: str, strategy: str, tell: Callable[[], object], protocol: str = "classic"
    ) -> None:
        at = ["--bootstrap-server", bootstrap, "--topic", topic, "--group-id", topic]
        how = ["--reset-policy", "earliest", "--verbose", "--group-protocol", protocol]
        if protocol == "classic":
            how += ["--assignment-strategy", f"org.apache.kafka.clients.consumer.{_JAVAS_NAMES[strategy]}"]
            how += ["--session-timeout", str(QUICK["session_timeout_ms"])]
        self.owned: set[TopicPartition] = set()
        self.numbers: list[int] = []
        self._tell = tell
        self._process = subprocess.Popen(
            [*java_command(), _VERIFIABLE_CONSUMER, *at, *how], stdout=subprocess.PIPE, text=True
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    async def leave(self) -> None:
        self._process.terminate()
        await anyio.to_thread.run_sync(self._wait)

    def _wait(self) -> None:
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
        self._thread.join(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            if told["name"] == "record_data":
                self.numbers.append(int(told["value"]))
            elif told["name"] == "partitions_assigned":
                self.owned = self.owned | _partitions(told)
            elif told["name"] == "partitions_revoked":
                self.owned = self.owned - _partitions(told)
            self._tell()


def _partitions(told: Any) -> set[TopicPartition]:
    return {TopicPartition(one["topic"], one["partition"]) for one in told["partitions"]}


class MixedGroup:
    """One group of one topic, whose members come one by one: the first of them leads."""

    def __init__(
        self, kafka: Client, bootstrap: str, readers: Readers, portal: BlockingPortal, topic: str, strategy: str
    ) -> None:
        self.members: dict[str, Member] = {}
        self.written = 0
        self._kafka, self._bootstrap, self._readers, self._portal = kafka, bootstrap, readers, portal
        self._topic, self._strategy = topic, strategy
        self._gone: list[Member] = []

    async def join(self, who: str) -> None:
        """Another member, of which nobody waits until it has joined."""
        client, _, protocol = who.partition("-")
        if who == "ours":
            settings: dict[str, Any] = {"partition_assignment_strategy": [self._strategy]}
            self.members[who] = Ours(await self._readers.join(self._kafka, self._topic, self._topic, **settings))
        elif client == "ours":
            self.members[who] = Ours(
                await self._readers.join(self._kafka, self._topic, self._topic, group_protocol="consumer")
            )
        else:
            cls = Confluent if client == "confluent" else Java
            self.members[who] = cls(self._bootstrap, self._topic, self._strategy, self._tell, protocol or "classic")

    async def leave(self, who: str) -> None:
        member = self.members.pop(who)
        self._gone.append(member)
        await member.leave()

    async def write(self, count: int) -> None:
        """So many numbers more, over all partitions."""
        async with self._kafka.producer() as producer:
            partitions = len(await producer.partitions_for(self._topic))
            for number in range(self.written, self.written + count):
                await producer.enqueue(self._topic, b"%d" % number, partition=number % partitions)
        self.written += count

    async def shared(self, partitions: int) -> None:
        """Wait until every member has a part, and each partition is one member's, as they and the coordinator say."""

        def is_shared() -> bool:
            parts = [member.owned for member in self.members.values()]
            return all(parts) and sum(map(len, parts)) == partitions == len(set().union(*parts))

        def as_described(found: GroupDescription) -> bool:
            # A coordinator that assigns may move partitions once more after the members have shared them for a moment.
            parts = sorted(sorted(member.owned) for member in self.members.values())
            described = sorted(sorted(member.assignment) for member in found.members)
            return found.state == "Stable" and is_shared() and described == parts

        await self._until(is_shared)
        found = await settled(self._described, as_described)
        if any(who.endswith(_BY_THE_COORDINATOR) for who in self.members):
            assert found.type == "consumer"
        else:
            assert found.protocol == self._strategy

    async def all_read(self) -> None:
        """Wait until every number was read by somebody."""
        await self._until(lambda: set(self.numbers()) == set(range(self.written)))

    def numbers(self) -> list[int]:
        """All that was read, in order; twice what was read twice."""
        everybody: Iterable[Member] = [*self.members.values(), *self._gone]
        return sorted(number for member in everybody for number in member.numbers)

    async def _described(self) -> GroupDescription:
        return (await self._kafka.admin.describe_groups(self._topic))[self._topic]

    async def _until(self, reached: Callable[[], bool]) -> None:
        try:
            await self._readers.until(reached, PATIENCE)
        except AssertionError as error:
            told = {who: (sorted(one.owned), len(one.numbers)) for who, one in self.members.items()}
            raise AssertionError(f"{error}; of all {told}") from None

    def _tell(self) -> None:
        """Threads of other members call it."""
        self._portal.start_task_soon(self._readers.tell)


@asynccontextmanager
async def mixed_group(
    bootstrap: str, topic: str, *members: str, strategy: str, partitions: int = 6
) -> AsyncIterator[MixedGroup]:
    """A topic with 60 records, read by these members; the first was there alone, so that it leads."""
    async with AsyncExitStack() as stack:
        kafka = await stack.enter_async_context(Client(bootstrap, client_id="ours"))
        portal = await stack.enter_async_context(BlockingPortal())
        readers = await stack.enter_async_context(reading())
        await kafka.admin.create_topics({topic: partitions})
        group = MixedGroup(kafka, bootstrap, readers, portal, topic, strategy)
        try:
            await group.write(60)
            for who in members:
                await group.join(who)
                if who == members[0]:
                    await group.shared(partitions)
            await group.shared(partitions)
            yield group
        finally:
            with anyio.CancelScope(shield=True):
                for who in list(group.members):
                    await group.leave(who)


async def check_a_change_of_protocol(bootstrap: str, topic: str) -> None:
    """Our classic member makes way for one of librdkafka whose coordinator assigns (KIP-848), and comes back."""
    other = "confluent-consumer"
    async with mixed_group(bootstrap, topic, "ours", other, strategy="range", partitions=4) as group:
        await group.all_read()
        await group.leave("ours")
        await group.shared(4)
        await group.write(60)
        await group.all_read()
        await group.join("ours")
        await group.shared(4)
        await group.leave(other)
        await group.shared(4)
        await group.write(60)
        await group.all_read()
