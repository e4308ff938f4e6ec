"""What a leader knows of the producers that wrote to a partition: it takes the next number only, and knows a copy."""

from collections import deque

import attrs

from aiokafkawire.errors import ErrorCode
from aiokafkawire.records.batch import RecordBatch

__all__ = ("Admitted", "ProducerStates")

_REMEMBERED = 5
_SEQUENCES = 2**31


@attrs.frozen
class Admitted:
    """Whether a batch is taken: its ``offset`` if the log has it already, -1 if it comes next, else an error."""

    error: ErrorCode = ErrorCode.NONE
    offset: int = -1


@attrs.define
class _Known:
    epoch: int
    batches: deque[tuple[int, int, int]] = attrs.Factory(lambda: deque(maxlen=_REMEMBERED))
    """The first and last sequence, and the offset, of the last batches in this epoch."""


class ProducerStates:
    """One partition's. As in Apache Kafka, a producer that is not known may begin with any number.

    With ``refuses_unknown``, as brokers before 2.5, UNKNOWN_PRODUCER_ID is the answer unless it begins with 0.
    """

    def __init__(self, *, refuses_unknown: bool = False) -> None:
        self.refuses_unknown = refuses_unknown
        self._known: dict[int, _Known] = {}

    def admit(self, batch: RecordBatch) -> Admitted:
        """Whether this batch may be written."""
        header = batch.header
        first, last = header.base_sequence, _last_sequence(batch)
        known = self._known.get(header.producer_id)
        if header.producer_id < 0:
            return Admitted()
        if known is None:
            return Admitted(ErrorCode.UNKNOWN_PRODUCER_ID if self.refuses_unknown and first else ErrorCode.NONE)
        if header.producer_epoch < known.epoch:
            return Admitted(ErrorCode.INVALID_PRODUCER_EPOCH)
        expected = 0
        if header.producer_epoch == known.epoch:
            for one in known.batches:
                if one[:2] == (first, last):
                    return Admitted(offset=one[2])
            expected = (known.batches[-1][1] + 1) % _SEQUENCES
        return Admitted(ErrorCode.NONE if first == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    def wrote(self, batch: RecordBatch, offset: int) -> None:
        """The batch is in the log."""
        header = batch.header
        if header.producer_id < 0:
            return
        known = self._known.get(header.producer_id)
        if known is None or known.epoch != header.producer_epoch:
            known = self._known[header.producer_id] = _Known(header.producer_epoch)
        known.batches.append((header.base_sequence, _last_sequence(batch), offset))

    def forget(self) -> None:
        """Nothing of any producer is left in the log."""
        self._known.clear()


def _last_sequence(batch: RecordBatch) -> int:
    return (batch.header.base_sequence + batch.header.last_offset_delta) % _SEQUENCES
