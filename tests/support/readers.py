"""Consumers that read in tasks of their own, and the members of a group among them: what they got and were told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias

import anyio
import anyio.lowlevel
import attrs
from anyio.abc import TaskGroup

from aiokafkawire import Client, Consumer, ConsumerRecord, TopicPartition, UsageError
from aiokafkawire.errors import FencedInstanceId

from .patience import PATIENCE

__all__ = ("QUICK", "SERVED", "Partitions", "Reader", "Readers", "reading")

Partitions: TypeAlias = tuple[TopicPartition, ...]
Word: TypeAlias = Literal["assigned", "revoked", "lost"]

SERVED: dict[str, Any] = {
    "group_protocol": "consumer",
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 100,
}
"""What a member of a consumer group has unless a test says otherwise."""
QUICK: dict[str, Any] = {
    "session_timeout_ms": 30_000,
    "heartbeat_interval_ms": 100,
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 100,
}
"""What a member of a classic group has; a busy machine holds nobody up for a whole session."""


class Readers:
    """All that read in one test; whatever one of them hears wakes who waits for it."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.all: list[Reader] = []
        self._tasks, self._news = tasks, anyio.Event()

    async def join(
        self, kafka: Client, group: str, *topics: str, pattern: str | None = None, reads: bool = True, **options: Any
    ) -> Reader:
        """A member that has yet to get its partitions. It reads, unless it ``reads`` not."""
        usual = SERVED if options.get("group_protocol") == "consumer" else QUICK
        reader = Reader(kafka.consumer(group_id=group, **{**usual, **options}), self.tell)
        self.all.append(reader)
        await reader.consumer.__aenter__()
        reader.subscribe(*topics, pattern=pattern)
        if reads:
            self.read(reader)
        return reader

    def read(self, reader: Reader) -> None:
        """Have it read until it is closed."""
        self._tasks.start_soon(reader.read)

    def tell(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    async def until(self, reached: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Wait for something that one of them hears."""
        with anyio.move_on_after(patience):
            while not reached():
                await self._news.wait()
            return
        raise AssertionError("waited in vain; by now\n" + "\n".join(map(repr, self.all)))

    async def share(self, *readers: Reader, count: int, patience: float = PATIENCE) -> None:
        """Wait until each of these has a part of so many partitions, and all of them are somebody's."""

        def is_shared() -> bool:
            owned = [where for reader in readers for where in reader.owned]
            return len(owned) == len(set(owned)) == count and all(reader.owned for reader in readers)

        await self.until(is_shared, patience)

    async def close(self) -> None:
        for reader in self.all:
            await reader.close()


@attrs.define(eq=False)
class Reader:
    """One consumer. What a test sets as ``on_assigned`` and so on is called with what comes and goes."""

    consumer: Consumer[bytes, bytes]
    _tell: Callable[[], None] = attrs.field(repr=False)
    records: list[ConsumerRecord[bytes, bytes]] = attrs.field(
        factory=list, repr=lambda records: f"{len(records)} records"
    )
    told: list[tuple[Word, Partitions]] = attrs.field(factory=list)
    owned: set[TopicPartition] = attrs.field(factory=set)
    errors: list[Exception] = attrs.field(factory=list)
    on_record: Callable[[ConsumerRecord[bytes, bytes]], None] = attrs.field(default=lambda record: None, repr=False)
    on: dict[Word, Callable[[Partitions], Awaitable[None]]] = attrs.field(factory=dict, repr=False)

    def subscribe(self, *topics: str, pattern: str | None = None) -> None:
        self.consumer.subscribe(
            *topics, pattern=pattern, on_assigned=self._assigned, on_revoked=self._revoked, on_lost=self._lost
        )

    @property
    def values(self) -> list[bytes | None]:
        """What it has read."""
        return [record.value for record in self.records]

    @property
    def generation(self) -> int:
        return self.consumer.group_metadata().generation_id

    def words(self) -> list[Word]:
        """What it was told, without the partitions."""
        return [word for word, _ in self.told]

    async def read(self) -> None:
        while True:
            try:
                async for record in self.consumer:
                    self.records.append(record)
                    self.on_record(record)
                    self._tell()
            except UsageError:
                return  # it is closed
            except Exception as error:
                self.errors.append(error)
                self._tell()
                if isinstance(error, FencedInstanceId):
                    return  # it stays like this
                await anyio.lowlevel.checkpoint()

    async def close(self) -> None:
        await self.consumer.close()
        self._tell()

    async def _assigned(self, partitions: Partitions) -> None:
        await self._hear("assigned", partitions)
        self.owned |= set(partitions)
        self._tell()

    async def _revoked(self, partitions: Partitions) -> None:
        self.owned -= set(partitions)
        await self._hear("revoked", partitions)

    async def _lost(self, partitions: Partitions) -> None:
        self.owned -= set(partitions)
        await self._hear("lost", partitions)

    async def _hear(self, word: Word, partitions: Partitions) -> None:
        self.told.append((word, partitions))
        if word in self.on:
            await self.on[word](partitions)
        self._tell()


@asynccontextmanager
async def reading() -> AsyncIterator[Readers]:
    """For one test; all of them are closed after it."""
    tasks = anyio.create_task_group()
    await tasks.__aenter__()
    readers = Readers(tasks)
    try:
        yield readers
    finally:
        with anyio.CancelScope(shield=True):
            await readers.close()
        tasks.cancel_scope.cancel()
        # Without the exception, which would come out as a group.
        await tasks.__aexit__(None, None, None)
