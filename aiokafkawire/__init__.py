"""A Kafka client that speaks the wire protocol itself, on asyncio, uvloop and trio."""

import logging
from typing import TYPE_CHECKING

from .admin.admin import Admin, NewTopic
from .admin.descriptions import GroupDescription, GroupListing, GroupMember
from .client import Client
from .consumer.consumer import Consumer, ConsumerBatch
from .consumer.health import ConsumerHealth
from .errors import (
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
    TimestampType,
    TopicPartition,
)

if TYPE_CHECKING:
    from .producer.transacting import Transaction
    from .transform import OutgoingRecord

__all__ = (
    "Admin",
    "AuthenticationFailed",
    "AwsCredentials",
    "BrokerError",
    "BufferFull",
    "Client",
    "CommitFailed",
    "ConfigError",
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
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupMetadata",
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
    "RecordMetadata",
    "RecordTooLarge",
    "RequestTimeout",
    "TimestampType",
    "TopicNotReady",
    "TopicPartition",
    "Transaction",
    "TransactionAborted",
    "UnknownBrokerError",
    "UnsupportedVersion",
    "UsageError",
    "WireError",
)

# The program configures logging: docs/logging.md.
logging.getLogger(__name__).addHandler(logging.NullHandler())

_LATER = {"OutgoingRecord": "transform", "Transaction": "producer.transacting"}


def __getattr__(name: str) -> object:
    """Return a name whose module is loaded on first use, since only transactions need it."""
    if name not in _LATER:
        from .other_clients_names import MODULE

        hint = f"; here: {MODULE[name]}" if name in MODULE else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    from importlib import import_module

    return getattr(import_module(f".{_LATER[name]}", __name__), name)
