"""A Kafka client that speaks the wire protocol itself, on asyncio, uvloop and trio."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ._lazy_exports import lazy_exports
from .admin.admin import Admin, NewTopic
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
)

if TYPE_CHECKING:
    from .admin.streams_group_descriptions import (
        StreamsGroupDescription,
        StreamsGroupMemberAssignment,
        StreamsGroupMemberDescription,
        StreamsGroupSubtopologyDescription,
        StreamsTopicInfo,
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
    from .share._implementation import ShareRecord
    from .share.acknowledgements import Acknowledge
    from .share.share_consumer import ShareConsumer
    from .share.share_record import Reject
    from .transform import OutgoingRecord

__all__ = (
    "AbortTransactionSpec",
    "Acknowledge",
    "AcknowledgementFailed",
    "Admin",
    "AuthenticationFailed",
    "AwsCredentials",
    "BrokerError",
    "BufferFull",
    "Client",
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
    "Delivery",
    "DeliveryFailed",
    "DeserializationError",
    "FencedProducer",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupMetadata",
    "HangingTransaction",
    "InvalidMessage",
    "IsolationLevel",
    "KafkaError",
    "NewTopic",
    "NoBrokerReachable",
    "OAuthBearerToken",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetSpec",
    "OutgoingRecord",
    "Producer",
    "ProducerFenced",
    "ProducerIdentity",
    "ProducerState",
    "RecordMetadata",
    "RecordTooLarge",
    "Reject",
    "RequestTimeout",
    "ShareConsumer",
    "ShareRecord",
    "ShareGroupDescription",
    "ShareMemberDescription",
    "SharePartitionOffsetInfo",
    "StreamsGroupDescription",
    "StreamsGroupMemberAssignment",
    "StreamsGroupMemberDescription",
    "StreamsGroupSubtopologyDescription",
    "StreamsTopicInfo",
    "TimestampType",
    "TopicNotReady",
    "SubscriptionPattern",
    "TopicPartition",
    "Transaction",
    "TransactionAborted",
    "TransactionDescription",
    "TransactionListing",
    "UnknownBrokerError",
    "UnsupportedVersion",
    "UsageError",
    "WireError",
)

# The user's program configures logging; see docs/logging.md.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# Loaded on first use, since few programs need these modules.
_load_later: Callable[[str], object] = lazy_exports(
    __name__,
    {
        "AbortTransactionSpec": ".admin.transaction_descriptions",
        "Acknowledge": ".share.acknowledgements",
        "FencedProducer": ".admin.transaction_descriptions",
        "HangingTransaction": ".admin.transaction_descriptions",
        "OutgoingRecord": ".transform",
        "ProducerState": ".admin.transaction_descriptions",
        "Reject": ".share.share_record",
        "ShareConsumer": ".share.share_consumer",
        "ShareRecord": ".share._implementation",
        "StreamsGroupDescription": ".admin.streams_group_descriptions",
        "StreamsGroupMemberAssignment": ".admin.streams_group_descriptions",
        "StreamsGroupMemberDescription": ".admin.streams_group_descriptions",
        "StreamsGroupSubtopologyDescription": ".admin.streams_group_descriptions",
        "StreamsTopicInfo": ".admin.streams_group_descriptions",
        "Transaction": ".producer.transaction",
        "TransactionDescription": ".admin.transaction_descriptions",
        "TransactionListing": ".admin.transaction_descriptions",
    },
)


def __getattr__(name: str) -> object:
    """Import a name on first use. For a name of another Kafka client, the error suggests this client's name."""
    from .other_clients_names import MODULE

    if name in MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; here: {MODULE[name]}")
    return _load_later(name)
