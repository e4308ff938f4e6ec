"""A blocking client, of the in-process broker and of Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aiokafkawire import blocking
from aiokafkawire.testing.background import BackgroundBroker


@pytest.fixture(params=["in-process", pytest.param("apache-kafka", marks=pytest.mark.kafka)])
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """The bootstrap servers of a cluster."""
    if request.param == "apache-kafka":
        yield request.getfixturevalue("apache_kafka").bootstrap
        return
    with BackgroundBroker() as broker:
        yield broker.bootstrap


@pytest.fixture
def kafka(bootstrap: str) -> Iterator[blocking.Client]:
    """A client of the cluster."""
    with blocking.Client(bootstrap) as client:
        yield client
