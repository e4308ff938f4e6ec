"""Sequence numbers, with which a retry neither duplicates nor reorders records (KIP-98, KIP-360).

A leader knows the last sequence number that it wrote for a producer and partition, and accepts only the next. So:

1. A batch gets its number when it is first sent, and keeps it for every retry. If the leader has the batch already, the
   leader answers as if it had just written the batch.
2. A leader refuses a batch as out of order while an earlier one is missing. If the earlier batch will be retried, the
   refused batch is retried after it. If the earlier batch has failed, its number is never written: the partition's
   numbers restart at 0 in the next epoch, and the leader refuses batches that are still in flight in the old epoch.
3. Only batches that are known not to be written get new numbers: a refused batch, and the batches sent after it.
4. The log of a recreated topic has no sequence numbers. Once no batch of the partition is in flight, the partition's
   numbers restart at 0 in the next epoch. A transaction has one epoch, so its batches keep their numbers.
"""

from enum import Enum
from typing import Final, Protocol

from ..errors import (
    DuplicateSequenceNumber,
    InvalidProducerEpoch,
    KafkaError,
    OutOfOrderSequenceNumber,
    UnknownProducerId,
)
from ..types import TopicPartition

__all__ = ("NumberedBatch", "SequenceAction", "SequenceNumbers", "classify", "sequence_after")

_LAST_EPOCH: Final = 2**15 - 1
_SEQUENCES: Final = 2**31


class SequenceAction(Enum):
    """The action for a batch after an error about its sequence number."""

    WRITTEN = "the batch is in the log: acknowledge it"
    RETRY_BEHIND = "retry it when those before it are in the log"
    RENUMBER = "it is not in the log, and never will be under this number: restart in the next epoch"
    NEW_PRODUCER_ID = "it is not in the log, and this producer id is unusable: restart under another"
    RESUME = "it is not in the log, and keeps its number"


def classify(error: KafkaError, *, first: bool, transactional: bool) -> SequenceAction | None:
    """Return the action after a batch's error.

    None if the error is not about sequence numbers, or if only an abort of the transaction can follow it. ``first`` is
    whether no earlier batch of the partition is in flight or waits to be sent.
    """
    if isinstance(error, DuplicateSequenceNumber):
        return SequenceAction.WRITTEN
    if isinstance(error, OutOfOrderSequenceNumber | UnknownProducerId):
        if not first:
            return SequenceAction.RETRY_BEHIND
        return None if transactional else SequenceAction.RENUMBER
    if isinstance(error, InvalidProducerEpoch) and not transactional:
        return SequenceAction.NEW_PRODUCER_ID if first else SequenceAction.RETRY_BEHIND
    return None


class NumberedBatch(Protocol):
    """The part of a batch that :class:`SequenceNumbers` uses."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    base_sequence: int

    @property
    def count(self) -> int:
        """The number of the batch's records."""


class _PartitionSequence:
    """The producer id, epoch and sequence number of a partition's next batch."""

    __slots__ = ("next_sequence", "producer_epoch", "producer_id")

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id, self.producer_epoch, self.next_sequence = producer_id, producer_epoch, 0


class SequenceNumbers:
    """The producer id with its epoch, and the next sequence number of each partition."""

    def __init__(self) -> None:
        self.producer_id: int = -1
        self.producer_epoch: int = -1
        self._partitions: dict[TopicPartition, _PartitionSequence] = {}

    @property
    def needs_producer_id(self) -> bool:
        """Whether the producer must request an id before it can send a batch."""
        return self.producer_id < 0

    def set_producer_id(self, producer_id: int, producer_epoch: int) -> None:
        """Use this id and epoch for partitions that get their first sequence number or restart under a new id."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch

    def reset(self, producer_id: int, producer_epoch: int) -> None:
        """Use this id and epoch for all partitions, from number 0 on; all numbered batches must have ended before."""
        self._partitions.clear()
        self.set_producer_id(producer_id, producer_epoch)

    def number(self, batch: NumberedBatch) -> None:
        """Give the batch the next sequence number of its partition, unless the batch has one."""
        if batch.base_sequence >= 0:
            return
        sequence = self._partitions.get(batch.partition)
        if sequence is None:
            sequence = _PartitionSequence(self.producer_id, self.producer_epoch)
            self._partitions[batch.partition] = sequence
        batch.producer_id, batch.producer_epoch = sequence.producer_id, sequence.producer_epoch
        batch.base_sequence = sequence.next_sequence
        sequence.next_sequence = sequence_after(sequence.next_sequence, batch.count)

    def restart(self, partition: TopicPartition, action: SequenceAction) -> bool:
        """Restart a partition's sequence numbers at 0, in a new epoch or under a new producer id, unless none is known.

        The caller ensures that no batch of the partition is in flight, and resets the numbers of its waiting batches.
        """
        sequence = self._partitions.get(partition)
        if sequence is None:
            return not self.needs_producer_id
        if action is SequenceAction.RENUMBER and sequence.producer_epoch < _LAST_EPOCH:
            # Each partition has an epoch of its own: a leader compares it only with the partition's earlier epochs.
            self._partitions[partition] = _PartitionSequence(sequence.producer_id, sequence.producer_epoch + 1)
            return True
        if sequence.producer_id == self.producer_id:
            self.producer_id = self.producer_epoch = -1
        if self.needs_producer_id:
            return False
        self._partitions[partition] = _PartitionSequence(self.producer_id, self.producer_epoch)
        return True


def sequence_after(sequence: int, count: int) -> int:
    """Return the sequence number ``count`` records later; 0 follows the largest int32."""
    return (sequence + count) % _SEQUENCES
