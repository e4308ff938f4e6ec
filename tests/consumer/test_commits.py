"""A group's offsets as messages, in every version that carries them."""

import pytest

from aiokafkawire import OffsetAndMetadata, TopicPartition, UsageError, WireError
from aiokafkawire.consumer.commits import (
    COMMIT_VERSIONS,
    Found,
    check_committed,
    check_fetched,
    commit_request,
    fetch_questions,
    fetched_offsets,
)
from aiokafkawire.errors import (
    BrokerError,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    UnstableOffsetCommit,
)
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from aiokafkawire.types import GroupMetadata, given_offsets

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
UNSTABLE, DENIED = 88, 29


def test_offsets_are_read_as_users_give_them() -> None:
    noted = OffsetAndMetadata(3, "noted", 1)
    assert given_offsets({A0: 7, ("b", 0): noted}) == {A0: OffsetAndMetadata(7), B0: noted}  # type: ignore[dict-item]
    with pytest.raises(UsageError, match=r"a-0 needs an offset.*got -1"):
        given_offsets({A0: -1})


def test_a_commit_names_each_topic_once_and_is_of_nobody_without_a_membership() -> None:
    offsets = {A0: OffsetAndMetadata(3), B0: OffsetAndMetadata(5, "note", 2), A1: OffsetAndMetadata(4)}
    request = commit_request(GroupMetadata("g"), offsets)
    found = [
        (topic.name, one.partition_index, one.committed_offset, one.committed_leader_epoch, one.committed_metadata)
        for topic in request.topics
        for one in topic.partitions
    ]
    assert found == [("a", 0, 3, -1, ""), ("a", 1, 4, -1, ""), ("b", 0, 5, 2, "note")]
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("g", -1, "")
    assert (request.group_instance_id, request.retention_time_ms) == (None, -1)
    member = commit_request(GroupMetadata("g", 4, "m", "i"), offsets)
    assert (member.generation_id_or_member_epoch, member.member_id, member.group_instance_id) == (4, "m", "i")


@pytest.mark.parametrize("version", range(COMMIT_VERSIONS.first, COMMIT_VERSIONS.last + 1))
def test_a_commit_goes_in_all_its_versions(version: int) -> None:
    assert encode(commit_request(GroupMetadata("g"), {A0: OffsetAndMetadata(3, "", 2)}), version)


@pytest.mark.parametrize("number", range(3))
def test_a_question_goes_in_all_its_versions(number: int) -> None:
    request, wanted = fetch_questions("g", [A0, B0, A1])[number]
    for version in range(wanted.first, wanted.last + 1):
        assert encode(request, version)
    assert request.require_stable == (wanted.last >= 7)
    topics = request.groups[0].topics if request.groups else request.topics
    assert topics is not None
    assert [(topic.name, topic.partition_indexes) for topic in topics] == [("a", [0, 1]), ("b", [0])]


# --- answers -------------------------------------------------------------------------------------------------------


def committed(**codes: int) -> OffsetCommitResponse:
    partitions = [OffsetCommitResponsePartition(partition_index=int(n[1:]), error_code=c) for n, c in codes.items()]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="a", partitions=partitions)])


def test_a_commit_has_failed_if_one_partition_has() -> None:
    check_committed("g", [A0, A1], committed(a0=0, a1=0))
    # First of all what no retry mends.
    with pytest.raises(TopicAuthorizationFailed, match="OffsetCommit of a-1 for group 'g'"):
        check_committed("g", [A0, A1], committed(a0=UNSTABLE, a1=DENIED))
    with pytest.raises(WireError, match="lacks a-1"):
        check_committed("g", [A0, A1], committed(a0=0))


def new_answer(code: int = 0, group: str = "g", **offsets: tuple[int, int]) -> OffsetFetchResponse:
    partitions = [
        OffsetFetchResponsePartitions(
            partition_index=int(name[1:]), committed_offset=offset, metadata=None, error_code=error
        )
        for name, (offset, error) in offsets.items()
    ]
    topics = [OffsetFetchResponseTopics(name="a", partitions=partitions)]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id=group, topics=topics, error_code=code)])


def test_an_answer_of_the_new_form() -> None:
    found = fetched_offsets("g", [A0, A1], new_answer(a0=(5, 0), a1=(-1, 0)))
    assert found == {A0: OffsetAndMetadata(5), A1: None}
    with pytest.raises(GroupAuthorizationFailed, match="OffsetFetch of group 'g'"):
        fetched_offsets("g", [A0], new_answer(30))
    with pytest.raises(WireError, match="lacks group 'g'"):
        fetched_offsets("g", [A0], new_answer(group="other"))
    with pytest.raises(WireError, match="lacks a-1"):
        fetched_offsets("g", [A0, A1], new_answer(a0=(5, 0)))


def test_an_answer_of_the_old_form() -> None:
    partition = OffsetFetchResponsePartition(
        partition_index=0, committed_offset=5, committed_leader_epoch=3, metadata="noted", error_code=0
    )
    response = OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="a", partitions=[partition])])
    assert fetched_offsets("g", [A0], response) == {A0: OffsetAndMetadata(5, "noted", 3)}
    with pytest.raises(GroupAuthorizationFailed):
        fetched_offsets("g", [A0], OffsetFetchResponse(error_code=30))


def test_what_holds_an_error_is_refused_or_only_what_holds_nothing_else() -> None:
    found = fetched_offsets("g", [A0, A1], new_answer(a0=(5, UNSTABLE), a1=(7, 0)))
    assert isinstance(found[A0], UnstableOffsetCommit)
    assert found[A1] == OffsetAndMetadata(7)
    check_fetched(found, partly=True)
    with pytest.raises(UnstableOffsetCommit, match="OffsetFetch of a-0 for group 'g'"):
        check_fetched(found)
    failed: Found = fetched_offsets("g", [A0, A1], new_answer(a0=(5, UNSTABLE), a1=(7, DENIED)))
    for partly in (True, False):
        with pytest.raises(TopicAuthorizationFailed):
            check_fetched(failed, partly=partly)
    assert all(isinstance(one, BrokerError) for one in failed.values())
