"""Clients that use every protocol at once, and the numbers that each of them has seen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

import anyio
import anyio.lowlevel
import attrs

from aiokafkawire import Client, ConsumerRecord, TopicPartition
from aiokafkawire.admin.new_topics import NewTopic
from aiokafkawire.transform import OutgoingRecord

__all__ = ("Everything", "until")

SOURCE, COPY = "numbers", "copies"
PARTITIONS = 6
_KEYS: Final = 32
_MOST: Final = 1_000_000
"""More numbers than any run writes; the memory for what is seen of them is there from the beginning."""


async def until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until a condition holds, but no longer than this."""
    with anyio.fail_after(seconds):
        while True:
            if condition():
                return
            await anyio.sleep(0.05)


@attrs.define(eq=False)
class Seen:
    """How often each number was seen by one part, and the numbers that came out of order of their keys."""

    times: bytearray = attrs.field(factory=lambda: bytearray(_MOST))
    count: int = 0
    disordered: int = 0
    _last: list[int] = attrs.field(factory=lambda: [-1] * _KEYS)

    def add(self, record: ConsumerRecord[Any, Any]) -> None:
        """Count a record. Numbers that come again, after a rebalance, are no disorder."""
        number = int(record.value or b"")
        is_new = not self.times[number]
        self.times[number] = min(255, self.times[number] + 1)
        self.count += 1
        key = number % _KEYS
        self.disordered += is_new and number < self._last[key]
        self._last[key] = max(self._last[key], number)

    def missing(self, first: int, end: int) -> int:
        """Return how many of these numbers were not seen."""
        return self.times.count(0, first, end)

    @property
    def repeated(self) -> int:
        """How often a number was seen again."""
        return self.count - (_MOST - self.times.count(0))


@attrs.define(eq=False)
class Everything:
    """The parts of a load, each with a client of its own that counts its metrics. Each runs until it is cancelled."""

    bootstrap: str
    pause: float = 0.01
    """Seconds between an acknowledgement and the next record."""
    written: int = 0
    """How many numbers were acknowledged, from 0 on."""
    enough: bool = False
    """Ends the writer."""
    seen: dict[str, Seen] = attrs.field(factory=dict)
    """By the name of a part."""
    healths: dict[str, Callable[[], object]] = attrs.field(factory=dict)
    """What a reading part's consumer says of itself; of several members the last one's."""

    async def create_topics(self, replicas: int = 3) -> None:
        """Create the topics of all parts."""
        async with Client(self.bootstrap) as kafka:
            await kafka.admin.create_topics({name: NewTopic(PARTITIONS, replicas) for name in (SOURCE, COPY)})

    async def write(self) -> None:
        """Write numbers until it is enough, each after the one before is acknowledged."""
        async with self._client() as kafka, kafka.producer() as producer:
            while not self.enough:
                value = b"%d" % self.written
                await producer.send(SOURCE, value, key=b"%d" % (self.written % _KEYS))
                self.written += 1
                await anyio.sleep(self.pause)

    async def some_more(self, count: int) -> None:
        """Wait until so many more are written."""
        wanted = self.written + count
        await until(lambda: self.written >= wanted)

    async def read_in_group(self, group: str, protocol: Literal["classic", "consumer"]) -> None:
        """Be a member of a group."""
        seen = self._seen(group)
        async with self._client() as kafka:
            consumer = kafka.consumer(SOURCE, group_id=group, group_protocol=protocol, auto_offset_reset="earliest")
            self.healths[group] = consumer.health
            async with consumer:
                async for record in consumer:
                    seen.add(record)

    async def process(self, group: str) -> None:
        """Handle the records of each key in order, several keys at once."""
        seen = self._seen(group)

        async def handle(record: ConsumerRecord[Any, Any]) -> None:
            await anyio.lowlevel.checkpoint()
            seen.add(record)

        async with self._client() as kafka:
            await kafka.process(SOURCE, handle, group_id=group, auto_offset_reset="earliest")

    async def transform(self) -> None:
        """Copy all records exactly once, in transactions."""
        async with self._client() as kafka:
            await kafka.transform(SOURCE, _copies, group_id="transform", transactional_id="copier")

    async def follow_copies(self) -> None:
        """Read the committed copies."""
        seen = self._seen("copies")
        async with self._client() as kafka:
            consumer = kafka.consumer(auto_offset_reset="earliest", isolation_level="read_committed")
            async with consumer:
                consumer.assign([TopicPartition(COPY, partition) for partition in range(PARTITIONS)])
                async for record in consumer:
                    seen.add(record)

    async def share(self, group: str) -> None:
        """Be a member of a share group."""
        seen = self._seen(group)
        async with self._client() as kafka, kafka.share_consumer(SOURCE, group_id=group) as consumer:
            self.healths[group] = consumer.health
            async for record in consumer:
                async with record:
                    assert record.value is not None
                    number = int(record.value)
                    seen.times[number] = min(255, seen.times[number] + 1)
                    seen.count += 1

    def first_seen(self, part: str) -> int:
        """Return the lowest number that a part has seen."""
        times = self._seen(part).times
        return next(number for number, seen in enumerate(times) if seen)

    async def wait_until_all_is_seen(self, part: str, first: int = 0, seconds: float = 120.0) -> None:
        """Wait until a part has seen all numbers that were written, from this one on."""
        seen = self._seen(part)
        await until(lambda: not seen.missing(first, self.written), seconds)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        async with Client(self.bootstrap) as kafka:
            kafka.metrics()
            yield kafka

    def _seen(self, part: str) -> Seen:
        return self.seen.setdefault(part, Seen())


async def _copies(records: Sequence[ConsumerRecord[bytes, bytes]]) -> list[OutgoingRecord]:
    return [OutgoingRecord(COPY, record.value, key=record.key) for record in records]
