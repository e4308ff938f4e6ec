"""A call of the admin for each request that it sends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from aiokafkawire import (
    AbortTransactionSpec,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    OffsetSpec,
    RaftVoterEndpoint,
    ResourcePattern,
    ScramCredentialInfo,
    ScramMechanism,
    TopicPartition,
    UserScramCredentialUpsertion,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.types import TopicPartitionReplica

__all__ = ("ADMIN_CALLS", "GROUP", "PARTITION", "SHARE_GROUP", "STREAMS_GROUP", "TOPIC", "TRANSACTION")

TOPIC, GROUP, SHARE_GROUP, STREAMS_GROUP, TRANSACTION = "t", "classic", "sharing", "streams", "tx"
PARTITION = TopicPartition(TOPIC, 0)
_ACL = AclBinding(ResourcePattern.topic(TOPIC), "User:x", AclOperation.READ)
_CONFIG = ConfigResource(ConfigResourceType.TOPIC, TOPIC)
_DIRECTORY = UUID(int=1)
_TOKEN = b"token"

Call = Callable[[Any], Awaitable[Any]]

ADMIN_CALLS: dict[ApiKey, tuple[Call, ...]] = {
    ApiKey.API_VERSIONS: (lambda admin: admin.api_versions(), lambda admin: admin.describe_features()),
    ApiKey.METADATA: (
        lambda admin: admin.describe_topics([TOPIC]),
        lambda admin: admin.describe_cluster(),
        lambda admin: admin.list_topics(),
    ),
    ApiKey.DESCRIBE_CLUSTER: (lambda admin: admin.describe_cluster(include_authorized_operations=True),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (lambda admin: admin.describe_topics([TOPIC]),),
    ApiKey.FIND_COORDINATOR: (
        lambda admin: admin.find_coordinators(GROUP, "other"),
        lambda admin: admin.describe_groups(GROUP),
    ),
    ApiKey.LIST_OFFSETS: (
        lambda admin: admin.list_offsets({PARTITION: OffsetSpec.LATEST, TopicPartition(TOPIC, 1): OffsetSpec.EARLIEST}),
        lambda admin: admin.consumer_group_lag(GROUP),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (lambda admin: admin.offset_for_leader_epoch({PARTITION: 0}),),
    ApiKey.OFFSET_FETCH: (
        lambda admin: admin.list_consumer_group_offsets(GROUP),
        lambda admin: admin.list_offsets_of_groups(GROUP, "other"),
        lambda admin: admin.list_streams_group_offsets(STREAMS_GROUP),
    ),
    ApiKey.OFFSET_COMMIT: (lambda admin: admin.alter_consumer_group_offsets("idle", {PARTITION: 1}),),
    ApiKey.OFFSET_DELETE: (lambda admin: admin.delete_consumer_group_offsets("idle", [PARTITION]),),
    ApiKey.LIST_GROUPS: (lambda admin: admin.list_groups(),),
    ApiKey.DESCRIBE_GROUPS: (
        lambda admin: admin.describe_classic_groups(GROUP),
        lambda admin: admin.describe_groups(GROUP),
    ),
    ApiKey.DELETE_GROUPS: (lambda admin: admin.delete_groups("idle"),),
    ApiKey.LEAVE_GROUP: (lambda admin: admin.remove_members(GROUP, ["instance"]),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (lambda admin: admin.describe_consumer_groups("modern"),),
    ApiKey.SHARE_GROUP_DESCRIBE: (lambda admin: admin.describe_share_groups(SHARE_GROUP),),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (lambda admin: admin.list_share_group_offsets(SHARE_GROUP),),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (lambda admin: admin.alter_share_group_offsets("idle-share", {PARTITION: 1}),),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (lambda admin: admin.delete_share_group_offsets("idle-share", TOPIC),),
    ApiKey.STREAMS_GROUP_DESCRIBE: (lambda admin: admin.describe_streams_groups(STREAMS_GROUP),),
    ApiKey.CREATE_TOPICS: (lambda admin: admin.create_topics({"new": 2}, validate_only=True),),
    ApiKey.DELETE_TOPICS: (lambda admin: admin.delete_topics("new"),),
    ApiKey.CREATE_PARTITIONS: (lambda admin: admin.create_partitions({TOPIC: 5}, validate_only=True),),
    ApiKey.DELETE_RECORDS: (lambda admin: admin.delete_records({PARTITION: 0}),),
    ApiKey.DESCRIBE_CONFIGS: (
        lambda admin: admin.describe_configs(_CONFIG, include_synonyms=True, include_documentation=True),
        lambda admin: admin.describe_configs([_CONFIG, ConfigResource(ConfigResourceType.BROKER, "1")]),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        lambda admin: admin.incremental_alter_configs({_CONFIG: {"retention.ms": "5000"}}),
    ),
    ApiKey.LIST_CONFIG_RESOURCES: (lambda admin: admin.list_config_resources(),),
    ApiKey.DESCRIBE_LOG_DIRS: (
        lambda admin: admin.describe_log_dirs(),
        lambda admin: admin.describe_replica_log_dirs([TopicPartitionReplica(TOPIC, 0, 1)]),
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        lambda admin: admin.alter_replica_log_dirs({TopicPartitionReplica(TOPIC, 0, 1): "/data"}),
    ),
    ApiKey.ELECT_LEADERS: (lambda admin: admin.elect_leaders(ElectionType.PREFERRED, [PARTITION]),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (lambda admin: admin.alter_partition_reassignments({PARTITION: None}),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (lambda admin: admin.list_partition_reassignments(),),
    ApiKey.DESCRIBE_QUORUM: (lambda admin: admin.describe_metadata_quorum(),),
    ApiKey.ADD_RAFT_VOTER: (
        lambda admin: admin.add_raft_voter(9, _DIRECTORY, [RaftVoterEndpoint("CONTROLLER", "h", 1)]),
    ),
    ApiKey.REMOVE_RAFT_VOTER: (lambda admin: admin.remove_raft_voter(9, _DIRECTORY),),
    ApiKey.UNREGISTER_BROKER: (lambda admin: admin.unregister_broker(77),),
    ApiKey.UNREGISTER_CONTROLLER: (lambda admin: admin.unregister_controller(77),),
    ApiKey.UPDATE_FEATURES: (lambda admin: admin.update_features({"group.version": 1}, validate_only=True),),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (lambda admin: admin.describe_client_quotas(),),
    ApiKey.ALTER_CLIENT_QUOTAS: (
        lambda admin: admin.alter_client_quotas({ClientQuotaEntity({"user": "u"}): {"consumer_byte_rate": 1e9}}),
    ),
    ApiKey.DESCRIBE_ACLS: (lambda admin: admin.describe_acls(),),
    ApiKey.CREATE_ACLS: (lambda admin: admin.create_acls(_ACL),),
    ApiKey.DELETE_ACLS: (lambda admin: admin.delete_acls(AclBindingFilter()),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (lambda admin: admin.describe_user_scram_credentials(),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (
        lambda admin: admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("u", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"secret")]
        ),
    ),
    ApiKey.CREATE_DELEGATION_TOKEN: (lambda admin: admin.create_delegation_token(),),
    ApiKey.RENEW_DELEGATION_TOKEN: (lambda admin: admin.renew_delegation_token(_TOKEN),),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (lambda admin: admin.expire_delegation_token(_TOKEN),),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (lambda admin: admin.describe_delegation_token(),),
    ApiKey.DESCRIBE_PRODUCERS: (
        lambda admin: admin.describe_producers(PARTITION),
        lambda admin: admin.find_hanging_transactions(TOPIC),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: (lambda admin: admin.describe_transactions(TRANSACTION),),
    ApiKey.LIST_TRANSACTIONS: (
        lambda admin: admin.list_transactions(),
        lambda admin: admin.find_hanging_transactions(TOPIC),
    ),
    ApiKey.WRITE_TXN_MARKERS: (lambda admin: admin.abort_transaction(AbortTransactionSpec(PARTITION, 1, 0)),),
    ApiKey.INIT_PRODUCER_ID: (
        lambda admin: admin.fence_producers("fenced"),
        lambda admin: admin.force_terminate_transaction("fenced"),
    ),
}
