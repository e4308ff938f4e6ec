"""The reader with which tasks read an offset range of one partition as Arrow record batches."""

from collections.abc import Iterator
from types import NoneType
from typing import TYPE_CHECKING, Final

import anyio
import attrs

from ..client import Client
from ..consumer.consumer import Consumer
from ..errors import (
    KafkaError,
    LogTruncated,
    OffsetOutOfRange,
    RequestTimeout,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from ..types import TopicPartition
from .chunk import Chunk
from .errors import DataLost
from .lookup import data_lost, log_of
from .offsets import OffsetRange
from .options import ReadOptions
from .worker_client import task_client

if TYPE_CHECKING:
    import pyarrow as pa

    from ..records.typed_values import TypedValues

__all__ = ("read_range",)

_ROWS: Final = 16_384
"""The rows at which a record batch is complete: Spark's cost per row is the same from 1,000 to 64,000 rows."""
_BYTES: Final = 8 * 1024 * 1024
"""Bytes of keys and values at which a record batch is complete with fewer rows."""
_FETCH: Final = 8 * 1024 * 1024
"""The default of ``max.partition.fetch.bytes``: a task reads only one partition."""
_POLL_INTERVAL: Final = 0.05
"""Seconds between two checks whether the position has moved without records, for example past control records."""
_GONE: Final = (NoneType, UnknownTopicOrPartition, UnknownTopicId)
"""The causes of timeouts after which the partition may have lost records; None is that of the query's own timeout."""


def read_range(options: ReadOptions, part: OffsetRange) -> Iterator["pa.RecordBatch"]:
    """Yield a range's records as Arrow record batches; prepare the next one while the caller uses the previous one.

    Closing the iterator stops the fetches.

    Raises:
        DataLost: records of the range were deleted, and ``failOnDataLoss`` is on.
        RequestTimeout: no records were received for ``kafkaConsumer.pollTimeoutMs``, although there are some.
        KafkaError: fetching fails permanently, or still after ``default.api.timeout.ms`` of retries.
    """
    with task_client(options.settings) as kafka:
        reading = RangeReader(kafka.asynchronous, options, part)
        ahead = kafka.loop.begin(reading.next_record_batch)
        try:
            while (batch := ahead.result()) is not None:
                ahead = kafka.loop.begin(reading.next_record_batch)
                yield batch
        finally:
            ahead.cancel()
            kafka.loop.call(reading.close)


@attrs.define
class RangeReader:
    """A reader of one range on the event loop. Only one :meth:`next_record_batch` may run at a time."""

    kafka: Client
    options: ReadOptions
    part: OffsetRange
    _consumer: Consumer[bytes, bytes] | None = attrs.field(default=None, init=False)
    _decoder: "TypedValues | None" = attrs.field(default=None, init=False)
    _resumed_at: int | None = attrs.field(default=None, init=False)
    """Where reading went on after lost records: if nothing is read there, it would not end."""

    async def next_record_batch(self) -> "pa.RecordBatch | None":
        """Return the next record batch, or None at the end of the range. Raise as :func:`read_range`."""
        consumer = self._consumer or await self._open()
        headers, struct = self.options.include_headers, self.options.value_struct
        chunk = Chunk(self.part.topic, self.part.partition, headers=headers, value=struct)
        while self._needs_more(consumer, chunk):
            try:
                await self._add_batches(consumer, chunk)
            except (OffsetOutOfRange, LogTruncated, RequestTimeout) as error:
                await self._pass_lost(consumer, error)
        if not chunk.rows:
            return None
        return chunk.record_batch(None if struct is None else await self._decoded(chunk))

    async def _decoded(self, chunk: Chunk) -> "pa.Array":
        if self._decoder is None:
            from .value_decoder import value_decoder

            assert self.options.values is not None
            self._decoder = value_decoder(self.options.values, self.options.value_struct, self.part.topic)
        offsets = chunk.offsets
        return await self._decoder.decode(chunk.values, lambda row: (self._partition, offsets[row]))

    async def close(self) -> None:
        """Close the consumer."""
        if self._consumer is not None:
            await self._consumer.close()

    @property
    def _partition(self) -> TopicPartition:
        return self.part.where

    def _position(self, consumer: Consumer[bytes, bytes]) -> int:
        position = consumer.position(self._partition)
        return self.part.start if position is None else position

    async def _open(self) -> Consumer[bytes, bytes]:
        consumer_options = self.options.settings.consumer.copy()
        consumer_options.setdefault("max_partition_fetch_bytes", _FETCH)
        consumer_options["auto_offset_reset"] = "none"
        consumer = self.kafka.consumer(**consumer_options)
        await consumer.__aenter__()
        self._consumer = consumer
        consumer.assign({self._partition: self.part.start})
        consumer._fetch_until(self._partition, self.part.end)
        return consumer

    def _needs_more(self, consumer: Consumer[bytes, bytes], chunk: Chunk) -> bool:
        return chunk.rows < _ROWS and chunk.size < _BYTES and self._position(consumer) < self.part.end

    async def _add_batches(self, consumer: Consumer[bytes, bytes], chunk: Chunk) -> None:
        """Add fetched batches to the chunk until the position moves; control records move it without a batch."""
        batches, before = consumer.batches(), self._position(consumer)
        with anyio.move_on_after(self.options.poll_timeout):
            while self._position(consumer) == before:
                with anyio.move_on_after(_POLL_INTERVAL):
                    # A cancellation loses nothing: the next anext() returns the same batch.
                    while self._needs_more(consumer, chunk):
                        batch = await anext(batches)
                        chunk.add(batch.columns(), batch.timestamp_type, self.part.end)
            return
        why = f"no records were received for {self.options.poll_timeout:g} s (kafkaConsumer.pollTimeoutMs)"
        raise RequestTimeout(f"reading {self.part} at offset {before}: {why}: {consumer.health().why_idle}")

    async def _pass_lost(self, consumer: Consumer[bytes, bytes], error: KafkaError) -> None:
        """Report the records that are gone, and seek to what is left of the range; raise the error if none is gone."""
        position, is_late = self._position(consumer), isinstance(error, RequestTimeout)
        if is_late and not isinstance(error.__cause__, _GONE):
            raise error
        try:
            log = await log_of(self.kafka, self._partition)
        except KafkaError as unanswered:
            raise error from unanswered
        first, end = log or (0, 0)
        if first <= position < end and (is_late or position == self._resumed_at):
            raise error
        found = "there is no such partition" if log is None else f"the partition has offsets {first} to {end}"
        message = f"cannot read {self.part} from offset {position}: {found}"
        try:
            data_lost([message], fail=self.options.fail_on_data_loss)
        except DataLost as lost:
            raise lost from error
        # A log that was truncated may have an offset again by now.
        self._resumed_at = min(max(first, position), self.part.end) if position < end else self.part.end
        consumer.seek(self._partition, self._resumed_at)
