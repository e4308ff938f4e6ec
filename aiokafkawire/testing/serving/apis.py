"""The table of APIs that a broker serves: versions, request and handler of each."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import attrs

from ...protocol.api import ApiKey
from ...protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from ...protocol.messages.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from ...protocol.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from ...protocol.messages.controller import UnregisterBrokerRequest, UnregisterControllerRequest, UpdateFeaturesRequest
from ...protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from ...protocol.messages.fetch import FetchRequest
from ...protocol.messages.group import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from ...protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from ...protocol.messages.group_offsets import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from ...protocol.messages.log_dirs import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from ...protocol.messages.metadata import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
)
from ...protocol.messages.offsets import ListOffsetsRequest, OffsetForLeaderEpochRequest
from ...protocol.messages.produce import ProduceRequest
from ...protocol.messages.quorum_voters import AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest
from ...protocol.messages.quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from ...protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from ...protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from ...protocol.messages.scram import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from ...protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from ...protocol.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from ...protocol.messages.streams_group import StreamsGroupDescribeRequest
from ...protocol.messages.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from ...protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
)
from ...protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from ...protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from ...protocol.schema import Request, Response, Versions
from ..handlers.acls import create_acls, delete_acls, describe_acls
from ..handlers.alter_configs import alter_configs, incremental_alter_configs
from ..handlers.configs import describe_configs, list_config_resources
from ..handlers.consumer_group import consumer_group_describe, consumer_group_heartbeat
from ..handlers.delegation_tokens import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from ..handlers.elections import alter_partition_reassignments, elect_leaders, list_partition_reassignments
from ..handlers.features import update_features
from ..handlers.fetch import fetch
from ..handlers.group import find_coordinator, heartbeat, join_group, leave_group, sync_group
from ..handlers.group_admin import delete_groups, describe_groups, list_groups
from ..handlers.group_offsets import offset_commit, offset_delete, offset_fetch
from ..handlers.log_dirs import alter_replica_log_dirs, describe_log_dirs
from ..handlers.metadata import api_versions, describe_cluster, metadata
from ..handlers.offsets import list_offsets, offset_for_leader_epoch
from ..handlers.partitions import create_partitions, delete_records, describe_topic_partitions
from ..handlers.produce import produce
from ..handlers.quorum import add_raft_voter, describe_quorum, remove_raft_voter
from ..handlers.quotas import alter_client_quotas, describe_client_quotas
from ..handlers.registrations import unregister_broker, unregister_controller
from ..handlers.sasl import sasl_authenticate, sasl_handshake
from ..handlers.scram import alter_user_scram_credentials, describe_user_scram_credentials
from ..handlers.share_fetch import share_acknowledge, share_fetch
from ..handlers.share_group import share_group_describe, share_group_heartbeat
from ..handlers.share_offsets import alter_share_group_offsets, delete_share_group_offsets, describe_share_group_offsets
from ..handlers.streams_group import streams_group_describe
from ..handlers.telemetry import get_telemetry_subscriptions, push_telemetry
from ..handlers.topics import create_topics, delete_topics
from ..handlers.transaction_admin import describe_producers, describe_transactions, list_transactions
from ..handlers.transaction_offsets import txn_offset_commit
from ..handlers.transactions import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    write_txn_markers,
)
from .call import ServerCall

__all__ = ("APIS", "TELEMETRY_APIS", "Api", "Handler")

Handler: TypeAlias = Callable[[ServerCall, Any], Awaitable[Response | None]]
"""A function that handles one request and returns the response; None for no response, as to Produce with acks=0."""


@attrs.frozen
class Api:
    """An API: its request class, its handler, and the versions that the broker handles."""

    request: type[Request[Any]]
    handle: Handler
    served: Versions


def _api(request: type[Request[Any]], handle: Handler, served: str) -> Api:
    return Api(request, handle, Versions.parse(served))


APIS: Final = {
    ApiKey.PRODUCE: _api(ProduceRequest, produce, "3-13"),
    ApiKey.FETCH: _api(FetchRequest, fetch, "4-18"),
    ApiKey.LIST_OFFSETS: _api(ListOffsetsRequest, list_offsets, "1-11"),
    ApiKey.METADATA: _api(MetadataRequest, metadata, "0-13"),
    ApiKey.OFFSET_COMMIT: _api(OffsetCommitRequest, offset_commit, "2-10"),
    ApiKey.OFFSET_FETCH: _api(OffsetFetchRequest, offset_fetch, "1-10"),
    ApiKey.FIND_COORDINATOR: _api(FindCoordinatorRequest, find_coordinator, "0-6"),
    ApiKey.JOIN_GROUP: _api(JoinGroupRequest, join_group, "0-9"),
    ApiKey.HEARTBEAT: _api(HeartbeatRequest, heartbeat, "0-4"),
    ApiKey.LEAVE_GROUP: _api(LeaveGroupRequest, leave_group, "0-5"),
    ApiKey.SYNC_GROUP: _api(SyncGroupRequest, sync_group, "0-5"),
    ApiKey.DESCRIBE_GROUPS: _api(DescribeGroupsRequest, describe_groups, "0-6"),
    ApiKey.LIST_GROUPS: _api(ListGroupsRequest, list_groups, "0-5"),
    ApiKey.DELETE_GROUPS: _api(DeleteGroupsRequest, delete_groups, "0-3"),
    ApiKey.OFFSET_DELETE: _api(OffsetDeleteRequest, offset_delete, "0"),
    ApiKey.SASL_HANDSHAKE: _api(SaslHandshakeRequest, sasl_handshake, "0-1"),
    ApiKey.API_VERSIONS: _api(ApiVersionsRequest, api_versions, "0-5"),
    ApiKey.CREATE_TOPICS: _api(CreateTopicsRequest, create_topics, "2-7"),
    ApiKey.DELETE_TOPICS: _api(DeleteTopicsRequest, delete_topics, "1-6"),
    ApiKey.DELETE_RECORDS: _api(DeleteRecordsRequest, delete_records, "0-2"),
    ApiKey.CREATE_PARTITIONS: _api(CreatePartitionsRequest, create_partitions, "0-3"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _api(DescribeTopicPartitionsRequest, describe_topic_partitions, "0"),
    ApiKey.DESCRIBE_ACLS: _api(DescribeAclsRequest, describe_acls, "1-3"),
    ApiKey.CREATE_ACLS: _api(CreateAclsRequest, create_acls, "1-3"),
    ApiKey.DELETE_ACLS: _api(DeleteAclsRequest, delete_acls, "1-3"),
    ApiKey.DESCRIBE_CONFIGS: _api(DescribeConfigsRequest, describe_configs, "1-4"),
    ApiKey.ALTER_CONFIGS: _api(AlterConfigsRequest, alter_configs, "0-2"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _api(IncrementalAlterConfigsRequest, incremental_alter_configs, "0-1"),
    ApiKey.LIST_CONFIG_RESOURCES: _api(ListConfigResourcesRequest, list_config_resources, "0-1"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: _api(AlterReplicaLogDirsRequest, alter_replica_log_dirs, "1-2"),
    ApiKey.DESCRIBE_LOG_DIRS: _api(DescribeLogDirsRequest, describe_log_dirs, "1-5"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _api(DescribeClientQuotasRequest, describe_client_quotas, "0-1"),
    ApiKey.ALTER_CLIENT_QUOTAS: _api(AlterClientQuotasRequest, alter_client_quotas, "0-1"),
    ApiKey.INIT_PRODUCER_ID: _api(InitProducerIdRequest, init_producer_id, "0-5"),
    ApiKey.ADD_PARTITIONS_TO_TXN: _api(AddPartitionsToTxnRequest, add_partitions_to_txn, "0-5"),
    ApiKey.ADD_OFFSETS_TO_TXN: _api(AddOffsetsToTxnRequest, add_offsets_to_txn, "0-4"),
    ApiKey.END_TXN: _api(EndTxnRequest, end_txn, "0-5"),
    ApiKey.WRITE_TXN_MARKERS: _api(WriteTxnMarkersRequest, write_txn_markers, "1-2"),
    ApiKey.TXN_OFFSET_COMMIT: _api(TxnOffsetCommitRequest, txn_offset_commit, "0-6"),
    ApiKey.DESCRIBE_PRODUCERS: _api(DescribeProducersRequest, describe_producers, "0"),
    ApiKey.DESCRIBE_TRANSACTIONS: _api(DescribeTransactionsRequest, describe_transactions, "0"),
    ApiKey.LIST_TRANSACTIONS: _api(ListTransactionsRequest, list_transactions, "0-2"),
    ApiKey.SASL_AUTHENTICATE: _api(SaslAuthenticateRequest, sasl_authenticate, "0-2"),
    ApiKey.CREATE_DELEGATION_TOKEN: _api(CreateDelegationTokenRequest, create_delegation_token, "1-3"),
    ApiKey.RENEW_DELEGATION_TOKEN: _api(RenewDelegationTokenRequest, renew_delegation_token, "1-2"),
    ApiKey.EXPIRE_DELEGATION_TOKEN: _api(ExpireDelegationTokenRequest, expire_delegation_token, "1-2"),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _api(DescribeDelegationTokenRequest, describe_delegation_token, "1-3"),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _api(
        DescribeUserScramCredentialsRequest, describe_user_scram_credentials, "0"
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _api(AlterUserScramCredentialsRequest, alter_user_scram_credentials, "0"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _api(OffsetForLeaderEpochRequest, offset_for_leader_epoch, "2-4"),
    ApiKey.ELECT_LEADERS: _api(ElectLeadersRequest, elect_leaders, "0-2"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _api(
        AlterPartitionReassignmentsRequest, alter_partition_reassignments, "0-1"
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _api(ListPartitionReassignmentsRequest, list_partition_reassignments, "0"),
    ApiKey.DESCRIBE_CLUSTER: _api(DescribeClusterRequest, describe_cluster, "0-2"),
    ApiKey.UPDATE_FEATURES: _api(UpdateFeaturesRequest, update_features, "0-2"),
    ApiKey.DESCRIBE_QUORUM: _api(DescribeQuorumRequest, describe_quorum, "0-2"),
    ApiKey.ADD_RAFT_VOTER: _api(AddRaftVoterRequest, add_raft_voter, "0-1"),
    ApiKey.REMOVE_RAFT_VOTER: _api(RemoveRaftVoterRequest, remove_raft_voter, "0"),
    ApiKey.UNREGISTER_BROKER: _api(UnregisterBrokerRequest, unregister_broker, "0"),
    ApiKey.UNREGISTER_CONTROLLER: _api(UnregisterControllerRequest, unregister_controller, "0"),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _api(ConsumerGroupHeartbeatRequest, consumer_group_heartbeat, "0-1"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _api(ConsumerGroupDescribeRequest, consumer_group_describe, "0-1"),
    ApiKey.SHARE_GROUP_HEARTBEAT: _api(ShareGroupHeartbeatRequest, share_group_heartbeat, "1"),
    ApiKey.SHARE_GROUP_DESCRIBE: _api(ShareGroupDescribeRequest, share_group_describe, "1"),
    ApiKey.SHARE_FETCH: _api(ShareFetchRequest, share_fetch, "1-2"),
    ApiKey.SHARE_ACKNOWLEDGE: _api(ShareAcknowledgeRequest, share_acknowledge, "1-2"),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _api(DescribeShareGroupOffsetsRequest, describe_share_group_offsets, "0-1"),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _api(AlterShareGroupOffsetsRequest, alter_share_group_offsets, "0"),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _api(DeleteShareGroupOffsetsRequest, delete_share_group_offsets, "0"),
    ApiKey.STREAMS_GROUP_DESCRIBE: _api(StreamsGroupDescribeRequest, streams_group_describe, "0-1"),
}
"""The APIs with a handler, in the versions of the newest Apache Kafka."""

TELEMETRY_APIS: Final = {
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _api(GetTelemetrySubscriptionsRequest, get_telemetry_subscriptions, "0"),
    ApiKey.PUSH_TELEMETRY: _api(PushTelemetryRequest, push_telemetry, "0"),
}
"""The APIs of brokers with a plugin that receives clients' metrics."""
