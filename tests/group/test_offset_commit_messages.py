"""Commits of a group's offsets as messages, in every version that carries them."""

import pytest

from aiokafkawire import OffsetAndMetadata, TopicPartition, UsageError, WireError
from aiokafkawire.errors import TopicAuthorizationFailed
from aiokafkawire.group.offset_commit_messages import (
    IN_ZOOKEEPER,
    TopicIdsOutdated,
    check_committed,
    commit_request,
    commit_versions,
    goes_to_zookeeper,
)
from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.types import GroupMetadata, normalize_offsets

from .ids import A_ID, B_ID, UNKNOWN_ID

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
UNSTABLE, DENIED = 88, 29
IDS = {"a": A_ID, "b": B_ID}
NOBODY, MEMBER, STATIC = GroupMetadata("g"), GroupMetadata("g", 4, "m"), GroupMetadata("g", 4, "m", "i")


def test_offsets_are_read_as_users_give_them() -> None:
    noted = OffsetAndMetadata(3, "noted", 1)
    assert normalize_offsets({A0: 7, ("b", 0): noted}) == {A0: OffsetAndMetadata(7), B0: noted}
    with pytest.raises(UsageError, match=r"offset to commit for a-0 must be an offset.*got -1"):
        normalize_offsets({A0: -1})


def test_a_commit_names_each_topic_once_and_is_of_nobody_without_a_membership() -> None:
    offsets = {A0: OffsetAndMetadata(3), B0: OffsetAndMetadata(5, "note", 2), A1: OffsetAndMetadata(4)}
    request = commit_request(NOBODY, offsets)
    found = [
        (topic.name, one.partition_index, one.committed_offset, one.committed_leader_epoch, one.committed_metadata)
        for topic in request.topics
        for one in topic.partitions
    ]
    assert found == [("a", 0, 3, -1, ""), ("a", 1, 4, -1, ""), ("b", 0, 5, 2, "note")]
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("g", -1, "")
    assert (request.group_instance_id, request.retention_time_ms) == (None, -1)
    assert {topic.topic_id for topic in request.topics} == {ZERO_UUID}
    member = commit_request(STATIC, offsets, IDS, 5_000)
    assert (member.generation_id_or_member_epoch, member.member_id, member.group_instance_id) == (4, "m", "i")
    assert [(topic.name, topic.topic_id) for topic in member.topics] == [("a", A_ID), ("b", B_ID)]
    assert member.retention_time_ms == 5_000


@pytest.mark.parametrize(
    ("group", "by_id", "retention_ms", "versions"),
    [
        (NOBODY, False, None, "1-9"),
        (NOBODY, True, None, "1-10"),
        (MEMBER, True, None, "1-10"),
        (STATIC, False, None, "7-9"),
        (STATIC, True, None, "7-10"),
        (NOBODY, True, 0, "2-4"),
        (MEMBER, False, 60_000, "2-4"),
    ],
)
def test_a_commit_goes_in_all_its_versions(
    group: GroupMetadata, by_id: bool, retention_ms: int | None, versions: str
) -> None:
    wanted = commit_versions(group, by_id=by_id, retention_ms=retention_ms)
    assert wanted == Versions.parse(versions)
    request = commit_request(group, {A0: OffsetAndMetadata(3, "", 2)}, IDS if by_id else None, retention_ms)
    for version in range(wanted.first, wanted.last + 1):
        told = decode(OffsetCommitRequest, version, encode(request, version))
        (topic,) = told.topics
        assert (topic.topic_id == A_ID) if version == 10 else (topic.name == "a")
        assert told.retention_time_ms == (-1 if retention_ms is None else retention_ms)
        assert told.generation_id_or_member_epoch == group.generation_id


def test_what_no_version_carries_is_refused() -> None:
    with pytest.raises(UsageError, match="a static member cannot set retention_ms: only OffsetCommit v2-4 have it"):
        commit_versions(STATIC, retention_ms=1)
    for wrong in (-1, True, 1.5, "1"):
        with pytest.raises(UsageError, match="retention_ms must be a non-negative integer, got"):
            commit_versions(NOBODY, retention_ms=wrong)  # type: ignore[arg-type]


def test_only_what_knows_no_members_and_no_retention_goes_to_zookeeper() -> None:
    assert goes_to_zookeeper(NOBODY, None)
    assert not goes_to_zookeeper(NOBODY, 1)
    assert not goes_to_zookeeper(MEMBER, None)
    assert not goes_to_zookeeper(GroupMetadata("g", group_instance_id="i"), None)
    assert encode(commit_request(NOBODY, {A0: OffsetAndMetadata(3, "", 2)}), IN_ZOOKEEPER.first)


# --- answers -------------------------------------------------------------------------------------------------------


def committed(name: str = "a", topic_id: object = ZERO_UUID, **codes: int) -> OffsetCommitResponse:
    partitions = [OffsetCommitResponsePartition(partition_index=int(n[1:]), error_code=c) for n, c in codes.items()]
    topic = OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=partitions)  # type: ignore[arg-type]
    return OffsetCommitResponse(topics=[topic])


def test_a_commit_has_failed_if_one_partition_has() -> None:
    check_committed("g", [A0, A1], committed(a0=0, a1=0))
    # First of all what no retry mends.
    with pytest.raises(TopicAuthorizationFailed, match="OffsetCommit of a-1 for group 'g'"):
        check_committed("g", [A0, A1], committed(a0=UNSTABLE, a1=DENIED))
    with pytest.raises(WireError, match="lacks a-1"):
        check_committed("g", [A0, A1], committed(a0=0))


def test_an_answer_by_ids() -> None:
    check_committed("g", [A0], committed("", A_ID, a0=0), IDS)
    with pytest.raises(TopicAuthorizationFailed, match="OffsetCommit of a-0"):
        check_committed("g", [A0], committed("", A_ID, a0=DENIED), IDS)
    with pytest.raises(
        TopicIdsOutdated, match="OffsetCommit of a-0 for group 'g': the coordinator does not know its topic id"
    ):
        check_committed("g", [A0], committed("", A_ID, a0=UNKNOWN_ID), IDS)
    with pytest.raises(WireError, match="lacks a-0"):
        check_committed("g", [A0], committed("", B_ID, a0=0), IDS)
