"""Brokers that restart as another release of Kafka."""

import anyio
import pytest
from support.raw_client import RawClient

from aiokafkawire import ConfigError
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest
from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.testing.virtual.chaos import Fault


async def newest_fetch(sim: Simulation, node: int) -> int:
    """Return the newest version of Fetch that a broker serves."""
    (at,) = (address for address, number in sim.broker.addresses.items() if number == node)
    async with RawClient(await sim.network.connector("me")(*at)) as client:
        served = await client.ask(ApiVersionsRequest(client_software_name="me", client_software_version="1"), 3)
    return next(api.max_version for api in served.api_keys if api.api_key == ApiKey.FETCH)


def test_a_broker_restarts_as_another_release_and_the_others_stay() -> None:
    async def main(sim: Simulation) -> list[int]:
        await sim.crash(2)
        await sim.restart(2, max_versions="3.9")
        await sim.crash(3)
        await sim.restart(3)
        return [await newest_fetch(sim, node) for node in (1, 2, 3)]

    assert simulate(main, max_versions="3.3").value == [13, 17, 13]


def test_an_unknown_release_is_an_error() -> None:
    async def main(sim: Simulation) -> None:
        await sim.crash(1)
        with pytest.raises(ConfigError, match=r"9\.9"):
            await sim.restart(1, max_versions="9.9")

    simulate(main)


def test_chaos_restarts_brokers_as_one_of_its_releases() -> None:
    async def main(sim: Simulation) -> set[int]:
        sim.chaos(Fault.CRASH, every=(1, 1), lasting=(0.1, 0.2), releases=("3.9",))
        await anyio.sleep(30)
        await sim.calm()
        return {await newest_fetch(sim, node) for node in sim.broker.node_ids}

    assert simulate(main, max_versions="3.3").value == {17}
