"""A broker of tests says what an argument must be, whatever it is given."""

from __future__ import annotations

import inspect
import math
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokafkawire.errors import ConfigError
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

RUBBISH = (
    "object is not",
    "unhashable",
    "has no attribute",
    "not supported between",
    "no len()",
    "must be integers or",
)
NO_NAME: list[Any] = [5, None, ["t"], b"t"]
NO_INDEX: list[Any] = ["0", None, 1.5, True, [0]]
NO_NUMBER: list[Any] = ["1", None, [1]]
NO_SECONDS: list[Any] = ["1", -1, math.nan]

STEERING: dict[str, tuple[list[Any], ...]] = {
    "create_topic": (NO_NAME, NO_INDEX),
    "delete_topic": (NO_NAME,),
    "log": (NO_NAME, NO_INDEX),
    "stop_node": (NO_INDEX,),
    "start_node": (NO_INDEX,),
    "freeze_node": (NO_INDEX,),
    "thaw_node": (NO_INDEX,),
    "fence_node": (NO_INDEX,),
    "unfence_node": (NO_INDEX,),
    "refuse_connections": (NO_INDEX,),
    "accept_connections": (NO_INDEX,),
    "pause_partition": (NO_NAME, NO_INDEX),
    "resume_partition": (NO_NAME, NO_INDEX),
    "compact": (NO_NAME,),
    "apply_retention": (NO_NAME,),
    "throttle": (NO_NAME[:1] + NO_NAME[2:], [*NO_INDEX, -1]),
    "isr": (NO_NAME, NO_INDEX),
    "hold_replica": (NO_NAME, NO_INDEX, NO_INDEX),
    "release_replica": (NO_NAME, NO_INDEX, NO_INDEX),
    "shrink_isr": (NO_NAME, NO_INDEX, NO_INDEX),
    "leader": (NO_NAME, NO_INDEX),
    "move_leader": (NO_NAME, NO_INDEX, NO_INDEX),
    "coordinator": (NO_NAME,),
    "move_coordinator": (NO_NAME, NO_INDEX),
    "transaction_coordinator": (NO_NAME,),
    "move_transaction_coordinator": (NO_NAME, NO_INDEX),
    "hold_markers": (NO_NAME,),
    "release_markers": (NO_NAME,),
    "expire_transactional_id": (NO_NAME,),
}
RIGHT: dict[str, tuple[Any, ...]] = {
    "throttle": ("c", 5),
    "move_coordinator": ("g", 1),
    "move_transaction_coordinator": ("x", 1),
}


@pytest.mark.parametrize("name", STEERING)
async def test_what_steers_a_broker_is_checked(name: str) -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t", configs={"cleanup.policy": "compact"})
        right = RIGHT.get(name, ("t", 0, 1))[: len(STEERING[name])]
        for place, wrongs in enumerate(STEERING[name]):
            for wrong in wrongs:
                given = [*right[:place], wrong, *right[place + 1 :]]
                with pytest.raises((TypeError, ValueError), match=" must be ") as caught:
                    found = getattr(broker, name)(*given)
                    if inspect.isawaitable(found):
                        await found
                assert not any(word in str(caught.value) for word in RUBBISH), caught.value


@pytest.mark.parametrize("name", ["move_coordinator", "move_transaction_coordinator"])
@pytest.mark.parametrize("loading", NO_SECONDS)
async def test_a_time_to_load_is_checked(name: str, loading: Any) -> None:
    async with Broker(port=None) as broker:
        with pytest.raises((TypeError, ValueError), match="loading must be"):
            getattr(broker, name)("g", 1, loading=loading)


@pytest.mark.parametrize(
    "order",
    [
        *({"delay": one} for one in NO_SECONDS),
        *({"delay_answer": one} for one in NO_SECONDS),
        {"cut": "yes"},
        {"drop": "after", "times": "1"},
        {"drop": "after", "times": 1.5},
        {"drop": "after", "after": None},
        {"drop": "after", "node": "1"},
        {"drop": "after", "topic": 5},
        {"drop": "after", "topic": "t", "partition": "0"},
        {"drop": "after", "group": 5},
        {"drop": "after", "client_id": 5},
        {"drop": "after", "version": "x"},
        {"drop": "after", "where": 5},
    ],
)
async def test_an_order_is_checked(order: dict[str, Any]) -> None:
    async with Broker(port=None) as broker:
        with pytest.raises((TypeError, ValueError), match=f"^{list(order)[-1]}=") as caught:
            broker.on(ApiKey.PRODUCE, **order)
        assert not any(word in str(caught.value) for word in RUBBISH)


@pytest.mark.parametrize("name", [name for name in inspect.signature(Broker.__init__).parameters if name != "self"])
def test_whatever_a_broker_is_made_with_is_checked(name: str) -> None:
    told: list[str] = []
    for wrong in (None, "\ud800", "", 5, -1, 1.5, [1], b"x", object(), True, {"a": 5}, 2**80):
        given: dict[str, Any] = {name: wrong}
        try:
            Broker(**given)
        except ConfigError as error:
            told.append(str(error))
    assert len(told) > 5
    assert not [one for one in told if any(word in one for word in RUBBISH)]


async def test_settings_of_a_topic_are_checked() -> None:
    wrong: list[Any] = [5, [("a", "b")], {"cleanup.policy": 5}, {5: "x"}]
    async with Broker(port=None) as broker:
        for configs in wrong:
            with pytest.raises(TypeError, match=" must be "):
                broker.create_topic("t", configs=configs)
        await anyio.lowlevel.checkpoint()
