"""A broker that other processes reach, and Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from anyio.from_thread import start_blocking_portal
from support import spark as support
from support.needing import require

from aiokafkawire import blocking
from aiokafkawire.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    require(support.missing())
    with support.running_spark() as session:
        yield session


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with start_blocking_portal("asyncio") as portal, portal.wrap_async_context_manager(Broker()) as broker:
        yield broker.bootstrap


@pytest.fixture
def kafka(bootstrap: str) -> Iterator[blocking.Client]:
    with blocking.Client(bootstrap) as client:
        yield client
