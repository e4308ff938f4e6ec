"""OffsetCommit, OffsetFetch and OffsetDelete, as Apache Kafka answers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio
import pytest
from support.group_members import New, described, protocols, subscription
from support.patience import PATIENCE
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from aiokafkawire.protocol.messages.metadata import MetadataResponseTopic
from aiokafkawire.protocol.messages.topics import DeleteTopicsRequest
from aiokafkawire.protocol.primitives import ZERO_UUID

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

Asked = tuple[str | UUID, int, int]


def offset(partition: int, offset: int, metadata: str | None = "", epoch: int = -1) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        committed_metadata=metadata,
    )


async def commit(
    client: RawClient,
    group: str,
    topics: dict[str | UUID, Sequence[OffsetCommitRequestPartition]],
    *,
    version: int = 9,
    generation: int = -1,
    member: str = "",
    instance: str | None = None,
    retention_ms: int = -1,
) -> list[tuple[str | UUID, int, str]]:
    """Commit, and say what became of each partition, in the answer's order."""
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=[
            OffsetCommitRequestTopic(
                name=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, UUID) else ZERO_UUID,
                partitions=list(partitions),
            )
            for topic, partitions in topics.items()
        ],
    )
    answer = await client.ask(request, version)
    return [
        (topic.name or topic.topic_id, partition.partition_index, ErrorCode(partition.error_code).name)
        for topic in answer.topics
        for partition in topic.partitions
    ]


async def outcome(client: RawClient, group: str, topic: str, **fields: Any) -> str:
    """Commit one offset; the error's name."""
    ((_, _, error),) = await commit(client, group, {topic: [offset(0, 5)]}, **fields)
    return error


def asked_group(group: str, topics: dict[str | UUID, list[int]] | None) -> OffsetFetchRequestGroup:
    wanted = None
    if topics is not None:
        wanted = [
            OffsetFetchRequestTopics(
                name=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, UUID) else ZERO_UUID,
                partition_indexes=indexes,
            )
            for topic, indexes in topics.items()
        ]
    return OffsetFetchRequestGroup(group_id=group, topics=wanted)


def found(answer: OffsetFetchResponseGroup) -> dict[tuple[str | UUID, int], tuple[int, str | None, int, str]]:
    assert answer.error_code == 0
    return {
        (topic.name or topic.topic_id, one.partition_index): (
            one.committed_offset,
            one.metadata,
            one.committed_leader_epoch,
            ErrorCode(one.error_code).name,
        )
        for topic in answer.topics
        for one in topic.partitions
    }


async def fetch(
    client: RawClient, group: str, topics: dict[str | UUID, list[int]] | None = None, version: int = 9
) -> dict[tuple[str | UUID, int], tuple[int, str | None, int, str]]:
    request = OffsetFetchRequest(groups=[asked_group(group, topics)])
    (answer,) = (await client.ask(request, version)).groups
    return found(answer)


async def delete(client: RawClient, group: str, topic: str, *partitions: int) -> OffsetDeleteResponse:
    indexes = [OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
    request = OffsetDeleteRequest(
        group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=indexes)] if topic else []
    )
    return await client.ask(request, 0)


def deleted(answer: OffsetDeleteResponse) -> list[tuple[int, str]]:
    assert answer.error_code == 0
    return [
        (one.partition_index, ErrorCode(one.error_code).name) for topic in answer.topics for one in topic.partitions
    ]


# --- committing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(2, 11))
async def test_every_version_commits(
    client: RawClient, topic: MetadataResponseTopic, name: str, group: str, version: int
) -> None:
    key = topic.topic_id if version >= 10 else name
    assert await commit(client, group, {key: [offset(0, 7, "note", epoch=3)]}, version=version) == [(key, 0, "NONE")]
    assert await fetch(client, group) == {(name, 0): (7, "note", 3 if version >= 6 else -1, "NONE")}


@pytest.mark.parametrize("version", range(1, 8))
async def test_old_versions_look_up_one_group(client: RawClient, name: str, group: str, version: int) -> None:
    await commit(client, group, {name: [offset(0, 7, "note", epoch=3)]})
    asked = [OffsetFetchRequestTopic(name=name, partition_indexes=[0, 9])]
    answer = await client.ask(OffsetFetchRequest(group_id=group, topics=asked), version)
    assert answer.error_code == 0
    ((one, other),) = [found_topic.partitions for found_topic in answer.topics]
    assert (one.committed_offset, one.metadata, one.error_code) == (7, "note", 0)
    assert one.committed_leader_epoch == (3 if version >= 5 else -1)
    assert (other.partition_index, other.committed_offset, other.metadata, other.error_code) == (9, -1, "", 0)
    if version >= 2:  # KIP-88
        answer = await client.ask(OffsetFetchRequest(group_id=group, topics=None), version)
        assert [[one.partition_index for one in topic.partitions] for topic in answer.topics] == [[0]]


