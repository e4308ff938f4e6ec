"""The same tests on the in-process broker, over TCP and over memory, and on real Apache Kafka."""

from collections.abc import AsyncIterator, Callable
from secrets import token_hex
from typing import Any, NamedTuple

import pytest

from aiokafkawire import Client
from aiokafkawire.network.stream import Connector, connect_tcp
from aiokafkawire.testing.broker import Broker


class Where(NamedTuple):
    """A cluster to test against."""

    bootstrap: str
    connector: Connector

    def client(self, **options: Any) -> Client:
        return Client(self.bootstrap, connector=self.connector, **options)


@pytest.fixture(params=["in-process", "memory", pytest.param("apache-kafka", marks=pytest.mark.kafka)])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Where]:
    if request.param == "apache-kafka":
        yield Where(request.getfixturevalue("apache_kafka").bootstrap, connect_tcp)
        return
    async with Broker(port=None if request.param == "memory" else 0) as broker:
        yield Where(broker.bootstrap, broker.connect if request.param == "memory" else connect_tcp)


@pytest.fixture
async def kafka(cluster: Where) -> AsyncIterator[Client]:
    async with cluster.client() as client:
        yield client


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Names of topics that no other test uses: real Kafka lives for the whole session."""
    return lambda: f"topic-{token_hex(6)}"


@pytest.fixture
async def topic(kafka: Client, new_name: Callable[[], str]) -> str:
    """A topic of three partitions."""
    name = new_name()
    await kafka.admin.create_topics({name: 3})
    return name
