"""A batch of the producer, from its first record until it is acknowledged, and the result that its records share."""

from array import array
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol
from uuid import UUID

import attrs

from ..errors import KafkaError, copy_for_reraise
from ..protocol.primitives import ZERO_UUID
from ..records.batch import BatchBuilder, halve
from ..records.delivery_result import DeliveryCallback
from ..tracing import BatchTrace
from ..types import Event, Header, RecordMetadata, TopicPartition
from ._implementation import OpenBatch
from .delivery_callbacks import call_back, check_callback
from .idempotence import sequence_after
from .legacy_message_format import NEWEST_MAGIC, as_message_set

__all__ = ("BatchEnd", "BatchResult", "ProducerBatch")

_LARGE: Final = 64 * 1024
"""The size in bytes above which the producer compresses a batch on a thread."""
_new_tuple: Final = tuple.__new__


@attrs.define(eq=False)
class ProducerBatch:
    """A batch of records of one partition, which are sent together."""

    partition: TopicPartition
    order: tuple[int, int]
    """The batch's number in the producer, and the index of its first record in the batch from which it was split."""
    opened: OpenBatch
    """The encoded records; more can be appended until the batch is closed."""
    result: "BatchResult"
    created_at: float
    transactional: bool = False
    compressing: bool = False
    """Whether a thread is compressing the batch."""
    compressed: bool = False
    not_before: float = float("-inf")
    """The earliest time at which the batch may be sent again."""
    attempts: int = 0
    last_error: KafkaError | None = None
    """Why the batch still waits: the last error of an attempt to send it or an earlier batch, or to connect."""
    encoded: bytes | None = None
    """The batch's bytes once they are built; a retry sends the same bytes."""
    magic: int = NEWEST_MAGIC
    """The format of ``encoded``: 2 for a record batch, 0 and 1 for message sets."""
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    sent_to: int = -1
    """The node id of the broker that the batch was last sent to."""
    first_sent_at: float | None = None
    """When the batch was first sent."""
    topic_id: UUID = ZERO_UUID
    """The topic's id when the batch was last sent."""
    in_doubt: bool = False
    """Whether a broker may have written the batch without acknowledging it."""
    split_in_doubt: bool = False
    """Whether a broker may have written the whole batch of which this one is a part; no leader would notice that."""

    @property
    def builder(self) -> BatchBuilder:
        """The builder that encodes the batch's records."""
        return self.opened.builder

    @property
    def closed(self) -> bool:
        """Whether no more records may be appended, see :class:`OpenBatch`."""
        return self.opened.closed

    def close(self) -> None:
        """Close the batch, so that no more records are appended."""
        self.opened.closed = True

    @property
    def count(self) -> int:
        """The number of the batch's records."""
        return self.builder.count

    @property
    def needs_thread(self) -> bool:
        """Whether the batch is not compressed yet and is so large that a thread must compress it."""
        return bool(self.builder.codec) and not self.compressed and self.builder.size > _LARGE

    def encode(self, magic: int = NEWEST_MAGIC) -> bytes:
        """Return the batch's bytes in the format ``magic``; message sets (0 and 1) have no sequence number.

        Raises:
            UnsupportedVersion: a message set cannot carry the records' headers, the transaction or the codec.
        """
        if self.magic != magic:
            self.encoded, self.magic = None, magic
        if self.encoded is None and magic < NEWEST_MAGIC:
            added = () if self.result.trace is None else self.result.trace.headers
            self.encoded = as_message_set(self.builder, magic, transactional=self.transactional, without=added)
        elif self.encoded is None:
            self.encoded = self.opened.builder.build(
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                base_sequence=self.base_sequence,
                transactional=self.transactional,
            )
        return self.encoded

    def has_other_topic(self, topic_id: UUID) -> bool:
        """Return whether the batch was last sent with another id than ``topic_id``, because the topic was recreated."""
        return bool(self.attempts) and ZERO_UUID not in (self.topic_id, topic_id) and self.topic_id != topic_id

    def reset_sequence(self) -> None:
        """Drop the sequence number of a batch that was not written; the batch gets another when it is sent."""
        self.producer_id = self.producer_epoch = self.base_sequence = -1
        self.encoded = None

    def split(self) -> "tuple[ProducerBatch, ProducerBatch]":
        """Split a batch that is too large for a broker into two; every record keeps its sequence number.

        Deliveries of the records stay valid: the batch's result refers to the results of the two parts.
        """
        halves, first = [], 0
        builders = halve(self.builder)
        results = self.result.split([builder.count for builder in builders])
        for builder, result in zip(builders, results, strict=True):
            half = attrs.evolve(
                self,
                order=(self.order[0], self.order[1] + first),
                opened=OpenBatch(builder, result, result.timestamps),
                result=result,
                compressed=False,
                encoded=None,
                split_in_doubt=self.split_in_doubt or self.in_doubt,
                base_sequence=sequence_after(self.base_sequence, first) if self.base_sequence >= 0 else -1,
            )
            half.close()
            halves.append(half)
            first += builder.count
        return halves[0], halves[1]


