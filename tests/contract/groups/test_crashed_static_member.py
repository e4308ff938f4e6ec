"""A static member of a consumer group (KIP-848) whose predecessor has crashed: its id is free when the session ends."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import anyio
import pytest
from contract.conftest import Where
from contract.groups.conftest import COUNT, all_of
from support.committed import raw
from support.consumer_members import ConsumerMember, configure_group
from support.patience import PATIENCE
from support.readers import SERVED

from aiokafkawire import Client
from aiokafkawire.errors import UnreleasedInstanceId
from aiokafkawire.network.connector import connect_tcp
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

SESSION_MS = 1_500


@pytest.fixture(params=["in-process", pytest.param("apache-kafka", marks=pytest.mark.kafka)])
async def cluster(request: pytest.FixtureRequest, group: str) -> AsyncIterator[Where]:
    """A cluster on which the sessions of the group are short."""
    if request.param == "apache-kafka":
        where = Where(request.getfixturevalue("apache_kafka_quick").bootstrap, connect_tcp)
        async with raw(where) as client:
            await configure_group(client, group, consumer_session_timeout_ms=str(SESSION_MS))
        yield where
        return
    async with Broker(group_consumer_heartbeat_interval_ms=100, group_consumer_session_timeout_ms=SESSION_MS) as broker:
        yield Where(broker.bootstrap, connect_tcp)


@pytest.mark.slow
async def test_it_is_refused_at_growing_intervals_with_one_warning_until_the_session_ends(
    kafka: Client, cluster: Where, filled: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    refused: list[str] = []
    async with raw(cluster) as client:
        crashed = ConsumerMember(client, group, [filled], instance="one")
        await kafka.admin.list_consumer_group_offsets(group)  # Apache Kafka makes its topic of offsets first
        assert (await crashed.join()).error_code == 0

        async def live_until_somebody_is_refused() -> None:
            while not refused:
                assert (await crashed.heartbeat()).error_code == 0
                await anyio.sleep(0.1)

        async with (
            kafka.consumer(filled, group_id=group, group_instance_id="one", **SERVED) as consumer,
            anyio.create_task_group() as tasks,
        ):
            began = anyio.current_time()
            tasks.start_soon(live_until_somebody_is_refused)
            with anyio.fail_after(PATIENCE):
                while not consumer.assignment:
                    try:
                        await consumer.poll(COUNT, timeout=0.1)
                    except UnreleasedInstanceId as error:
                        refused.append(str(error))
            took = anyio.current_time() - began
            assert set(consumer.assignment) == all_of(filled)
    # Without growing intervals there would be ten attempts a second.
    assert len(refused) <= 6 + took
    message = (
        f"cannot join group '{group}': group_instance_id 'one' is in use by another member, or the previous process "
        "has crashed; then the id is free once the session timeout of the group's coordinator "
        "(group.consumer.session.timeout.ms, by default 45 s) has passed since the last heartbeat of that process"
    )
    assert refused[0].startswith(message)
    lines = [line for line in caplog.records if line.levelno >= logging.WARNING and "refused by" in line.getMessage()]
    assert len(lines) == 1
    assert message in lines[0].getMessage()
