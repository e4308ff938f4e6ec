"""The demo's producing and consuming sides, which run at the same time."""

import json
from collections.abc import Collection, Iterable
from typing import Final

import anyio
import attrs

from ..client import Client
from ..config import CompressionType
from ..consumer.consumer import Consumer, ConsumerBatch
from ..errors import UnknownTopicOrPartition
from ..types import OffsetSpec, TopicPartition
from .delivery_check import Flow, Ledger
from .exit_status import CommandFailed
from .flights import Delays, Flight, key_of

__all__ = ("TopicReader", "TopicStream")

SILENCE: Final = 60.0
"""Seconds without a batch after which the reader fails."""

_PROPAGATION: Final = 30.0
"""The maximum seconds until all brokers know a new topic."""
_RETRY_INTERVAL: Final = 0.05

_BATCH_SIZE: Final = 256 * 1024
_LINGER_MS: Final = 5
_BUFFER_MEMORY: Final = 4 * 1024 * 1024
"""The producer's buffer in bytes: with the default of 32 MB the consumer would be seconds behind."""

_encode = json.JSONEncoder(separators=(",", ":")).encode


class TopicReader:
    """The reader of the demo's topic, from given start offsets to the end offsets after the last produced record."""

    def __init__(self, starts: dict[TopicPartition, int]) -> None:
        self.ledger: Ledger = Ledger()
        self.delays: Delays = Delays()
        self.last_at: float = 0.0
        self._positions = dict(starts)
        self._ends: dict[TopicPartition, int] | None = None
        self._silence = anyio.CancelScope()

    @property
    def partitions(self) -> Collection[TopicPartition]:
        """The partitions that the reader reads."""
        return self._positions.keys()

    @property
    def complete(self) -> bool:
        """Whether all partitions were read up to their end offsets; false until :meth:`end_at` sets these offsets."""
        return self._ends is not None and all(self._positions[key] >= end for key, end in self._ends.items())

    def end_at(self, ends: dict[TopicPartition, int]) -> None:
        """Set the partitions' end offsets, which are known after the last record was produced."""
        self._ends = ends
        if self.complete:
            self._silence.cancel()

    async def run(self, consumer: Consumer[bytes, bytes]) -> None:
        """Read and count the records of all partitions up to the end offsets.

        Raises:
            CommandFailed: no records were received for too long.
        """
        consumer.assign(self._positions)
        with self._silence:
            self._extend_timeout()
            async for batch in consumer.batches():
                self._take(batch)
                self._extend_timeout()
                if self.complete:
                    break
        if not self.complete:
            count = f"{self.ledger.records:,}"
            raise CommandFailed(
                f"the check failed: the consumer received no records for {SILENCE:g} s, after {count} records"
            )

    def _extend_timeout(self) -> None:
        self.last_at = anyio.current_time()
        self._silence.deadline = self.last_at + SILENCE

    def _take(self, batch: ConsumerBatch[bytes, bytes]) -> None:
        delays, ledger = self.delays, self.ledger
        for record in batch:
            key, value = record.key or b"", record.value or b""
            try:
                flight = json.loads(value)
                delays.add(flight)
                ledger.enter(key, flight["sequence"], value)
            except (ValueError, KeyError, TypeError):
                ledger.enter_unreadable()
        self._positions[TopicPartition(batch.topic, batch.partition)] = batch.next_offset


@attrs.frozen
class TopicStream:
    """A topic that flights are streamed through."""

    kafka: Client
    topic: str
    compression: CompressionType

    async def reader(self) -> TopicReader:
        """Return a reader of the records that are produced from now on.

        Raises:
            UnknownTopicOrPartition: the topic does not exist, or the brokers did not learn of it in time.
        """
        return TopicReader(await self._ends(await self._partitions()))

    async def produce(self, flights: Iterable[Flight], flow: Flow, reader: TopicReader) -> None:
        """Send all flights, wait until they are acknowledged, and set the reader's end offsets.

        Each flight has a sequence number within its key, by which the reader detects lost and duplicate records.
        """
        ledger = flow.ledger
        async with self.kafka.producer(
            compression_type=self.compression,
            batch_size=_BATCH_SIZE,
            linger_ms=_LINGER_MS,
            buffer_memory=_BUFFER_MEMORY,
        ) as producer:
            for flight in flights:
                key = key_of(flight)
                sequence = flight["sequence"] = ledger.due(key)
                value = _encode(flight).encode()
                # enqueue() waits while the buffer is full, but not for an acknowledgement.
                await producer.enqueue(self.topic, value, key=key)
                ledger.enter(key, sequence, value)
            await producer.flush()
            flow.ended = anyio.current_time()
        reader.end_at(await self._ends(reader.partitions))

    async def consume(self, flow: Flow, reader: TopicReader) -> None:
        """Run the reader until it has read the last produced record. Raises as :meth:`TopicReader.run`."""
        async with self.kafka.consumer() as consumer:
            await reader.run(consumer)
        flow.ended = reader.last_at

    async def _partitions(self) -> list[TopicPartition]:
        """Return the topic's partitions; retry while brokers learn of a new topic one after the other."""
        waited = 0.0
        while True:
            try:
                known = await self.kafka.admin.describe_topic(self.topic)
            except UnknownTopicOrPartition:
                if waited >= _PROPAGATION:
                    raise
                await anyio.sleep(_RETRY_INTERVAL)
                waited += _RETRY_INTERVAL
            else:
                return [TopicPartition(self.topic, partition.index) for partition in known.partitions]

    async def _ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        found = await self.kafka.admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
        return {partition: offset.offset for partition, offset in found.items() if offset is not None}
