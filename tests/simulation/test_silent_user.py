"""A user who asks for nothing loses its partitions in time, and has them again when it asks."""

import anyio
import pytest

from aiokafkawire import TopicPartition
from aiokafkawire.errors import CommitFailed
from aiokafkawire.testing.simulation import Simulation, simulate

A0 = TopicPartition("a", 0)


# The moment is a sum of times, and rounding is not the same for each: what waits for it must neither hang nor spin.
@pytest.mark.parametrize("seed", range(10))
def test_partitions_are_lost_in_time_and_come_back(seed: int) -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        happened = list[tuple[str, float]]()

        def heard(what: str) -> None:
            happened.append((what, sim.now() - began))

        async with sim.client() as client, client.producer() as producer:
            for number in range(2):
                await producer.send("a", b"%d" % number)
            await anyio.sleep(9)  # a time from 8 to 16, and 10 more: there it hung
            consumer = client.consumer(
                group_id="g", auto_offset_reset="earliest", max_poll_interval_ms=10_000, enable_auto_commit=False
            )
            async with consumer:
                began = sim.now()
                consumer.subscribe("a", on_assigned=lambda _: heard("assigned"), on_lost=lambda _: heard("lost"))
                await anext(consumer)
                began = sim.now()
                await anyio.sleep(15)
                # When the user asked last is looked at with each heartbeat.
                ((what, at),) = happened[1:]
                assert what == "lost"
                assert 10 <= at <= 13
                # There is nobody in the group now, and who is nobody could commit.
                with pytest.raises(CommitFailed, match=r"cannot commit offsets of a-0: .*max_poll_interval_ms"):
                    await consumer.commit({A0: 1})
                assert (await anext(consumer)).offset == 0
                assert consumer.assignment == (A0,)

    simulate(main, seed=seed)
