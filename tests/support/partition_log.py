"""A partition of a model: its log, as leaders keep it, of records whose values are numbers."""

import attrs
from support.producer_states import ProducerStates

from aiokafkawire.errors import ErrorCode
from aiokafkawire.producer.batch import ProducerBatch
from aiokafkawire.records.batch import AnyReader, RecordBatch

__all__ = ("Log", "values_in")


@attrs.define(eq=False)
class Log:
    """A partition: its batches, how many of them every replica has, and what the leader knows of producers."""

    leader: int
    batches: list[RecordBatch] = attrs.Factory(list)
    values: list[int] = attrs.Factory(list)
    """Those of all records."""
    acknowledged: int = 0
    states: ProducerStates = attrs.Factory(ProducerStates)

    def append(self, batch: RecordBatch) -> tuple[ErrorCode, int]:
        """Take the batch, or say that it is there already: the error, and the offset."""
        admitted = self.states.admit(batch)
        if admitted.error or admitted.offset >= 0:
            return admitted.error, admitted.offset
        return ErrorCode.NONE, self._write(batch)

    def _write(self, batch: RecordBatch) -> int:
        offset = len(self.values)
        self.states.wrote(batch, offset)
        self.batches.append(batch)
        self.values += values_of(batch)
        return offset

    def replicate(self, offset: int) -> None:
        """A batch at this offset is acknowledged, and with it all before it."""
        end = 0
        for count, batch in enumerate(self.batches, 1):
            end += batch.header.last_offset_delta + 1
            if end > offset:
                self.acknowledged = max(self.acknowledged, count)
                return

    def truncate(self) -> None:
        """The new leader has only what was acknowledged."""
        kept = self.batches[: self.acknowledged]
        self.batches, self.values, self.states = [], [], ProducerStates()
        for batch in kept:
            self._write(batch)


def values_in(batch: ProducerBatch) -> list[int]:
    """Those of a batch that is not in the log, or not yet."""
    return values_of(RecordBatch.parse(memoryview(batch.builder.build())))


def values_of(batch: RecordBatch) -> list[int]:
    reader: AnyReader[bytes, bytes] = batch.records("a", 0)
    return [int(record.raw_value or b"") for record in reader]
