"""``dead-letters replay`` commits what is acknowledged, and nothing else, whenever it is interrupted."""

from __future__ import annotations

import anyio
import pytest

from aiokafkawire import Client, TopicPartition
from aiokafkawire.cli.dead_letters.replaying import GROUP_PREFIX, ReplayOptions, replay
from aiokafkawire.cli.dead_letters.selection import Selection
from aiokafkawire.cli.exit_status import CommandFailed
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


async def filled(kafka: Client, count: int = 3) -> Session:
    """A session of a cluster with dead letters; the errors of every second one differ."""
    await kafka.admin.create_topics({"orders": 1, "dead": 1})
    async with kafka.producer() as producer:
        for offset in range(count):
            failure = Failure("orders", 0, offset, 0, "billing", 1, ("ValueError", "KeyError")[offset % 2], "")
            await producer.enqueue("dead", b"%d" % offset, headers=with_failure([], failure))
    return Session(kafka, KafkaSettings(bootstrap_servers="", client={}, producer={}, consumer={}), SharedOptions())


async def committed(kafka: Client) -> int:
    offsets = await kafka.admin.list_consumer_group_offsets(GROUP_PREFIX + "dead")
    offset = offsets[TopicPartition("dead", 0)]
    assert offset is not None
    return offset.offset


async def test_a_replay_that_is_cancelled_commits_what_is_in_flight(capsys: pytest.CaptureFixture[str]) -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        session = await filled(kafka)
        with anyio.fail_after(50):
            async with anyio.create_task_group() as tasks, broker.hold(ApiKey.PRODUCE) as held:
                tasks.start_soon(replay, session, OPTIONS)
                await held.arrived()
                assert await committed(kafka) == 0
                tasks.cancel_scope.cancel()
        assert capsys.readouterr().err == "3 records are replayed and committed; another replay goes on after them\n"
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


async def test_a_commit_that_fails_after_records_are_written_says_which() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        session = await filled(kafka, 503)
        broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED, after=2, times=None)
        said = "500 records are replayed and committed, and 3 perhaps only replayed.*: GroupAuthorizationFailed: "
        with pytest.raises(CommandFailed, match=said):
            await replay(session, OPTIONS)


async def test_commits_outlive_the_retention_of_offsets_and_follow_all_acknowledgements() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        session = await filled(kafka)
        session.settings.producer["acks"] = 1
        assert await replay(session, OPTIONS) == {"orders": 3}
        commits = broker.requests.of(ApiKey.OFFSET_COMMIT)
        assert [asked.request.retention_time_ms > 3_000 * DAY_MS for asked in commits] == [True, True]
        assert broker.requests.of(ApiKey.PRODUCE)[-1].request.acks == -1


async def test_records_that_a_commit_has_no_room_for_are_not_written() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        session = await filled(kafka, 3_400)
        scattered = ReplayOptions(topic="dead", selection=Selection(errors=frozenset({"KeyError"})))
        said = (
            "the records to replay are too scattered over dead:0: .* has no room for which are replayed; 1,500 before"
        )
        with pytest.raises(CommandFailed, match=said):
            await replay(session, scattered)
        assert len([record async for record in kafka.read_records("orders")]) == 1_500
        with pytest.raises(CommandFailed, match="too scattered"):
            await replay(session, scattered)
        assert await replay(session, OPTIONS) == {"orders": 1_900}
        places = [record.headers[-1] async for record in kafka.read_records("orders")]
        assert len(set(places)) == len(places) == 3_400
