"""A Kafka client that speaks the wire protocol itself, on asyncio, uvloop and trio."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ._lazy_exports import lazy_exports
from .admin.admin import Admin
from .admin.config_resources import (
    ConfigEntry,
    ConfigOp,
    ConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
)
from .admin.descriptions import (
    GroupDescription,
    GroupListing,
    GroupMember,
    ShareGroupDescription,
    ShareMemberDescription,
    SharePartitionOffsetInfo,
)
from .admin.new_topics import NewPartitions, NewTopic
from .client import Client
from .consumer.consumer import Consumer, ConsumerBatch
from .consumer.health import ConsumerHealth
from .errors import (
    AcknowledgementFailed,
    AuthenticationFailed,
    BrokerError,
    BufferFull,
    CommitFailed,
    ConfigError,
    ConnectionLost,
    ConsumerStalled,
    CorruptBatch,
    DeliveryFailed,
    DeserializationError,
    InvalidMessage,
    KafkaError,
    NoBrokerReachable,
    ProducerFenced,
    RecordTooLarge,
    RequestTimeout,
    TopicNotReady,
    TransactionAborted,
    UnknownBrokerError,
    UnsupportedVersion,
    UsageError,
    WireError,
)
from .producer.producer import Producer
from .records.batch import ConsumerRecord, Delivery
from .types import (
    AwsCredentials,
    ElectionType,
    GroupMetadata,
    IsolationLevel,
    OAuthBearerToken,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    ProducerIdentity,
    RecordMetadata,
    SubscriptionPattern,
    TimestampType,
    TopicPartition,
    TopicPartitionReplica,
)

if TYPE_CHECKING:
    from .admin.acl_bindings import AclBinding, AclBindingFilter, ResourcePattern
    from .admin.client_quotas import (
        ClientQuotaEntity,
        ClientQuotaFilter,
        ClientQuotaFilterComponent,
        ClientQuotaMatchType,
    )
    from .admin.cluster_descriptions import (
        ClusterDescription,
        ClusterNode,
        EpochEndOffset,
        FeatureMetadata,
        FeatureUpdate,
        FinalizedVersionRange,
        QuorumInfo,
        QuorumReplica,
        RaftVoterEndpoint,
        SupportedVersionRange,
        UpgradeType,
    )
    from .admin.delegation_token_descriptions import DelegationToken, KafkaPrincipal
    from .admin.scram_credentials import (
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
    from .admin.streams_group_descriptions import (
        StreamsGroupDescription,
        StreamsGroupMemberAssignment,
        StreamsGroupMemberDescription,
        StreamsGroupSubtopologyDescription,
        StreamsTopicInfo,
    )
    from .admin.topic_descriptions import (
        CreatedTopic,
        LogDirDescription,
        PartitionDescription,
        PartitionReassignment,
        ReplicaInfo,
        ReplicaLogDirInfo,
        TopicDescription,
    )
    from .admin.transaction_descriptions import (
        AbortTransactionSpec,
        FencedProducer,
        HangingTransaction,
        ProducerState,
        TransactionDescription,
        TransactionListing,
    )
    from .producer.transaction import Transaction
    from .protocol.acl_codes import AclOperation, AclPermissionType, PatternType, ResourceType
    from .share._implementation import ShareRecord
    from .share.acknowledgements import Acknowledge
    from .share.share_consumer import ShareConsumer
    from .share.share_record import Reject
    from .transform import OutgoingRecord

__all__ = (
    "AbortTransactionSpec",
    "Acknowledge",
    "AcknowledgementFailed",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "Admin",
    "AuthenticationFailed",
    "AwsCredentials",
    "BrokerError",
    "BufferFull",
    "Client",
    "ClusterDescription",
    "ClusterNode",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClientQuotaFilterComponent",
    "ClientQuotaMatchType",
    "CommitFailed",
    "ConfigEntry",
    "ConfigError",
    "ConfigOp",
    "ConfigOpType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConnectionLost",
    "Consumer",
    "ConsumerBatch",
    "ConsumerHealth",
    "ConsumerRecord",
    "ConsumerStalled",
    "CorruptBatch",
    "CreatedTopic",
    "DelegationToken",
    "Delivery",
    "DeliveryFailed",
    "DeserializationError",
    "ElectionType",
    "EpochEndOffset",
    "FeatureMetadata",
    "FeatureUpdate",
    "FinalizedVersionRange",
    "FencedProducer",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupMetadata",
    "HangingTransaction",
    "InvalidMessage",
    "IsolationLevel",
    "KafkaError",
    "KafkaPrincipal",
    "LogDirDescription",
    "NewPartitions",
    "NewTopic",
    "NoBrokerReachable",
    "OAuthBearerToken",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetSpec",
    "OutgoingRecord",
    "PartitionDescription",
    "PartitionReassignment",
    "PatternType",
    "Producer",
    "ProducerFenced",
    "ProducerIdentity",
    "QuorumInfo",
    "QuorumReplica",
    "RaftVoterEndpoint",
    "ProducerState",
    "RecordMetadata",
    "RecordTooLarge",
    "Reject",
    "ReplicaInfo",
    "ReplicaLogDirInfo",
    "RequestTimeout",
    "ScramCredentialInfo",
    "ScramMechanism",
    "ResourcePattern",
    "ResourceType",
    "ShareConsumer",
    "ShareRecord",
    "ShareGroupDescription",
    "ShareMemberDescription",
    "SharePartitionOffsetInfo",
    "SubscriptionPattern",
    "SupportedVersionRange",
    "StreamsGroupDescription",
    "StreamsGroupMemberAssignment",
    "StreamsGroupMemberDescription",
    "StreamsGroupSubtopologyDescription",
    "StreamsTopicInfo",
    "TimestampType",
    "TopicDescription",
    "TopicNotReady",
    "TopicPartition",
    "TopicPartitionReplica",
    "Transaction",
    "TransactionAborted",
    "TransactionDescription",
    "TransactionListing",
    "UnknownBrokerError",
    "UnsupportedVersion",
    "UpgradeType",
    "UsageError",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "WireError",
)

# The user's program configures logging; see docs/logging.md.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# Loaded on first use, since few programs need these modules.
# Loaded on first use, since only some programs need these modules.
_load_later: Callable[[str], object] = lazy_exports(
    __name__,
    {
        "AbortTransactionSpec": ".admin.transaction_descriptions",
        "Acknowledge": ".share.acknowledgements",
        "ClientQuotaEntity": ".admin.client_quotas",
        "ClientQuotaFilter": ".admin.client_quotas",
        "ClientQuotaFilterComponent": ".admin.client_quotas",
        "ClientQuotaMatchType": ".admin.client_quotas",
        "DelegationToken": ".admin.delegation_token_descriptions",
        "KafkaPrincipal": ".admin.delegation_token_descriptions",
        "CreatedTopic": ".admin.topic_descriptions",
        "LogDirDescription": ".admin.topic_descriptions",
        "OutgoingRecord": ".transform",
        "PartitionDescription": ".admin.topic_descriptions",
        "PartitionReassignment": ".admin.topic_descriptions",
        "ClusterDescription": ".admin.cluster_descriptions",
        "ClusterNode": ".admin.cluster_descriptions",
        "EpochEndOffset": ".admin.cluster_descriptions",
        "FeatureMetadata": ".admin.cluster_descriptions",
        "FeatureUpdate": ".admin.cluster_descriptions",
        "FinalizedVersionRange": ".admin.cluster_descriptions",
        "QuorumInfo": ".admin.cluster_descriptions",
        "QuorumReplica": ".admin.cluster_descriptions",
        "RaftVoterEndpoint": ".admin.cluster_descriptions",
        "FencedProducer": ".admin.transaction_descriptions",
        "HangingTransaction": ".admin.transaction_descriptions",
        "ProducerState": ".admin.transaction_descriptions",
        "Reject": ".share.share_record",
        "ScramCredentialInfo": ".admin.scram_credentials",
        "ScramMechanism": ".admin.scram_credentials",
        "ReplicaInfo": ".admin.topic_descriptions",
        "ReplicaLogDirInfo": ".admin.topic_descriptions",
        "AclBinding": ".admin.acl_bindings",
        "AclBindingFilter": ".admin.acl_bindings",
        "AclOperation": ".protocol.acl_codes",
        "AclPermissionType": ".protocol.acl_codes",
        "PatternType": ".protocol.acl_codes",
        "ResourcePattern": ".admin.acl_bindings",
        "ResourceType": ".protocol.acl_codes",
        "ShareConsumer": ".share.share_consumer",
        "ShareRecord": ".share._implementation",
        "TopicDescription": ".admin.topic_descriptions",
        "SupportedVersionRange": ".admin.cluster_descriptions",
        "Transaction": ".producer.transaction",
        "UpgradeType": ".admin.cluster_descriptions",
        "StreamsGroupDescription": ".admin.streams_group_descriptions",
        "StreamsGroupMemberAssignment": ".admin.streams_group_descriptions",
        "StreamsGroupMemberDescription": ".admin.streams_group_descriptions",
        "StreamsGroupSubtopologyDescription": ".admin.streams_group_descriptions",
        "StreamsTopicInfo": ".admin.streams_group_descriptions",
        "TransactionDescription": ".admin.transaction_descriptions",
        "TransactionListing": ".admin.transaction_descriptions",
        "UserScramCredentialDeletion": ".admin.scram_credentials",
        "UserScramCredentialUpsertion": ".admin.scram_credentials",
    },
)


def __getattr__(name: str) -> object:
    """Import a name on first use. For a name of another Kafka client, the error suggests this client's name."""
    from .other_clients_names import MODULE

    if name in MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; here: {MODULE[name]}")
    return _load_later(name)
