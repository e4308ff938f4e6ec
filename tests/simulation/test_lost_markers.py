"""A transaction's end is written again where it was lost with a partition's leader."""

import anyio
from simulation.taking_part import logs_of

from aiokafkawire import TopicPartition
from aiokafkawire.testing.simulation import Simulation, simulate

A0 = TopicPartition("a", 0)


def test_a_marker_that_only_the_leader_had_is_written_by_the_next_one() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        log, leader = sim.broker.log("a"), sim.broker.leader("a")
        next_leader, follower = (node for node in sim.broker.node_ids if node != leader)
        async with sim.client() as client, client.producer(transactional_id="x") as producer:
            async with producer.transaction() as transaction:
                await transaction.send("a", b"in the first")
                for node in (next_leader, follower):
                    sim.broker.hold_replica("a", 0, node)
            assert (log.log_end_offset, log.high_watermark) == (2, 1)
            sim.broker.move_leader("a", 0, next_leader)  # which has not got the marker
            for node in (next_leader, follower):
                sim.broker.release_replica("a", 0, node)
            await anyio.sleep(1)
            assert (log.log_end_offset, log.last_stable_offset) == (2, 2)
            async with producer.transaction() as transaction:
                await transaction.send("a", b"in the second")
        assert logs_of(sim, [A0]) == {A0: [(0, b"in the first"), (2, b"in the second")]}
        assert log.last_stable_offset == log.log_end_offset == 4

    simulate(main)
