"""Test your own code against the in-process broker: no Docker, no port, a few milliseconds for a fresh Kafka.

    pytest examples/testing_with_the_broker.py
    python examples/testing_with_the_broker.py    # the same

Put the fixtures into your conftest.py. They use anyio's pytest plugin, which comes with anyio.
"""

import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from aiokafkawire import Client, TopicPartition
from aiokafkawire.errors import UnknownTopicOrPartition
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio


# --- the code under test -------------------------------------------------------------------------------------------


async def announce_delay(kafka: Client, flight: str, minutes: int) -> None:
    """Send an announcement of a late flight, and none of a punctual one."""
    if minutes > 15:
        async with kafka.producer() as producer:
            await producer.send("delays", str(minutes).encode(), key=flight.encode())


# --- conftest.py ---------------------------------------------------------------------------------------------------


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    # port=None: over memory only, so parallel tests cannot disturb one another.
    async with Broker(port=None, auto_create_topics_enable=False) as broker:
        yield broker


@pytest.fixture
async def kafka(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.bootstrap, connector=broker.connect) as client:
        yield client


# --- the tests -----------------------------------------------------------------------------------------------------


async def test_a_late_flight_is_announced(broker: Broker, kafka: Client) -> None:
    broker.create_topic("delays")

    await announce_delay(kafka, "UA1545", 20)

    async with kafka.consumer() as consumer:
        consumer.assign({TopicPartition("delays", 0): 0})
        record = await anext(consumer)
    assert (record.key, record.value) == (b"UA1545", b"20")


async def test_a_punctual_flight_is_not(broker: Broker, kafka: Client) -> None:
    broker.create_topic("delays")

    await announce_delay(kafka, "UA1545", 3)

    # Look into the broker's log; a consumer could only wait for a record that never comes.
    assert broker.log("delays").log_end_offset == 0


async def test_what_the_broker_refuses_is_an_error(kafka: Client) -> None:
    with pytest.raises(UnknownTopicOrPartition):
        await kafka.admin.delete_topics(["delays"])


if __name__ == "__main__":
    sys.exit(subprocess.run([sys.executable, "-m", "pytest", "--quiet", __file__]).returncode)
