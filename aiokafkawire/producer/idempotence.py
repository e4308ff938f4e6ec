"""How records are numbered, so that a retry neither doubles nor reorders them (KIP-98, KIP-360).

A leader knows the last number that it wrote for a producer and partition, and takes only the next. So:

1. A batch gets its number when it is first sent, and keeps it for every retry: the leader answers a batch that it has
   already as if it had just been written.
2. A batch is refused as out of order while one before it is missing. If that one will be tried again, so is the batch,
   behind it. If nothing is before it any more, for we gave up what was, the number is lost: then the partition
   begins at 0 in the next epoch. What still travels under the old one will be refused from there on.
3. Only batches that are known not to be written are numbered anew. A refused batch is not written, and neither is any
   that was sent behind it.
4. The log of a topic that was created anew knows no producer. Once no batch of the partition is in flight, it begins
   at 0 in the next epoch. A transaction has one epoch, so its batches keep their numbers.
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

__all__ = ("Numbered", "Sequences", "Verdict", "after", "judge")

_LAST_EPOCH: Final = 2**15 - 1
_SEQUENCES: Final = 2**31


class Verdict(Enum):
    """What an error about its number means for a batch."""

    WRITTEN = "it is in the log"
    BEHIND = "try it again, when those before it are in the log"
    RENUMBER = "it is not in the log, and never will be under this number"
    RENEW = "it is not in the log, and this producer id is of no use any more"
    RESUME = "it is not in the log, and is written there under the same number"


def judge(error: KafkaError, *, first: bool, transactional: bool) -> Verdict | None:
    """What the error means; None if it is not about the number, or ends a transaction.

    ``first``: no batch of the partition is before this one, neither on its way nor waiting.
    """
    if isinstance(error, DuplicateSequenceNumber):
        return Verdict.WRITTEN
    if isinstance(error, OutOfOrderSequenceNumber | UnknownProducerId):
        if not first:
            return Verdict.BEHIND
        return None if transactional else Verdict.RENUMBER
    if isinstance(error, InvalidProducerEpoch) and not transactional:
        return Verdict.RENEW if first else Verdict.BEHIND
    return None


class Numbered(Protocol):
    """A batch as far as its number goes."""

    where: TopicPartition
    producer_id: int
    producer_epoch: int
    base_sequence: int

    @property
    def count(self) -> int:
        """How many records it has."""


class _Numbers:
    """What the next batch of a partition gets."""

    __slots__ = ("next_sequence", "producer_epoch", "producer_id")

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id, self.producer_epoch, self.next_sequence = producer_id, producer_epoch, 0


class Sequences:
    """The producer id with its epoch, and the next sequence of each partition."""

    def __init__(self) -> None:
        self.producer_id: int = -1
        self.producer_epoch: int = -1
        self._partitions: dict[TopicPartition, _Numbers] = {}

    @property
    def needs_identity(self) -> bool:
        """Whether a producer id has to be asked for before anything is sent, or sent again."""
        return self.producer_id < 0

    def identify(self, producer_id: int, producer_epoch: int) -> None:
        """A new id or epoch, for partitions that have none yet or :meth:`restart`."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch

    def begin_anew(self, producer_id: int, producer_epoch: int) -> None:
        """A new id or epoch for all partitions. No numbered batch is left."""
        self._partitions.clear()
        self.identify(producer_id, producer_epoch)

    def number(self, batch: Numbered) -> None:
        """Give the batch its number, unless it has one."""
        if batch.base_sequence >= 0:
            return
        numbers = self._partitions.get(batch.where)
        if numbers is None:
            numbers = self._partitions[batch.where] = _Numbers(self.producer_id, self.producer_epoch)
        batch.producer_id, batch.producer_epoch = numbers.producer_id, numbers.producer_epoch
        batch.base_sequence = numbers.next_sequence
        numbers.next_sequence = after(numbers.next_sequence, batch.count)

    def restart(self, where: TopicPartition, verdict: Verdict) -> bool:
        """Begin at 0 in the partition's next epoch, or under a new id; False while that id is not known yet.

        No batch of the partition is on its way, and those that had numbers lose them.
        """
        numbers = self._partitions.get(where)
        if numbers is None:
            return not self.needs_identity
        if verdict is Verdict.RENUMBER and numbers.producer_epoch < _LAST_EPOCH:
            # Epochs are each partition's own: a leader compares them with what it has seen there.
            self._partitions[where] = _Numbers(numbers.producer_id, numbers.producer_epoch + 1)
            return True
        if numbers.producer_id == self.producer_id:
            self.producer_id = self.producer_epoch = -1
        if self.needs_identity:
            return False
        self._partitions[where] = _Numbers(self.producer_id, self.producer_epoch)
        return True


def after(sequence: int, count: int) -> int:
    """The sequence behind so many records. It goes round: 0 comes after the largest int32."""
    return (sequence + count) % _SEQUENCES
