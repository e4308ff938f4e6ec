"""Kafka's kafka-acls.sh beside our admin, on a real Apache Kafka with an authorizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.acls_tool import check_that_the_tool_agrees
from support.authorizing import Authorizing

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.timeout(300),
]


async def test_kafkas_tool_and_our_admin_agree_on_acls(apache_kafka_with_acls: Authorizing, tmp_path: Path) -> None:
    await check_that_the_tool_agrees(apache_kafka_with_acls, tmp_path)
