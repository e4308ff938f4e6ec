"""Clusters that are large, or far away, or of which a broker says nothing. In virtual time."""

from __future__ import annotations

import anyio
import pytest

from aiokafkawire import OffsetSpec, TopicPartition
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Simulation, simulate

COUNT = 6
ALL = [TopicPartition("t", index) for index in range(COUNT)]


def test_many_addresses_of_brokers_far_away_are_given_the_time_that_they_take() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("t", partitions=100)
        async with sim.client("app") as kafka:
            places = [TopicPartition("t", index) for index in range(100)]
            assert len(await kafka.admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))) == 100
        # By its newest versions: nobody took it for an old broker.
        assert {request.version for request in sim.broker.requests.of(ApiKey.LIST_OFFSETS)} == {11}

    simulate(main, nodes=100, latency=(0.08, 0.15))


def test_a_short_silence_is_no_sign_of_an_old_broker() -> None:
    async def main(sim: Simulation) -> None:
        # A quarter of which is less than an answer takes.
        async with sim.client("app", socket_connection_setup_timeout_ms=400):
            assert sum("is dialled" in line for line in sim.trace.lines) == 1

    simulate(main, nodes=1, latency=(0.055, 0.06))


@pytest.mark.parametrize("by", ["the admin", "a consumer"])
def test_a_leader_that_says_nothing_keeps_nobody_from_the_offsets_of_others(by: str) -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("t", partitions=COUNT)
        silent = sim.broker.leader("t", 0)
        theirs = [where for where in ALL if sim.broker.leader(*where) != silent]
        async with sim.client("app") as kafka:
            async with kafka.producer() as producer:
                for where in ALL:
                    await producer.send(where.topic, b"x", partition=where.partition)
            sim.network.block(silent)
            began = sim.now()
            if by == "the admin":
                with anyio.move_on_after(5):
                    await kafka.admin.list_offsets(dict.fromkeys(ALL, OffsetSpec.LATEST))
                asked = sim.broker.requests.of(ApiKey.LIST_OFFSETS)
                assert len(asked) == 2
                return
            async with kafka.consumer("t", auto_offset_reset="earliest") as consumer:
                read: set[TopicPartition] = set()
                async for record in consumer:
                    read.add(TopicPartition(record.topic, record.partition))
                    if read == set(theirs):
                        break
            assert sim.now() - began < 10

    simulate(main)
