"""Groups that rebalance for hours hold no more at their end than they held in the beginning."""

import os
from collections import Counter

import pytest
from soak.churn import HEARTBEAT_MS, SAMPLES, SESSION_MS, Protocol, Sample, churn, grown
from soak.day import HOUR, Day, live

from aiokafkawire import Client
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.broker_options import SimulatedArguments
from aiokafkawire.testing.simulation import Simulation, simulate

SECONDS = float(os.environ.get("AIOKAFKAWIRE_SOAK_SECONDS", "600")) / 6
"""Of real time, for each of the three event loops and the two protocols."""
HOURS = 2 * 3_600.0


PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])
TIMES = SimulatedArguments(
    group_consumer_session_timeout_ms=SESSION_MS, group_consumer_heartbeat_interval_ms=HEARTBEAT_MS
)


def in_virtual_time(seconds: float, protocol: Protocol) -> list[Sample]:
    async def main(sim: Simulation) -> list[Sample]:
        sim.broker.create_topic("a", partitions=6)
        return await churn(sim.client, seconds, sim.broker.requests.clear, protocol)

    return simulate(main, time_limit=seconds + 120, **TIMES).value


def check(samples: list[Sample], seconds: float) -> None:
    print(*(f"{one.turns} turns, {one.records} records, {one.objects.total()} objects" for one in samples), sep="\n")
    assert len(samples) == SAMPLES
    assert samples[-1].turns >= seconds / 8
    assert samples[-1].records >= seconds / 2
    assert grown(samples) == {}


@pytest.mark.thorough
@pytest.mark.timeout(300)
@PROTOCOLS
def test_minutes_of_virtual_time(protocol: Protocol) -> None:
    check(in_virtual_time(180.0, protocol), 180.0)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@PROTOCOLS
def test_hours_of_virtual_time(protocol: Protocol) -> None:
    check(in_virtual_time(HOURS, protocol), HOURS)


@pytest.mark.soak
@pytest.mark.anyio
@pytest.mark.timeout(SECONDS + 120)
@PROTOCOLS
async def test_minutes_of_real_time(protocol: Protocol) -> None:
    async with Broker(3, **TIMES) as broker:
        broker.create_topic("a", partitions=6)
        check(await churn(lambda: Client(broker.bootstrap), SECONDS, broker.requests.clear, protocol), SECONDS)


def lived(hours: int, seed: int) -> Day:
    async def main(sim: Simulation) -> Day:
        return await live(sim, hours)

    return simulate(main, seed=seed, time_limit=(hours + 2) * HOUR).value


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_a_client_lives_through_a_day() -> None:
    day = lived(24, 1)
    print(
        *(f"{one.records} records, {one.tasks} tasks, {one.objects.total()} objects" for one in day.samples), sep="\n"
    )
    print(f"finished more than once: {day.repeated()}")
    assert day.missing() == {}
    assert set(day.seen) == {"read", "audit", "share", "process"}
    assert min(map(len, day.seen.values())) > 5_000
    assert day.aborted > 50
    assert grown(day.samples) == {}


def sample(tasks: int = 5, **objects: int) -> Sample:
    return Sample(Counter(objects), tasks, records=0, turns=0)


def test_what_grows_is_found() -> None:
    quiet, busy = sample(Place=10, Ask=100), sample(Place=30, Ask=40)
    assert grown([quiet, busy, quiet, busy, quiet, busy]) == {}
    assert grown([sample(), quiet, busy, sample(Place=51), sample(Place=60), sample(Place=70)]) == {"Place": (30, 51)}
    assert grown([quiet, quiet, quiet, *[sample(tasks=26, Place=1)] * 3]) == {"tasks": (5, 26)}
