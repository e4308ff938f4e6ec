"""Answers that no honest broker gives to consumers: errors for the user, and no busy loops."""

from __future__ import annotations

from typing import Any

import pytest

from aiokafkawire.errors import WireError
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.offsets import ListOffsetsResponse
from aiokafkawire.testing.simulation import Simulation, simulate


@pytest.mark.parametrize("offset", [-1, -2, -(2**63)])
def test_a_partition_without_an_end_is_an_error_and_is_looked_up_again_after_a_pause(offset: int) -> None:
    def no_end(_: Any, answer: Any) -> ListOffsetsResponse:
        assert isinstance(answer, ListOffsetsResponse)
        answer.topics[0].partitions[0].offset = offset
        return answer

    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("t")
        sim.broker.on(ApiKey.LIST_OFFSETS, answer=no_end, times=None)
        async with sim.client() as client, client.consumer("t", auto_offset_reset="earliest") as consumer:
            with pytest.raises(WireError, match="the answer to ListOffsets says that t-0 has no end"):
                await consumer.poll(timeout=10)
            await consumer.poll(timeout=0.5)
            assert len(sim.broker.requests.of(ApiKey.LIST_OFFSETS)) <= 6

    simulate(main, nodes=1)
