"""Record batches v2, the splitting of fetched buffers into batches, and the choice of the compiled or pure reader."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from .._accelerators import load_twin
from ..errors import CorruptBatch, UsageError
from . import layout
from .checksum import crc32c
from .compression import decompress
from .delivery_result import DeliveryResult
from .header import BatchHeader
from .interfaces import DEFAULT_INFLATE_LIMIT, AnyBatch, AnyHeader, AnyReader

if TYPE_CHECKING:
    from ._pure import BatchBuilder, ConsumerRecord, Delivery, RecordReader, record_size_bound

__all__ = (
    "DEFAULT_INFLATE_LIMIT",
    "IMPLEMENTATION",
    "AnyBatch",
    "AnyHeader",
    "AnyReader",
    "BatchBuilder",
    "BatchHeader",
    "ConsumerRecord",
    "Delivery",
    "DeliveryResult",
    "RecordBatch",
    "RecordReader",
    "halve",
    "load_beside",
    "record_size_bound",
    "set_base_offset",
    "sealed",
    "set_log_append_time",
    "split",
)

K = TypeVar("K")
V = TypeVar("V")

# --- the batch ---------------------------------------------------------------------------------------------


class RecordBatch:
    """One record batch v2 in a buffer: its header is parsed already, and its records are parsed on demand.

    Verifying the checksum and decompressing are expensive. :meth:`prepare` does both and may run on another thread;
    :meth:`records` does both if :meth:`prepare` was not called.
    """

    __slots__ = ("_body", "_checked", "_place", "header", "view")

    def __init__(self, header: BatchHeader, view: memoryview, where: str = "", position: int = 0) -> None:
        self.header: BatchHeader = header
        self.view: memoryview = view
        self._place = where, position
        self._checked = False
        self._body: memoryview | None = None

    @classmethod
    def parse(cls, view: memoryview, position: int = 0, where: str = "") -> "RecordBatch":
        """Parse the batch v2 at ``position``; ``where`` begins the message of every error.

        Raises:
            CorruptBatch: the bytes are not a whole batch v2, or the header is inconsistent.
        """
        if not 0 <= position <= len(view) - layout.HEADER_SIZE:
            left = len(view) - position
            raise CorruptBatch(f"{_place(where, position)}: {left} bytes, less than the header has")
        header = BatchHeader(*layout.HEADER.unpack_from(view, position))
        size = header.size
        if header.magic != layout.MAGIC:
            raise CorruptBatch(f"{_place(where, position, header)}: {_foreign_magic(header.magic)}")
        if not layout.HEADER_SIZE <= size <= len(view) - position:
            left = len(view) - position
            raise CorruptBatch(f"{_place(where, position, header)}: it says {size} bytes, with {left} left")
        in_range = 0 <= header.base_offset < header.next_offset <= layout.LAST_OFFSET
        if not in_range or header.count < 0:
            counted = f"{header.count} records, last offset delta {header.last_offset_delta}"
            raise CorruptBatch(f"{_place(where, position, header)}: {counted}")
        return cls(header, view[position : position + size], where, position)

    def check(self) -> None:
        """Verify the checksum, unless it was verified before.

        Raises:
            CorruptBatch: the checksum is wrong.
        """
        if self._checked:
            return
        computed = crc32c(self.view[layout.ATTRIBUTES_AT :])
        if computed != self.header.crc:
            place = _place(*self._place, self.header)
            raise CorruptBatch(f"{place}: CRC32C is {computed:#010x}, the header says {self.header.crc:#010x}")
        self._checked = True

    def prepare(self, *, limit: int = DEFAULT_INFLATE_LIMIT, check_crcs: bool = True) -> memoryview:
        """Verify the checksum, decompress the records, and return their bytes; repeated calls do the work only once.

        Raises:
            CorruptBatch: see :meth:`check` and :func:`~aiokafkawire.records.compression.decompress`.
        """
        if check_crcs:
            self.check()
        if self._body is None:
            packed = self.view[layout.HEADER_SIZE :]
            if not packed and not self.header.count:
                self._body = packed  # an empty batch is not compressed
                return self._body
            try:
                self._body = memoryview(decompress(self.header.codec, packed, limit=limit))
            except CorruptBatch as error:
                raise CorruptBatch(f"{_place(*self._place, self.header)}: {error}") from error
        return self._body

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
    ) -> "RecordReader[K, V]":
        """Return an iterator over the records from ``from_offset`` on; in a control batch these are control records.

        Raises:
            CorruptBatch: see :meth:`prepare`. The iterator also raises this error, at a damaged record.
        """
        header = self.header
        return RecordReader(
            self.prepare(limit=limit, check_crcs=check_crcs),
            count=header.count,
            base_offset=header.base_offset,
            last_offset_delta=header.last_offset_delta,
            base_timestamp=header.base_timestamp,
            max_timestamp=header.max_timestamp,
            timestamp_type=header.timestamp_type,
            topic=topic,
            partition=partition,
            leader_epoch=header.leader_epoch if header.leader_epoch >= 0 else None,
            from_offset=from_offset,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
        )

    def __repr__(self) -> str:
        header = self.header
        return f"<RecordBatch {header.base_offset}-{header.last_offset}, {header.count} records, {header.size} bytes>"


def _place(where: str, position: int, header: BatchHeader | None = None) -> str:
    """Return the place of a batch for the message of an error; made only then, since every fetch parses batches."""
    offset = "" if header is None else f" (offset {header.base_offset})"
    return f"{where + ', ' if where else ''}batch at byte {position}{offset}"


def halve(builder: "BatchBuilder") -> "tuple[BatchBuilder, BatchBuilder]":
    """Return two builders, each with half of the builder's records.

    Raises:
        UsageError: the builder has fewer than two records.
    """
    if builder.count < 2:
        raise UsageError(f"a batch of {builder.count} records cannot be halved")
    whole = RecordBatch.parse(memoryview(builder.build()))
    reader: AnyReader[bytes, bytes] = whole.records("", 0, check_crcs=False, limit=builder.size)
    # A half may exceed the builder's limit, since differences to its own first timestamp may be longer.
    halves = [BatchBuilder(limit=2 * builder.size, codec=builder.codec, level=builder.level) for _ in range(2)]
    for index, record in enumerate(reader):
        half = halves[index >= builder.count // 2]
        half.append(record.timestamp, record.raw_key, record.raw_value, record.headers)
    return halves[0], halves[1]


# --- many batches ------------------------------------------------------------------------------------------


def split(buffer: memoryview, where: str = "") -> Iterator[AnyBatch]:
    """Yield the complete batches of a fetched buffer in order: a MessageSet for magic 0 and 1, else a RecordBatch.

    Brokers truncate a response at its size limit, so an incomplete last batch is ignored.

    Raises:
        CorruptBatch: the bytes are not the beginning of a batch.
    """
    position = 0
    parse = RecordBatch.parse
    while len(buffer) - position > layout.MAGIC_AT:
        (length,) = layout.INT32.unpack_from(buffer, position + layout.LENGTH_AT)
        magic = buffer[position + layout.MAGIC_AT]
        if magic > layout.MAGIC:
            raise CorruptBatch(f"{_place(where, position)}: {_foreign_magic(magic)}")
        shortest = layout.SHORTEST_MESSAGE if magic < layout.MAGIC else layout.HEADER_SIZE - layout.LOG_OVERHEAD
        if length < shortest:
            raise CorruptBatch(f"{_place(where, position)}: a length of {length}, but the minimum is {shortest}")
        if layout.LOG_OVERHEAD + length > len(buffer) - position:
            return
        batch = _message_set(buffer, position, where) if magic < layout.MAGIC else parse(buffer, position, where)
        yield batch
        position += batch.header.size


def _message_set(buffer: memoryview, position: int, where: str) -> AnyBatch:
    from .message_set import MessageSet  # imported late, since most programs do not need it

    return MessageSet.parse(buffer, position, where)


def _foreign_magic(magic: int) -> str:
    if magic in (0, 1):
        return f"message format v{magic}, from before Kafka 0.11, is not a record batch"
    return f"unknown message format (magic {magic})"


def set_base_offset(batch: bytes | memoryview, base_offset: int, leader_epoch: int) -> bytes:
    """Return a copy of a batch with another base offset and leader epoch; the checksum does not cover them."""
    view = memoryview(batch)
    return b"".join(
        (
            layout.INT64.pack(base_offset),
            view[layout.LENGTH_AT : layout.LEADER_EPOCH_AT],
            layout.INT32.pack(leader_epoch),
            view[layout.MAGIC_AT :],
        )
    )


def set_log_append_time(batch: bytes | memoryview, timestamp: int) -> bytes:
    """Return a copy of a batch with the broker's timestamp (ms since the epoch), for a topic with LogAppendTime."""
    view = memoryview(batch)
    (attributes,) = layout.INT16.unpack_from(view, layout.ATTRIBUTES_AT)
    covered = b"".join(
        (
            layout.INT16.pack(attributes | layout.LOG_APPEND_TIME),
            view[layout.ATTRIBUTES_AT + layout.INT16.size : layout.MAX_TIMESTAMP_AT],
            layout.INT64.pack(timestamp),
            view[layout.PRODUCER_ID_AT :],
        )
    )
    return b"".join((view[: layout.CRC_AT], layout.UINT32.pack(crc32c(covered)), covered))


