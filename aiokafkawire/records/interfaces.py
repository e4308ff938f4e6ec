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
    """The fields of a batch that are known before decompression; a number that the batch's format lacks is -1."""

    @property
    def magic(self) -> int:
        """The format: 2 for record batches, 0 and 1 for message sets."""

    @property
    def attributes(self) -> int:
        """The bits for the codec, the timestamp type and other attributes."""

    @property
    def codec(self) -> int:
        """The number of the compression codec, which this client may not know."""

    @property
    def size(self) -> int:
        """The size of the batch in bytes, with its header."""

    @property
    def base_offset(self) -> int:
        """The first offset; -1 for a compressed message set, whose first offset is inside the compressed data."""

    @property
    def last_offset(self) -> int:
        """The last offset of the batch."""

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""

    @property
    def max_timestamp(self) -> int:
        """The newest timestamp of the records, in ms since the epoch."""

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the producer or the broker set the records' timestamps."""

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that appended the batch."""

    @property
    def producer_id(self) -> int:
        """The id of the idempotent producer that sent the batch."""

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction, open or completed."""

    @property
    def is_control(self) -> bool:
        """Whether the records are control records, such as transaction markers, which consumers do not return."""


class AnyReader(Protocol[K, V]):
    """An iterator over the records of one batch; it may be used after errors, as RecordReader describes."""

    @property
    def next_offset(self) -> int:
        """The next offset to read: the one after the last returned record or, after all records, after the batch."""

    @property
    def met_headers(self) -> bool:
        """Whether a record that was read had headers."""

    def columns(self, *, with_keys: bool = True, with_values: bool = True) -> Columns:
        """Return the remaining records as columns, with raw keys and values unless these are left out."""

    def joined_values(self, delimiter: bytes, null: bytes) -> tuple[int, bytes]:
        """Return the number of the remaining records and their raw values, each with the delimiter after it.

        A null value is the text ``null``.
        """

    def __iter__(self) -> Iterator["ConsumerRecord[K, V]"]: ...

    def __next__(self) -> "ConsumerRecord[K, V]": ...


class AnyBatch(Protocol):
    """A batch of any format: a RecordBatch or a MessageSet."""

    @property
    def header(self) -> AnyHeader:
        """The fields that are known before decompression."""

    @property
    def view(self) -> memoryview:
        """The batch's bytes, with its header."""

    def check(self) -> None:
        """Verify the checksum, unless it was verified before."""

    def prepare(self, *, limit: int = DEFAULT_INFLATE_LIMIT, check_crcs: bool = True) -> memoryview:
        """Verify the checksum, decompress the records, and return their bytes; another thread may call this."""

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
        """Return an iterator over the records from ``from_offset`` on."""
