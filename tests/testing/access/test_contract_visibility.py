"""What clients without some rights see, and what ACLs mean, as Apache Kafka with its StandardAuthorizer has it."""

from __future__ import annotations

from secrets import token_hex
from typing import Any
from uuid import uuid4

import anyio
import anyio.lowlevel
import pytest
from support.authorizing import Authorizing, Names
from support.kafka_releases import number_of
from support.made import made
from support.patience import PATIENCE
from support.raw_client import RawClient, batch_of, produce_request

from aiokafkawire import AclBinding, AclOperation, AclPermissionType, Client, PatternType, ResourcePattern, ResourceType
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from aiokafkawire.protocol.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest
from aiokafkawire.protocol.messages.group_offsets import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from aiokafkawire.protocol.messages.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
)
from aiokafkawire.protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest
from aiokafkawire.protocol.messages.transaction_admin import ListTransactionsRequest
from aiokafkawire.protocol.messages.transactions import AddPartitionsToTxnRequest, InitProducerIdRequest
from aiokafkawire.protocol.primitives import ZERO_UUID

pytestmark = pytest.mark.anyio

ALL, READ, WRITE, CREATE = AclOperation.ALL, AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE
DELETE, ALTER, DESCRIBE = AclOperation.DELETE, AclOperation.ALTER, AclOperation.DESCRIBE
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
EVERYTHING = {READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS}
NO_OPERATIONS = -(2**31)
HIDDEN = "The group has described topic(s) that the client is not authorized to describe."


def operations(bits: int) -> set[AclOperation]:
    return {operation for operation in AclOperation if bits >> operation & 1}


