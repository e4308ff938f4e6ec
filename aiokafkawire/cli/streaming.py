"""The two directions of the demo, which run at the same time: flights into a topic, and out of it again."""

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
"""Seconds without a single batch after which the reader gives up."""

_NEWS: Final = 30.0
"""Seconds in which brokers hear of a new topic."""
_REST: Final = 0.05

_BATCH_SIZE: Final = 256 * 1024
_LINGER_MS: Final = 5
_BUFFER_MEMORY: Final = 4 * 1024 * 1024
"""Little, so that what is read is news: the default of 32 MB would let the consumer run seconds behind."""

_encode = json.JSONEncoder(separators=(",", ":")).encode


class TopicReader:
    """The consuming side: what came, where it stands, and where it is to end once that is known."""

    def __init__(self, starts: dict[TopicPartition, int]) -> None:
        self.ledger: Ledger = Ledger()
        self.delays: Delays = Delays()
        self.last_at: float = 0.0
        self._positions = dict(starts)
        self._ends: dict[TopicPartition, int] | None = None
        self._silence = anyio.CancelScope()

    @property
    def places(self) -> Collection[TopicPartition]:
        """The partitions that it reads."""
        return self._positions.keys()

    @property
    def complete(self) -> bool:
        """Whether all partitions were read to the ends that the producer left."""
        return self._ends is not None and all(self._positions[place] >= end for place, end in self._ends.items())

    def end_at(self, ends: dict[TopicPartition, int]) -> None:
        """Nothing more is produced: these are the partitions' ends."""
        self._ends = ends
        if self.complete:
            self._silence.cancel()

    async def run(self, consumer: Consumer[bytes, bytes]) -> None:
        """Read to the ends.

        Raises:
            CommandFailed: nothing came for too long.
        """
        consumer.assign(self._positions)
        with self._silence:
            self._heard()
            async for batch in consumer.batches():
                self._take(batch)
                self._heard()
                if self.complete:
                    break
        if not self.complete:
            count = f"{self.ledger.records:,}"
            raise CommandFailed(
                f"the check failed: the consumer has heard nothing for {SILENCE:g} s, with {count} read"
            )

    def _heard(self) -> None:
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
    """A topic, and what is needed to stream flights through it."""

    kafka: Client
    topic: str
    compression: CompressionType

    async def reader(self) -> TopicReader:
        """A reader of what is produced from now on.

        Raises:
            UnknownTopicOrPartition: no broker knows the topic, however long it was made ago.
        """
        return TopicReader(await self._ends(await self._places()))

    async def produce(self, flights: Iterable[Flight], flow: Flow, reader: TopicReader) -> None:
        """Send all flights, wait until they are acknowledged, and tell the reader where they end.

        Each carries its number among those of its key, so that the other side can tell what is due.
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
                # Waits while the buffer is full, but not for an acknowledgement.
                await producer.enqueue(self.topic, value, key=key)
                ledger.enter(key, sequence, value)
            await producer.flush()
            flow.ended = anyio.current_time()
        reader.end_at(await self._ends(reader.places))

    async def consume(self, flow: Flow, reader: TopicReader) -> None:
        """Read until the reader is where the producer has ended.

        Raises:
            CommandFailed: nothing came for too long.
        """
        async with self.kafka.consumer() as consumer:
            await reader.run(consumer)
        flow.ended = reader.last_at

    async def _places(self) -> list[TopicPartition]:
        """The topic's partitions. One that was just made is waited for: brokers hear of it one after the other."""
        waited = 0.0
        while True:
            try:
                known = await self.kafka.admin.describe_topic(self.topic)
            except UnknownTopicOrPartition:
                if waited >= _NEWS:
                    raise
                await anyio.sleep(_REST)
                waited += _REST
            else:
                return [TopicPartition(self.topic, one.index) for one in known.partitions]

    async def _ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        found = await self.kafka.admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
        return {place: one.offset for place, one in found.items() if one is not None}
