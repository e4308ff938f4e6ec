"""An error answer for any request in any version: it can be written, and the error is where brokers put it."""

from __future__ import annotations

from typing import Any

import pytest
from support.vectors import vectors

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.message_registry import FAMILIES, request_of
from aiokafkawire.protocol.messages.fetch import FetchPartition as AskedPartition
from aiokafkawire.protocol.messages.fetch import FetchRequest, FetchResponse, FetchTopic
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest, FindCoordinatorResponse, JoinGroupRequest
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from aiokafkawire.protocol.primitives import ZERO_UUID, WireType
from aiokafkawire.protocol.schema import Request, Response, schema_of
from aiokafkawire.testing.faults.error_responses import error_places, merge, refusal

VERSIONS = [
    (key, version)
    for key in FAMILIES
    for version in range(request_of(key).versions.first, request_of(key).versions.last + 1)
]
VALUES: dict[WireType, Any] = {
    WireType.BOOL: True,
    WireType.FLOAT64: 1.0,
    WireType.UUID: ZERO_UUID,
    WireType.STRING: "a",
    WireType.BYTES: b"x",
    WireType.RECORDS: b"x",
}


def filled(cls: type[Any], version: int, elements: int) -> Any:
    """A message with so many elements in each array, told apart by their numbers and names."""
    values = {}
    for field in schema_of(cls).fields:
        if version not in field.versions:
            continue
        made = []
        for number in range(elements if field.array else 1):
            if isinstance(field.kind, type):
                one = filled(field.kind, version, elements)
                named = [inner for inner in schema_of(field.kind).fields if version in inner.versions]
                for inner in named:
                    if not inner.array and inner.kind in (WireType.STRING, WireType.INT32):
                        setattr(one, inner.name, f"a{number}" if inner.kind is WireType.STRING else number)
                made.append(one)
            else:
                value = VALUES.get(field.kind, number)
                made.append(f"a{number}" if isinstance(value, str) and field.array else value)
        values[field.name] = made if field.array else made[0]
    return cls(**values)


def read_back(request: Request[Any], version: int, error: ErrorCode) -> Response:
    """The answer with this error, after a way over the wire."""
    cls = type(request).response
    return decode(cls, version, encode(refusal(request, version, error), version))


def codes(answer: Response, version: int) -> list[int]:
    return [getattr(place.struct, place.field) for place in error_places(answer, version)]


@pytest.mark.parametrize("elements", [0, 1, 2])
@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_every_api_in_every_version_can_fail(elements: int, error: ErrorCode) -> None:
    for key, version in VERSIONS:
        request = filled(request_of(key), version, elements)
        found = codes(read_back(request, version, error), version)
        assert error in found, (key, version)
        if error is ErrorCode.NOT_CONTROLLER and key not in (ApiKey.FETCH, ApiKey.METADATA):
            assert set(found) == {error}, (key, version)


def test_every_request_that_kafka_wrote_can_fail() -> None:
    seen = set()
    for vector in vectors("request"):
        name, version = vector["name"], vector["version"]
        cls = next(cls for cls in map(request_of, FAMILIES) if cls.__name__ == name)
        request = decode(cls, version, bytes.fromhex(vector["hex"]))
        assert ErrorCode.UNKNOWN_SERVER_ERROR in codes(
            read_back(request, version, ErrorCode.UNKNOWN_SERVER_ERROR), version
        )
        seen.add((cls.api_key, version))
    assert seen == set(VERSIONS)


MIRRORED = [
    (ApiKey.PRODUCE, {13: "topic_id", 12: "name"}, "responses", "partition_responses", "index"),
    (ApiKey.FETCH, {18: "topic_id", 12: "topic"}, "responses", "partitions", "partition_index"),
    (ApiKey.LIST_OFFSETS, {11: "name", 1: "name"}, "topics", "partitions", "partition_index"),
    (ApiKey.OFFSET_COMMIT, {9: "name", 2: "name"}, "topics", "partitions", "partition_index"),
    (ApiKey.OFFSET_FETCH, {1: "name", 7: "name"}, "topics", "partitions", "partition_index"),
    (ApiKey.TXN_OFFSET_COMMIT, {5: "name", 0: "name"}, "topics", "partitions", "partition_index"),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, {4: "topic"}, "topics", "partitions", "partition"),
    (ApiKey.DELETE_RECORDS, {2: "name"}, "topics", "partitions", "partition_index"),
    (ApiKey.ELECT_LEADERS, {2: "topic"}, "replica_election_results", "partition_result", "partition_id"),
    (ApiKey.DESCRIBE_PRODUCERS, {0: "name"}, "topics", "partitions", "partition_index"),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, {2: "topic_name"}, "results", "partitions", "partition_index"),
    (ApiKey.OFFSET_DELETE, {0: "name"}, "topics", "partitions", "partition_index"),
    (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        {3: "name"},
        "results_by_topic_v3_and_below",
        "results_by_partition",
        "partition_index",
    ),
]


