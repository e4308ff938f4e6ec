"""An argument of a wrong shape is one error that says what was expected, before anything is asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from support.patience import SOON

from aiokafkawire.errors import KafkaError
from aiokafkawire.legacy.client import LegacyClient
from aiokafkawire.legacy.consumer import LegacyConsumer
from aiokafkawire.legacy.producer import LegacyProducer

pytestmark = pytest.mark.anyio

RUBBISH = ("object is not", "unpack", "has no attribute", "not supported", "unsupported operand", "unhashable")
NOTHING: list[Any] = [None, 5, 1.5, object()]
NO_TOPIC: list[Any] = [*NOTHING, b"t", "", "a/b", "\ud800"]
NO_NUMBER: list[Any] = [None, "0", 1.5, -5, 2**63, True, object()]

MADE: dict[str, tuple[Callable[[Any], object], list[Any]]] = {
    "client.host": (lambda one: LegacyClient(one), [*NOTHING, b"x", ""]),
    "client.port": (lambda one: LegacyClient("x", one), [None, "9092", 0, -1, 65_536, 1.5, True]),
    "client.connector": (lambda one: LegacyClient("x", connector=one), NOTHING),
    "client.fetch_size": (lambda one: LegacyClient("x", fetch_size=one), NO_NUMBER),
    "producer.servers": (lambda one: LegacyProducer(one), [*NOTHING, b"x:1", ""]),
    "producer.partitioner": (lambda one: LegacyProducer("x:1", partitioner=one), NOTHING),
    "consumer.group": (lambda one: LegacyConsumer("x:1", one, ["t"]), [*NOTHING, b"g", "", "a/b"]),
    "consumer.topics": (lambda one: LegacyConsumer("x:1", "g", one), [*NOTHING, "t", [], [5], {"t": "1"}, ["a/b"]]),
    "consumer.pattern": (lambda one: LegacyConsumer("x:1", "g", pattern=one), [5, "(", b"t", object()]),
    "consumer.interval": (
        lambda one: LegacyConsumer("x:1", "g", ["t"], auto_commit_interval_ms=one),
        ["5", 1.5, -1, 0, True],  # 0 would be a loop without a pause
    ),
    "consumer.backoff": (lambda one: LegacyConsumer("x:1", "g", ["t"], rebalance_backoff_ms=one), [*NO_NUMBER, 0]),
}


def check(error: BaseException) -> None:
    assert not any(word in str(error) for word in RUBBISH), error


@pytest.mark.parametrize("name", MADE)
async def test_what_a_face_is_made_with_is_checked(name: str) -> None:
    make, wrongs = MADE[name]
    for wrong in wrongs:
        with pytest.raises((KafkaError, TypeError)) as caught:
            make(wrong)
        check(caught.value)


async def refuse(host: str, port: int) -> Any:
    raise AssertionError("nothing is asked")


CALLS: dict[str, tuple[Callable[[LegacyClient, Any], Any], list[Any]]] = {
    "produce.topic": (lambda client, one: client.produce(one, [b""]), NO_TOPIC),
    "produce.values": (lambda client, one: client.produce("t", one), [*NOTHING, b"x", "x", [5], ["x"], [None]]),
    "produce.partition": (lambda client, one: client.produce("t", [b""], partition=one), NO_NUMBER),
    "multi_produce": (
        lambda client, one: client.multi_produce(one),
        [*NOTHING, "t", [("t", 0)], {"t": [b""]}, {("t", "0"): [b""]}, {("t", 0): 5}],
    ),
    "fetch.offset": (lambda client, one: client.fetch("t", 0, one), NO_NUMBER),
    "fetch.partition": (lambda client, one: client.fetch("t", one, 0), NO_NUMBER),
    "fetch.size": (lambda client, one: client.fetch("t", 0, 0, fetch_size=one), NO_NUMBER[1:]),
    "multi_fetch": (
        lambda client, one: client.multi_fetch(one),
        [*NOTHING, "t", [("t", 0)], {"t": 5}, {("t", "0"): 5}, {("t", 0): "5"}],
    ),
    "read": (lambda client, one: client.read(one, 0, 0), NO_TOPIC),
    "offsets.time": (lambda client, one: client.offsets("t", 0, one), NO_NUMBER),
    "offsets.max": (lambda client, one: client.offsets("t", 0, 0, one), NO_NUMBER),
}


@pytest.mark.parametrize("name", CALLS)
async def test_what_a_broker_is_asked_with_is_checked(name: str) -> None:
    call, wrongs = CALLS[name]
    async with LegacyClient("x", connector=refuse) as client:
        for wrong in wrongs:
            with pytest.raises((KafkaError, TypeError)) as caught, anyio.fail_after(SOON):
                found = call(client, wrong)
                if inspect.isawaitable(found):
                    await found
            check(caught.value)
