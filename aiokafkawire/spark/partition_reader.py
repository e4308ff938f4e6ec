"""The reader with which tasks read an offset range of one partition as Arrow record batches."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import anyio
import attrs

from ..client import Client
from ..consumer.consumer import Consumer
from ..errors import OffsetOutOfRange, RequestTimeout
from ..types import OffsetSpec, TopicPartition
from .chunk import Chunk
from .lookup import data_lost
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


def read_range(options: ReadOptions, part: OffsetRange) -> Iterator["pa.RecordBatch"]:
    """Yield a range's records as Arrow record batches; prepare the next one while the caller uses the previous one.

    Closing the iterator stops the fetches.

    Raises:
        DataLost: records of the range were deleted, and ``failOnDataLoss`` is on.
        RequestTimeout: no records were received for ``kafkaConsumer.pollTimeoutMs``.
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

    async def next_record_batch(self) -> "pa.RecordBatch | None":
        """Return the next record batch, or None at the end of the range. Raise as :func:`read_range`."""
        consumer = self._consumer or await self._open()
        headers, struct = self.options.include_headers, self.options.value_struct
        chunk = Chunk(self.part.topic, self.part.partition, headers=headers, value=struct)
        while self._needs_more(consumer, chunk):
            try:
                await self._add_batches(consumer, chunk)
            except OffsetOutOfRange as error:
                await self._skip_deleted(consumer, error)
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

    async def _skip_deleted(self, consumer: Consumer[bytes, bytes], error: OffsetOutOfRange) -> None:
        """Report the deleted records; seek to the partition's first offset, or to the range's end if that is lower."""
        position, partition = self._position(consumer), self._partition
        first, last = [
            found.offset if (found := (await consumer.offsets({partition: spec}))[partition]) is not None else None
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        ]
        message = f"cannot read {self.part} from offset {position}: the partition has offsets {first} to {last}"
        try:
            data_lost([message], fail=self.options.fail_on_data_loss)
        except Exception as lost:
            raise lost from error
        begins = self.part.end if first is None or first <= position else min(first, self.part.end)
        consumer.seek(partition, begins)
