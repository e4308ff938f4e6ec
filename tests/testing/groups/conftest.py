"""A broker over memory in virtual time (trio's clock that jumps), and members of one group."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from support.group_members import GroupMember
from support.raw_client import RawClient
from support.virtual_groups import GROUP, Join, reach
from support.virtual_time import virtual_backend

from aiokafkawire.testing.broker import Broker


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return virtual_backend()


@pytest.fixture
def settings() -> dict[str, Any]:
    return {}


@pytest.fixture
async def broker(settings: dict[str, Any]) -> AsyncIterator[Broker]:
    async with Broker(port=None, **settings) as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[RawClient]:
    async with await reach(broker, broker.coordinator(GROUP)) as client:
        yield client


@pytest.fixture
async def new(broker: Broker) -> AsyncIterator[Join]:
    """Makes members that talk to the coordinator, or to another broker."""
    async with AsyncExitStack() as stack:

        async def make(node_id: int = 0, **fields: Any) -> GroupMember:
            node_id = node_id or broker.coordinator(GROUP)
            return GroupMember(await stack.enter_async_context(await reach(broker, node_id)), GROUP, **fields)

        yield make
