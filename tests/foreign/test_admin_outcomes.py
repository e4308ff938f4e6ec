"""Kafka's kafka-transactions.sh and kafka-consumer-groups.sh agree with our admin about the in-process broker."""

from __future__ import annotations

import pytest
from support.group_outcomes_tool import check_outcomes_of_groups
from support.transactions_tool import check_the_transactions_tool

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.kafka,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.timeout(300),
]


async def test_kafkas_tool_tells_of_transactions_what_our_admin_tells(bootstrap: str, name: str) -> None:
    await check_the_transactions_tool(bootstrap, name)


async def test_kafkas_tool_does_to_groups_what_our_admin_does(bootstrap: str, name: str) -> None:
    await check_outcomes_of_groups(bootstrap, name)
