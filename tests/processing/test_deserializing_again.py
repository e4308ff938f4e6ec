"""Records whose deserializer lacks something for a while: they wait in their lane, and none is lost meanwhile."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import anyio
import pytest

from aiokafkawire import Client, DeserializationError, ProcessSummary
from aiokafkawire.errors import SchemaRegistryError
from aiokafkawire.serialization import SerializationContext
from aiokafkawire.testing.configs.types import ConfigKind
from aiokafkawire.testing.simulation import Simulation, simulate

COUNT = 12
"""The records, of four keys."""
OUTAGE = 40.0
"""The seconds for which the values of one key cannot be deserialized; longer than the lock of a share group."""


class Away:
    """Deserializes the values of key 1 only after an outage, as with a schema that is not in the cache."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.ends: float | None = None

    def deserialize(self, data: bytes, context: SerializationContext) -> int:
        number = int(data)
        if self.ends is None:
            self.ends = anyio.current_time() + OUTAGE
        if number == 6:
            raise ValueError("never")
        if number % 4 == 1 and anyio.current_time() < self.ends:
            raise self.error
        return number


ERRORS = [
    ConnectionRefusedError("no registry"),
    TimeoutError("no answer"),
    SchemaRegistryError("HTTP status 503", 503, None, True),
]


async def _fill(kafka: Client) -> None:
    async with kafka.producer() as producer:
        for number in range(COUNT):
            await producer.send("a", b"%d" % number, key=b"%d" % (number % 4))


@pytest.mark.parametrize("share", [False, True], ids=["group", "share"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_outage_makes_the_records_of_one_key_wait_and_no_others(share: bool, error: Exception) -> None:
    seen: dict[int, list[int]] = defaultdict(list)
    times: dict[int, float] = {}

    async def main(sim: Simulation) -> ProcessSummary:
        sim.broker.create_topic("a")
        sim.broker.create_topic("dead")
        configs = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "15000"}
        sim.broker._cluster.configs.replace(ConfigKind.GROUP, "g", configs)
        stop = anyio.Event()
        began = anyio.current_time()

        async def handle(record: Any) -> None:
            seen[record.value % 4].append(record.value)
            times[record.value] = anyio.current_time() - began
            if sum(map(len, seen.values())) == COUNT - 1:
                stop.set()

        async with sim.client("one") as kafka:
            await _fill(kafka)
            with anyio.fail_after(200):
                summary = await kafka.process(
                    "a",
                    handle,
                    group_id="g",
                    share=share,
                    stop=stop,
                    dead_letter_topic="dead",
                    value_deserializer=Away(error),
                )
            async with kafka.consumer("dead", auto_offset_reset="earliest") as consumer:
                letters = await consumer.poll(timeout=5)
        assert [letter.value for letter in letters] == [b"6"]
        return summary

    summary = simulate(main).value
    assert {key: sorted(values) for key, values in seen.items()} == {
        0: [0, 4, 8],
        1: [1, 5, 9],
        2: [2, 10],
        3: [3, 7, 11],
    }
    assert seen[1] == [1, 5, 9] or share
    assert all(times[number] < OUTAGE / 2 for number in times if number % 4 != 1)
    assert all(times[number] >= OUTAGE for number in (1, 5, 9))
    assert (summary.processed, summary.dead_lettered, summary.retried) == (COUNT - 1, 1, 0)


@pytest.mark.parametrize("share", [False, True], ids=["group", "share"])
def test_on_error_skip_passes_over_records_that_never_can_be_deserialized(share: bool) -> None:
    async def main(sim: Simulation) -> ProcessSummary:
        sim.broker.create_topic("a")
        sim.broker._cluster.configs.replace(ConfigKind.GROUP, "g", {"share.auto.offset.reset": "earliest"})
        stop = anyio.Event()
        seen: set[int] = set()

        async def handle(record: Any) -> None:
            seen.add(record.value)
            if len(seen) == COUNT - 1:
                stop.set()

        async with sim.client("one") as kafka:
            await _fill(kafka)
            with anyio.fail_after(200):
                return await kafka.process(
                    "a",
                    handle,
                    group_id="g",
                    share=share,
                    stop=stop,
                    on_error="skip",
                    value_deserializer=Away(ConnectionResetError()),
                )

    summary = simulate(main).value
    assert (summary.processed, summary.undeserializable) == (COUNT - 1, 1)


@pytest.mark.parametrize("on_error", ["skip", "dead_letter"])
def test_a_consumer_raises_and_gives_the_same_record_later(on_error: Any) -> None:
    """Whatever ``on_error`` says of records that cannot be deserialized."""

    async def main(sim: Simulation) -> list[int]:
        sim.broker.create_topic("a")
        sim.broker.create_topic("dead")
        options: Any = {"on_error": on_error, "auto_offset_reset": "earliest"}
        if on_error == "dead_letter":
            options["dead_letter_topic"] = "dead"
        found: list[int] = []
        refused: list[tuple[bool, int]] = []
        async with sim.client("one") as kafka:
            await _fill(kafka)
            away = Away(SchemaRegistryError("no response", retriable=True))
            async with kafka.consumer("a", value_deserializer=away, **options) as consumer:
                with anyio.fail_after(200):
                    while len(found) < COUNT - 1:
                        try:
                            found.append((await anext(consumer)).value or 0)
                        except DeserializationError as error:
                            refused.append((error.retriable, error.offset))
                            await anyio.sleep(7)
                assert consumer.undeserializable_records == 1
                assert set(refused) == {(True, 1)}
        return found

    assert simulate(main).value == [number for number in range(COUNT) if number != 6]


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (ValueError("no JSON"), False),
        (OSError("not gzip"), False),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (SchemaRegistryError("unknown schema", 404, 40403), False),
        (None, False),
    ],
)
def test_only_what_is_no_fault_of_the_record_is_retriable(cause: Exception | None, expected: bool) -> None:
    error = DeserializationError("no")
    error.__cause__ = cause
    assert error.retriable is expected
