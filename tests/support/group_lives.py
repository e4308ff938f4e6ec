"""A group whose members live in virtual time, each with a client of its own, and somebody who feeds its topic."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio
import attrs
from support.readers import Reader, Readers, reading

from aiokafkawire import Client, TopicPartition
from aiokafkawire.group.membership import GroupState
from aiokafkawire.group.membership_driver import MembershipDriver
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.simulation import Simulation, simulate

__all__ = ("COUNT", "GROUP", "TOPIC", "Life", "in_a_group", "membership_of", "partitions")

GROUP, TOPIC, COUNT = "g", "t", 6
STEADY: dict[str, Any] = {
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 1_000,
    "auto_commit_interval_ms": 1_000,
    "fetch_max_wait_ms": 500,
}
"""What members have here, in virtual time."""


def partitions(count: int = COUNT, topic: str = TOPIC) -> set[TopicPartition]:
    return {TopicPartition(topic, index) for index in range(count)}


def membership_of(reader: Reader) -> MembershipDriver:
    part = reader.consumer._in_group
    assert part is not None
    return part.driver


@attrs.define(eq=False)
class Life:
    """What a scenario works with. Times are in seconds."""

    sim: Simulation
    readers: Readers
    stack: AsyncExitStack
    fed: list[int] = attrs.field(factory=list)

    @property
    def broker(self) -> Broker:
        return self.sim.broker

    @property
    def coordinator(self) -> int:
        return self.broker.coordinator(GROUP)

    @property
    def elsewhere(self) -> int:
        """A broker that does not coordinate the group."""
        return self.coordinator % 3 + 1

    async def client(self, name: str, **options: Any) -> Client:
        return await self.stack.enter_async_context(self.sim.client(name, **options))

    async def join(self, name: str, *topics: str, client: dict[str, Any] | None = None, **options: Any) -> Reader:
        """A member; it has yet to get its partitions. Pattern subscriptions name no topics."""
        named = topics or (() if "pattern" in options else (TOPIC,))
        return await self.readers.join(await self.client(name, **client or {}), GROUP, *named, **{**STEADY, **options})

    async def both(self, **options: Any) -> tuple[Reader, Reader]:
        """Two members that share all partitions, and read."""
        one, two = await self.join("one", **options), await self.join("two", **options)
        await self.settled(one, two)
        return one, two

    async def settled(self, *readers: Reader, count: int = COUNT) -> None:
        """Wait until these share so many partitions, and no rebalance goes on."""

        def is_settled() -> bool:
            machines = [membership_of(reader).machine for reader in readers]
            owned = [where for reader in readers for where in reader.owned]
            return (
                all(one.state is GroupState.STABLE and one.task is None for one in machines)
                and len({one.group.generation_id for one in machines}) == 1
                and len(owned) == len(set(owned)) == count
                and all(set(reader.consumer.assignment) == reader.owned for reader in readers)
            )

        await self.readers.share(*readers, count=count, patience=600)
        for _ in range(600):
            if is_settled():
                return
            await anyio.sleep(0.1)
        raise AssertionError("they do not settle; by now\n" + "\n".join(map(repr, readers)))

    async def feed(self) -> None:
        """Write a number every tenth of a second, to one partition after the other."""
        async with self.sim.client("writer") as kafka, kafka.producer() as producer:
            while True:
                number = len(self.fed)
                await producer.send(TOPIC, b"%d" % number, partition=number % COUNT)
                self.fed.append(number)
                await anyio.sleep(0.1)

    def read(self) -> list[int]:
        """What all members have read."""
        return sorted(int(value or b"-1") for reader in self.readers.all for value in reader.values)

    async def all_read(self) -> None:
        """Wait until somebody has read each number that is written by now."""
        wanted = set(self.fed)
        await self.readers.until(lambda: wanted <= set(self.read()), patience=120)

    async def under_way(self) -> None:
        """Wait until something of each partition was read: then it is known where to go on."""
        await self.readers.until(
            lambda: {one.partition for reader in self.readers.all for one in reader.records} == set(range(COUNT))
        )

    def once(self) -> bool:
        """Whether nobody has read what another had."""
        found = self.read()
        return len(found) == len(set(found))


def in_a_group(
    *, feeds: bool = True, seed: int = 1, **options: Any
) -> Callable[[Callable[[Life], Awaitable[None]]], None]:
    """Run a scenario at once: three brokers, and a topic of COUNT partitions that is fed."""

    def run(body: Callable[[Life], Awaitable[None]]) -> None:
        async def main(sim: Simulation) -> None:
            sim.broker.create_topic(TOPIC, partitions=COUNT)
            async with AsyncExitStack() as stack, reading() as readers, anyio.create_task_group() as tasks:
                life = Life(sim, readers, stack)
                if feeds:
                    tasks.start_soon(life.feed)
                await body(life)
                for reader in readers.all:
                    await reader.close()
                tasks.cancel_scope.cancel()

        simulate(main, seed=seed, **options)

    return run
