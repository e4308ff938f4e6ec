"""Kafka's kafka-acls.sh on the in-process broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.acls_tool import check_that_the_tool_agrees
from support.authorizing import authorizing_broker, in_process

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.kafka,
    pytest.mark.timeout(300),
]


async def test_kafkas_tool_and_our_admin_agree_on_acls(tmp_path: Path) -> None:
    async with authorizing_broker() as broker:
        await check_that_the_tool_agrees(in_process(broker, memory=False), tmp_path)
