"""The control batch that ends a transaction in a partition: one marker, commit or abort (KIP-98)."""

from typing import Final

from ...protocol.compiler import decode, encode
from ...protocol.messages.control_records import ControlRecordTypeSchema, EndTxnMarker
from ...records import layout
from ...records.batch import BatchBuilder, RecordBatch, RecordReader

__all__ = ("EndMarker", "end_marker")

_ABORT: Final = 0
_COMMIT: Final = 1
_VERSION: Final = 0  # of both schemas; a number before the encoded key and value
_ROOM: Final = 1 << 10


class EndMarker:
    """The content of an end marker: whether it commits the transaction, and the coordinator's epoch."""

    __slots__ = ("commit", "coordinator_epoch")

    def __init__(self, batch: RecordBatch) -> None:
        """Parse the marker in a control batch."""
        records: RecordReader[bytes, bytes] = batch.records("", 0, check_crcs=False)
        record = next(iter(records))
        key = decode(ControlRecordTypeSchema, _VERSION, record.key or b"", layout.INT16.size)
        value = decode(EndTxnMarker, _VERSION, record.value or b"", layout.INT16.size)
        self.commit: bool = key.type == _COMMIT
        self.coordinator_epoch: int = value.coordinator_epoch


def end_marker(
    producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int, timestamp: int
) -> RecordBatch:
    """Return the control batch of an end marker, with base offset 0; ``timestamp`` is in ms since the epoch."""
    builder = BatchBuilder(limit=_ROOM)
    version = layout.INT16.pack(_VERSION)
    builder.append(
        timestamp,
        version + encode(ControlRecordTypeSchema(type=_COMMIT if commit else _ABORT), _VERSION),
        version + encode(EndTxnMarker(coordinator_epoch=coordinator_epoch), _VERSION),
    )
    marker = builder.build(producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True)
    return RecordBatch.parse(memoryview(marker))
