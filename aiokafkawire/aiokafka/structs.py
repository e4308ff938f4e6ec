"""aiokafka's value types: partitions, offsets, and the metadata of records, brokers and partitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ..types import TopicPartition
from .errors import KafkaError

__all__ = (
    "BrokerMetadata",
    "ConsumerRecord",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionMetadata",
    "RecordMetadata",
    "TopicPartition",
)

KT = TypeVar("KT")
VT = TypeVar("VT")


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


@dataclass
class ConsumerRecord(Generic[KT, VT]):
    """A record that a consumer has read. ``checksum`` is always None; the size of an absent key or value is -1."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: KT | None
    value: VT | None
    checksum: int | None
    serialized_key_size: int
    serialized_value_size: int
    headers: Sequence[tuple[str, bytes]]