def sealed(head: bytearray, records: bytes | memoryview) -> bytes:
    """Join a header and encoded records to a batch; set the length and checksum in the header."""
    layout.INT32.pack_into(head, layout.LENGTH_AT, len(head) + len(records) - layout.LOG_OVERHEAD)
    covered = b"".join((head[layout.ATTRIBUTES_AT :], records))
    layout.UINT32.pack_into(head, layout.CRC_AT, crc32c(covered))
    return bytes(head[: layout.ATTRIBUTES_AT]) + covered


# --- the twins ---------------------------------------------------------------------------------------------

_TWINS = {"cython": "_hot", "pure": "_pure"}

if TYPE_CHECKING:
    IMPLEMENTATION: str = "pure"
else:
    IMPLEMENTATION, _twin = load_twin(__package__, _TWINS, "AIOKAFKAWIRE_RECORDS")
    BatchBuilder = _twin.BatchBuilder
    ConsumerRecord = _twin.ConsumerRecord
    Delivery = _twin.Delivery
    RecordReader = _twin.RecordReader
    record_size_bound = _twin.record_size_bound


def load_beside(package: str) -> ModuleType:
    """Load a package's compiled module if it was built and compiled classes are in use here; else its pure module."""
    twins = {"pure": "_pure"} if IMPLEMENTATION == "pure" else _TWINS
    return load_twin(package, twins, "AIOKAFKAWIRE_RECORDS")[1]
