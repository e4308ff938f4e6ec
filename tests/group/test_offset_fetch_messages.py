"""Lookups of what groups have committed as messages, in every version that carries them."""

from uuid import UUID

import pytest

from aiokafkawire import GroupMetadata, OffsetAndMetadata, TopicPartition, WireError
from aiokafkawire.errors import (
    BrokerError,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    UnstableOffsetCommit,
)
from aiokafkawire.group.offset_commit_messages import IN_ZOOKEEPER, TopicIdsOutdated
from aiokafkawire.group.offset_fetch_messages import (
    Found,
    all_fetched,
    check_fetched,
    fetch_forms,
    fetched_offsets,
    groups_fetched,
    groups_question,
    only_committed,
    zookeeper_offsets,
    zookeeper_question,
)
from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.protocol.schema import Versions

from .ids import A_ID, B_ID, UNKNOWN_ID

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
UNSTABLE, DENIED, UNKNOWN_PARTITION, NOT_COORDINATOR = 88, 29, 3, 16
IDS = {"a": A_ID, "b": B_ID}
SOME = [A0, B0, A1]


def test_a_member_of_a_consumer_group_is_named_in_the_newest_form_only() -> None:
    for newest, *older in (
        fetch_forms("g", SOME, IDS, member=GroupMetadata("g", 7, "m")),
        fetch_forms("g", SOME, stable=False, member=GroupMetadata("g", 7, "m")),
    ):
        assert isinstance(newest.request, OffsetFetchRequest)
        (group,) = newest.request.groups
        assert (group.member_id, group.member_epoch) == ("m", 7)
        sent = decode(OffsetFetchRequest, 9, encode(newest.request, 9))
        assert (sent.groups[0].member_id, sent.groups[0].member_epoch) == ("m", 7)
        assert decode(OffsetFetchRequest, 8, encode(newest.request, 8)).groups[0].member_id is None
        assert all(not form.request.groups for form in older if isinstance(form.request, OffsetFetchRequest))
    ((outsider, _), *_) = fetch_forms("g", SOME)
    assert isinstance(outsider, OffsetFetchRequest)
    assert (outsider.groups[0].member_id, outsider.groups[0].member_epoch) == (None, -1)


@pytest.mark.parametrize(
    ("partitions", "ids", "stable", "wanted"),
    [
        (SOME, None, True, ["8-9", "7", "1-6"]),
        (SOME, IDS, True, ["8-10", "7", "1-6"]),
        (SOME, IDS, False, ["8-10", "1-7"]),
        (None, None, True, ["8-9", "7", "2-6"]),  # KIP-88
        (None, None, False, ["8-9", "2-7"]),
    ],
)
def test_questions_go_in_all_their_versions(
    partitions: list[TopicPartition] | None, ids: dict[str, UUID] | None, stable: bool, wanted: list[str]
) -> None:
    forms = fetch_forms("g", partitions, ids, stable=stable)
    assert [form.wanted for form in forms] == [Versions.parse(one) for one in wanted]
    for request, versions in forms:
        assert isinstance(request, OffsetFetchRequest)
        assert request.require_stable == (stable and versions.last >= 7)
        for version in range(versions.first, versions.last + 1):
            told = decode(OffsetFetchRequest, version, encode(request, version))
            group = told.groups[0] if version >= 8 else told
            assert group.group_id == "g"
            if partitions is None:
                assert group.topics is None
                continue
            assert group.topics is not None
            names = {A_ID: "a", B_ID: "b"}
            asked = [
                (names[topic.topic_id] if version == 10 else topic.name, topic.partition_indexes)  # type: ignore[union-attr]
                for topic in group.topics
            ]
            assert asked == [("a", [0, 1]), ("b", [0])]


def test_several_groups_are_one_question() -> None:
    request, wanted = groups_question(["g", "h"], stable=True)
    assert wanted == Versions.parse("8-9")
    assert isinstance(request, OffsetFetchRequest)
    assert request.require_stable
    assert [(group.group_id, group.topics) for group in request.groups] == [("g", None), ("h", None)]


def test_zookeeper_is_asked_by_name() -> None:
    told = decode(OffsetFetchRequest, 0, encode(zookeeper_question("g", SOME), IN_ZOOKEEPER.first))
    assert [(topic.name, topic.partition_indexes) for topic in told.topics or ()] == [("a", [0, 1]), ("b", [0])]