async def described(client: RawClient, *topics: str) -> dict[str, tuple[int, set[AclOperation] | None]]:
    """The error of each topic, and what the client may do with it."""
    request = made(
        MetadataRequest,
        topics=[{"name": topic} for topic in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    found = {}
    for topic in (await client.ask(request, 12)).topics:
        bits = topic.topic_authorized_operations
        found[topic.name or ""] = (topic.error_code, None if bits == NO_OPERATIONS else operations(bits))
    return found


# Each is a name ("topic", its beginning, or "*"), its type, the operation, the permission, the
# host, and whether the ACL is for everyone.
Given = tuple[str, PatternType, AclOperation, AclPermissionType, str, bool]


def acl(
    operation: AclOperation,
    permission: AclPermissionType = ALLOW,
    *,
    name: str = "topic",
    kind: PatternType = PatternType.LITERAL,
    host: str = "*",
    everyone: bool = False,
) -> Given:
    return name, kind, operation, permission, host, everyone


PREFIXED = PatternType.PREFIXED
MEANINGS: list[tuple[str, list[Given], set[AclOperation]]] = [
    ("read", [acl(READ)], {READ, DESCRIBE}),
    ("write", [acl(WRITE)], {WRITE, DESCRIBE}),
    ("delete", [acl(DELETE)], {DELETE, DESCRIBE}),
    ("alter", [acl(ALTER)], {ALTER, DESCRIBE}),
    ("describe", [acl(DESCRIBE)], {DESCRIBE}),
    ("alter-configs", [acl(ALTER_CONFIGS), acl(DESCRIBE)], {ALTER_CONFIGS, DESCRIBE_CONFIGS, DESCRIBE}),
    ("create-is-not-describe", [acl(CREATE)], set()),
    ("all", [acl(ALL)], EVERYTHING),
    ("denial-of-one", [acl(ALL), acl(WRITE, DENY)], EVERYTHING - {WRITE}),
    ("denial-of-read-leaves-describe", [acl(READ), acl(WRITE), acl(READ, DENY)], {WRITE, DESCRIBE}),
    ("denial-of-describe", [acl(READ), acl(DESCRIBE, DENY)], set()),
    ("denial-of-all", [acl(ALL), acl(ALL, DENY)], set()),
    ("prefix", [acl(READ, name="top", kind=PREFIXED)], {READ, DESCRIBE}),
    ("whole-name-as-prefix", [acl(READ, kind=PREFIXED)], {READ, DESCRIBE}),
    ("literal-beginning", [acl(READ, name="top")], set()),
    ("star", [acl(READ, name="*")], {READ, DESCRIBE}),
    ("star-as-prefix-is-no-star", [acl(READ, name="*", kind=PREFIXED)], set()),
    ("denial-by-prefix", [acl(ALL), acl(WRITE, DENY, name="top", kind=PREFIXED)], EVERYTHING - {WRITE}),
    ("denial-by-star", [acl(ALL), acl(WRITE, DENY, name="*")], EVERYTHING - {WRITE}),
    ("this-host", [acl(READ, host="127.0.0.1")], {READ, DESCRIBE}),
    ("another-host", [acl(READ, host="198.51.100.1")], set()),
    ("denial-at-another-host", [acl(READ), acl(READ, DENY, host="198.51.100.1")], {READ, DESCRIBE}),
    ("everyone", [acl(READ, everyone=True)], {READ, DESCRIBE}),
    ("everyone-but-one", [acl(ALL, everyone=True), acl(WRITE, DENY)], EVERYTHING - {WRITE}),
]


@pytest.mark.parametrize(("given", "allowed"), [pytest.param(*rest, id=name) for name, *rest in MEANINGS])
async def test_what_acls_allow(
    guarded: Authorizing, admin: Client, names: Names, given: list[Given], allowed: set[AclOperation]
) -> None:
    user = guarded.new_user()
    acls = [
        AclBinding(
            ResourcePattern(ResourceType.TOPIC, name if name == "*" else _beginning(names.topic, name), kind),
            # Only a topic of this test may be for everyone.
            "User:*" if everyone else f"User:{user}",
            operation,
            permission,
            host,
        )
        for name, kind, operation, permission, host, everyone in given
    ]
    await guarded.grant(admin, *acls)
    async with guarded.raw(user) as client:
        error, found = (await described(client, names.topic))[names.topic]
    await guarded.revoke(admin, *acls)  # some are for everyone
    if DESCRIBE in allowed:
        assert (error, found) == (0, allowed)
    else:
        assert (error, found) == (REFUSED, None)


def _beginning(topic: str, name: str) -> str:
    return topic if name == "topic" else topic[:-3]


async def test_topics_that_one_may_not_describe_are_not_told_from_missing_ones(
    guarded: Authorizing, admin: Client, names: Names
) -> None:
    user, missing = guarded.new_user(), f"missing-{token_hex(6)}"
    async with guarded.raw(user) as client:
        assert set((await described(client, names.topic, missing)).values()) == {(REFUSED, None)}
        every = await client.ask(MetadataRequest(topics=None), 12)
        assert every.topics == []
        assert every.brokers
        assert (await client.ask(MetadataRequest(topics=[]), 0)).topics == []
        by_id = made(MetadataRequest, topics=[{"name": None, "topic_id": names.topic_id}])
        (topic,) = (await client.ask(by_id, 12)).topics
        assert (topic.error_code, topic.name, topic.topic_id) == (REFUSED, None, names.topic_id)
        (unnamed,) = (await client.ask(made(MetadataRequest, topics=[{"name": names.topic}]), 12)).topics
        assert (unnamed.error_code, unnamed.topic_id) == (REFUSED, ZERO_UUID)
        pages = await client.ask(made(DescribeTopicPartitionsRequest, topics=[]), 0)
        assert (pages.topics, pages.next_cursor) == ([], None)
        await guarded.grant(admin, AclBinding(names.pattern(ResourceType.TOPIC), f"User:{user}", DESCRIBE))
        every = await client.ask(MetadataRequest(topics=None), 12)
        assert [topic.name for topic in every.topics] == [names.topic]
        pages = await client.ask(made(DescribeTopicPartitionsRequest, topics=[]), 0)
        assert [topic.name for topic in pages.topics] == [names.topic]
        assert operations(pages.topics[0].topic_authorized_operations) == {DESCRIBE}


async def test_topics_are_created_by_metadata_only_for_those_who_may(
    guarded: Authorizing, admin: Client, names: Names
) -> None:
    user, missing = guarded.new_user(), f"missing-{token_hex(6)}"
    pattern = ResourcePattern.topic(missing)
    request = made(MetadataRequest, topics=[{"name": missing}], allow_auto_topic_creation=True)
    async with guarded.raw(user) as client:
        await guarded.grant(admin, AclBinding(pattern, f"User:{user}", DESCRIBE))
        assert [topic.error_code for topic in (await client.ask(request, 12)).topics] == [REFUSED]
        await guarded.grant(admin, AclBinding(pattern, f"User:{user}", CREATE))
        with anyio.fail_after(PATIENCE):
            while (await client.ask(request, 12)).topics[0].error_code:
                await anyio.lowlevel.checkpoint()


async def test_other_parts_of_a_request_are_handled(guarded: Authorizing, admin: Client, names: Names) -> None:
    user, other = guarded.new_user(), f"topic-{token_hex(6)}"
    await admin.admin.create_topics({other: 1})
    await guarded.grant(admin, AclBinding(names.pattern(ResourceType.TOPIC), f"User:{user}", WRITE))
    request = produce_request(names.topic, batch_of(b"v"))
    request.topic_data += produce_request(other, batch_of(b"v")).topic_data
    async with guarded.raw(user) as client:
        answer = await client.ask(request, 9)
        codes = {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}
        assert codes == {names.topic: 0, other: REFUSED}
        found = await described(client, names.topic, other)
        assert found == {names.topic: (0, {WRITE, DESCRIBE}), other: (REFUSED, None)}
        create = made(
            CreateTopicsRequest,
            topics=[{"name": one, "num_partitions": 1, "replication_factor": 1} for one in ("mine", "theirs")],
            validate_only=True,
        )
        await guarded.grant(admin, AclBinding(ResourcePattern.topic("mine"), f"User:{user}", CREATE))
        with anyio.fail_after(PATIENCE):
            while True:
                made_topics = {topic.name: topic for topic in (await client.ask(create, 7)).topics}
                if not made_topics["mine"].error_code:
                    break
                await anyio.lowlevel.checkpoint()
        assert made_topics["theirs"].error_code == REFUSED
        # Its settings are for those who may describe settings.
        mine = made_topics["mine"]
        assert (mine.topic_config_error_code, mine.num_partitions, mine.replication_factor) == (REFUSED, -1, -1)
        assert not mine.configs


async def test_a_refused_write_without_acknowledgement_ends_the_connection(guarded: Authorizing, names: Names) -> None:
    async with guarded.raw(guarded.new_user()) as client:
        await client.send(produce_request(names.topic, batch_of(b"v"), acks=0), 9)
        assert await client.is_cut_off()


async def test_a_topic_that_one_may_describe_and_not_delete_keeps_its_name(
    guarded: Authorizing, admin: Client, names: Names
) -> None:
    user = guarded.new_user()
    request = made(DeleteTopicsRequest, timeout_ms=10_000, topics=[{"name": None, "topic_id": names.topic_id}])
    async with guarded.raw(user) as client:
        (result,) = (await client.ask(request, 6)).responses
        assert (result.error_code, result.name, result.topic_id) == (REFUSED, None, names.topic_id)
        await guarded.grant(admin, AclBinding(names.pattern(ResourceType.TOPIC), f"User:{user}", DESCRIBE))
        with anyio.fail_after(PATIENCE):
            while (result := (await client.ask(request, 6)).responses[0]).name is None:
                await anyio.lowlevel.checkpoint()
        assert (result.error_code, result.name) == (REFUSED, names.topic)


async def test_groups_and_offsets_that_one_may_not_describe(guarded: Authorizing, admin: Client, names: Names) -> None:
    user, other = guarded.new_user(), f"topic-{token_hex(6)}"
    await admin.admin.create_topics({other: 1})
    async with guarded.raw("admin") as everyone:
        offsets = [{"name": one, "partitions": [{"committed_offset": 1}]} for one in (names.topic, other)]
        commit = made(OffsetCommitRequest, group_id=names.group, topics=offsets)
        with anyio.fail_after(PATIENCE):
            while any(one.error_code for topic in (await everyone.ask(commit, 8)).topics for one in topic.partitions):
                await anyio.lowlevel.checkpoint()
        listed = await everyone.ask(ListGroupsRequest(), 4)
        assert names.group in [group.group_id for group in listed.groups]
    async with guarded.raw(user) as client:
        assert (await client.ask(ListGroupsRequest(), 4)).groups == []
        await guarded.grant(
            admin,
            AclBinding(names.pattern(ResourceType.GROUP), f"User:{user}", READ),
            AclBinding(names.pattern(ResourceType.TOPIC), f"User:{user}", READ),
        )
        assert [group.group_id for group in (await client.ask(ListGroupsRequest(), 4)).groups] == [names.group]
        fetch = made(OffsetFetchRequest, groups=[{"group_id": names.group, "topics": None}])
        (group,) = (await client.ask(fetch, 8)).groups
        assert [topic.name for topic in group.topics] == [names.topic]
        old = await client.ask(made(OffsetFetchRequest, group_id=names.group, topics=None), 7)
        assert [topic.name for topic in old.topics] == [names.topic]
        wanted = [{"name": one, "partition_indexes": [0]} for one in (names.topic, other)]
        (group,) = (
            await client.ask(made(OffsetFetchRequest, groups=[{"group_id": names.group, "topics": wanted}]), 8)
        ).groups
        codes = {topic.name: topic.partitions[0].error_code for topic in group.topics}
        assert codes == {names.topic: 0, other: REFUSED}
        describe = made(DescribeGroupsRequest, groups=[names.group], include_authorized_operations=True)
        (found,) = (await client.ask(describe, 5)).groups
        assert operations(found.authorized_operations) == {READ, DESCRIBE}
        await guarded.grant(admin, AclBinding(names.pattern(ResourceType.GROUP), f"User:{user}", DELETE))
        partitions = [{"partition_index": 0}]
        forget = made(
            OffsetDeleteRequest,
            group_id=names.group,
            topics=[{"name": one, "partitions": partitions} for one in (names.topic, other)],
        )
        forgotten = {topic.name: topic.partitions[0].error_code for topic in (await client.ask(forget, 0)).topics}
        assert forgotten == {names.topic: 0, other: REFUSED}


async def test_a_regular_expression_finds_and_a_description_shows_topics_that_one_may_describe(
    guarded: Authorizing, admin: Client, names: Names, release: str | None
) -> None:
    if release is not None and number_of(release) < (4, 0):
        pytest.skip("the brokers know no regular expressions")
    user = guarded.new_user()
    await admin.admin.create_topics({f"{names.topic}-hidden": 1})
    await guarded.grant(
        admin,
        AclBinding(names.pattern(ResourceType.GROUP), f"User:{user}", READ),
        AclBinding(names.pattern(ResourceType.TOPIC), f"User:{user}", DESCRIBE),
    )
    member: dict[str, Any] = {"group_id": names.group, "member_id": str(uuid4())}
    subscribes = {"subscribed_topic_regex": f"{names.topic}.*", "rebalance_timeout_ms": 60_000, "topic_partitions": []}
    async with guarded.raw(user) as client:
        with anyio.fail_after(PATIENCE):
            while (
                joined := await client.ask(made(ConsumerGroupHeartbeatRequest, **member, **subscribes), 1)
            ).error_code:
                await anyio.lowlevel.checkpoint()
            found, epoch = joined.assignment, joined.member_epoch
            while found is None or not found.topic_partitions:
                await anyio.lowlevel.checkpoint()
                beat = await client.ask(made(ConsumerGroupHeartbeatRequest, **member, member_epoch=epoch), 1)
                found, epoch = beat.assignment or found, beat.member_epoch
        assert {assigned.topic_id for assigned in found.topic_partitions} == {names.topic_id}
        other = guarded.new_user()
        await guarded.grant(admin, AclBinding(names.pattern(ResourceType.GROUP), f"User:{other}", DESCRIBE))
        asks = made(ConsumerGroupDescribeRequest, group_ids=[names.group], include_authorized_operations=True)
        (whole,) = (await client.ask(asks, 1)).groups
        assert (whole.error_code, len(whole.members), operations(whole.authorized_operations)) == (
            0,
            1,
            {READ, DESCRIBE},
        )
        async with guarded.raw(other) as stranger:
            (hidden,) = (await stranger.ask(asks, 1)).groups
        assert (hidden.error_code, hidden.error_message, hidden.members) == (REFUSED, HIDDEN, [])
        assert (hidden.group_id, hidden.authorized_operations) == (names.group, NO_OPERATIONS)
        await client.ask(made(ConsumerGroupHeartbeatRequest, **member, member_epoch=-1), 1)


async def test_transactions_that_one_may_not_describe(guarded: Authorizing, admin: Client, names: Names) -> None:
    user = guarded.new_user()
    begin = made(InitProducerIdRequest, transactional_id=names.transactional_id, transaction_timeout_ms=60_000)
    async with guarded.raw("admin") as everyone:
        with anyio.fail_after(PATIENCE):
            while (began := await everyone.ask(begin, 4)).error_code:
                find = made(FindCoordinatorRequest, key_type=1, coordinator_keys=[names.transactional_id])
                await everyone.ask(find, 4)
    async with guarded.raw(user) as client:
        assert (
            await client.ask(ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 0)
        ).transaction_states == []
        await guarded.grant(admin, AclBinding(names.pattern(ResourceType.TRANSACTIONAL_ID), f"User:{user}", WRITE))
        listed = await client.ask(ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 0)
        assert [state.transactional_id for state in listed.transaction_states] == [names.transactional_id]
        # One refused topic keeps the others out of the transaction, too.
        other = f"topic-{token_hex(6)}"
        await admin.admin.create_topics({other: 1})
        await guarded.grant(admin, AclBinding(names.pattern(ResourceType.TOPIC), f"User:{user}", WRITE))
        add = made(
            AddPartitionsToTxnRequest,
            v3_and_below_transactional_id=names.transactional_id,
            v3_and_below_producer_id=began.producer_id,
            v3_and_below_producer_epoch=began.producer_epoch,
            v3_and_below_topics=[{"name": one, "partitions": [0]} for one in (names.topic, other)],
        )
        answer = await client.ask(add, 3)
        codes = {topic.name: _only(topic).partition_error_code for topic in answer.results_by_topic_v3_and_below}
        assert codes == {names.topic: ErrorCode.OPERATION_NOT_ATTEMPTED, other: REFUSED}


def _only(topic: Any) -> Any:
    (partition,) = topic.results_by_partition
    return partition


async def test_operations_on_the_cluster(guarded: Authorizing, admin: Client) -> None:
    user = guarded.new_user()
    asks = DescribeClusterRequest(include_cluster_authorized_operations=True)
    async with guarded.raw(user) as client:
        assert (await client.ask(asks, 1)).cluster_authorized_operations == 0
        await guarded.grant(admin, AclBinding(ResourcePattern.cluster(), f"User:{user}", ALTER))
        assert operations((await client.ask(asks, 1)).cluster_authorized_operations) == {ALTER, DESCRIBE}
        older = made(MetadataRequest, topics=[], include_cluster_authorized_operations=True)
        assert operations((await client.ask(older, 10)).cluster_authorized_operations) == {ALTER, DESCRIBE}
        assert (await client.ask(made(DescribeClusterRequest), 1)).cluster_authorized_operations == NO_OPERATIONS


# --- requests about ACLs --------------------------------------------------------------------------------------------

CREATION: dict[str, Any] = {
    "resource_type": 2,
    "resource_name": "t",
    "resource_pattern_type": 3,
    "principal": "User:invalid",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
FILTER: dict[str, Any] = {
    "resource_type_filter": 2,
    "resource_name_filter": "t",
    "pattern_type_filter": 3,
    "principal_filter": "User:invalid",
    "host_filter": None,
    "operation": 3,
    "permission_type": 3,
}
CLUSTER_NAME = "The only valid name for the CLUSTER resource is kafka-cluster"
INVALID = ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"resource_type": 4}, INVALID, CLUSTER_NAME),
        ({"resource_name": ""}, INVALID, "Invalid empty resource name"),
        ({"resource_type": 99}, INVALID, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 99}, INVALID, "Invalid patternType UNKNOWN"),
        ({"operation": 99}, INVALID, "Invalid operation UNKNOWN"),
        ({"permission_type": 99}, INVALID, "Invalid permissionType UNKNOWN"),
    ],
)
async def test_an_invalid_acl_is_refused_alone(
    guarded: Authorizing, changed: dict[str, Any], error: ErrorCode, message: str
) -> None:
    user = guarded.new_user()
    valid = {**CREATION, "principal": f"User:{user}"}
    async with guarded.raw("admin") as client:
        request = made(CreateAclsRequest, creations=[{**CREATION, **changed}, valid, valid])
        first, *others = (await client.ask(request, 3)).results
        assert (first.error_code, first.error_message) == (error, message)
        assert [result.error_code for result in others] == [0, 0]
        gone = made(DeleteAclsRequest, filters=[{**FILTER, "principal_filter": f"User:{user}"}])
        with anyio.fail_after(PATIENCE):
            while not (matching := (await client.ask(gone, 3)).filter_results[0].matching_acls):
                await anyio.lowlevel.checkpoint()
        (acl,) = matching
        assert (acl.resource_type, acl.resource_name, acl.pattern_type, acl.principal) == (2, "t", 3, f"User:{user}")
        assert (acl.host, acl.operation, acl.permission_type, acl.error_code) == ("*", 3, 3, 0)


