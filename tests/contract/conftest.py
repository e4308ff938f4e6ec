"""The same tests on the in-process broker, over TCP and over memory, and on real Apache Kafka."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import pytest
from support.apache_kafka import ApacheKafka
from support.authorizing import Authorizing, authorizing_broker, in_process

from aiokafkawire import Client
from aiokafkawire.network.connector import Connector, connect_tcp
from aiokafkawire.testing.broker import Broker


class Where(NamedTuple):
    """A cluster to test against."""

    bootstrap: str
    connector: Connector

    def client(self, **options: Any) -> Client:
        return Client(self.bootstrap, connector=self.connector, **options)


@pytest.fixture(scope="session")
def apache_kafka_v1(apache_kafka: ApacheKafka) -> Iterator[ApacheKafka]:
    """As the server that all tests share, with transaction.version 1 (KIP-890)."""
    with ApacheKafka(apache_kafka.version, features={"transaction.version": 1}) as kafka:
        yield kafka


_LEFT_OUT = ("uvloop-memory", "uvloop-apache-kafka", "trio-apache-kafka-v1")
"""What takes its time and tells little: a loop that differs below our code, where its streams are not used, or on a
server that all loops share."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    left_out = {item for item in items if item.path.is_relative_to(here) and any(one in item.name for one in _LEFT_OUT)}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


BOTH_TRANSACTION_VERSIONS = pytest.mark.parametrize(
    "cluster",
    [
        "in-process",
        "memory-v1",
        pytest.param("apache-kafka", marks=pytest.mark.kafka),
        pytest.param("apache-kafka-v1", marks=pytest.mark.kafka),
    ],
    indirect=True,
)
"""The clusters of tests of transactions: with transaction.version 2, and with 1."""


@pytest.fixture(params=["in-process", "memory", pytest.param("apache-kafka", marks=pytest.mark.kafka)])
async def cluster(request: pytest.FixtureRequest, kafka_release: str | None) -> AsyncIterator[Where]:
    kind, _, version = request.param.partition("-v")
    if kind == "apache-kafka":
        fixture = "apache_kafka_v1" if version else "apache_kafka"
        yield Where(request.getfixturevalue(fixture).bootstrap, connect_tcp)
        return
    release = "3.9" if version else kafka_release
    async with Broker(port=None if kind == "memory" else 0, max_versions=release) as broker:
        yield Where(broker.bootstrap, broker.connect if kind == "memory" else connect_tcp)


@pytest.fixture
async def kafka(cluster: Where) -> AsyncIterator[Client]:
    async with cluster.client() as client:
        yield client


@pytest.fixture(params=["in-process", "memory", pytest.param("apache-kafka", marks=pytest.mark.kafka)])
async def guarded(request: pytest.FixtureRequest, kafka_release: str | None) -> AsyncIterator[Authorizing]:
    """A cluster with an authorizer."""
    if request.param == "apache-kafka":
        yield request.getfixturevalue("apache_kafka_with_acls")
        return
    memory = request.param == "memory"
    async with authorizing_broker(port=None if memory else 0, max_versions=kafka_release) as broker:
        yield in_process(broker, memory=memory)


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
