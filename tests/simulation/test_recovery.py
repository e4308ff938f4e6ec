"""What each fault costs a producer that waits for every record, and a consumer, with default settings."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from aiokafkawire import Client, TopicPartition
from aiokafkawire.testing.simulation import Simulation, simulate

PARTITIONS = [TopicPartition("a", index) for index in range(3)]
Fault = Callable[[Simulation], Coroutine[Any, Any, None]]


async def nothing(sim: Simulation) -> None:
    pass


async def crash_a_leader(sim: Simulation) -> None:
    await sim.crash(sim.broker.leader("a"))


async def cut_all_connections(sim: Simulation) -> None:
    sim.network.cut()


async def move_all_leaders(sim: Simulation) -> None:
    for topic, index in PARTITIONS:
        sim.broker.move_leader(topic, index, sim.broker.leader(topic, index) % 3 + 1)


async def refuse_for_three_seconds(sim: Simulation) -> None:
    sim.network.refuse(1, 2, 3)
    sim.network.cut()
    await anyio.sleep(3)
    sim.network.accept()


async def crash_all_for_three_seconds(sim: Simulation) -> None:
    for node in (1, 2, 3):
        await sim.crash(node)
    await anyio.sleep(3)
    for node in (1, 2, 3):
        await sim.restart(node)


async def hang_for_three_seconds(sim: Simulation) -> None:
    sim.network.block(1, 2, 3)
    await anyio.sleep(3)
    sim.network.unblock(1, 2, 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        (nothing, 0.02),
        (crash_a_leader, 0.3),
        (cut_all_connections, 0.3),
        (move_all_leaders, 0.3),
        (refuse_for_three_seconds, 5.5),
        (crash_all_for_three_seconds, 5.5),
        (hang_for_three_seconds, 3.1),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_fault_costs_no_more_than_this(fault: Fault, seconds: float, seed: int) -> None:
    run = simulate(lambda sim: slowest(sim, fault), seed=seed)
    producing, consuming = run.value
    assert producing < seconds
    assert consuming < seconds


async def slowest(sim: Simulation, fault: Fault) -> tuple[float, float]:
    """The longest that a record took to be acknowledged, and to be seen, in seconds; a fault happens meanwhile."""
    sim.broker.create_topic("a", partitions=len(PARTITIONS))
    seen = list[float]()
    sent = list[float]()
    async with sim.client() as client, client.producer() as producer, anyio.create_task_group() as tasks:
        for where in PARTITIONS:  # connects, and learns the cluster
            await producer.send(where.topic, partition=where.partition)
        tasks.start_soon(see, sim, sim.client(), seen)
        await anyio.sleep(2)
        tasks.start_soon(fault, sim)
        until = sim.now() + 10
        while sim.now() < until:
            began = sim.now()
            await producer.send("a", repr(began).encode(), partition=len(sent) % 3)
            sent.append(sim.now() - began)
            await anyio.sleep(0.05)
        await anyio.sleep(5)
        tasks.cancel_scope.cancel()
    return max(sent), max(seen)


async def see(sim: Simulation, client: Client, seen: list[float]) -> None:
    async with client, client.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign(PARTITIONS)
        async for record in consumer:
            if record.value is not None:
                seen.append(sim.now() - float(record.value))
