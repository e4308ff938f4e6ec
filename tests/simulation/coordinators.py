"""What goes wrong with coordinators besides chaos, and how a cluster comes to another version of transactions."""

from typing import Any, NoReturn

import anyio

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import ApiVersionsResponse
from aiokafkawire.protocol.schema import Request, Response
from aiokafkawire.testing.broker import ApiError
from aiokafkawire.testing.simulation import Simulation

from .lives import group_of
from .trouble import next_fault

__all__ = ("trouble_coordinators", "upgrade")


def upgrade(sim: Simulation, at: float) -> None:
    """Until then the cluster has ``transaction.version`` 1."""

    def told(_: Request[Any], answer: Response) -> Response:
        assert isinstance(answer, ApiVersionsResponse)
        if sim.now() < at:
            answer.finalized_features_epoch -= 1
            for feature in answer.finalized_features:
                if feature.name == "transaction.version":
                    feature.max_version_level = feature.min_version_level = 1
        return answer

    sim.broker.on(ApiKey.API_VERSIONS, answer=told, times=None)


async def trouble_coordinators(sim: Simulation, writers: list[str]) -> NoReturn:
    """They move, and take their time to read what was written; transactions take theirs to be completed."""
    chance = sim.chance("coordinators")
    longest = chance.choice((3.0, 30.0))
    while True:
        own = await next_fault("coordinators", chance, (0.5, longest))
        writer, node, loading = own.choice(writers), own.choice(sim.broker.node_ids), own.choice((0.0, 2.0))
        kind = own.choice(("transactions", "group", "markers"))
        sim.note(f"trouble with {kind} of {writer}")
        try:
            match kind:
                case "transactions":
                    sim.broker.move_transaction_coordinator(writer, node, loading=loading)
                case "group":
                    sim.broker.move_coordinator(group_of(writer), node, loading=loading)
                case _:
                    sim.broker.hold_markers(writer)
                    try:
                        await anyio.sleep(loading)
                    finally:
                        sim.broker.release_markers(writer)
        except ApiError:
            pass  # it is down, or not in sync
