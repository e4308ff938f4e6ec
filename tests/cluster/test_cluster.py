"""Metadata that many share, topics that are waited for, and requests that find their broker within a deadline."""

from collections.abc import Iterator
from typing import Any

import anyio
import attrs
import pytest
from support.clusters import Net, hang, metadata, opened, partition, topic
from support.connecting import eventually
from support.patience import SOON
from support.scripted_broker import Asked, ScriptedBroker

from aiokafkawire.cluster import metadata as metadata_module
from aiokafkawire.cluster.cluster import any_broker, controller
from aiokafkawire.errors import (
    ErrorCode,
    InvalidTopicException,
    NotController,
    RequestTimeout,
    TopicAuthorizationFailed,
    TopicNotReady,
    UsageError,
    broker_error,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aiokafkawire.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from aiokafkawire.types import TopicPartition

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)
DELETE = DeleteTopicsRequest(topics=[], timeout_ms=1)


def answering(broker: ScriptedBroker, *answers: MetadataResponse) -> None:
    """Answer Metadata with each of these in turn, and with the last from then on."""
    left: Iterator[MetadataResponse] = iter(answers)
    current = answers[-1]

    def answer(_: Asked) -> MetadataResponse:
        return next(left, current)

    broker.on[ApiKey.METADATA] = answer


def asked_topics(broker: ScriptedBroker) -> list[list[str | None]]:
    return [
        [one.name for one in request.topics or ()] for request in broker.seen if isinstance(request, MetadataRequest)
    ]


# --- metadata ------------------------------------------------------------------------------------------------


async def test_a_large_answer_is_merged_and_freed_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_module, "_LARGE", 1)
    async with ScriptedBroker() as broker:
        first, second = topic("t", partition(0), partition(1)), topic("t", partition(0, epoch=1), partition(1))
        answering(broker, metadata(first), metadata(second))
        async with opened(broker.connect) as cluster:
            offloaded: list[str] = []
            offload = cluster.runtime.offload

            async def noted(function: Any, *args: Any) -> Any:
                offloaded.append(function.__name__)
                return await offload(function, *args)

            cluster.metadata._runtime = attrs.evolve(cluster.runtime, offload=noted)  # type: ignore[arg-type]  # a generic one
            before = cluster.metadata.snapshot
            after = await cluster.metadata.refresh(before, cluster.deadline(10))
            assert [one.leader_epoch for one in after.topics["t"].partitions] == [1, 0]
            assert [one.leader_epoch for one in before.topics["t"].partitions] == [0, 0]
            await eventually(lambda: offloaded == ["merge", "forget"])


async def test_however_many_ask_for_metadata_one_request_is_under_way() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata())
        async with opened(broker.connect) as cluster:
            assert broker.count(MetadataRequest) == 1
            del broker.on[ApiKey.METADATA]
            seen, found = cluster.metadata.snapshot, []

            async def refresh() -> None:
                found.append(await cluster.metadata.refresh(seen, cluster.deadline(10)))

            async with anyio.create_task_group() as tasks:
                for _ in range(50):
                    tasks.start_soon(refresh)
                request = await broker.peers[0].next()
                await anyio.wait_all_tasks_blocked()
                await request.answer(metadata())
            assert {one.generation for one in found} == {2}
            assert broker.count(MetadataRequest) == 2


async def test_a_snapshot_that_was_replaced_already_asks_for_nothing() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata())
        async with opened(broker.connect) as cluster:
            old = cluster.metadata.snapshot
            new = await cluster.metadata.refresh(old, cluster.deadline(10))
            count = broker.count(MetadataRequest)
            cluster.metadata.mark_stale(old)
            assert await cluster.metadata.refresh(old, cluster.deadline(10)) is new
            await anyio.wait_all_tasks_blocked()
            assert broker.count(MetadataRequest) == count
            cluster.metadata.mark_stale(new)
            assert (await cluster.metadata.wait_for_update(new)).generation == new.generation + 1


async def test_metadata_that_does_not_come_says_why() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata())
        async with opened(broker.connect) as cluster:
            answering(broker, metadata(error=ErrorCode.REBOOTSTRAP_REQUIRED))
            told = r"^no metadata within 0\.1 s: no broker reachable: b:9092: .*REBOOTSTRAP_REQUIRED"
            with pytest.raises(RequestTimeout, match=told):
                await cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(0.1))


async def test_only_topics_in_use_are_asked_for_and_nothing_is_created() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata())
        async with opened(broker.connect) as cluster:
            cluster.metadata.track_topics(["t", "u", "t"])
            await cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(10))
        assert asked_topics(broker) == [[], ["t", "u"]]
        assert not any(request.allow_auto_topic_creation for request in broker.seen)


async def test_topics_may_be_created_where_the_configuration_allows_it() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata())
        async with opened(broker.connect, allow_auto_create_topics=True):
            assert broker.seen[0].allow_auto_topic_creation


