"""A quiet cluster for a long time: one producer, a few records a second, three consumers that share its topic, and a
group of three members."""

import anyio
from support.group_members import GroupMember, described, error
from support.raw_client import RawClient

from aiokafkawire import Client, TopicPartition
from aiokafkawire.testing.simulation import Run, Simulation, simulate

__all__ = ("idle",)

PARTITIONS = 6
CONSUMERS = 3
GROUP = "quiet"
HEARTBEAT = 3.0  # seconds, heartbeat.interval.ms


def idle(seconds: float, seed: int = 0) -> Run[int]:
    """So many seconds of virtual time; how many records were sent, and read by the consumer of their partition."""

    async def main(sim: Simulation) -> int:
        sim.broker.create_topic("a", partitions=PARTITIONS)
        read = [0] * CONSUMERS
        async with sim.client() as client, anyio.create_task_group() as tasks:
            for number in range(CONSUMERS):
                tasks.start_soon(_read, sim.client(), read, number)
                tasks.start_soon(_belong, await _member(sim, number))
            sent = 0
            async with client.producer() as producer:
                while sim.now() < seconds:
                    await producer.enqueue("a", b"%d" % sent, key=b"%d" % sent)
                    sent += 1
                    await anyio.sleep(0.1)
            await anyio.sleep(10)
            group = await described((await _member(sim, CONSUMERS)).client, GROUP)
            assert (group.group_state, len(group.members)) == ("Stable", CONSUMERS)
            tasks.cancel_scope.cancel()
        assert sum(read) == sent
        return sent

    return simulate(main, seed=seed, time_limit=seconds + 60)


async def _read(client: Client, read: list[int], number: int) -> None:
    async with client, client.consumer(auto_offset_reset="earliest") as consumer:
        # Groups are not in the client yet.
        consumer.assign([TopicPartition("a", index) for index in range(PARTITIONS) if index % CONSUMERS == number])
        async for _ in consumer:
            read[number] += 1


async def _member(sim: Simulation, number: int) -> GroupMember:
    """A member of a classic group that speaks for itself, so that the broker is tested apart from the client."""
    coordinator = sim.broker.coordinator(GROUP)
    (at,) = (address for address, node in sim.broker.addresses.items() if node == coordinator)
    return GroupMember(RawClient(await sim.network.connector(f"member-{number}")(*at)), GROUP)


async def _belong(member: GroupMember) -> None:
    """Be in the group: join, take a part, say so every few seconds, and join again when others come."""
    answer = await member.enter()
    while True:
        parts = {one.member_id: b"part" for one in answer.members} if member.leads else None
        heard = error(await member.sync(parts))
        while heard == "NONE":
            await anyio.sleep(HEARTBEAT)
            heard = await member.heartbeat()
        assert heard == "REBALANCE_IN_PROGRESS"
        answer = await member.join()
        assert answer.error_code == 0
