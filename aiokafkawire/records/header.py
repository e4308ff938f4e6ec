"""The header of a record batch v2, and what its bits mean."""

import attrs

from ..types import TimestampType
from . import layout

__all__ = ("BatchHeader",)


@attrs.frozen
class BatchHeader:
    """The fields of a batch's header, as they are on the wire."""

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
        """The number of the compression codec; numbers that no codec has can come."""
        return self.attributes & layout.CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Whose the records' timestamps are."""
        if self.attributes & layout.LOG_APPEND_TIME:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction, open or decided."""
        return bool(self.attributes & layout.TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether its records are markers of the broker and not for users."""
        return bool(self.attributes & layout.CONTROL)

    @property
    def delete_horizon(self) -> int | None:
        """When tombstones and markers in it may be compacted away (ms since the epoch; KIP-534)."""
        return self.base_timestamp if self.attributes & layout.DELETE_HORIZON else None

    @property
    def last_offset(self) -> int:
        """The last offset it covers; compaction may have removed the record there."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after it."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header and all."""
        return layout.LOG_OVERHEAD + self.length