async def test_when_the_known_brokers_are_gone_the_bootstrap_addresses_are_tried_again() -> None:
    async with ScriptedBroker() as moving, ScriptedBroker() as entry:
        net = Net(entry=entry, moving=moving)
        answering(entry, metadata(hosts=["moving"]), metadata(hosts=["moved"]))
        answering(moving, metadata(hosts=["moving"]))
        async with opened(net.connect, "entry:9092") as cluster:
            assert cluster.metadata.snapshot.nodes[1].address.host == "moving"
            del net.hosts["moving"]
            for peer in moving.peers:
                await peer.stream.aclose()
            snapshot = await cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(10))
            assert snapshot.nodes[1].address.host == "moved"


# --- topics --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [
        metadata(topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
        metadata(topic("t", error=ErrorCode.LEADER_NOT_AVAILABLE)),
        metadata(topic("t")),
        metadata(),
        metadata(topic("t", partition(1))),
    ],
    ids=["unknown", "without a leader", "without partitions", "not answered", "with holes"],
)
async def test_a_topic_is_waited_for(first: MetadataResponse) -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata(), first, first, metadata(topic("t", partition(0), partition(1))))
        async with opened(broker.connect) as cluster:
            known = await cluster.metadata.topic("t", cluster.deadline(10))
            assert [one.index for one in known.partitions] == [0, 1]
            assert broker.count(MetadataRequest) == 4
            assert await cluster.metadata.topic("t", cluster.deadline(0)) is known


async def test_a_topic_that_does_not_come_is_told_with_the_brokers_answer() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata(topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
        async with opened(broker.connect) as cluster:
            told = r"^topic 't' is not known after 0\.1 s: .*UNKNOWN_TOPIC_OR_PARTITION"
            with pytest.raises(TopicNotReady, match=told):
                await cluster.metadata.topic("t", cluster.deadline(0.1))


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.INVALID_TOPIC_EXCEPTION, InvalidTopicException),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationFailed),
    ],
)
async def test_a_topic_that_is_refused_is_told_at_once(code: ErrorCode, error: type[Exception]) -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata(), metadata(topic("t", error=code)))
        async with opened(broker.connect) as cluster:
            with anyio.fail_after(SOON), pytest.raises(error, match="topic 't'"):
                await cluster.metadata.topic("t", cluster.deadline(60))
        assert broker.count(MetadataRequest) == 2


async def test_a_topic_that_was_refused_is_asked_for_again_by_the_next_call() -> None:
    refused = metadata(topic("t", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    async with ScriptedBroker() as broker:
        answering(broker, metadata(), refused, refused, metadata(topic("t", partition(0))))
        async with opened(broker.connect) as cluster:
            for asked in (2, 3):
                with pytest.raises(TopicAuthorizationFailed):
                    await cluster.metadata.topic("t", cluster.deadline(60))
                assert broker.count(MetadataRequest) == asked
            assert len((await cluster.metadata.topic("t", cluster.deadline(60))).partitions) == 1


async def test_a_refusal_is_told_if_no_broker_answers_in_time() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata(), metadata(topic("t", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
        async with opened(broker.connect) as cluster:
            with pytest.raises(TopicAuthorizationFailed):
                await cluster.metadata.topic("t", cluster.deadline(60))
            with pytest.raises(TopicAuthorizationFailed):
                await cluster.metadata.topic("t", cluster.deadline(0))


async def test_a_leader_is_waited_for() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata(topic("t", partition(0, -1))), metadata(topic("t", partition(0, 9))), GOOD)
        async with opened(broker.connect) as cluster:
            assert (await cluster.leader(T0, cluster.deadline(10))).node_id == 1


async def test_a_leader_that_does_not_come_is_told() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata(topic("t", partition(0, -1))))
        async with opened(broker.connect) as cluster:
            with pytest.raises(TopicNotReady, match=r"^t-0 has no leader after 0\.1 s$"):
                await cluster.leader(T0, cluster.deadline(0.1))


GOOD = metadata(topic("t", partition(0)))


@pytest.mark.parametrize("index", [1, -1])
async def test_a_partition_that_a_topic_lacks_is_a_mistake(index: int) -> None:
    async with ScriptedBroker() as broker:
        answering(broker, GOOD)
        async with opened(broker.connect) as cluster:
            with anyio.fail_after(SOON), pytest.raises(UsageError, match=f"^topic 't' has 1 partitions, no {index}$"):
                await cluster.leader(TopicPartition("t", index), cluster.deadline(60))


# --- requests that find their broker -------------------------------------------------------------------------


def deleted(throttle: int = 0) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[], throttle_time_ms=throttle)


async def test_a_retriable_answer_is_tried_again_after_new_metadata() -> None:
    async with ScriptedBroker() as old, ScriptedBroker() as new:
        net = Net(old=old, new=new)
        both = ("old", "new")
        answering(old, metadata(hosts=both, controller=1), metadata(hosts=both, controller=2))
        answering(new, metadata(hosts=both, controller=2))
        old.on[ApiKey.DELETE_TOPICS] = lambda _: deleted(41)
        new.on[ApiKey.DELETE_TOPICS] = lambda _: deleted(0)

        def check(answer: DeleteTopicsResponse) -> None:
            # NOT_CONTROLLER by itself asks for no refresh: the error's own flags decide.
            if answer.throttle_time_ms:
                raise broker_error(ErrorCode.NOT_CONTROLLER, "delete")

        async with opened(net.connect, "old:9092") as cluster:
            answer = await cluster.ask(controller, DELETE, cluster.deadline(10), check=check)
            assert answer.throttle_time_ms == 0
        assert new.count(DeleteTopicsRequest) == 1


async def test_an_error_that_no_retry_mends_is_raised_at_once() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata())
        broker.on[ApiKey.DELETE_TOPICS] = lambda _: deleted()

        def check(_: object) -> None:
            raise broker_error(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "delete")

        async with opened(broker.connect) as cluster:
            with pytest.raises(Exception, match="CLUSTER_AUTHORIZATION_FAILED"):
                await cluster.ask(any_broker, DELETE, cluster.deadline(60), check=check)
        assert broker.count(DeleteTopicsRequest) == 1