@pytest.mark.parametrize("name", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
async def test_codes_that_no_acl_may_have(guarded: Authorizing, name: str) -> None:
    async with guarded.raw("admin") as client:
        both = made(CreateAclsRequest, creations=[{**CREATION, name: 1}, CREATION])
        assert {result.error_code for result in (await client.ask(both, 3)).results} == {ErrorCode.UNKNOWN_SERVER_ERROR}
        await client.send(made(CreateAclsRequest, creations=[{**CREATION, name: 0}]), 3)
        assert await client.is_cut_off()


@pytest.mark.parametrize("name", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
async def test_codes_that_no_filter_may_have(guarded: Authorizing, name: str) -> None:
    async with guarded.raw("admin") as client:
        (result,) = (await client.ask(made(DeleteAclsRequest, filters=[{**FILTER, name: 99}]), 3)).filter_results
        field = "patternFilter" if name in ("resource_type_filter", "pattern_type_filter") else "entryFilter"
        assert (result.error_code, result.error_message) == (INVALID, f"Unknown {field}.")
        await client.send(made(DescribeAclsRequest, **{**FILTER, name: 0}), 3)
        assert await client.is_cut_off()


async def test_without_an_authorizer_there_are_no_acls(client: RawClient) -> None:
    found = await client.ask(made(DescribeAclsRequest, **FILTER), 3)
    assert found.error_code == ErrorCode.SECURITY_DISABLED
    assert (found.error_message, found.resources) == ("No Authorizer is configured on the broker", [])
    (created,) = (await client.ask(made(CreateAclsRequest, creations=[CREATION]), 3)).results
    assert (created.error_code, created.error_message) == (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    (deleted,) = (await client.ask(made(DeleteAclsRequest, filters=[FILTER]), 3)).filter_results
    assert (deleted.error_code, deleted.error_message) == (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    assert (await described(client, "t"))["t"][0] != REFUSED