class BatchEnd(Protocol):
    """A function for a batch's end, with the headers of the batch's records."""

    headers: list[tuple[Header, ...]]

    def __call__(self, result: "BatchResult") -> None:
        """Take notice that the batch with this result was acknowledged, or has failed."""

    def part(self, first: int, count: int) -> "BatchEnd":
        """Return the function for ``count`` records from ``first`` on, when the batch is split."""


class BatchResult:
    """The result of one batch, with an event for all waiters. The result keeps the records' timestamps only.

    If the batch is split, each of its two parts has a result of its own.
    """

    __slots__ = (
        "_awaited",
        "_base_offset",
        "_callbacks",
        "_called",
        "_event",
        "_log_append_time",
        "_new_event",
        "completed",
        "error",
        "on_end",
        "partition",
        "parts",
        "timestamps",
        "trace",
    )

    def __init__(self, partition: TopicPartition, new_event: Callable[[], Event]) -> None:
        self.partition: TopicPartition = partition
        self._new_event = new_event
        self.timestamps: array[int] = array("q")
        """The producer's timestamp of each record, in ms since the epoch."""
        self.completed: bool = False
        """Whether the batch was acknowledged, has failed, or was split."""
        self.error: KafkaError | None = None
        self._base_offset = -1
        self._log_append_time = -1
        self._awaited: set[int] = set()
        self._callbacks: list[tuple[int, DeliveryCallback]] = []
        self._called: set[int] = set()  # the records that have callbacks, also after these were called
        # Created by the first waiter: most records of a fast producer are never awaited.
        self._event: Event | None = None
        self.trace: BatchTrace | None = None
        """The spans of the batch's records; None if no record is traced."""
        self.on_end: BatchEnd | None = None
        """Called with this result, before the waiters go on, when the batch is acknowledged or has failed."""
        self.parts: Sequence[BatchResult] = ()
        """The results of the two parts if the batch was split."""

    async def wait(self, index: int) -> RecordMetadata:
        """Return the metadata of record ``index`` once the record is acknowledged, or raise the error of the batch."""
        self._awaited.add(index)
        try:
            while not self.completed:
                await self.wait_handle(index)
        except BaseException:
            self.discard_waiter(index)
            raise
        if self.parts:
            part, part_index = self._part(index)
            return await part.wait(part_index)
        return self.metadata_at(index)

    def outcome(self, index: int) -> RecordMetadata:
        """Return the metadata of record ``index``, which is done (:meth:`is_done`), or raise the error of its batch."""
        self._awaited.add(index)
        if self.parts:
            part, part_index = self._part(index)
            return part.outcome(part_index)
        return self.metadata_at(index)

    def wait_handle(self, index: int) -> Awaitable[object]:
        """Count record ``index`` as awaited; return an awaitable that ends when the batch does, or at :meth:`wake`."""
        if self.parts:
            part, part_index = self._part(index)
            return part.wait_handle(part_index)
        self._awaited.add(index)
        if self._event is None:
            self._event = self._new_event()
        return self._event.wait()

    def wake(self, index: int) -> None:
        """Wake all that wait for the batch of record ``index``, so that they look whether to wait on.

        A Producer.send() that is compiled does not look: this is for batches that only other callers wait for.
        """
        if self.parts:
            part, part_index = self._part(index)
            part.wake(part_index)
            return
        event, self._event = self._event, None
        if event is not None:
            event.set()

    def discard_waiter(self, index: int) -> None:
        """Stop counting record ``index`` as awaited: if the record fails, flush() reports the failure."""
        if index not in self._called:
            self._awaited.discard(index)
        if self.parts:
            part, part_index = self._part(index)
            part.discard_waiter(part_index)

    def add_callback(self, index: int, callback: DeliveryCallback) -> None:
        """Count record ``index`` as awaited, and call ``callback`` with its outcome once that is known."""
        if self.parts:
            part, part_index = self._part(index)
            part.add_callback(part_index, callback)
            return
        check_callback(callback)
        self._awaited.add(index)
        self._called.add(index)
        if self.completed:
            self._call_back(index, callback)
        else:
            self._callbacks.append((index, callback))

    def _call_back(self, index: int, callback: DeliveryCallback) -> None:
        if self.error is None:
            call_back(callback, self.metadata_at(index), None)
        else:
            call_back(callback, None, copy_for_reraise(self.error))

    def metadata_at(self, index: int) -> RecordMetadata:
        """Return the metadata of record ``index`` of a completed batch that was not split. Raises as :meth:`wait`."""
        if self.error is not None:
            raise copy_for_reraise(self.error)
        offset = self._base_offset + index if self._base_offset >= 0 else -1
        timestamp = self._log_append_time if self._log_append_time >= 0 else self.timestamps[index]
        # The same as RecordMetadata(...), but without a function call for each record.
        return _new_tuple(RecordMetadata, (*self.partition, offset, timestamp))

    def has_append_time(self, index: int) -> bool:
        """Return whether the timestamp of record ``index``, which is acknowledged, is the broker's (LogAppendTime)."""
        if self.parts:
            part, part_index = self._part(index)
            return part.has_append_time(part_index)
        return self._log_append_time >= 0

    async def wait_until_complete(self) -> None:
        """Wait until every record of the batch is acknowledged or has failed."""
        while not self.completed:
            if self._event is None:
                self._event = self._new_event()
            await self._event.wait()
        for part in self.parts:
            await part.wait_until_complete()

    def is_done(self, index: int) -> bool:
        """Return whether record ``index`` is acknowledged or has failed."""
        if self.parts:
            part, part_index = self._part(index)
            return part.is_done(part_index)
        return self.completed

    @property
    def unawaited(self) -> int:
        """The number of the batch's records that no caller has awaited."""
        return len(self.timestamps) - len(self._awaited)

    def resolve(self, base_offset: int, log_append_time: int) -> None:
        """Complete a written batch; an unknown offset is -1, and the log append time is -1 without LogAppendTime."""
        self._base_offset, self._log_append_time = base_offset, log_append_time
        self._complete()

    def fail(self, error: KafkaError) -> None:
        """Complete a batch that has failed with this error."""
        self.error = error
        self._complete()

    def split(self, counts: Sequence[int]) -> "list[BatchResult]":
        """Split this result into one for each part of its batch; ``counts`` are the numbers of records in the parts."""
        parts, first = [], 0
        for count in counts:
            part = BatchResult(self.partition, self._new_event)
            part.timestamps = self.timestamps[first : first + count]
            part._awaited = {index - first for index in self._awaited if first <= index < first + count}
            part._callbacks = [(at - first, each) for at, each in self._callbacks if first <= at < first + count]
            part._called = {index - first for index in self._called if first <= index < first + count}
            part.trace = self.trace
            part.on_end = None if self.on_end is None else self.on_end.part(first, count)
            parts.append(part)
            first += count
        self.parts = parts
        self._callbacks = []
        self._complete()
        return parts

    def _part(self, index: int) -> "tuple[BatchResult, int]":
        for part in self.parts:
            if index < len(part.timestamps):
                return part, index
            index -= len(part.timestamps)
        raise IndexError(index)

    def _complete(self) -> None:
        self.completed = True
        try:
            if self.trace is not None:
                self.trace.completed(self)
            if self.on_end is not None and not self.parts:
                self.on_end(self)
            callbacks, self._callbacks = self._callbacks, []
            for index, callback in callbacks:
                self._call_back(index, callback)
        finally:
            if self._event is not None:
                self._event.set()