async def test_what_is_committed_stays_until_the_next_commit(client: RawClient, kafka: Kafka, group: str) -> None:
    name = (await kafka.topic(partitions=2)).name or ""
    await commit(client, group, {name: [offset(0, 1, None), offset(1, 2, "x", epoch=4)]})
    assert await fetch(client, group) == {(name, 0): (1, "", -1, "NONE"), (name, 1): (2, "x", 4, "NONE")}
    await commit(client, group, {name: [offset(1, 1, None)]})
    assert await fetch(client, group) == {(name, 0): (1, "", -1, "NONE"), (name, 1): (1, "", -1, "NONE")}


async def test_any_offset_can_be_committed(client: RawClient, name: str, group: str) -> None:
    for value, epoch in ((-5, -3), (2**63 - 1, 2**31 - 1), (0, 0)):
        await commit(client, group, {name: [offset(0, value, epoch=epoch)]})
        assert await fetch(client, group) == {(name, 0): (value, "", epoch, "NONE")}


async def test_the_last_commit_of_a_request_counts(client: RawClient, name: str, group: str) -> None:
    await commit(client, group, {name: [offset(0, 5), offset(0, 6, "x" * 4096), offset(0, 7, "x" * 4097)]})
    assert await fetch(client, group) == {(name, 0): (6, "x" * 4096, -1, "NONE")}