@pytest.mark.parametrize(("key", "names", "outer", "inner", "index"), MIRRORED)
def test_partitions_fail_under_the_names_that_the_request_gave(
    key: ApiKey, names: dict[int, str], outer: str, inner: str, index: str
) -> None:
    for version, name in names.items():
        answer = read_back(filled(request_of(key), version, 2), version, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        topics = getattr(answer, outer)
        if name != "topic_id":
            assert [getattr(topic, name) for topic in topics] == ["a0", "a1"]
        assert [getattr(partition, index) for partition in getattr(topics[0], inner)] == [0, 1]
        deepest = [codes(topic, version) for topic in topics]
        assert deepest == [[ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2] * len(topics)


NAMED = [
    (ApiKey.METADATA, 12, "topics", "name"),
    (ApiKey.CREATE_TOPICS, 7, "topics", "name"),
    (ApiKey.DELETE_TOPICS, 5, "responses", "name"),
    (ApiKey.DELETE_TOPICS, 6, "responses", "name"),
    (ApiKey.CREATE_PARTITIONS, 3, "results", "name"),
    (ApiKey.FIND_COORDINATOR, 6, "coordinators", "key"),
    (ApiKey.DESCRIBE_GROUPS, 5, "groups", "group_id"),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, 1, "groups", "group_id"),
    (ApiKey.DELETE_GROUPS, 2, "results", "group_id"),
    (ApiKey.LEAVE_GROUP, 5, "members", "member_id"),
    (ApiKey.OFFSET_FETCH, 9, "groups", "group_id"),
    (ApiKey.DESCRIBE_TRANSACTIONS, 0, "transaction_states", "transactional_id"),
    (ApiKey.ADD_PARTITIONS_TO_TXN, 5, "results_by_transaction", "transactional_id"),
    (ApiKey.DESCRIBE_CONFIGS, 4, "results", "resource_name"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, "responses", "resource_name"),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, "results", "user"),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, "results", "user"),
    (ApiKey.UPDATE_FEATURES, 1, "results", "feature"),
]


@pytest.mark.parametrize(("key", "version", "array", "name"), NAMED)
def test_each_of_several_is_answered_by_name(key: ApiKey, version: int, array: str, name: str) -> None:
    answer = read_back(filled(request_of(key), version, 2), version, ErrorCode.NOT_CONTROLLER)
    assert [getattr(one, name) for one in getattr(answer, array)] == ["a0", "a1"]


def test_results_without_names_are_as_many_as_were_asked_for() -> None:
    for key, array in ((ApiKey.CREATE_ACLS, "results"), (ApiKey.DELETE_ACLS, "filter_results")):
        answer = read_back(filled(request_of(key), 3, 2), 3, ErrorCode.SECURITY_DISABLED)
        assert [one.error_code for one in getattr(answer, array)] == [ErrorCode.SECURITY_DISABLED] * 2


def fetch(*topics: str) -> FetchRequest:
    asked = [
        FetchTopic(topic=one, partitions=[AskedPartition(partition=0, fetch_offset=0, partition_max_bytes=9)])
        for one in topics
    ]
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=asked)


@pytest.mark.parametrize(
    ("error", "whole"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, False),
        (ErrorCode.KAFKA_STORAGE_ERROR, False),
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, True),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, True),
    ],
)
def test_a_fetch_fails_as_a_whole_for_its_session_alone(error: ErrorCode, whole: bool) -> None:
    answer = read_back(fetch("t"), 12, error)
    assert isinstance(answer, FetchResponse)
    (partition,) = answer.responses[0].partitions
    assert (answer.error_code, partition.error_code) == ((error, 0) if whole else (0, error))
    assert partition.high_watermark == -1


def test_metadata_fails_as_a_whole_for_rebootstrap_alone() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    for error in (ErrorCode.REBOOTSTRAP_REQUIRED, ErrorCode.LEADER_NOT_AVAILABLE):
        answer = read_back(request, 13, error)
        assert isinstance(answer, MetadataResponse)
        whole = error is ErrorCode.REBOOTSTRAP_REQUIRED
        assert (answer.error_code, answer.topics[0].error_code) == ((error, 0) if whole else (0, error))


def test_an_error_of_a_partition_stands_there_alone_and_one_of_the_group_everywhere() -> None:
    request = filled(request_of(ApiKey.OFFSET_FETCH), 9, 1)
    for error, whole in ((ErrorCode.UNSTABLE_OFFSET_COMMIT, 0), (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)):
        answer: Any = read_back(request, 9, error)
        (group,) = answer.groups
        assert (group.error_code, group.topics[0].partitions[0].error_code) == (whole, error)


def test_old_forms_put_the_error_where_they_have_it() -> None:
    for version in (3, 6):
        request = FindCoordinatorRequest(key="g") if version < 4 else FindCoordinatorRequest(coordinator_keys=["g"])
        answer = read_back(request, version, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert isinstance(answer, FindCoordinatorResponse)
        found = answer if version < 4 else answer.coordinators[0]
        assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


def test_the_rest_is_empty_or_as_the_request_said() -> None:
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="me", protocol_type="consumer", protocols=[]
    )
    for version, protocol in ((6, ""), (7, None)):
        answer: Any = read_back(request, version, ErrorCode.UNKNOWN_MEMBER_ID)
        assert (answer.member_id, answer.leader, answer.generation_id, answer.protocol_name) == ("me", "", -1, protocol)


def test_answers_are_joined_by_topic_and_partition() -> None:
    good, bad = refusal(fetch("a", "b"), 12, ErrorCode.NONE), refusal(fetch("b", "c"), 12, ErrorCode.CORRUPT_MESSAGE)
    merge(good, bad, 12)
    assert isinstance(good, FetchResponse)
    found = [(topic.topic, [one.error_code for one in topic.partitions]) for topic in good.responses]
    assert found == [("a", [0]), ("b", [2]), ("c", [2])]
