"""Many records in a row that cannot be deserialized, in virtual time."""

from __future__ import annotations

import anyio

from aiokafkawire import Acknowledge, DeserializationError
from aiokafkawire.testing.configs.types import ConfigKind
from aiokafkawire.testing.simulation import Simulation, simulate

GOOD, BAD = 40, 200


def test_records_that_cannot_be_deserialized_are_not_fetched_ahead_without_end() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        sim.broker._cluster.configs.replace(ConfigKind.GROUP, "g", {"share.auto.offset.reset": "earliest"})
        async with sim.client() as client:
            async with client.producer(linger_ms=0) as producer:  # each record has a batch of its own
                for number in range(GOOD + BAD):
                    await producer.send("a", b"%d" % number if number < GOOD else b"x")
            async with client.share_consumer("a", group_id="g", value_deserializer=int, max_poll_records=4) as consumer:
                taken = 0
                while taken < GOOD:
                    try:
                        taken += len(records := await consumer.poll())
                    except DeserializationError:
                        continue
                    for record in records:
                        consumer.acknowledge(record, Acknowledge.ACCEPT)
                await anyio.sleep(10)
                # The others keep their deliveries until the user polls again.
                assert len(consumer._fetcher.responses.errors) < BAD / 2

    simulate(main)
