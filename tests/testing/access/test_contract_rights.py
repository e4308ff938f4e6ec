"""The rights that requests need, as Apache Kafka with its StandardAuthorizer has it.

Each case is a request of a user without rights: it is refused with an error, until the user has the right that the case
names, and then with the next error, until it is not refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import uuid4

import anyio
import anyio.lowlevel
import pytest
from support.authorizing import Authorizing, Names
from support.made import made
from support.patience import PATIENCE
from support.raw_client import batch_of, fetch_request, produce_request

from aiokafkawire import AclBinding, AclOperation, Client, ResourceType
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from aiokafkawire.protocol.messages.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from aiokafkawire.protocol.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from aiokafkawire.protocol.messages.group import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from aiokafkawire.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest
from aiokafkawire.protocol.messages.group_offsets import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from aiokafkawire.protocol.messages.log_dirs import DescribeLogDirsRequest
from aiokafkawire.protocol.messages.metadata import DescribeTopicPartitionsRequest, MetadataRequest
from aiokafkawire.protocol.messages.offsets import ListOffsetsRequest, OffsetForLeaderEpochRequest
from aiokafkawire.protocol.messages.quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from aiokafkawire.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from aiokafkawire.protocol.messages.scram import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from aiokafkawire.protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from aiokafkawire.protocol.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from aiokafkawire.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
)
from aiokafkawire.protocol.messages.transaction_admin import DescribeProducersRequest, DescribeTransactionsRequest
from aiokafkawire.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from aiokafkawire.protocol.schema import Request
from aiokafkawire.testing.faults.error_responses import error_places

pytestmark = pytest.mark.anyio

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
READ, WRITE, CREATE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE
ALTER, DESCRIBE, CLUSTER_ACTION = AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
IDEMPOTENT_WRITE = AclOperation.IDEMPOTENT_WRITE
REFUSED = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
ANY, LITERAL, ALLOW = 1, 3, 3
TOPIC_CONFIGS, BROKER_CONFIGS, GROUP_CONFIGS = 2, 4, 32


Right = tuple[ResourceType, AclOperation]


class Case(NamedTuple):
    """A request, and the rights that it needs, in the order in which they are checked."""

    name: str
    request: Callable[[Names], Request[Any]]
    version: int
    rights: tuple[Right, ...]
    refused: ErrorCode | None = None
    """The error without the rights, where it is not that of the right's type of resource."""


