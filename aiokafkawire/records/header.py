"""The header of a record batch v2, and the meaning of its bits."""

from .._lazy_classes import frozen
from ..types import TimestampType
from . import layout

__all__ = ("BatchHeader",)


@frozen
class BatchHeader:
    """The header of a record batch: its encoded fields, and properties computed from them."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def codec(self) -> int:
        """The number of the compression codec, which this client may not know."""
        return self.attributes & layout.CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the producer or the broker set the records' timestamps."""
        if self.attributes & layout.LOG_APPEND_TIME:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction, open or completed."""
        return bool(self.attributes & layout.TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the records are control records, such as transaction markers, which consumers do not return."""
        return bool(self.attributes & layout.CONTROL)

    @property
    def delete_horizon(self) -> int | None:
        """The time (ms since the epoch) after which compaction may remove tombstones and control records (KIP-534)."""
        return self.base_timestamp if self.attributes & layout.DELETE_HORIZON else None

    @property
    def last_offset(self) -> int:
        """The last offset of the batch; compaction may have removed its record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size(self) -> int:
        """The size of the batch in bytes, with its header."""
        return layout.LOG_OVERHEAD + self.length
