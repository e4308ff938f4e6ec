"""What the batches of all formats have in common for those who read them."""

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
"""How large a batch may become when inflated. Brokers bound batches by their compressed size, 1 MB by default."""


class AnyHeader(Protocol):
    """What is known of a batch before it is checked and inflated; -1 stands for what a format does not have."""

    @property
    def magic(self) -> int:
        """The format: 2 for record batches, 0 and 1 for message sets."""

    @property
    def attributes(self) -> int:
        """Codec, timestamp type and more, as bits."""

    @property
    def codec(self) -> int:
        """The number of the compression codec; numbers that no codec has can come."""

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header and all."""

    @property
    def base_offset(self) -> int:
        """The first offset; -1 for a compressed message set, which tells it only inside."""

    @property
    def last_offset(self) -> int:
        """The last offset it covers."""

    @property
    def next_offset(self) -> int:
        """The offset after it."""

    @property
    def max_timestamp(self) -> int:
        """The newest timestamp, in ms since the epoch."""

    @property
    def timestamp_type(self) -> TimestampType:
        """Whose the records' timestamps are."""

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that appended it."""

    @property
    def producer_id(self) -> int:
        """Who produced it, if idempotently."""

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction, open or decided."""

    @property
    def is_control(self) -> bool:
        """Whether its records are markers of the broker and not for users."""


class AnyReader(Protocol[K, V]):
    """Iterates the records of one batch, and outlives errors: see RecordReader."""

    @property
    def next_offset(self) -> int:
        """Where to read on: after the last record handed out, or after the whole batch when all were."""

    def columns(self) -> Columns:
        """The records that are left, as columns of their raw keys and values."""

    def __iter__(self) -> Iterator["ConsumerRecord[K, V]"]: ...

    def __next__(self) -> "ConsumerRecord[K, V]": ...


class AnyBatch(Protocol):
    """A RecordBatch or a MessageSet."""

    @property
    def header(self) -> AnyHeader:
        """What is known before it is inflated."""

    @property
    def view(self) -> memoryview:
        """Its bytes, header and all."""

    def check(self) -> None:
        """Compare the checksum, once."""

    def prepare(self, *, limit: int = DEFAULT_INFLATE_LIMIT, check_crcs: bool = True) -> memoryview:
        """Do the heavy part, once, in another thread if need be."""

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
