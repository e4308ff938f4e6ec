"""Whether a group has a coordinator: as the cluster says, and who is asked. In virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import attrs
import pytest
from support.group_lives import GROUP

from aiokafkawire.cluster.cluster import Cluster
from aiokafkawire.errors import ErrorCode, KafkaError
from aiokafkawire.group.coordinator_probe import CoordinatorStatus, look_for_coordinator
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.types import CoordinatorType


@attrs.define(eq=False)
class Life:
    sim: Simulation
    cluster: Cluster
    heard: list[KafkaError | None] = attrs.field(factory=list)

    async def look(self) -> tuple[CoordinatorStatus, float]:
        """What comes of it, and the seconds that it takes."""
        began = self.sim.now()
        found = await look_for_coordinator(self.cluster, GROUP, "group-1", self.heard.append)
        return found, self.sim.now() - began


def alone(body: Callable[[Life], Awaitable[None]]) -> None:
    """Run this at once, with one client that knows the group's coordinator, and three brokers."""

    async def main(sim: Simulation) -> None:
        async with sim.client() as client:
            life = Life(sim, client._cluster)
            await life.cluster.coordinator(CoordinatorType.GROUP, GROUP, life.cluster.deadline(5))
            await body(life)

    simulate(main, seed=1)


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_AUTHORIZATION_FAILED])
def test_who_answers_is_there_whatever_it_says(code: ErrorCode) -> None:
    @alone
    async def _(life: Life) -> None:
        if code != ErrorCode.NONE:
            life.sim.broker.on(ApiKey.DESCRIBE_GROUPS, answer=code, times=None)
        found, took = await life.look()
        assert found is CoordinatorStatus.THERE
        assert took < 0.5


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
@pytest.mark.parametrize("api", [ApiKey.DESCRIBE_GROUPS, ApiKey.FIND_COORDINATOR])
def test_who_says_that_it_is_none_or_that_there_is_none_is_away_after_a_second(api: ApiKey, code: ErrorCode) -> None:
    @alone
    async def _(life: Life) -> None:
        life.cluster.doubt_coordinator(CoordinatorType.GROUP, GROUP)
        life.sim.broker.on(api, answer=code, times=None)
        found, took = await life.look()
        assert found is CoordinatorStatus.AWAY
        assert 0.9 <= took <= 1.1
        assert None not in life.heard


def test_who_is_named_and_cannot_be_reached_is_away() -> None:
    @alone
    async def _(life: Life) -> None:
        coordinator = life.sim.broker.coordinator(GROUP)
        life.sim.network.refuse(coordinator)
        life.sim.network.cut(coordinator)
        found, took = await life.look()
        assert found is CoordinatorStatus.AWAY
        assert 0.9 <= took <= 1.1
        life.sim.network.accept(coordinator)
        found, _ = await life.look()
        assert found is CoordinatorStatus.THERE
        assert life.heard[-1] is None


@pytest.mark.parametrize("api", [ApiKey.DESCRIBE_GROUPS, ApiKey.FIND_COORDINATOR])
def test_who_is_silent_is_not_known_to_be_away_even_if_its_connection_broke_before(api: ApiKey) -> None:
    @alone
    async def _(life: Life) -> None:
        life.cluster.doubt_coordinator(CoordinatorType.GROUP, GROUP)
        if api is ApiKey.DESCRIBE_GROUPS:
            life.sim.broker.on(api, drop="before", times=1)
        life.sim.broker.on(api, swallow="before", times=None)
        found, took = await life.look()
        assert found is CoordinatorStatus.SILENT
        assert 0.9 <= took <= 1.1


def test_one_that_moves_within_the_second_is_there() -> None:
    @alone
    async def _(life: Life) -> None:
        coordinator = life.sim.broker.coordinator(GROUP)
        life.sim.broker.move_coordinator(GROUP, coordinator % 3 + 1, loading=0.6)
        async with anyio.create_task_group():
            found, took = await life.look()
        assert found is CoordinatorStatus.THERE
        assert 0.6 <= took < 1
