"""Reads a range of one partition as Arrow record batches: what a task does."""

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

__all__ = ("read_range",)

_ROWS: Final = 16_384
"""Rows of a record batch at least, if there are so many: Spark's cost for each row is flat from 1,000 to 64,000."""
_BYTES: Final = 8 * 1024 * 1024
"""Bytes of keys and values after which fewer rows will do."""
_FETCH: Final = 8 * 1024 * 1024
"""``max.partition.fetch.bytes`` where nothing else is said: a task reads one partition, and nothing else waits."""
_GLANCE: Final = 0.05
"""Seconds between two looks whether the position has moved without records: past transaction markers, say."""


def read_range(options: ReadOptions, part: OffsetRange) -> Iterator["pa.RecordBatch"]:
    """The records of the range; the next record batch is made while the caller uses one.

    Closing the iterator early ends what it fetches.

    Raises:
        DataLost: offsets are gone, and ``failOnDataLoss`` is on.
        RequestTimeout: nothing came for ``kafkaConsumer.pollTimeoutMs``.
        KafkaError: fetching fails, at once or for ``default.api.timeout.ms``, and retries do not mend it.
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
    """Reads the range on the event loop. One :meth:`next_record_batch` at a time."""

    kafka: Client
    options: ReadOptions
    part: OffsetRange
    _consumer: Consumer[bytes, bytes] | None = attrs.field(default=None, init=False)

    async def next_record_batch(self) -> "pa.RecordBatch | None":
        """The next one; None once all of the range was read. Raises as :func:`read_range`."""
        consumer = self._consumer or await self._open()
        chunk = Chunk(self.part.topic, self.part.partition, headers=self.options.include_headers)
        while self._wants_more(consumer, chunk):
            try:
                await self._add_batches(consumer, chunk)
            except OffsetOutOfRange as error:
                await self._pass_what_is_gone(consumer, error)
        return chunk.record_batch() if chunk.rows else None

    async def close(self) -> None:
        """Close the consumer."""
        if self._consumer is not None:
            await self._consumer.close()

    @property
    def _where(self) -> TopicPartition:
        return self.part.where

    def _place(self, consumer: Consumer[bytes, bytes]) -> int:
        position = consumer.position(self._where)
        return self.part.start if position is None else position

    async def _open(self) -> Consumer[bytes, bytes]:
        asked = self.options.settings.consumer.copy()
        asked.setdefault("max_partition_fetch_bytes", _FETCH)
        asked["auto_offset_reset"] = "none"
        consumer = self.kafka.consumer(**asked)
        await consumer.__aenter__()
        self._consumer = consumer
        consumer.assign({self._where: self.part.start})
        consumer._fetch_until(self._where, self.part.end)
        return consumer

    def _wants_more(self, consumer: Consumer[bytes, bytes], chunk: Chunk) -> bool:
        return chunk.rows < _ROWS and chunk.size < _BYTES and self._place(consumer) < self.part.end

    async def _add_batches(self, consumer: Consumer[bytes, bytes], chunk: Chunk) -> None:
        """Add batches to the chunk, or none if the position moves on without records."""
        batches, before = consumer.batches(), self._place(consumer)
        with anyio.move_on_after(self.options.poll_timeout):
            while self._place(consumer) == before:
                with anyio.move_on_after(_GLANCE):
                    # Nothing is lost if this is cut short: a batch that was not given comes again.
                    while self._wants_more(consumer, chunk):
                        batch = await anext(batches)
                        chunk.add(batch.columns(), batch.timestamp_type, self.part.end)
            return
        why = f"nothing came for {self.options.poll_timeout:g} s (kafkaConsumer.pollTimeoutMs)"
        raise RequestTimeout(f"reading {self.part} at offset {before}: {why}: {consumer.health().why_idle}")

    async def _pass_what_is_gone(self, consumer: Consumer[bytes, bytes], error: OffsetOutOfRange) -> None:
        """Go on where the log begins now, or at the range's end."""
        at = self._place(consumer)
        first, last = [
            found.offset if (found := (await consumer.offsets({self._where: spec}))[self._where]) is not None else None
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        ]
        told = f"{self.part} was to be read from offset {at}, and the partition has {first} to {last}"
        try:
            data_lost([told], fail=self.options.fail_on_data_loss)
        except Exception as lost:
            raise lost from error
        begins = self.part.end if first is None or first <= at else min(first, self.part.end)
        consumer.seek(self._where, begins)