async def test_each_partition_has_its_own_outcome(client: RawClient, kafka: Kafka, group: str) -> None:
    name = (await kafka.topic(partitions=3)).name or ""
    topics: dict[str | UUID, Sequence[OffsetCommitRequestPartition]] = {
        name: [offset(0, 1), offset(1, 1, "x" * 4097), offset(7, 1), offset(-1, 1), offset(2, 1, "x" * 4096)],
        "no-such-topic": [offset(0, 1)],
    }
    assert await commit(client, group, topics) == [
        (name, 7, "UNKNOWN_TOPIC_OR_PARTITION"),
        (name, -1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (name, 0, "NONE"),
        (name, 1, "OFFSET_METADATA_TOO_LARGE"),
        (name, 2, "NONE"),
        ("no-such-topic", 0, "UNKNOWN_TOPIC_OR_PARTITION"),
    ]
    assert set(await fetch(client, group)) == {(name, 0), (name, 2)}


async def test_a_note_is_measured_in_java_s_characters(client: RawClient, name: str, group: str) -> None:
    assert await commit(client, group, {name: [offset(0, 1, "ä" * 4096)]}) == [(name, 0, "NONE")]
    too_large = [(name, 0, "OFFSET_METADATA_TOO_LARGE")]
    assert await commit(client, group, {name: [offset(0, 1, "🦆" * 2048 + "!")]}) == too_large


async def test_topics_by_id(
    client: RawClient, topic: MetadataResponseTopic, name: str, group: str, unknown_id: UUID
) -> None:
    topics: dict[str | UUID, Sequence[OffsetCommitRequestPartition]] = {
        topic.topic_id: [offset(0, 1), offset(9, 1)],
        unknown_id: [offset(0, 1)],
    }
    assert await commit(client, group, topics, version=10) == [
        (topic.topic_id, 9, "UNKNOWN_TOPIC_OR_PARTITION"),
        (topic.topic_id, 0, "NONE"),
        (unknown_id, 0, "UNKNOWN_TOPIC_ID"),
    ]
    assert await fetch(client, group, version=10) == {(topic.topic_id, 0): (1, "", -1, "NONE")}
    assert await fetch(client, group, {topic.topic_id: [0, 9], unknown_id: [0]}, version=10) == {
        (topic.topic_id, 0): (1, "", -1, "NONE"),
        (topic.topic_id, 9): (-1, "", -1, "NONE"),
        (unknown_id, 0): (-1, "", -1, "UNKNOWN_TOPIC_ID"),
    }


async def test_a_commit_from_outside_makes_a_group(client: RawClient, name: str, group: str) -> None:
    assert await outcome(client, group, "no-such-topic") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert (await described(client, group)).group_state == "Dead"
    assert await outcome(client, group, name, member="someone") == "NONE"
    made = await described(client, group)
    assert (made.group_state, made.protocol_type, made.members) == ("Empty", "", [])


async def test_a_group_may_have_no_name(client: RawClient, name: str, group: str) -> None:
    assert group  # made, so that the offsets topic is there
    with anyio.fail_after(PATIENCE):
        while await outcome(client, "", name) != "NONE":
            pass
    assert (name, 0) in await fetch(client, "")


@pytest.mark.parametrize("version", [2, 8, 9])
async def test_a_group_that_is_not_there_has_no_generations(
    client: RawClient, name: str, group: str, version: int
) -> None:
    expected = "GROUP_ID_NOT_FOUND" if version >= 9 else "ILLEGAL_GENERATION"
    assert await outcome(client, group, name, generation=1, member="m", version=version) == expected
    assert (await described(client, group)).group_state == "Dead"


async def test_retention_is_taken_from_old_clients(client: RawClient, name: str, group: str) -> None:
    for version in (2, 3, 4):
        assert await outcome(client, group, name, version=version, retention_ms=3_600_000) == "NONE"
    assert await fetch(client, group) == {(name, 0): (5, "", -1, "NONE")}


# --- members -------------------------------------------------------------------------------------------------------


async def test_members_commit_in_their_generation(client: RawClient, new: New, group: str, name: str) -> None:
    one = await new()
    await one.settle()
    assert await outcome(client, group, name, generation=1, member=one.member_id) == "NONE"
    refused = {
        "ILLEGAL_GENERATION": [(0, one.member_id), (2, one.member_id), (-1, one.member_id)],
        "UNKNOWN_MEMBER_ID": [(-1, ""), (1, ""), (1, "nobody"), (7, "nobody"), (-1, "nobody")],
    }
    for error, attempts in refused.items():
        for generation, member in attempts:
            assert await outcome(client, group, name, generation=generation, member=member) == error
    unknown = await outcome(client, group, name, generation=1, member=one.member_id, instance="i")
    assert unknown == "UNKNOWN_MEMBER_ID"


async def test_static_members_commit_under_their_newest_id(client: RawClient, new: New, group: str, name: str) -> None:
    one, back = await new(instance="a"), await new(instance="a")
    await one.settle()
    await back.join()
    fenced = await outcome(client, group, name, generation=1, member=one.member_id, instance="a")
    assert fenced == "FENCED_INSTANCE_ID"
    assert await outcome(client, group, name, generation=1, member=one.member_id) == "UNKNOWN_MEMBER_ID"
    assert await outcome(client, group, name, generation=1, member=back.member_id, instance="a") == "NONE"


async def test_commits_during_a_rebalance(client: RawClient, new: New, group: str, name: str) -> None:
    one, other = await new(), await new()
    await one.settle()
    joining = await other.ask_to_enter()
    await one.hears_of_rebalance()
    assert await outcome(client, group, name, generation=1, member=one.member_id) == "NONE"  # before it joins again
    await one.join()
    await other.joined(joining)
    assert await outcome(client, group, name, generation=2, member=one.member_id) == "REBALANCE_IN_PROGRESS"
    assert await outcome(client, group, name, generation=1, member=one.member_id) == "ILLEGAL_GENERATION"
    await one.sync()
    assert await outcome(client, group, name, generation=2, member=one.member_id) == "NONE"


async def test_when_all_have_left_anyone_commits(client: RawClient, new: New, group: str, name: str) -> None:
    one = await new()
    await one.settle()
    await one.leave()
    assert await outcome(client, group, name) == "NONE"
    assert await outcome(client, group, name, member="nobody") == "NONE"
    assert await outcome(client, group, name, generation=2, member=one.member_id) == "UNKNOWN_MEMBER_ID"


# --- looking up ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [8, 9, 10])
async def test_several_groups_at_once(
    client: RawClient, topic: MetadataResponseTopic, name: str, group: str, version: int
) -> None:
    await commit(client, group, {name: [offset(0, 7)]})
    key: str | UUID = topic.topic_id if version >= 10 else name
    asked = [asked_group(group, None), asked_group("no-such-group", None), asked_group(group, {key: [0, 5]})]
    everything, nothing, some = (await client.ask(OffsetFetchRequest(groups=asked), version)).groups
    assert (everything.group_id, nothing.group_id) == (group, "no-such-group")
    assert found(everything) == {(key, 0): (7, "", -1, "NONE")}
    assert found(nothing) == {}
    assert found(some) == {(key, 0): (7, "", -1, "NONE"), (key, 5): (-1, "", -1, "NONE")}


async def test_what_nobody_committed(client: RawClient, name: str, group: str) -> None:
    nothing = (-1, "", -1, "NONE")
    for version in (8, 9):
        asked: dict[str | UUID, list[int]] = {name: [0, 99], "no-such-topic": [0]}
        assert await fetch(client, group, asked, version) == {
            (name, 0): nothing,
            (name, 99): nothing,
            ("no-such-topic", 0): nothing,
        }
    assert await fetch(client, group, {}) == {}


async def test_stable_offsets_are_those_of_no_transaction(client: RawClient, name: str, group: str) -> None:
    await commit(client, group, {name: [offset(0, 7)]})
    for topics in ({name: [0]}, None):
        request = OffsetFetchRequest(groups=[asked_group(group, topics)], require_stable=True)  # type: ignore[arg-type]
        (answer,) = (await client.ask(request, 9)).groups
        assert found(answer) == {(name, 0): (7, "", -1, "NONE")}


async def test_anyone_may_look_up_offsets_of_a_classic_group(
    client: RawClient, new: New, group: str, name: str
) -> None:
    await commit(client, group, {name: [offset(0, 7)]})
    await (await new()).settle()
    asked = asked_group(group, None)
    asked.member_id, asked.member_epoch = "nobody", 9
    (answer,) = (await client.ask(OffsetFetchRequest(groups=[asked]), 9)).groups
    assert found(answer) == {(name, 0): (7, "", -1, "NONE")}


# --- deleting ------------------------------------------------------------------------------------------------------


async def test_offsets_of_an_empty_group_are_deleted(client: RawClient, kafka: Kafka, group: str) -> None:
    name = (await kafka.topic(partitions=3)).name or ""
    await commit(client, group, {name: [offset(0, 1), offset(1, 2)]})
    assert deleted(await delete(client, group, name, 0, 2, 9)) == [
        (9, "UNKNOWN_TOPIC_OR_PARTITION"),
        (0, "NONE"),
        (2, "NONE"),
    ]
    assert set(await fetch(client, group)) == {(name, 1)}
    assert deleted(await delete(client, group, "no-such-topic", 0)) == [(0, "UNKNOWN_TOPIC_OR_PARTITION")]
    assert deleted(await delete(client, group, name, 1)) == [(1, "NONE")]
    assert (await described(client, group)).group_state == "Empty"


async def test_offsets_of_no_group(client: RawClient, name: str, group: str) -> None:
    for group_id, expected in (("", ErrorCode.INVALID_GROUP_ID), (group, ErrorCode.GROUP_ID_NOT_FOUND)):
        for topic in (name, "no-such-topic", ""):
            answer = await delete(client, group_id, topic, 0)
            assert (answer.error_code, answer.topics) == (expected, [])


async def test_offsets_of_members_that_say_nothing_brokers_understand(
    client: RawClient, new: New, group: str, name: str
) -> None:
    one = await new()
    await one.enter()
    answer = await delete(client, group, name, 0)
    assert (answer.error_code, answer.topics) == (ErrorCode.NON_EMPTY_GROUP, [])
    await one.sync()
    assert (await delete(client, group, name, 0)).error_code == ErrorCode.NON_EMPTY_GROUP


async def test_offsets_of_topics_that_consumers_read_stay(
    client: RawClient, kafka: Kafka, new: New, group: str, name: str
) -> None:
    other = (await kafka.topic()).name or ""
    one = await new(protocol_type="consumer", protocols=[("range", subscription(name))])
    await one.settle()
    for topic in (name, other):
        await commit(client, group, {topic: [offset(0, 1)]}, generation=1, member=one.member_id)
    assert deleted(await delete(client, group, name, 0, 8)) == [
        (8, "UNKNOWN_TOPIC_OR_PARTITION"),
        (0, "GROUP_SUBSCRIBED_TO_TOPIC"),
    ]
    assert deleted(await delete(client, group, other, 0)) == [(0, "NONE")]
    assert set(await fetch(client, group)) == {(name, 0)}
    await one.leave()
    assert deleted(await delete(client, group, name, 0)) == [(0, "NONE")]
    assert await fetch(client, group) == {}


async def test_consumers_that_cannot_be_understood_may_read_everything(
    client: RawClient, new: New, group: str, name: str
) -> None:
    one = await new(protocol_type="consumer", protocols=protocols("range", metadata=b"\0"))
    await one.settle()
    assert deleted(await delete(client, group, name, 0)) == [(0, "GROUP_SUBSCRIBED_TO_TOPIC")]


async def test_a_deleted_topic_s_offsets_are_gone(client: RawClient, kafka: Kafka, group: str, name: str) -> None:
    other = (await kafka.topic()).name or ""
    await commit(client, group, {name: [offset(0, 1)], other: [offset(0, 2)]})
    await client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=5000), 5)
    with anyio.fail_after(PATIENCE):
        while (name, 0) in await fetch(client, group):
            pass
    assert set(await fetch(client, group)) == {(other, 0)}
    assert (await described(client, group)).group_state == "Empty"
