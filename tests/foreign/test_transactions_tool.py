"""Kafka's kafka-transactions.sh and our admin agree on the transactions of the in-process broker."""

from __future__ import annotations

import pytest
from support.transactions_tool import check_the_transactions_tool

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"]), pytest.mark.timeout(300)]


async def test_kafkas_tool_tells_of_transactions_what_our_admin_tells(bootstrap: str, name: str) -> None:
    await check_the_transactions_tool(bootstrap, name)
