"""A quiet cluster for a long time: one producer, a few records a second, and three consumers that share its topic."""

import anyio

from aiokafkawire import Client, TopicPartition
from aiokafkawire.testing.simulation import Run, Simulation, simulate

__all__ = ("idle",)

PARTITIONS = 6
CONSUMERS = 3


def idle(seconds: float, seed: int = 0) -> Run[int]:
    """So many seconds of virtual time; how many records were sent, and read by the consumer of their partition."""

    async def main(sim: Simulation) -> int:
        sim.broker.create_topic("a", partitions=PARTITIONS)
        read = [0] * CONSUMERS
        async with sim.client() as client, anyio.create_task_group() as tasks:
            for number in range(CONSUMERS):
                tasks.start_soon(_read, sim.client(), read, number)
            sent = 0
            async with client.producer() as producer:
                while sim.now() < seconds:
                    await producer.enqueue("a", b"%d" % sent, key=b"%d" % sent)
                    sent += 1
                    await anyio.sleep(0.1)
            await anyio.sleep(10)
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
