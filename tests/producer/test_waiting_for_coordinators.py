"""A producer whose coordinator does not do what it is asked: the error says what it waited for."""

from __future__ import annotations

import pytest
from support.virtual_time import virtual_time

from aiokafkawire import Client, RequestTimeout
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, virtual_time]


async def opening(broker: Broker) -> RequestTimeout:
    """The error of a transactional producer that cannot be opened within 3 s.

    The time of its request is over at the same moment: if it ends first, the error has that of the request.
    """
    async with Client(broker.bootstrap, connector=broker.connect) as kafka:
        with pytest.raises(RequestTimeout) as failed:
            await kafka.producer(transactional_id="x", max_block_ms=3_000).__aenter__()
        return failed.value


async def test_a_coordinator_that_refuses_is_heard() -> None:
    async with Broker(port=None) as broker:
        broker.on(ApiKey.INIT_PRODUCER_ID, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
        assert "at last CoordinatorLoadInProgress" in str(await opening(broker))


async def test_a_silent_coordinator_is_named() -> None:
    async with Broker(port=None) as broker:
        broker.on(ApiKey.INIT_PRODUCER_ID, swallow="before", times=None)
        told = str(await opening(broker))
        assert "InitProducerId" in told
        assert broker.bootstrap in told


async def test_a_coordinator_that_is_not_found_is_missed() -> None:
    async with Broker(port=None) as broker:
        broker.on(ApiKey.FIND_COORDINATOR, answer=ErrorCode.COORDINATOR_NOT_AVAILABLE, times=None)
        told = str(await opening(broker))
        assert "InitProducerId has no coordinator yet" in told or "COORDINATOR_NOT_AVAILABLE" in told
