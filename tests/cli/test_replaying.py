"""``dead-letters replay`` commits what is acknowledged, and nothing else, whenever it is interrupted."""

from __future__ import annotations

import anyio
import pytest

from aiokafkawire import Client, TopicPartition
from aiokafkawire.cli.dead_letters.replaying import GROUP_PREFIX, ReplayOptions, replay
from aiokafkawire.cli.dead_letters.selection import Selection
from aiokafkawire.cli.shell.session import Session
from aiokafkawire.cli.shell.shared_options import SharedOptions
from aiokafkawire.config.properties import KafkaSettings
from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.errors import GroupAuthorizationFailed
from aiokafkawire.processing.failures import Failure, with_failure
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio

OPTIONS = ReplayOptions(topic="dead", selection=Selection())
DAY_MS = 86_400_000


async def filled(kafka: Client) -> Session:
    """A session of a cluster with three dead letters."""
    await kafka.admin.create_topics({"orders": 1, "dead": 1})
    async with kafka.producer() as producer:
        for offset in range(3):
            failure = Failure("orders", 0, offset, 0, "billing", 1, "ValueError", "")
            await producer.send("dead", b"%d" % offset, headers=with_failure([], failure))
    return Session(kafka, KafkaSettings(bootstrap_servers="", client={}, producer={}, consumer={}), SharedOptions())


async def committed(kafka: Client) -> int:
    offsets = await kafka.admin.list_consumer_group_offsets(GROUP_PREFIX + "dead")
    offset = offsets[TopicPartition("dead", 0)]
    assert offset is not None
    return offset.offset


async def test_a_replay_that_is_cancelled_commits_what_is_in_flight() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        session = await filled(kafka)
        with anyio.fail_after(50):
            async with anyio.create_task_group() as tasks, broker.hold(ApiKey.PRODUCE) as held:
                tasks.start_soon(replay, session, OPTIONS)
                await held.arrived()
                assert await committed(kafka) == 0
                tasks.cancel_scope.cancel()
        with anyio.fail_after(50):
            assert await committed(kafka) == 3
            assert await replay(session, OPTIONS) == {}


async def test_a_group_that_may_not_commit_writes_nothing() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        session = await filled(kafka)
        broker.requests.clear()
        broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED, times=None)
        with pytest.raises(GroupAuthorizationFailed):
            await replay(session, OPTIONS)
        assert broker.requests.of(ApiKey.PRODUCE) == []


async def test_commits_outlive_the_retention_of_offsets_and_follow_all_acknowledgements() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        session = await filled(kafka)
        session.settings.producer["acks"] = 1
        assert await replay(session, OPTIONS) == {"orders": 3}
        commits = broker.requests.of(ApiKey.OFFSET_COMMIT)
        assert [asked.request.retention_time_ms > 3_000 * DAY_MS for asked in commits] == [True, True]
        assert broker.requests.of(ApiKey.PRODUCE)[-1].request.acks == -1
