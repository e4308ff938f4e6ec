"""Where a partition begins: what auto_offset_reset says, durations included (KIP-1106)."""

from typing import Any

import anyio
import pytest
from support.faulty_cluster import a, serving
from support.patience import SOON

from aiokafkawire.consumer.initial_positions import InitialPositions
from aiokafkawire.consumer.offset_reset_policy import DurationReset, Start, parse_reset_policy, resolve_start
from aiokafkawire.consumer.pending_errors import PendingErrors
from aiokafkawire.consumer.subscription_state import SubscriptionState
from aiokafkawire.protocol.messages.offsets import ListOffsetsRequest
from aiokafkawire.runtime import Runtime
from aiokafkawire.types import IsolationLevel, OffsetSpec

DAY = 24 * 60 * 60 * 1000


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("earliest", OffsetSpec.EARLIEST),
        ("latest", OffsetSpec.LATEST),
        ("none", None),
        ("by_duration:P1D", DurationReset(DAY)),
        ("by_duration:PT0.5S", DurationReset(500)),
    ],
)
def test_a_policy_is_a_place(policy: str, expected: Start | None) -> None:
    assert parse_reset_policy(policy) == expected


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (OffsetSpec.LATEST, OffsetSpec.LATEST),
        (DurationReset(DAY), OffsetSpec.at(100)),
        (DurationReset(DAY + 100), OffsetSpec.at(0)),
        (DurationReset(DAY + 101), OffsetSpec.at(0)),  # further back than time goes
    ],
)
def test_a_duration_counts_from_now(start: Start, expected: OffsetSpec) -> None:
    assert resolve_start(start, DAY + 100) == expected


def test_an_offset_that_is_gone_leads_there_too() -> None:
    positions = SubscriptionState(DurationReset(DAY))
    positions.assign({a(0): 5, a(1): None})
    assert positions.require(a(1)).spec == DurationReset(DAY)
    assert positions.reset(positions.require(a(0)))
    assert positions.require(a(0)).spec == DurationReset(DAY)


@pytest.mark.anyio
async def test_the_time_is_that_of_the_lookup_and_what_is_later_than_all_is_the_end() -> None:
    wall = DAY
    async with serving({a(0): 1}) as cluster:
        cluster.fill(a(0), b"0", b"1", b"2")
        asked: list[int] = []

        def answer(request: Any) -> Any:
            asked.append(request.request.topics[0].partitions[0].timestamp)
            found = cluster.offsets(request)
            if asked[-1] >= 0:
                found.topics[0].partitions[0].offset = -1 if asked[-1] > 500 else 1
            return found

        cluster.nodes[1].on[ListOffsetsRequest.api_key] = answer
        runtime = Runtime(wall_ms=lambda: wall)
        async with cluster.client() as client:
            opened = client._cluster
            opened.runtime = runtime
            positions = SubscriptionState(DurationReset(DAY - 100))
            troubles = PendingErrors(positions, 5.0)
            lookup = InitialPositions(opened, positions, troubles, IsolationLevel.READ_UNCOMMITTED, lambda _: None)
            for time, timestamps, position in ((DAY, [100], 1), (DAY + 800, [900, -1, 900], 3)):
                wall = time
                asked.clear()
                positions.assign({})
                positions.assign({a(0): None})
                (places,) = lookup.take_due()
                with anyio.fail_after(SOON):
                    await lookup.run(places)
                assert (asked, positions.require(a(0)).position) == (timestamps, position)
