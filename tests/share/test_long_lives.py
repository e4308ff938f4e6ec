"""Share consumers that live longer than metadata keeps topics that nobody uses."""

import anyio
import pytest

from aiokafkawire.testing.simulation import Simulation, simulate


@pytest.mark.slow
def test_records_arrive_after_minutes_of_silence_and_changes_of_the_leaders() -> None:
    async def main(sim: Simulation) -> list[bytes | None]:
        sim.broker.create_topic("orders", partitions=3)
        read: list[bytes | None] = []

        async def share() -> None:
            async with sim.client() as kafka, kafka.share_consumer("orders", group_id="g") as consumer:
                async for record in consumer:
                    async with record:
                        read.append(record.value)

        async with anyio.create_task_group() as tasks, sim.client() as kafka, kafka.producer() as producer:
            tasks.start_soon(share)
            await anyio.sleep(10)
            for turn in range(3):
                for partition in range(3):
                    await producer.send("orders", b"%d" % turn, partition=partition)
                await anyio.sleep(700)
                for partition in range(3):
                    sim.broker.move_leader("orders", partition, 1 + (partition + turn) % 3)
                await anyio.sleep(700)
            tasks.cancel_scope.cancel()
        return read

    run = simulate(main, seed=1, time_limit=6_000)
    assert sorted(run.value, key=str) == [b"%d" % turn for turn in range(3) for _ in range(3)]
