"""A batch of records, as consumers hand it out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from ..argument_checks import shown
from ..errors import UsageError
from ..records.batch import AnyReader, ConsumerRecord
from ..records.columns import Columns
from ..types import TimestampType, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ("ConsumerBatch",)

K = TypeVar("K")
V = TypeVar("V")


class ConsumerBatch(Generic[K, V]):
    """A batch of one partition, as the producer wrote it: iterate it for its records, or call :meth:`columns`.

    Records are decoded when they are iterated. The iteration raises CorruptBatch or DeserializationError; after a
    DeserializationError, iterate again to continue with the next record.
    """

    __slots__ = ("_reader", "next_offset", "partition", "timestamp_type", "topic")

    def __init__(
        self,
        partition: TopicPartition,
        reader: "AnyReader[K, V]",
        next_offset: int,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    ) -> None:
        self.topic: str = partition.topic
        self.partition: int = partition.partition
        self._reader = reader
        self.next_offset: int = next_offset
        """The offset after the batch."""
        self.timestamp_type: TimestampType = timestamp_type
        """Whether the producer or the broker set the timestamps of the batch."""

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        return self._reader

    def columns(self, *, with_keys: bool = True, with_values: bool = True) -> Columns:
        """Return the remaining records, not deserialized, as buffers in Arrow's layout without an object per record.

        Args:
            with_keys: whether to copy the keys; without them, their column is empty.
            with_values: whether to copy the values.

        Raises:
            CorruptBatch: the batch is damaged; no record is returned.
        """
        return self._reader.columns(with_keys=with_keys, with_values=with_values)

    def joined_values(self, delimiter: bytes = b"\n", *, null: bytes = b"") -> tuple[int, bytes]:
        """Return the number of the remaining records and their values, not deserialized, as one text.

        The compiled reader makes no object per record: this is the fastest way to write values to a file.

        Args:
            delimiter: stands after each value, also after the last one.
            null: stands for a null value.

        Raises:
            CorruptBatch: the batch is damaged; no record is returned.
            UsageError: an argument is not bytes.
        """
        for name, given in (("delimiter", delimiter), ("null", null)):
            if not isinstance(given, bytes):
                raise UsageError(f"{name} must be bytes, got {shown(given)}")
        return self._reader.joined_values(delimiter, null)

    def to_arrow(self) -> "pa.RecordBatch":
        """Return the remaining records as an Arrow record batch; deserializers are not used.

        Its columns: ``key`` and ``value`` (binary), ``topic`` (string, dictionary-encoded), ``partition`` (int32),
        ``offset`` (int64), ``timestamp`` (ms, UTC; null in formats without timestamps), and ``headers`` (a list of
        ``key``, string, and ``value``, binary). The buffers of :meth:`columns` are not copied.

        Raises:
            CorruptBatch: the batch is damaged; no record is returned.
            ImportError: pyarrow is not installed (``pip install aiokafkawire[arrow]``).
        """
        from ..records.arrow import record_batch

        return record_batch(self.columns(), self.topic, self.partition)

    def __repr__(self) -> str:
        return f"<ConsumerBatch {self.topic}-{self.partition} up to {self.next_offset}>"
