"""Offsets of many partitions: leaders that move, answers that lack something, and what no broker can say."""

from collections.abc import Mapping

import anyio
import pytest
from support.clusters import Net, metadata, opened, partition, topic
from support.patience import SOON
from support.scripted_broker import SPOKEN, Asked, ScriptedBroker

from aiokafkawire import Client
from aiokafkawire.cluster.list_offsets import look_up_offsets, look_up_starts
from aiokafkawire.errors import (
    ErrorCode,
    RequestTimeout,
    TopicAuthorizationFailed,
    TopicNotReady,
    UnknownServerError,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
    UsageError,
    WireError,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import IsolationLevel, OffsetAndTimestamp, OffsetSpec, TopicPartition

pytestmark = pytest.mark.anyio

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
TOPICS = metadata(topic("t", partition(0, 1, 7), partition(1, 2, 8)), topic("u", partition(0, 1, 9)), hosts=("a", "b"))


def offsets(
    found: Mapping[TopicPartition, ListOffsetsPartitionResponse],
) -> ListOffsetsResponse:
    topics: dict[str, ListOffsetsTopicResponse] = {}
    for where, answer in found.items():
        topics.setdefault(where.topic, ListOffsetsTopicResponse(name=where.topic, partitions=[])).partitions.append(
            answer
        )
    return ListOffsetsResponse(topics=list(topics.values()))


def found(
    index: int, offset: int = 0, *, error: int = 0, timestamp: int = -1, epoch: int = -1
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=index, error_code=error, offset=offset, timestamp=timestamp, leader_epoch=epoch
    )


async def test_each_leader_is_asked_once_for_all_its_partitions() -> None:
    async with ScriptedBroker() as a, ScriptedBroker() as b:
        a.on[ApiKey.METADATA] = b.on[ApiKey.METADATA] = lambda _: TOPICS
        a.on[ApiKey.LIST_OFFSETS] = lambda _: offsets({T0: found(0, 10), U0: found(0, -1)})
        b.on[ApiKey.LIST_OFFSETS] = lambda _: offsets({T1: found(1, 20, timestamp=5, epoch=3)})
        async with opened(Net(a=a, b=b).connect, "a:9092") as cluster:
            specs = {T0: OffsetSpec.LATEST, T1: OffsetSpec.at(5), U0: OffsetSpec.at(9)}
            read = await look_up_offsets(cluster, specs, cluster.deadline(10), IsolationLevel.READ_COMMITTED)
        assert read == {T0: OffsetAndTimestamp(10), T1: OffsetAndTimestamp(20, 5, 3), U0: None}
        (request,) = [one for one in a.seen if isinstance(one, ListOffsetsRequest)]
        asked = [
            (one.name, two.partition_index, two.timestamp, two.current_leader_epoch)
            for one in request.topics
            for two in one.partitions
        ]
        assert asked == [("t", 0, -1, 7), ("u", 0, 9, 9)]
        assert (request.replica_id, request.isolation_level) == (-1, 1)
        assert b.count(ListOffsetsRequest) == 1


async def test_a_leader_that_moved_is_followed_and_the_others_are_not_asked_again() -> None:
    async with ScriptedBroker() as a, ScriptedBroker() as b:
        moved = metadata(topic("t", partition(0, 2, 8), partition(1, 2, 8)), hosts=("a", "b"))
        a.on[ApiKey.METADATA] = b.on[ApiKey.METADATA] = lambda _: moved if a.count(ListOffsetsRequest) else TOPICS
        a.on[ApiKey.LIST_OFFSETS] = lambda _: offsets({T0: found(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)})

        def answer(asked: Asked) -> ListOffsetsResponse:
            indexes = [one.partition_index for one in asked.request.topics[0].partitions]
            return offsets({TopicPartition("t", index): found(index, index) for index in indexes})

        b.on[ApiKey.LIST_OFFSETS] = answer
        async with opened(Net(a=a, b=b).connect, "a:9092") as cluster:
            specs = dict.fromkeys((T0, T1), OffsetSpec.EARLIEST)
            read = await look_up_offsets(cluster, specs, cluster.deadline(10))
        assert read == {T0: OffsetAndTimestamp(0), T1: OffsetAndTimestamp(1)}
        asked = [
            [one.partition_index for one in request.topics[0].partitions]
            for request in b.seen
            if isinstance(request, ListOffsetsRequest)
        ]
        assert sorted(asked) == [[0], [1]]


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        ({T0: found(0, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)}, TopicAuthorizationFailed, "ListOffsets of t-0: "),
        ({}, WireError, "a:9092 answered ListOffsets without the requested t-0"),
        ({U0: found(0)}, WireError, "a:9092 answered ListOffsets without the requested t-0"),
        ({T0: found(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)}, TopicNotReady, "no offset of t-0 within 0.1 s: "),
        (None, RequestTimeout, "no offset of t-0 within 0.1 s: no answer from a:9092 to ListOffsets within "),
    ],
)
async def test_what_stands_in_the_way_is_told(
    answer: Mapping[TopicPartition, ListOffsetsPartitionResponse] | None, error: type[Exception], told: str
) -> None:
    async with ScriptedBroker() as a:
        a.on[ApiKey.METADATA] = lambda _: TOPICS
        a.on[ApiKey.LIST_OFFSETS] = lambda _: None if answer is None else offsets(answer)
        async with opened(Net(a=a).connect, "a:9092") as cluster:
            with anyio.fail_after(SOON), pytest.raises(error) as caught:
                await look_up_offsets(cluster, {T0: OffsetSpec.LATEST}, cluster.deadline(0.1))
        assert str(caught.value).startswith(told)


