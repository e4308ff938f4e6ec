"""Kafka as the contract tests of logins see it; what it asks of whom, each module says in `guarded`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from support.apache_kafka import ApacheKafka
from support.logging_in import Guarded
from support.raw_client import RawClient


@pytest.fixture(params=["memory", "tcp", pytest.param("apache", marks=pytest.mark.kafka)])
def where(request: pytest.FixtureRequest) -> str | ApacheKafka:
    found: str | ApacheKafka = request.param
    return request.getfixturevalue("guarded_apache") if found == "apache" else found


@pytest.fixture
async def client(guarded: Guarded) -> AsyncIterator[RawClient]:
    async with RawClient(await guarded.connect()) as client:
        yield client


@pytest.fixture
async def renewed(guarded: Guarded) -> AsyncIterator[RawClient]:
    async with RawClient(await guarded.renewed()) as client:
        yield client
