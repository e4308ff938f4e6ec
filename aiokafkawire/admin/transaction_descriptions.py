"""Producers and transactions as the admin returns them (KIP-664)."""

from typing import Final

import attrs

from ..types import TopicPartition

__all__ = (
    "TRANSACTION_STATES",
    "AbortTransactionSpec",
    "FencedProducer",
    "HangingTransaction",
    "ProducerState",
    "TransactionDescription",
    "TransactionListing",
)

TRANSACTION_STATES: Final = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("Dead", "PrepareEpochFence"),
)
"""The states of transactional ids that brokers know."""


@attrs.frozen
class ProducerState:
    """A producer that has written to a partition lately, as the partition's log knows it.

    Attributes:
        producer_id: the producer's id.
        producer_epoch: the epoch of its newest batch or marker.
        last_sequence: the sequence number of its newest record; -1 if it has written none in this epoch.
        last_timestamp: the time of its newest batch or marker, in ms since the epoch.
        coordinator_epoch: the epoch of the coordinator that wrote its newest marker; None if it has no marker.
        current_transaction_start_offset: the offset of the first record of its open transaction; None if no
            transaction is open.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


@attrs.frozen
class TransactionListing:
    """A transactional id: its producer id, the id of the broker that coordinates it, and its state, as "Ongoing"."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


@attrs.frozen
class TransactionDescription:
    """A transactional id, and its current or last transaction.

    Attributes:
        transactional_id: the transactional id.
        coordinator_id: the id of the broker that coordinates it.
        state: "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit" or "CompleteAbort".
        producer_id: the id of its producer.
        producer_epoch: the epoch of its producer.
        transaction_timeout_ms: after which the coordinator aborts a transaction (``transaction_timeout_ms``).
        transaction_start_time_ms: the start of the transaction, in ms since the epoch; None if there was none yet.
        topic_partitions: the partitions of an open transaction; those without a marker yet while it ends.
    """

    transactional_id: str
    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    topic_partitions: tuple[TopicPartition, ...]


@attrs.frozen
class AbortTransactionSpec:
    """The transaction of a producer in one partition, to abort.

    :meth:`of` makes it from a producer that ``describe_producers`` returned.
    """

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int = 0

    @classmethod
    def of(cls, topic_partition: TopicPartition, producer: ProducerState) -> "AbortTransactionSpec":
        """Return the open transaction of a producer in a partition."""
        # The log of a producer without a marker knows no coordinator; epoch 0 is below that of every coordinator.
        epoch = producer.coordinator_epoch or 0
        return cls(topic_partition, producer.producer_id, producer.producer_epoch, epoch)


@attrs.frozen
class HangingTransaction:
    """An open transaction in a partition that no coordinator will end; it blocks consumers with READ_COMMITTED.

    ``transactional_id`` is the id that the producer id belongs to now; None if the coordinators do not know it.
    """

    topic_partition: TopicPartition
    producer: ProducerState
    transactional_id: str | None

    @property
    def start_offset(self) -> int | None:
        """The offset of the first record of the transaction."""
        return self.producer.current_transaction_start_offset

    @property
    def abort_spec(self) -> AbortTransactionSpec:
        """The transaction, for ``abort_transaction``."""
        return AbortTransactionSpec.of(self.topic_partition, self.producer)


@attrs.frozen
class FencedProducer:
    """The producer id and the new epoch of a transactional id; producers with older epochs are fenced."""

    producer_id: int
    producer_epoch: int
