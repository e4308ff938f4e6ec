"""aiokafka's value types: partitions, offsets, and the metadata of records, brokers and partitions."""

from typing import NamedTuple

from ..types import TopicPartition
from .errors import KafkaError
from .records import ConsumerRecord

__all__ = (
    "BrokerMetadata",
    "ConsumerRecord",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionMetadata",
    "RecordMetadata",
    "TopicPartition",
)


class BrokerMetadata(NamedTuple):
    """A broker, its address and its rack."""

    nodeId: int | str  # noqa: N815, as in aiokafka
    host: str
    port: int
    rack: str | None


class PartitionMetadata(NamedTuple):
    """A partition with the ids of its leader, its replicas and those in sync; the leader is -1 if there is none."""

    topic: str
    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    error: KafkaError | None


class OffsetAndMetadata(NamedTuple):
    """A committed offset, and the text that was committed with it."""

    offset: int
    metadata: str


class OffsetAndTimestamp(NamedTuple):
    """The result of a lookup by timestamp: an offset, and its record's timestamp in ms since the epoch."""

    offset: int
    timestamp: int | None


class RecordMetadata(NamedTuple):
    """Where an acknowledged record was written.

    ``timestamp_type`` is 0 if the timestamp is the producer's (CreateTime), and 1 if it is the broker's
    (LogAppendTime). ``log_start_offset`` is always None.
    """

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int | None
    timestamp_type: int
    log_start_offset: int | None
