"""Topics that do not exist: how long they are waited for, what is logged, and how often the cluster is asked."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from support.clusters import metadata, opened, partition, topic
from support.scripted_broker import ScriptedBroker
from support.virtual_time import virtual_time

from aiokafkawire.cluster.missing_topics import MissingTopics, News, say_missing
from aiokafkawire.errors import ErrorCode, TopicNotReady, UnknownTopicOrPartition
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataResponse

CLUSTER = "aiokafkawire.cluster"
MISSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOTHING = News([], [], [])
DEFAULTS: dict[str, Any] = {"retry_backoff_ms": 100, "retry_backoff_max_ms": 1000}


def missing(*names: str) -> MetadataResponse:
    return metadata(*(topic(name, error=MISSING) for name in names))


# --- what is missing, without a loop -------------------------------------------------------------------------------


def test_a_missing_topic_is_new_then_overdue_and_then_overdue_once_an_hour() -> None:
    state, errors = MissingTopics(), {"a": int(MISSING)}
    assert state.update(["a"], errors.get, {"a"}, 100.0) == News(["a"], [], [])
    assert state.update(["a"], errors.get, {"a"}, 100.9) == NOTHING
    assert state.update(["a"], errors.get, {"a"}, 101.0) == News([], ["a"], [])
    assert state.update(["a"], errors.get, {"a"}, 3700.0) == NOTHING
    assert state.update(["a"], errors.get, {"a"}, 3701.0) == News([], ["a"], [])
    errors["a"] = 0
    assert state.update(["a"], errors.get, {"a"}, 3702.0) == News([], [], ["a"])
    assert state.update(["a"], errors.get, {"a"}, 3703.0) == NOTHING
    assert "a" not in state


def test_a_topic_that_nobody_follows_is_missing_but_not_news() -> None:
    state = MissingTopics()
    assert state.update(["a"], {"a": int(MISSING)}.get, (), 1.0) == NOTHING
    assert state.update(["a"], {"a": int(MISSING)}.get, (), 9.0) == NOTHING
    assert "a" in state
    assert state.ask_again_within((), 300.0) == 300.0


def test_a_topic_that_an_answer_lacks_is_missing_and_other_errors_are_not() -> None:
    state = MissingTopics()
    errors = {"b": int(ErrorCode.LEADER_NOT_AVAILABLE), "c": int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), "d": 0}
    state.update(["a", "b", "c", "d"], errors.get, (), 1.0)
    assert [name for name in "abcd" if name in state] == ["a"]


def test_the_cluster_is_asked_again_soon_before_the_warning_and_rarely_after_it() -> None:
    state = MissingTopics()
    for now, again in ((0.0, 1.0), (1.0, 10.0), (11.0, 10.0)):
        state.update(["a"], {"a": int(MISSING)}.get, {"a"}, now)
        assert state.ask_again_within({"a"}, 300.0) == again
        assert state.ask_again_within({"a"}, 0.5) == 0.5


def test_many_missing_topics_make_one_short_sentence() -> None:
    assert say_missing(["a"]) == "topic 'a' does not exist"
    assert say_missing(["a", "b"]) == "topics 'a', 'b' do not exist"
    assert say_missing([str(number) for number in range(12)]).endswith("'9' and 2 more do not exist")


# --- a cluster in virtual time -------------------------------------------------------------------------------------


@pytest.mark.anyio
@virtual_time
@pytest.mark.parametrize(
    ("allow", "hint"),
    [(False, "or set allow_auto_create_topics=True"), (True, "although allow_auto_create_topics is set")],
)
async def test_a_topic_that_does_not_exist_is_waited_for_as_long_as_is_set(allow: bool, hint: str) -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: missing("oders")
        options = {**DEFAULTS, "allow_auto_create_topics": allow, "topic_metadata_propagation_max_ms": 5_000}
        async with opened(broker.connect, **options) as cluster:
            began = anyio.current_time()
            told = (
                r"^topic 'oders' does not exist: .* for 5 s \(topic_metadata_propagation_max_ms\); check the spelling"
            )
            with pytest.raises(TopicNotReady, match=told) as raised:
                await cluster.metadata.topic("oders", cluster.deadline(60))
            assert 5 <= anyio.current_time() - began < 7
            assert hint in str(raised.value)
            assert isinstance(raised.value.__cause__, UnknownTopicOrPartition)


@pytest.mark.anyio
@virtual_time
async def test_a_topic_that_is_created_meanwhile_is_found_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aiokafkawire")
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: missing("late")
        async with opened(broker.connect, **DEFAULTS) as cluster, anyio.create_task_group() as tasks:
            for _ in range(3):  # who waits for the same topic makes no further line
                tasks.start_soon(cluster.metadata.topic, "late", cluster.deadline(60))
            await anyio.sleep(5)
            broker.on[ApiKey.METADATA] = lambda _: metadata(topic("late", partition(0)))
    what_to_do = "check the spelling, create the topic, or set allow_auto_create_topics=True"
    assert [(one.levelname, one.name, one.getMessage()) for one in caplog.records] == [
        ("INFO", CLUSTER, "topic 'late' does not exist in the cluster; requesting metadata again"),
        ("WARNING", CLUSTER, f"topic 'late' does not exist in the cluster (UNKNOWN_TOPIC_OR_PARTITION): {what_to_do}"),
        ("INFO", CLUSTER, "topic 'late' exists now"),
    ]


@pytest.mark.anyio
@virtual_time
async def test_an_answer_from_before_the_call_does_not_count() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: missing("late")
        async with opened(broker.connect, **DEFAULTS, topic_metadata_propagation_max_ms=0) as cluster:
            with pytest.raises(TopicNotReady, match="does not exist"):
                await cluster.metadata.topic("late", cluster.deadline(60))
            await anyio.sleep(1)
            broker.on[ApiKey.METADATA] = lambda _: metadata(topic("late", partition(0)))
            assert len((await cluster.metadata.topic("late", cluster.deadline(60))).partitions) == 1


@pytest.mark.anyio
@virtual_time
async def test_a_topic_without_a_leader_is_waited_for_until_the_deadline() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata(topic("t", error=ErrorCode.LEADER_NOT_AVAILABLE))
        async with opened(broker.connect, **DEFAULTS) as cluster:
            with pytest.raises(TopicNotReady, match=r"^topic 't' is not known after 60 s: .*LEADER_NOT_AVAILABLE"):
                await cluster.metadata.topic("t", cluster.deadline(60))


@pytest.mark.anyio
@pytest.mark.parametrize(
    "code", [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.KAFKA_STORAGE_ERROR]
)
@virtual_time
async def test_a_topic_that_is_followed_is_asked_for_again_soon_after_a_passing_error(code: ErrorCode) -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata(topic("t", error=code))
        async with opened(broker.connect, **DEFAULTS) as cluster:
            with cluster.metadata.following(lambda: ["t"]):
                cluster.metadata.mark_stale(cluster.metadata.snapshot)
                await anyio.sleep(1)
                broker.on[ApiKey.METADATA] = lambda _: metadata(topic("t", partition(0)))
                await anyio.sleep(2)
                assert cluster.metadata.snapshot.topic_error("t") == ErrorCode.NONE


@pytest.mark.anyio
@virtual_time
async def test_a_topic_that_is_followed_and_missing_is_looked_for_every_ten_seconds_and_warned_about_once_an_hour(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda asked: missing(*(one.name for one in asked.request.topics))
        async with opened(broker.connect, **DEFAULTS) as cluster:
            with cluster.metadata.following(lambda: ["late"]):
                cluster.metadata.mark_stale(cluster.metadata.snapshot)
                await anyio.sleep(3000)
                assert cluster.metadata.missing_of(["late", "other"]) == ["late"]
                assert 250 <= broker.count(MetadataRequest) <= 305
                assert [one.levelname for one in caplog.records] == ["WARNING"]
                await anyio.sleep(7000)
            assert [one.levelname for one in caplog.records] == ["WARNING"] * 3
            asked = broker.count(MetadataRequest)
            await anyio.sleep(1000)  # nobody follows it any more
            assert broker.count(MetadataRequest) - asked <= 4
            assert len(caplog.records) == 3


@pytest.mark.anyio
@virtual_time
async def test_a_topic_that_is_followed_is_never_forgotten() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda asked: metadata(
            *(topic(one.name, partition(0)) for one in asked.request.topics)
        )
        async with opened(broker.connect, **DEFAULTS) as cluster:
            with cluster.metadata.following(lambda: ["read"], lambda: ["watched"]):
                for _ in range(5):
                    await anyio.sleep(310)  # more than metadata_max_age_ms, and metadata_max_idle_ms
                    assert {"read", "watched"} <= {one.name for one in broker.seen[-1].topics}
            await anyio.sleep(700)
            assert list(broker.seen[-1].topics) == []
