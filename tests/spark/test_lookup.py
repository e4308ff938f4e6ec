"""Which ranges the options mean, asked of a broker. Spark is not needed."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokafkawire import Client, ConfigError, KafkaError, TopicPartition, blocking
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.spark import lookup
from aiokafkawire.spark.errors import DataLost
from aiokafkawire.spark.lookup import batch_ranges, resolve
from aiokafkawire.spark.options import read_options
from aiokafkawire.testing.broker import Broker


@pytest.fixture
def ranges(kafka: blocking.Client, bootstrap: str) -> Any:
    """Two topics: flights-0 has records of 0, 1000, ... 9000 ms, flights-1 none, and flown-0 five."""
    kafka.admin.create_topics({"flights": 2, "flown": 1})
    with kafka.producer() as producer:
        for one in range(10):
            producer.send("flights", b"x", partition=0, timestamp_ms=1_000 * one)
        producer.send_many("flown", [b"x"] * 5)

    def ask(**options: str) -> list[str]:
        given = {"kafka.bootstrap.servers": bootstrap, **options}
        found = kafka.loop.call(batch_ranges, kafka.asynchronous, read_options(given, streaming=False))
        return [str(one) for one in found]

    return ask


EARLIEST, LATEST = '{"flights":{"0":-2,"1":-2}}', '{"flights":{"0":-1,"1":-1}}'


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"subscribe": "flights"}, ["flights-0[0:10]"]),
        ({"subscribe": "flights,flown"}, ["flights-0[0:10]", "flown-0[0:5]"]),
        ({"subscribePattern": "fl.*n"}, ["flown-0[0:5]"]),
        ({"subscribePattern": "fl"}, []),
        ({"assign": '{"flights":[1],"flown":[0]}'}, ["flown-0[0:5]"]),
        ({"subscribe": "flights", "startingOffsets": EARLIEST, "endingOffsets": LATEST}, ["flights-0[0:10]"]),
        (
            {"subscribe": "flights", "startingOffsets": '{"flights":{"0":3,"1":0}}', "endingOffsets": "latest"},
            ["flights-0[3:10]"],
        ),
        ({"subscribe": "flights", "endingOffsets": '{"flights":{"0":7,"1":-1}}'}, ["flights-0[0:7]"]),
        ({"assign": '{"flights":[0]}', "startingTimestamp": "2500"}, ["flights-0[3:10]"]),
        ({"assign": '{"flights":[0]}', "startingOffsetsByTimestamp": '{"flights":{"0":4000}}'}, ["flights-0[4:10]"]),
        ({"subscribe": "flights", "endingTimestamp": "4000"}, ["flights-0[0:4]"]),
        (
            {"subscribe": "flights", "endingOffsetsByTimestamp": '{"flights":{"0":99000,"1":0}}'},
            ["flights-0[0:10]"],
        ),
        (
            {"subscribe": "flights", "startingTimestamp": "3000", "startingOffsetsByTimestampStrategy": "latest"},
            ["flights-0[3:10]"],
        ),
        (
            {"subscribe": "flights", "startingOffsets": '{"flights":{"0":50,"1":0}}', "failOnDataLoss": "false"},
            [],
        ),
    ],
)
def test_options_mean_ranges(ranges: Any, options: dict[str, str], found: list[str]) -> None:
    assert ranges(**options) == found


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"subscribe": "nowhere"}, KafkaError, "nowhere"),
        ({"assign": '{"flights":[0,7]}'}, ConfigError, "assign: there is no partition flights-7"),
        (
            {"subscribe": "flights", "startingTimestamp": "3000"},
            ConfigError,
            "flights-1 has no record at or after this time",
        ),
        ({"subscribe": "flights", "startingOffsets": '{"flights":{"0":1}}'}, ConfigError, "must name exactly"),
        ({"subscribe": "flights", "startingOffsets": '{"flights":{"0":50,"1":0}}'}, DataLost, "but 50 was requested"),
    ],
)
def test_what_is_not_there_is_one_clear_error(
    ranges: Any, options: dict[str, str], error: type[KafkaError], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_AGREE_AFTER", 0.2)
    with pytest.raises(error, match=told):
        ranges(**options)


@pytest.mark.anyio
@pytest.mark.parametrize("which", ["starting", "ending"])
async def test_a_record_that_is_appended_during_the_lookup_of_a_time_is_on_its_side_of_it(which: str) -> None:
    flights = TopicPartition("flights", 0)
    async with Broker(port=None) as broker:
        broker.create_topic("flights")
        given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "flights", f"{which}Timestamp": "500"}
        options = read_options({**given, "startingOffsetsByTimestampStrategy": "latest"}, streaming=False)
        bound, found = options.start if which == "starting" else options.end, dict[TopicPartition, int]()
        async with Client(broker.bootstrap, connector=broker.connect) as kafka, kafka.producer() as producer:
            await producer.send("flights", b"old", timestamp_ms=1)

            async def look_up() -> None:
                found.update(await resolve(kafka, options, bound, [flights]))

            async with anyio.create_task_group() as tasks, broker.hold(ApiKey.LIST_OFFSETS, after=1) as held:
                tasks.start_soon(look_up)
                await held.arrived()  # the lookup of the end, since no record is late enough
                await producer.send("flights", b"older", timestamp_ms=2)
                await producer.send("flights", b"new", timestamp_ms=600)
                held.release()
    assert found == {flights: 2}
