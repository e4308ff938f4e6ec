"""Kafka's tools agree with our admin about a real Apache Kafka."""

from __future__ import annotations

from secrets import token_hex

import pytest
from support.apache_kafka import ApacheKafka
from support.group_outcomes_tool import check_outcomes_of_groups
from support.streams_groups_tool import check_the_streams_groups_tool
from support.transactions_tool import check_the_transactions_tool

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.timeout(300),
]


async def test_kafkas_tool_tells_of_transactions_what_our_admin_tells(apache_kafka: ApacheKafka) -> None:
    await check_the_transactions_tool(apache_kafka.bootstrap, f"tool-{token_hex(4)}")


async def test_kafkas_tool_does_to_groups_what_our_admin_does(apache_kafka: ApacheKafka) -> None:
    await check_outcomes_of_groups(apache_kafka.bootstrap, f"tool-{token_hex(4)}")


async def test_kafkas_tool_tells_of_a_streams_group_what_our_admin_tells(apache_kafka: ApacheKafka) -> None:
    await check_the_streams_groups_tool(apache_kafka.bootstrap, f"tool-{token_hex(4)}")
