"""Apache Kafka 4.4, and the in-process broker as that release, for the contract tests of what is new in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.apache_kafka import ApacheKafka, missing
from support.needing import require

RELEASE = "4.4.0"


@pytest.fixture
def release() -> str:
    return RELEASE


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[ApacheKafka]:
    require(missing())
    with ApacheKafka(RELEASE) as kafka:
        yield kafka