async def test_retries_end_with_the_deadline_and_tell_the_last_cause() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata())
        broker.on[ApiKey.DELETE_TOPICS] = lambda _: deleted()

        def check(_: object) -> None:
            raise broker_error(ErrorCode.NOT_CONTROLLER, "delete")

        async with opened(broker.connect) as cluster:
            told = r"^DeleteTopics did not succeed within 0\.5 s; at last NotController: delete: NOT_CONTROLLER"
            with anyio.fail_after(SOON), pytest.raises(RequestTimeout, match=told) as caught:
                await cluster.ask(any_broker, DELETE, cluster.deadline(0.5), check=check)
            assert isinstance(caught.value.__cause__, NotController)
        assert broker.count(DeleteTopicsRequest) > 3


async def test_a_broker_that_breaks_off_is_asked_again() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata())
        async with opened(broker.connect) as cluster, anyio.create_task_group() as tasks:
            answers: list[Any] = []

            async def ask() -> None:
                answers.append(await cluster.ask(any_broker, DELETE, cluster.deadline(10)))

            tasks.start_soon(ask)
            await broker.peers[0].next()
            broker.on[ApiKey.DELETE_TOPICS] = lambda _: deleted()
            await broker.peers[0].stream.aclose()
            await eventually(lambda: bool(answers))
            assert answers == [deleted()]


@pytest.mark.parametrize("stage", ["connecting", "answering"])
async def test_a_broker_that_is_silent_does_not_outlast_the_deadline(stage: str) -> None:
    async with ScriptedBroker() as entry, ScriptedBroker() as silent:
        net = Net(entry=entry, silent=silent)
        if stage == "connecting":
            net.hosts["silent"] = hang
        answering(entry, metadata(hosts=["silent"]))
        async with opened(net.connect, "entry:9092") as cluster:
            with anyio.fail_after(SOON), pytest.raises(RequestTimeout, match=r"silent:9092"):
                await cluster.ask(any_broker, DELETE, cluster.deadline(0.1))


async def test_without_a_known_broker_the_deadline_says_so() -> None:
    async with ScriptedBroker() as broker:
        answer = metadata(controller=-1)
        answer.cluster_id = "c"  # as brokers tell since 0.10.1
        answering(broker, answer)
        async with opened(broker.connect) as cluster:
            with pytest.raises(RequestTimeout, match=r"at last no broker is known$"):
                await cluster.ask(controller, DELETE, cluster.deadline(0.05))


# --- closing -------------------------------------------------------------------------------------------------


async def test_closing_tells_those_who_wait() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata(topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
        heard: list[BaseException] = []

        async def wait(call: Any) -> None:
            try:
                await call
            except Exception as error:
                heard.append(error)

        async with opened(broker.connect) as cluster:
            far_ahead = attrs.evolve(cluster.metadata.snapshot, generation=1 << 40)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait, cluster.metadata.topic("t", cluster.deadline(60)))
                tasks.start_soon(wait, cluster.metadata.wait_for_update(far_ahead))
                tasks.start_soon(wait, cluster.ask(lambda _: None, DELETE, cluster.deadline(60)))
                await anyio.wait_all_tasks_blocked()
                with anyio.fail_after(SOON):
                    await cluster.close()
                    await eventually(lambda: len(heard) == 3)
            assert [type(error) for error in heard] == [UsageError] * 3


async def test_a_closed_cluster_refuses_work_at_once() -> None:
    async with ScriptedBroker() as broker:
        answering(broker, metadata())
        async with opened(broker.connect) as cluster:
            pass
        with anyio.fail_after(SOON):
            for call in (
                cluster.metadata.topic("t", cluster.deadline(60)),
                cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(60)),
                cluster.ask(any_broker, DELETE, cluster.deadline(60)),
            ):
                with pytest.raises(UsageError, match="the client is not open"):
                    await call
