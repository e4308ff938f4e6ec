"""The pytest plugin: Kafka as a fixture, for tests with or without an event loop.

    def test_orders(kafka_broker):
        kafka_broker.create_topic("orders", partitions=6)
        ...  # any client, at kafka_broker.bootstrap

`kafka_broker` is one broker, `kafka_cluster` three. Each is a
:class:`~aiokafkawire.testing.background.BackgroundBroker`. Ini options set the scope of both, and the cluster's size:

    [tool.pytest.ini_options]
    kafka_broker_scope = "session"   # function (the default), class, module, package or session
    kafka_cluster_nodes = "5"

An asynchronous test can also open a :class:`~aiokafkawire.testing.broker.Broker` in its own event loop.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, get_args

import pytest

if TYPE_CHECKING:
    from .background import BackgroundBroker

__all__ = ("kafka_broker", "kafka_cluster", "pytest_addoption", "pytest_configure")

_Scope = Literal["function", "class", "module", "package", "session"]
_MOST_NODES = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the ini options."""
    parser.addini("kafka_broker_scope", "how long kafka_broker and kafka_cluster live", default="function")
    parser.addini("kafka_cluster_nodes", "how many brokers kafka_cluster has", default="3")


def pytest_configure(config: pytest.Config) -> None:
    """Reject invalid ini options before tests run.

    Raises:
        pytest.UsageError: an option is invalid; the message names it and the valid values.
    """
    scope, nodes = config.getini("kafka_broker_scope"), config.getini("kafka_cluster_nodes")
    if scope not in get_args(_Scope):
        known = ", ".join(get_args(_Scope))
        raise pytest.UsageError(f"kafka_broker_scope = {scope}: it must be one of {known}")
    if not (nodes.isdecimal() and 1 <= int(nodes) <= _MOST_NODES):
        raise pytest.UsageError(f"kafka_cluster_nodes = {nodes}: it must be a number from 1 to {_MOST_NODES}")


def _scope(fixture_name: str, config: pytest.Config) -> _Scope:
    scope: _Scope = config.getini("kafka_broker_scope")
    return scope


@pytest.fixture(scope=_scope)
def kafka_broker() -> "Iterator[BackgroundBroker]":
    """Provide a Kafka broker in this process, over TCP, that creates topics when they are first used."""
    from .background import BackgroundBroker  # imported here, so that tests without a broker do not wait for it

    with BackgroundBroker() as broker:
        yield broker


@pytest.fixture(scope=_scope)
def kafka_cluster(pytestconfig: pytest.Config) -> "Iterator[BackgroundBroker]":
    """Provide a cluster of Kafka brokers in this process, over TCP."""
    from .background import BackgroundBroker

    with BackgroundBroker(nodes=int(pytestconfig.getini("kafka_cluster_nodes"))) as cluster:
        yield cluster
