"""What a client logs in a quiet life, on the in-process broker and on Apache Kafka: few lines, and no warning."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from support.log_watch import watched_log
from support.patience import PATIENCE

from aiokafkawire import Consumer
from aiokafkawire.event_log import FIELDS

from .conftest import Where

pytestmark = pytest.mark.anyio

PLAIN = vars(logging.makeLogRecord({})).keys() | {"message", "asctime", "taskName"}


async def share(count: int, *consumers: Consumer[Any, Any]) -> None:
    """Poll until each of the consumers has some of these partitions, and together they have all."""
    with anyio.fail_after(PATIENCE):
        while not all(one.assignment for one in consumers) or sum(len(one.assignment) for one in consumers) != count:
            for one in consumers:
                await one.poll(timeout=0.05)


@pytest.mark.slow
async def test_a_quiet_life_is_a_few_lines_with_fields_and_no_warning(cluster: Where, topic: str) -> None:
    options: dict[str, Any] = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest"}
    with watched_log(logging.DEBUG) as log:
        async with cluster.client() as kafka, kafka.producer() as producer, kafka.consumer(topic, **options) as one:
            for number in range(30):
                await producer.send(topic, b"%d" % number, partition=number % 3)
            await share(3, one)
            async with kafka.consumer(topic, **options) as two:
                await share(3, one, two)
            await share(3, one)
    told = [line for line in log.lines if not line.startswith("DEBUG")]
    assert [line for line in told if not line.startswith("INFO")] == []
    assert len(told) <= 25, told
    fields = {name for record in log.records for name in vars(record).keys() - PLAIN}
    assert fields <= FIELDS.keys()
    joined = [record for record in log.records if record.msg.startswith("joined group")]
    assert {vars(record)["group"] for record in joined} == {options["group_id"]}
    assert all(vars(record)["member_id"] and vars(record)["generation"] > 0 for record in joined)
    (found,) = (record for record in log.records if record.msg.startswith("found the coordinator"))
    assert vars(found)["broker"].count(":") == 1
    assert vars(found)["node_id"] == 1
    answered = [record for record in log.records if record.msg.startswith("answer ")]
    assert {"Produce", "Fetch", "JoinGroup"} <= {vars(record)["api"] for record in answered}