# --- answers -------------------------------------------------------------------------------------------------------


def of_group(
    code: int = 0, group: str = "g", topic_id: UUID = ZERO_UUID, **offsets: tuple[int, int]
) -> OffsetFetchResponseGroup:
    partitions = [
        OffsetFetchResponsePartitions(
            partition_index=int(name[1:]), committed_offset=offset, metadata=None, error_code=error
        )
        for name, (offset, error) in offsets.items()
    ]
    name = "a" if topic_id == ZERO_UUID else ""
    topics = [OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions)]
    return OffsetFetchResponseGroup(group_id=group, topics=topics, error_code=code)


def new_answer(
    code: int = 0, group: str = "g", topic_id: UUID = ZERO_UUID, **offsets: tuple[int, int]
) -> OffsetFetchResponse:
    return OffsetFetchResponse(groups=[of_group(code, group, topic_id, **offsets)])


def old_answer(code: int = 0, **offsets: tuple[int, int]) -> OffsetFetchResponse:
    partitions = [
        OffsetFetchResponsePartition(
            partition_index=int(name[1:]),
            committed_offset=offset,
            committed_leader_epoch=3,
            metadata="noted",
            error_code=error,
        )
        for name, (offset, error) in offsets.items()
    ]
    topics = [OffsetFetchResponseTopic(name="a", partitions=partitions)]
    return OffsetFetchResponse(topics=topics, error_code=code)


def test_an_answer_of_the_new_form() -> None:
    found = fetched_offsets("g", [A0, A1], new_answer(a0=(5, 0), a1=(-1, 0)))
    assert found == {A0: OffsetAndMetadata(5), A1: None}
    assert only_committed(found) == {A0: OffsetAndMetadata(5)}
    with pytest.raises(GroupAuthorizationFailed, match="OffsetFetch of group 'g'"):
        fetched_offsets("g", [A0], new_answer(30))
    with pytest.raises(WireError, match="lacks group 'g'"):
        fetched_offsets("g", [A0], new_answer(group="other"))
    with pytest.raises(WireError, match="lacks a-1"):
        fetched_offsets("g", [A0, A1], new_answer(a0=(5, 0)))


def test_an_answer_by_ids() -> None:
    assert fetched_offsets("g", [A0], new_answer(topic_id=A_ID, a0=(5, 0)), IDS) == {A0: OffsetAndMetadata(5)}
    with pytest.raises(
        TopicIdsOutdated, match="OffsetFetch of a-0 for group 'g': the coordinator does not know its topic id"
    ):
        fetched_offsets("g", [A0], new_answer(topic_id=A_ID, a0=(-1, UNKNOWN_ID)), IDS)
    with pytest.raises(WireError, match="lacks a-0"):
        fetched_offsets("g", [A0], new_answer(topic_id=B_ID, a0=(5, 0)), IDS)


def test_an_answer_of_the_old_form() -> None:
    found = {A0: OffsetAndMetadata(5, "noted", 3)}
    assert fetched_offsets("g", [A0], old_answer(a0=(5, 0))) == found
    assert all_fetched("g", old_answer(a0=(5, 0), a1=(-1, 0))) == {**found, A1: None}
    assert all_fetched("g", OffsetFetchResponse()) == {}
    with pytest.raises(GroupAuthorizationFailed):
        fetched_offsets("g", [A0], old_answer(30))


def test_zookeeper_says_that_a_partition_is_unknown_where_nothing_is_committed() -> None:
    answer = old_answer(a0=(5, 0), a1=(-1, UNKNOWN_PARTITION))
    assert zookeeper_offsets("g", [A0, A1], answer) == {A0: OffsetAndMetadata(5, "noted", 3), A1: None}
    found = zookeeper_offsets("g", [A0], old_answer(a0=(-1, DENIED)))
    assert isinstance(found[A0], TopicAuthorizationFailed)


def test_of_several_groups_those_without_an_error_are_taken() -> None:
    groups = [
        of_group(group="g", a0=(5, 0), a1=(-1, 0)),
        of_group(NOT_COORDINATOR, group="moved"),
        of_group(group="unstable", a0=(-1, UNSTABLE)),
    ]
    assert groups_fetched(OffsetFetchResponse(groups=groups)) == {"g": {A0: OffsetAndMetadata(5), A1: None}}


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