async def test_a_topic_whose_format_has_no_times_is_told() -> None:
    async with ScriptedBroker() as a:
        a.on[ApiKey.METADATA] = lambda _: TOPICS
        a.on[ApiKey.LIST_OFFSETS] = lambda _: offsets({T0: found(0, error=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)})
        async with opened(Net(a=a).connect, "a:9092") as cluster:
            with anyio.fail_after(SOON), pytest.raises(UnsupportedForMessageFormat, match="ListOffsets of t-0: "):
                await look_up_offsets(cluster, {T0: OffsetSpec.at(1)}, cluster.deadline(10))
        assert a.count(ListOffsetsRequest) == 1


async def test_a_partition_that_does_not_exist_is_a_mistake() -> None:
    async with ScriptedBroker() as a:
        a.on[ApiKey.METADATA] = lambda _: TOPICS
        async with opened(Net(a=a).connect, "a:9092") as cluster:
            with pytest.raises(UsageError, match="topic 't' has 2 partitions, no 2"):
                await look_up_offsets(cluster, {TopicPartition("t", 2): OffsetSpec.LATEST}, cluster.deadline(10))


async def test_the_highest_timestamp_needs_a_broker_that_knows_it() -> None:
    spoken = {**SPOKEN, ApiKey.LIST_OFFSETS: Versions.parse("0-6")}
    async with ScriptedBroker(spoken) as a:
        a.on[ApiKey.METADATA] = lambda _: TOPICS
        a.on[ApiKey.LIST_OFFSETS] = lambda _: offsets({T0: found(0, 1)})
        async with opened(Net(a=a).connect, "a:9092") as cluster:
            with pytest.raises(UnsupportedVersion, match=r"since 3\.0 \(KIP-734\): a:9092 "):
                await look_up_offsets(cluster, {T0: OffsetSpec.MAX_TIMESTAMP}, cluster.deadline(10))
            read = await look_up_offsets(cluster, {T0: OffsetSpec.LATEST}, cluster.deadline(10))
            assert read == {T0: OffsetAndTimestamp(1)}


async def test_nothing_asked_is_nothing_found() -> None:
    async with ScriptedBroker() as a:
        a.on[ApiKey.METADATA] = lambda _: TOPICS
        async with opened(Net(a=a).connect, "a:9092") as cluster:
            assert await look_up_offsets(cluster, {}, cluster.deadline(10)) == {}


@pytest.mark.parametrize("version", [0, 1])
async def test_only_brokers_that_list_segments_are_asked_again_after_an_unknown_error(version: int) -> None:
    async with ScriptedBroker({**SPOKEN, ApiKey.LIST_OFFSETS: Versions(0, version)}) as a:
        a.on[ApiKey.METADATA] = lambda _: TOPICS
        failed, good = (
            ListOffsetsPartitionResponse(
                partition_index=0, error_code=error, old_style_offsets=[4] if not error else []
            )
            for error in (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE)
        )
        answers = iter([failed, good])
        a.on[ApiKey.LIST_OFFSETS] = lambda _: offsets({T0: next(answers)})
        async with opened(Net(a=a).connect, "a:9092") as cluster:
            with anyio.fail_after(SOON):
                if version:
                    with pytest.raises(UnknownServerError, match="ListOffsets of t-0: "):
                        await look_up_offsets(cluster, {T0: OffsetSpec.LATEST}, cluster.deadline(10))
                else:
                    read = await look_up_offsets(cluster, {T0: OffsetSpec.LATEST}, cluster.deadline(10))
                    assert read == {T0: OffsetAndTimestamp(4, -1)}


async def test_a_time_before_all_segments_is_looked_up_again_if_the_second_request_fails() -> None:
    async with ScriptedBroker({**SPOKEN, ApiKey.LIST_OFFSETS: Versions(0, 0)}) as a:
        a.on[ApiKey.METADATA] = lambda _: TOPICS
        empty, failed, good = (
            ListOffsetsPartitionResponse(partition_index=0, error_code=error, old_style_offsets=segments)
            for error, segments in ((0, []), (ErrorCode.NOT_LEADER_OR_FOLLOWER, []), (0, [4]))
        )
        answers = iter([empty, failed, empty, good])
        a.on[ApiKey.LIST_OFFSETS] = lambda _: offsets({T0: next(answers)})
        async with opened(Net(a=a).connect, "a:9092") as cluster:
            with anyio.fail_after(SOON):
                read = await look_up_offsets(cluster, {T0: OffsetSpec.at(5)}, cluster.deadline(10))
        assert read == {T0: OffsetAndTimestamp(4, -1)}


async def test_a_record_that_is_appended_during_the_lookup_of_a_start_is_not_skipped() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        async with Client(broker.bootstrap, connector=broker.connect) as kafka, kafka.producer() as producer:
            await producer.send("t", b"old", timestamp_ms=1)
            cluster, starts = kafka._cluster, dict[TopicPartition, int]()

            async def look_up() -> None:
                starts.update(await look_up_starts(cluster, {T0: OffsetSpec.at(500)}, cluster.deadline(10)))

            async with anyio.create_task_group() as tasks, broker.hold(ApiKey.LIST_OFFSETS, after=1) as held:
                tasks.start_soon(look_up)
                await held.arrived()  # the lookup of the end, since no record is late enough
                await producer.send("t", b"older", timestamp_ms=2)
                await producer.send("t", b"new", timestamp_ms=600)
                held.release()
            assert starts == {T0: 2}
