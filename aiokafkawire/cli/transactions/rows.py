"""The rows about transactional ids, producers and their transactions."""

from typing import Any, Final, TypeAlias

from ...admin.transaction_descriptions import (
    HangingTransaction,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from ...types import TopicPartition
from ..shell.partition_names import indexes_by_topic

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

LISTED: Final = ("transactional_id", "coordinator_id", "producer_id", "state")
DESCRIBED: Final = (*LISTED, "producer_epoch", "timeout_ms", "start_timestamp", "duration_ms", "topic_partitions")
_PRODUCER: Final = ("topic", "partition", "producer_id", "producer_epoch")
PRODUCERS: Final = (*_PRODUCER, "coordinator_epoch", "last_sequence", "last_timestamp", "start_offset")
HANGING: Final = (*_PRODUCER, "coordinator_epoch", "start_offset", "last_timestamp", "idle_ms", "transactional_id")
ABORTED: Final = _PRODUCER
ID: Final = ("transactional_id",)


def listed_row(one: TransactionListing) -> Row:
    """Return the row of a listed transactional id."""
    return {
        "transactional_id": one.transactional_id,
        "coordinator_id": one.coordinator_id,
        "producer_id": one.producer_id,
        "state": one.state,
    }


def described_row(one: TransactionDescription, now_ms: int) -> Row:
    """Return the row of a transactional id and its current or last transaction."""
    start = one.transaction_start_time_ms
    return {
        "transactional_id": one.transactional_id,
        "coordinator_id": one.coordinator_id,
        "producer_id": one.producer_id,
        "state": one.state,
        "producer_epoch": one.producer_epoch,
        "timeout_ms": one.transaction_timeout_ms,
        "start_timestamp": start,
        "duration_ms": None if start is None else max(0, now_ms - start),
        "topic_partitions": indexes_by_topic(one.topic_partitions),
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
