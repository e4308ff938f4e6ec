"""A Kafka client that speaks the wire protocol itself, on asyncio, uvloop and trio."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ._lazy_exports import lazy_exports
from .version import __version__

if TYPE_CHECKING:
    from .admin.acl_bindings import (
        AclBinding,
        AclBindingFilter,
        ResourcePattern,
    )
    from .admin.admin import Admin
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
    from .admin.config_resources import (
        ConfigEntry,
        ConfigOp,
        ConfigOpType,
        ConfigResource,
        ConfigResourceType,
        ConfigSource,
        ConfigSynonym,
    )
    from .admin.delegation_token_descriptions import (
        DelegationToken,
        KafkaPrincipal,
    )
    from .admin.descriptions import (
        GroupDescription,
        GroupListing,
        GroupMember,
        ShareGroupDescription,
        ShareMemberDescription,
        SharePartitionOffsetInfo,
    )
    from .admin.new_topics import (
        NewPartitions,
        NewTopic,
    )
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
    from .client import Client
    from .client_health import ClientHealth
    from .config.confluent import from_confluent
    from .config.environment import properties_from_environment
    from .config.properties import KafkaSettings, settings_from
    from .consumer.consumer import (
        Consumer,
        ConsumerBatch,
    )
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
        RecordsPurged,
        RecordTooLarge,
        RequestTimeout,
        TopicNotReady,
        TransactionAborted,
        UnknownBrokerError,
        UnsupportedVersion,
        UsageError,
        WireError,
    )
    from .processing.health import ProcessingHealth
    from .processing.retry import Retry
    from .processing.retry_topics import RetryTopic
    from .processing.summary import ProcessSummary
    from .producer.health import ProducerHealth
    from .producer.producer import Producer
    from .producer.transaction import Transaction
    from .protocol.acl_codes import (
        AclOperation,
        AclPermissionType,
        PatternType,
        ResourceType,
    )
    from .records.batch import (
        ConsumerRecord,
        Delivery,
    )
    from .share._implementation import ShareRecord
    from .share.acknowledgements import Acknowledge
    from .share.health import ShareConsumerHealth
    from .share.share_consumer import ShareConsumer
    from .share.share_record import Reject
    from .transform import OutgoingRecord
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
    "ClientHealth",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClientQuotaFilterComponent",
    "ClientQuotaMatchType",
    "ClusterDescription",
    "ClusterNode",
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
    "FencedProducer",
    "FinalizedVersionRange",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupMetadata",
    "HangingTransaction",
    "InvalidMessage",
    "IsolationLevel",
    "KafkaError",
    "KafkaPrincipal",
    "KafkaSettings",
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
    "ProcessSummary",
    "ProcessingHealth",
    "Producer",
    "ProducerFenced",
    "ProducerHealth",
    "ProducerIdentity",
    "ProducerState",
    "QuorumInfo",
    "QuorumReplica",
    "RaftVoterEndpoint",
    "RecordMetadata",
    "RecordTooLarge",
    "RecordsPurged",
    "Reject",
    "ReplicaInfo",
    "ReplicaLogDirInfo",
    "RequestTimeout",
    "ResourcePattern",
    "ResourceType",
    "Retry",
    "RetryTopic",
    "ScramCredentialInfo",
    "ScramMechanism",
    "ShareConsumer",
    "ShareConsumerHealth",
    "ShareGroupDescription",
    "ShareMemberDescription",
    "SharePartitionOffsetInfo",
    "ShareRecord",
    "StreamsGroupDescription",
    "StreamsGroupMemberAssignment",
    "StreamsGroupMemberDescription",
    "StreamsGroupSubtopologyDescription",
    "StreamsTopicInfo",
    "SubscriptionPattern",
    "SupportedVersionRange",
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
    "__version__",
    "from_confluent",
    "properties_from_environment",
    "settings_from",
)

# The user's program configures logging; see docs/logging.md.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# Everything is loaded on first use, so that a program loads only what it needs.
_MODULES = {
    "AbortTransactionSpec": ".admin.transaction_descriptions",
    "Acknowledge": ".share.acknowledgements",
    "AcknowledgementFailed": ".errors",
    "AclBinding": ".admin.acl_bindings",
    "AclBindingFilter": ".admin.acl_bindings",
    "AclOperation": ".protocol.acl_codes",
    "AclPermissionType": ".protocol.acl_codes",
    "Admin": ".admin.admin",
    "AuthenticationFailed": ".errors",
    "AwsCredentials": ".types",
    "BrokerError": ".errors",
    "BufferFull": ".errors",
    "Client": ".client",
    "ClientHealth": ".client_health",
    "ClientQuotaEntity": ".admin.client_quotas",
    "ClientQuotaFilter": ".admin.client_quotas",
    "ClientQuotaFilterComponent": ".admin.client_quotas",
    "ClientQuotaMatchType": ".admin.client_quotas",
    "ClusterDescription": ".admin.cluster_descriptions",
    "ClusterNode": ".admin.cluster_descriptions",
    "CommitFailed": ".errors",
    "ConfigEntry": ".admin.config_resources",
    "ConfigError": ".errors",
    "ConfigOp": ".admin.config_resources",
    "ConfigOpType": ".admin.config_resources",
    "ConfigResource": ".admin.config_resources",
    "ConfigResourceType": ".admin.config_resources",
    "ConfigSource": ".admin.config_resources",
    "ConfigSynonym": ".admin.config_resources",
    "ConnectionLost": ".errors",
    "Consumer": ".consumer.consumer",
    "ConsumerBatch": ".consumer.consumer",
    "ConsumerHealth": ".consumer.health",
    "ConsumerRecord": ".records.batch",
    "ConsumerStalled": ".errors",
    "CorruptBatch": ".errors",
    "CreatedTopic": ".admin.topic_descriptions",
    "DelegationToken": ".admin.delegation_token_descriptions",
    "Delivery": ".records.batch",
    "DeliveryFailed": ".errors",
    "DeserializationError": ".errors",
    "ElectionType": ".types",
    "EpochEndOffset": ".admin.cluster_descriptions",
    "FeatureMetadata": ".admin.cluster_descriptions",
    "FeatureUpdate": ".admin.cluster_descriptions",
    "FencedProducer": ".admin.transaction_descriptions",
    "FinalizedVersionRange": ".admin.cluster_descriptions",
    "GroupDescription": ".admin.descriptions",
    "GroupListing": ".admin.descriptions",
    "GroupMember": ".admin.descriptions",
    "GroupMetadata": ".types",
    "HangingTransaction": ".admin.transaction_descriptions",
    "InvalidMessage": ".errors",
    "IsolationLevel": ".types",
    "KafkaError": ".errors",
    "KafkaPrincipal": ".admin.delegation_token_descriptions",
    "KafkaSettings": ".config.properties",
    "LogDirDescription": ".admin.topic_descriptions",
    "NewPartitions": ".admin.new_topics",
    "NewTopic": ".admin.new_topics",
    "NoBrokerReachable": ".errors",
    "OAuthBearerToken": ".types",
    "OffsetAndMetadata": ".types",
    "OffsetAndTimestamp": ".types",
    "OffsetSpec": ".types",
    "OutgoingRecord": ".transform",
    "PartitionDescription": ".admin.topic_descriptions",
    "PartitionReassignment": ".admin.topic_descriptions",
    "PatternType": ".protocol.acl_codes",
    "ProcessSummary": ".processing.summary",
    "ProcessingHealth": ".processing.health",
    "Producer": ".producer.producer",
    "ProducerFenced": ".errors",
    "ProducerHealth": ".producer.health",
    "ProducerIdentity": ".types",
    "ProducerState": ".admin.transaction_descriptions",
    "QuorumInfo": ".admin.cluster_descriptions",
    "QuorumReplica": ".admin.cluster_descriptions",
    "RaftVoterEndpoint": ".admin.cluster_descriptions",
    "RecordMetadata": ".types",
    "RecordTooLarge": ".errors",
    "RecordsPurged": ".errors",
    "Reject": ".share.share_record",
    "ReplicaInfo": ".admin.topic_descriptions",
    "ReplicaLogDirInfo": ".admin.topic_descriptions",
    "RequestTimeout": ".errors",
    "ResourcePattern": ".admin.acl_bindings",
    "ResourceType": ".protocol.acl_codes",
    "Retry": ".processing.retry",
    "RetryTopic": ".processing.retry_topics",
    "ScramCredentialInfo": ".admin.scram_credentials",
    "ScramMechanism": ".admin.scram_credentials",
    "ShareConsumer": ".share.share_consumer",
    "ShareConsumerHealth": ".share.health",
    "ShareGroupDescription": ".admin.descriptions",
    "ShareMemberDescription": ".admin.descriptions",
    "SharePartitionOffsetInfo": ".admin.descriptions",
    "ShareRecord": ".share._implementation",
    "StreamsGroupDescription": ".admin.streams_group_descriptions",
    "StreamsGroupMemberAssignment": ".admin.streams_group_descriptions",
    "StreamsGroupMemberDescription": ".admin.streams_group_descriptions",
    "StreamsGroupSubtopologyDescription": ".admin.streams_group_descriptions",
    "StreamsTopicInfo": ".admin.streams_group_descriptions",
    "SubscriptionPattern": ".types",
    "SupportedVersionRange": ".admin.cluster_descriptions",
    "TimestampType": ".types",
    "TopicDescription": ".admin.topic_descriptions",
    "TopicNotReady": ".errors",
    "TopicPartition": ".types",
    "TopicPartitionReplica": ".types",
    "Transaction": ".producer.transaction",
    "TransactionAborted": ".errors",
    "TransactionDescription": ".admin.transaction_descriptions",
    "TransactionListing": ".admin.transaction_descriptions",
    "UnknownBrokerError": ".errors",
    "UnsupportedVersion": ".errors",
    "UpgradeType": ".admin.cluster_descriptions",
    "UsageError": ".errors",
    "UserScramCredentialDeletion": ".admin.scram_credentials",
    "UserScramCredentialUpsertion": ".admin.scram_credentials",
    "WireError": ".errors",
    "from_confluent": ".config.confluent",
    "properties_from_environment": ".config.environment",
    "settings_from": ".config.properties",
}
_SUBMODULES = ("admin", "consumer", "errors", "producer", "protocol", "records", "types")
_load: Callable[[str], object] = lazy_exports(__name__, _MODULES, _SUBMODULES)


def __getattr__(name: str) -> object:
    """Import a name on first use. For a name of another Kafka client, the error suggests this client's name."""
    if name not in _MODULES and name not in _SUBMODULES:
        from .other_clients_names import MODULE

        if name in MODULE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}; here: {MODULE[name]}")
    return _load(name)


def __dir__() -> list[str]:
    """Return the names of the module, also of what is not loaded yet."""
    return sorted({*globals(), *__all__})
