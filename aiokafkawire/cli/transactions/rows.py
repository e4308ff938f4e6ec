"""The rows about transactional ids, producers and their transactions."""

from typing import Any, Final, TypeAlias

from ...admin.transaction_descriptions import (
    HangingTransaction,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from ...types import TopicPartition

__all__ = (
    "ABORTED",
    "DESCRIBED",
    "HANGING",
    "ID",
    "LISTED",
    "PRODUCERS",
    "Row",
    "described_row",
    "hanging_row",
    "listed_row",
    "producer_row",
)

Row: TypeAlias = dict[str, Any]

LISTED: Final = {
    "transactional_id": "TRANSACTIONAL ID",
    "coordinator": "COORDINATOR",
    "producer_id": "PRODUCER ID",
    "state": "STATE",
}
DESCRIBED: Final = LISTED | {
    "producer_epoch": "EPOCH",
    "timeout_ms": "TIMEOUT MS",
    "start_time_ms": "STARTED",
    "duration_ms": "DURATION MS",
    "partitions": "PARTITIONS",
}
PRODUCERS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "producer_id": "PRODUCER ID",
    "producer_epoch": "EPOCH",
    "coordinator_epoch": "COORDINATOR EPOCH",
    "last_sequence": "LAST SEQUENCE",
    "last_timestamp": "LAST TIMESTAMP",
    "start_offset": "OPEN SINCE OFFSET",
}
HANGING: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "producer_id": "PRODUCER ID",
    "producer_epoch": "EPOCH",
    "coordinator_epoch": "COORDINATOR EPOCH",
    "start_offset": "START OFFSET",
    "last_timestamp": "LAST TIMESTAMP",
    "idle_ms": "IDLE MS",
    "transactional_id": "TRANSACTIONAL ID",
}
ABORTED: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "producer_id": "PRODUCER ID",
    "producer_epoch": "EPOCH",
}
ID: Final = {"transactional_id": "TRANSACTIONAL ID"}


def listed_row(one: TransactionListing) -> Row:
    """Return the row of a listed transactional id."""
    return {
        "transactional_id": one.transactional_id,
        "coordinator": one.coordinator_id,
        "producer_id": one.producer_id,
        "state": one.state,
    }


def described_row(one: TransactionDescription, now_ms: int) -> Row:
    """Return the row of a transactional id and its current or last transaction."""
    start = one.transaction_start_time_ms
    return {
        "transactional_id": one.transactional_id,
        "coordinator": one.coordinator_id,
        "producer_id": one.producer_id,
        "state": one.state,
        "producer_epoch": one.producer_epoch,
        "timeout_ms": one.transaction_timeout_ms,
        "start_time_ms": start,
        "duration_ms": None if start is None else max(0, now_ms - start),
        "partitions": [f"{at.topic}:{at.partition}" for at in one.topic_partitions],
    }


def producer_row(partition: TopicPartition, producer: ProducerState) -> Row:
    """Return the row of a producer that has written to a partition."""
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "last_sequence": producer.last_sequence,
        "last_timestamp": producer.last_timestamp,
        "start_offset": producer.current_transaction_start_offset,
    }


def hanging_row(one: HangingTransaction, now_ms: int) -> Row:
    """Return the row of a hanging transaction."""
    idle_ms = max(0, now_ms - one.producer.last_timestamp)
    row = producer_row(one.topic_partition, one.producer)
    return {**row, "idle_ms": idle_ms, "transactional_id": one.transactional_id}