def indexes(n: Names, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": n.topic, **fields}]


def transactional(n: Names) -> Request[Any]:
    batch = batch_of(b"v", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    return produce_request(n.topic, batch, transactional_id=n.transactional_id)


def heartbeat(cls: type[Any]) -> Callable[[Names], Request[Any]]:
    def request(n: Names) -> Request[Any]:
        more = {} if cls is ShareGroupHeartbeatRequest else {"rebalance_timeout_ms": 10_000, "topic_partitions": []}
        return made(
            cls, group_id=n.group, member_id=str(uuid4()), member_epoch=0, subscribed_topic_names=[n.topic], **more
        )

    return request


def share_fetch(cls: type[Any]) -> Callable[[Names], Request[Any]]:
    def request(n: Names) -> Request[Any]:
        topics = [{"topic_id": n.topic_id, "partitions": [{"partition_index": 0}]}]
        more = {"max_bytes": 1 << 20, "batch_size": 1, "max_records": 1} if cls is ShareFetchRequest else {}
        return made(cls, group_id=n.group, member_id=str(uuid4()), share_session_epoch=0, topics=topics, **more)

    return request


def resource(cls: type[Any], kind: int, **fields: Any) -> Callable[[Names], Request[Any]]:
    def request(n: Names) -> Request[Any]:
        name = {TOPIC_CONFIGS: n.topic, BROKER_CONFIGS: "1", GROUP_CONFIGS: n.group}[kind]
        return made(cls, resources=[{"resource_type": kind, "resource_name": name, **fields}])

    return request


def offsets_of(n: Names, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": n.topic, "partitions": [{"partition_index": 0, **fields}]}]


ACL = {"principal": "User:nobody", "host": "*", "operation": READ, "permission_type": ALLOW}
NOBODY = {"principal_filter": "User:nobody", "host_filter": None, "operation": ANY, "permission_type": ANY}
ANY_RESOURCE = {"resource_type_filter": ANY, "resource_name_filter": None, "pattern_type_filter": ANY}
QUOTA = {
    "entity": [{"entity_type": "user", "entity_name": "nobody"}],
    "ops": [{"key": "producer_byte_rate", "value": 1.0}],
}
PROTOCOLS = [{"name": "range", "metadata": b"\0\0\0\0\0\0\xff\xff\xff\xff"}]

CASES = [
    Case("produce", lambda n: produce_request(n.topic, batch_of(b"v")), 12, ((TOPIC, WRITE),)),
    Case("produce-by-id", lambda n: produce_request(n.topic_id, batch_of(b"v")), 13, ((TOPIC, WRITE),)),
    Case("produce-in-transaction", transactional, 11, ((TRANSACTIONAL_ID, WRITE), (TOPIC, WRITE))),
    Case("fetch", lambda n: fetch_request(n.topic, 0), 12, ((TOPIC, READ),)),
    Case("fetch-by-id", lambda n: fetch_request(n.topic_id, 0), 17, ((TOPIC, READ),)),
    Case(
        "list-offsets",
        lambda n: made(
            ListOffsetsRequest, replica_id=-1, topics=indexes(n, partitions=[{"partition_index": 0, "timestamp": -1}])
        ),
        7,
        ((TOPIC, DESCRIBE),),
    ),
    Case(
        "metadata",
        lambda n: made(MetadataRequest, topics=[{"name": n.topic}], allow_auto_topic_creation=False),
        12,
        ((TOPIC, DESCRIBE),),
    ),
    Case("metadata-v0", lambda n: made(MetadataRequest, topics=[{"name": n.topic}]), 0, ((TOPIC, DESCRIBE),)),
    Case(
        "metadata-by-id",
        lambda n: made(MetadataRequest, topics=[{"name": None, "topic_id": n.topic_id}]),
        12,
        ((TOPIC, DESCRIBE),),
    ),
    Case(
        "offset-commit",
        lambda n: made(OffsetCommitRequest, group_id=n.group, topics=offsets_of(n, committed_offset=1)),
        8,
        ((GROUP, READ), (TOPIC, READ)),
    ),
    Case(
        "offset-fetch-v7",
        lambda n: made(OffsetFetchRequest, group_id=n.group, topics=indexes(n, partition_indexes=[0])),
        7,
        ((GROUP, DESCRIBE), (TOPIC, DESCRIBE)),
    ),
    Case(
        "offset-fetch",
        lambda n: made(OffsetFetchRequest, groups=[{"group_id": n.group, "topics": indexes(n, partition_indexes=[0])}]),
        8,
        ((GROUP, DESCRIBE), (TOPIC, DESCRIBE)),
    ),
    Case("find-coordinator-v3", lambda n: made(FindCoordinatorRequest, key=n.group), 3, ((GROUP, DESCRIBE),)),
    Case(
        "find-coordinator", lambda n: made(FindCoordinatorRequest, coordinator_keys=[n.group]), 4, ((GROUP, DESCRIBE),)
    ),
    Case(
        "find-coordinator-of-a-transaction",
        lambda n: made(FindCoordinatorRequest, key_type=1, coordinator_keys=[n.transactional_id]),
        4,
        ((TRANSACTIONAL_ID, DESCRIBE),),
    ),
    Case(
        "join-group",
        lambda n: made(
            JoinGroupRequest,
            group_id=n.group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=PROTOCOLS,
        ),
        9,
        ((GROUP, READ),),
    ),
    Case(
        "sync-group",
        lambda n: made(
            SyncGroupRequest, group_id=n.group, member_id="m", protocol_type="consumer", protocol_name="range"
        ),
        5,
        ((GROUP, READ),),
    ),
    Case("heartbeat", lambda n: made(HeartbeatRequest, group_id=n.group, member_id="m"), 4, ((GROUP, READ),)),
    Case(
        "leave-group",
        lambda n: made(LeaveGroupRequest, group_id=n.group, members=[{"member_id": "m"}]),
        5,
        ((GROUP, READ),),
    ),
    Case("describe-groups", lambda n: made(DescribeGroupsRequest, groups=[n.group]), 5, ((GROUP, DESCRIBE),)),
    Case("delete-groups", lambda n: made(DeleteGroupsRequest, groups_names=[n.group]), 2, ((GROUP, DELETE),)),
    Case(
        "offset-delete",
        lambda n: made(OffsetDeleteRequest, group_id=n.group, topics=offsets_of(n)),
        0,
        ((GROUP, DELETE),),  # a missing group hides its topics
    ),
    *(
        Case(
            f"create-topics-by-{kind.name.lower()}",
            lambda n: made(
                CreateTopicsRequest, topics=indexes(n, num_partitions=1, replication_factor=1), validate_only=True
            ),
            7,
            ((kind, CREATE),),
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
        for kind in (TOPIC, CLUSTER)
    ),
    Case(
        "delete-topics",
        lambda n: made(DeleteTopicsRequest, timeout_ms=10_000, topics=indexes(n)),
        6,
        ((TOPIC, DELETE),),
    ),
    Case(
        "delete-topics-v5",
        lambda n: made(DeleteTopicsRequest, timeout_ms=10_000, topic_names=[n.topic]),
        5,
        ((TOPIC, DELETE),),
    ),
    Case(
        "delete-topics-by-id",
        lambda n: made(DeleteTopicsRequest, timeout_ms=10_000, topics=[{"name": None, "topic_id": n.topic_id}]),
        6,
        ((TOPIC, DELETE),),
    ),
    Case(
        "delete-topics-by-cluster",
        lambda n: made(DeleteTopicsRequest, timeout_ms=10_000, topics=indexes(n)),
        6,
        ((CLUSTER, DELETE),),
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ),
    Case("delete-records", lambda n: made(DeleteRecordsRequest, topics=offsets_of(n)), 2, ((TOPIC, DELETE),)),
    Case(
        "create-partitions",
        lambda n: made(CreatePartitionsRequest, topics=indexes(n, count=2, assignments=None), validate_only=True),
        3,
        ((TOPIC, ALTER),),
    ),
    Case(
        "describe-topic-partitions",
        lambda n: made(DescribeTopicPartitionsRequest, topics=indexes(n)),
        0,
        ((TOPIC, DESCRIBE),),
    ),
    *(
        Case(f"{name}-of-{kind.name.lower()}", resource(cls, code, **fields), version, ((kind, operation),))
        for name, cls, version, operation, fields in (
            ("describe-configs", DescribeConfigsRequest, 4, DESCRIBE_CONFIGS, {"configuration_keys": None}),
            ("alter-configs", AlterConfigsRequest, 2, ALTER_CONFIGS, {}),
            ("incremental-alter-configs", IncrementalAlterConfigsRequest, 1, ALTER_CONFIGS, {}),
        )
        for kind, code in ((TOPIC, TOPIC_CONFIGS), (GROUP, GROUP_CONFIGS), (CLUSTER, BROKER_CONFIGS))
    ),
    Case("list-config-resources", lambda n: made(ListConfigResourcesRequest), 1, ((CLUSTER, DESCRIBE_CONFIGS),)),
    Case("describe-log-dirs", lambda n: made(DescribeLogDirsRequest, topics=None), 4, ((CLUSTER, DESCRIBE),)),
    Case("describe-client-quotas", lambda n: made(DescribeClientQuotasRequest), 1, ((CLUSTER, DESCRIBE_CONFIGS),)),
    Case(
        "alter-client-quotas",
        lambda n: made(AlterClientQuotasRequest, entries=[QUOTA], validate_only=True),
        1,
        ((CLUSTER, ALTER_CONFIGS),),
    ),
    Case(
        "describe-scram",
        lambda n: made(DescribeUserScramCredentialsRequest, users=[{"name": "nobody"}]),
        0,
        ((CLUSTER, DESCRIBE),),
    ),
    Case(
        "alter-scram",
        lambda n: made(AlterUserScramCredentialsRequest, deletions=[{"name": "nobody", "mechanism": 1}]),
        0,
        ((CLUSTER, ALTER),),
    ),
    Case(
        "init-producer-id-with-transactional-id",
        lambda n: made(InitProducerIdRequest, transactional_id=n.transactional_id, transaction_timeout_ms=10_000),
        4,
        ((TRANSACTIONAL_ID, WRITE),),
    ),
    *(
        Case(
            f"init-producer-id-by-{kind.name.lower()}",
            lambda n: made(InitProducerIdRequest, transactional_id=None, transaction_timeout_ms=10_000),
            4,
            ((kind, operation),),
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        )
        for kind, operation in ((CLUSTER, IDEMPOTENT_WRITE), (TOPIC, WRITE))
    ),
    Case(
        "add-partitions-to-txn",
        lambda n: made(
            AddPartitionsToTxnRequest,
            v3_and_below_transactional_id=n.transactional_id,
            v3_and_below_topics=indexes(n, partitions=[0]),
        ),
        3,
        ((TRANSACTIONAL_ID, WRITE), (TOPIC, WRITE)),
    ),
    Case(
        "add-offsets-to-txn",
        lambda n: made(AddOffsetsToTxnRequest, transactional_id=n.transactional_id, group_id=n.group),
        3,
        ((TRANSACTIONAL_ID, WRITE), (GROUP, READ)),
    ),
    Case(
        "end-txn",
        lambda n: made(EndTxnRequest, transactional_id=n.transactional_id),
        3,
        ((TRANSACTIONAL_ID, WRITE),),
    ),
    *(
        Case(
            f"write-txn-markers-by-{operation.name.lower()}",
            lambda n: made(
                WriteTxnMarkersRequest, markers=[{"producer_id": 1, "topics": indexes(n, partition_indexes=[0])}]
            ),
            1,
            ((CLUSTER, operation),),
        )
        for operation in (ALTER, CLUSTER_ACTION)
    ),
    Case(
        "txn-offset-commit",
        lambda n: made(
            TxnOffsetCommitRequest, transactional_id=n.transactional_id, group_id=n.group, topics=offsets_of(n)
        ),
        3,
        ((TRANSACTIONAL_ID, WRITE), (GROUP, READ), (TOPIC, READ)),
    ),
    Case(
        "describe-producers",
        lambda n: made(DescribeProducersRequest, topics=indexes(n, partition_indexes=[0])),
        0,
        ((TOPIC, READ),),
    ),
    Case(
        "describe-transactions",
        lambda n: made(DescribeTransactionsRequest, transactional_ids=[n.transactional_id]),
        0,
        ((TRANSACTIONAL_ID, DESCRIBE),),
    ),
    *(
        Case(
            f"offset-for-leader-epoch-by-{kind.name.lower()}",
            lambda n: made(
                OffsetForLeaderEpochRequest,
                replica_id=-1,
                topics=[{"topic": n.topic, "partitions": [{"partition": 0}]}],
            ),
            4,
            ((kind, operation),),
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
        for kind, operation in ((TOPIC, DESCRIBE), (CLUSTER, CLUSTER_ACTION))
    ),
    Case(
        "elect-leaders",
        lambda n: made(ElectLeadersRequest, topic_partitions=[{"topic": n.topic, "partitions": [0]}]),
        2,
        ((CLUSTER, ALTER),),
    ),
    Case(
        "alter-partition-reassignments",
        lambda n: made(
            AlterPartitionReassignmentsRequest,
            topics=indexes(n, partitions=[{"partition_index": 0, "replicas": None}]),
        ),
        0,
        ((CLUSTER, ALTER),),
    ),
    Case(
        "list-partition-reassignments",
        lambda n: made(ListPartitionReassignmentsRequest, topics=None),
        0,
        ((CLUSTER, DESCRIBE),),
    ),
    Case("consumer-group-heartbeat", heartbeat(ConsumerGroupHeartbeatRequest), 1, ((GROUP, READ), (TOPIC, DESCRIBE))),
    Case(
        "consumer-group-describe",
        lambda n: made(ConsumerGroupDescribeRequest, group_ids=[n.group]),
        1,
        ((GROUP, DESCRIBE),),
    ),
    Case("share-group-heartbeat", heartbeat(ShareGroupHeartbeatRequest), 1, ((GROUP, READ), (TOPIC, DESCRIBE))),
    Case(
        "share-group-describe",
        lambda n: made(ShareGroupDescribeRequest, group_ids=[n.group]),
        1,
        ((GROUP, DESCRIBE),),
    ),
    Case("share-fetch", share_fetch(ShareFetchRequest), 1, ((GROUP, READ), (TOPIC, READ))),
    Case("share-acknowledge", share_fetch(ShareAcknowledgeRequest), 1, ((GROUP, READ),)),
    Case(
        "describe-share-group-offsets",
        lambda n: made(
            DescribeShareGroupOffsetsRequest,
            groups=[{"group_id": n.group, "topics": [{"topic_name": n.topic, "partitions": [0]}]}],
        ),
        0,
        ((GROUP, DESCRIBE), (TOPIC, DESCRIBE)),
    ),
    Case(
        "alter-share-group-offsets",
        lambda n: made(
            AlterShareGroupOffsetsRequest,
            group_id=n.group,
            topics=[{"topic_name": n.topic, "partitions": [{"partition_index": 0}]}],
        ),
        0,
        ((GROUP, READ), (TOPIC, READ)),
    ),
    Case(
        "delete-share-group-offsets",
        lambda n: made(DeleteShareGroupOffsetsRequest, group_id=n.group, topics=[{"topic_name": n.topic}]),
        0,
        ((GROUP, DELETE),),
    ),
    Case("describe-acls", lambda n: made(DescribeAclsRequest, **ANY_RESOURCE, **NOBODY), 3, ((CLUSTER, DESCRIBE),)),
    Case(
        "create-acls",
        lambda n: made(
            CreateAclsRequest,
            creations=[{"resource_type": TOPIC, "resource_name": n.topic, "resource_pattern_type": LITERAL, **ACL}],
        ),
        3,
        ((CLUSTER, ALTER),),
    ),
    Case(
        "delete-acls",
        lambda n: made(DeleteAclsRequest, filters=[{**ANY_RESOURCE, **NOBODY, "principal_filter": "User:none"}]),
        3,
        ((CLUSTER, ALTER),),
    ),
]


def errors_of(response: Any, version: int) -> set[ErrorCode]:
    found = {getattr(place.struct, place.field) for place in error_places(response, version)}
    return {ErrorCode(code) for code in found if code}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
async def test_each_request_needs_its_rights(guarded: Authorizing, admin: Client, names: Names, case: Case) -> None:
    user = guarded.new_user()
    async with guarded.raw(user) as client:
        for kind, operation in case.rights:
            refused = {case.refused or REFUSED[kind]}
            assert errors_of(await client.ask(case.request(names), case.version), case.version) == refused
            await guarded.grant(admin, AclBinding(names.pattern(kind), f"User:{user}", operation))
            with anyio.fail_after(PATIENCE):
                # The controller hears of ACLs beside the broker.
                while (
                    found := errors_of(await client.ask(case.request(names), case.version), case.version)
                ) == refused:
                    await anyio.lowlevel.checkpoint()
        assert not found & set(REFUSED.values())
