"""The common interface of batches of all formats."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from ..types import TimestampType
from .columns import Columns

if TYPE_CHECKING:
    from ._pure import ConsumerRecord

__all__ = ("DEFAULT_INFLATE_LIMIT", "AnyBatch", "AnyHeader", "AnyReader")

K = TypeVar("K")
V = TypeVar("V")

DEFAULT_INFLATE_LIMIT = 128 * 1024 * 1024
"""The maximum decompressed size of a batch. Brokers bound batches by their compressed size, 1 MB by default."""


class AnyHeader(Protocol):
    """The fields of a batch that are known before decompression; -1 for fields that a format does not have."""

    @property
    def magic(self) -> int:
        """The format: 2 for record batches, 0 and 1 for message sets."""

    @property
    def attributes(self) -> int:
        """Codec, timestamp type and more, as bits."""

    @property
    def codec(self) -> int:
        """The number of the compression codec, which may be unknown."""

    @property
    def size(self) -> int:
        """The size of the batch in bytes, with its header."""

    @property
    def base_offset(self) -> int:
        """The first offset; -1 for a compressed message set, which has it in the compressed messages."""

    @property
    def last_offset(self) -> int:
        """The last offset of the batch."""

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""

    @property
    def max_timestamp(self) -> int:
        """The newest timestamp, in ms since the epoch."""

    @property
    def timestamp_type(self) -> TimestampType:
        """The origin of the records' timestamps."""

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that appended the batch."""

    @property
    def producer_id(self) -> int:
        """The id of an idempotent producer."""

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction, open or completed."""

    @property
    def is_control(self) -> bool:
        """Whether the records are control records, which are not for users."""


class AnyReader(Protocol[K, V]):
    """An iterator over the records of one batch, which continues after errors: see RecordReader."""

    @property
    def next_offset(self) -> int:
        """The next offset to read: after the last returned record, or after the batch at its end."""

    def columns(self) -> Columns:
        """Return the remaining records as columns, with raw keys and values."""

    def __iter__(self) -> Iterator["ConsumerRecord[K, V]"]: ...

    def __next__(self) -> "ConsumerRecord[K, V]": ...


class AnyBatch(Protocol):
    """A RecordBatch or a MessageSet."""

    @property
    def header(self) -> AnyHeader:
        """The fields that are known before decompression."""

    @property
    def view(self) -> memoryview:
        """The batch's bytes, with its header."""

    def check(self) -> None:
        """Verify the checksum, once."""

    def prepare(self, *, limit: int = DEFAULT_INFLATE_LIMIT, check_crcs: bool = True) -> memoryview:
        """Verify the checksum and decompress, once, possibly on another thread."""

    def records(
        self,
        topic: str,
        partition: int,
        *,
        from_offset: int = 0,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        check_crcs: bool = True,
        limit: int = DEFAULT_INFLATE_LIMIT,
    ) -> AnyReader[K, V]:
        """Iterate the records from ``from_offset`` on."""
