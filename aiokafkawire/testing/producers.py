"""What a partition remembers of idempotent producers: enough to tell a retry from a gap (KIP-98)."""

from collections import deque
from typing import Final, NamedTuple

from ..errors import ErrorCode
from ..records.batch import BatchHeader
from .refused import Refused

__all__ = ("Appended", "ProducerStates")

_RETAINED: Final = 5  # batches per producer, as many as it may have in flight
_SEQUENCES: Final = 2**31  # sequence numbers wrap to 0 after the highest int32


class Appended(NamedTuple):
    """A batch in the log: its sequences, and what its producer is told if it sends it again."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    max_timestamp: int


class _Producer:
    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[Appended] = deque(maxlen=_RETAINED)


class ProducerStates:
    """The newest batches of each producer id that has written to one partition."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def admit(self, header: BatchHeader) -> Appended | None:
        """Whether the batch is the next of its producer (None), or one that was appended before: then that one.

        Raises:
            Refused: INVALID_PRODUCER_EPOCH or OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        known = self._producers.get(header.producer_id)
        if header.producer_id < 0 or known is None:
            return None
        if header.producer_epoch < known.epoch:
            raise Refused(ErrorCode.INVALID_PRODUCER_EPOCH)
        if header.producer_epoch > known.epoch:
            expected = 0
        else:
            sequences = header.base_sequence, _last_sequence(header)
            for batch in known.batches:
                if (batch.first_sequence, batch.last_sequence) == sequences:
                    return batch
            expected = (known.batches[-1].last_sequence + 1) % _SEQUENCES
        if header.base_sequence != expected:
            raise Refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        return None

    def appended(self, header: BatchHeader) -> None:
        """Remember a batch that was admitted and now has its offsets."""
        if header.producer_id < 0:
            return
        known = self._producers.get(header.producer_id)
        if known is None or known.epoch != header.producer_epoch:
            known = self._producers[header.producer_id] = _Producer(header.producer_epoch)
        known.batches.append(
            Appended(header.base_sequence, _last_sequence(header), header.base_offset, header.max_timestamp)
        )


def _last_sequence(header: BatchHeader) -> int:
    return (header.base_sequence + header.last_offset_delta) % _SEQUENCES
