"""A Kafka client that speaks the wire protocol itself, on asyncio, uvloop and trio."""

from .admin.admin import Admin, NewTopic
from .client import Client
from .consumer.consumer import Consumer, ConsumerBatch
from .errors import (
    BrokerError,
    BufferFull,
    ConfigError,
    ConnectionLost,
    CorruptBatch,
    DeliveryFailed,
    DeserializationError,
    InvalidMessage,
    KafkaError,
    NoBrokerReachable,
    RecordTooLarge,
    RequestTimeout,
    TopicNotReady,
    UnknownBrokerError,
    UnsupportedVersion,
    UsageError,
    WireError,
)
from .producer.producer import Producer
from .records.batch import ConsumerRecord, Delivery
from .types import (
    IsolationLevel,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    RecordMetadata,
    TimestampType,
    TopicPartition,
)

__all__ = (
    "Admin",
    "BrokerError",
    "BufferFull",
    "Client",
    "ConfigError",
    "ConnectionLost",
    "Consumer",
    "ConsumerBatch",
    "ConsumerRecord",
    "CorruptBatch",
    "Delivery",
    "DeliveryFailed",
    "DeserializationError",
    "InvalidMessage",
    "IsolationLevel",
    "KafkaError",
    "NewTopic",
    "NoBrokerReachable",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetSpec",
    "Producer",
    "RecordMetadata",
    "RecordTooLarge",
    "RequestTimeout",
    "TimestampType",
    "TopicNotReady",
    "TopicPartition",
    "UnknownBrokerError",
    "UnsupportedVersion",
    "UsageError",
    "WireError",
)
