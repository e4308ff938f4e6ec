"""The consumer: what users call."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Generic, Self, TypeVar

import anyio
import anyio.lowlevel

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.offsets import look_up_offsets
from ..config import ConsumerConfig
from ..errors import CorruptBatch, UsageError
from ..records.batch import AnyReader, ConsumerRecord
from ..types import OffsetAndTimestamp, OffsetSpec, TopicPartition, check_partition, check_start, check_topic_name
from .fetch import Fetched
from .fetcher import Fetcher
from .positions import Positions

__all__ = ("Consumer", "ConsumerBatch")

K = TypeVar("K")
V = TypeVar("V")

_HEAVY = 64 * 1024
"""Compressed batches above this are inflated on a thread."""
_YIELD_EVERY = 0.01
"""Seconds after which a loop that never has to wait lets other tasks run."""
_LOOK_EVERY = 16
"""Records between two looks at the clock."""
_RESETS = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST, "none": None}


class ConsumerBatch(Generic[K, V]):
    """A batch of one partition, as the producer made it: iterate it for its records. Nothing is decoded before.

    Raises CorruptBatch or DeserializationError while iterating; after the latter the iteration goes on behind the
    record.
    """

    __slots__ = ("_reader", "next_offset", "partition", "topic")

    def __init__(self, where: TopicPartition, reader: "AnyReader[K, V]", next_offset: int) -> None:
        self.topic: str = where.topic
        self.partition: int = where.partition
        self._reader = reader
        self.next_offset: int = next_offset
        """The offset after the batch."""

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        return self._reader

    def __repr__(self) -> str:
        return f"<ConsumerBatch {self.topic}-{self.partition} up to {self.next_offset}>"


class Consumer(Generic[K, V]):
    """Reads records; made by :meth:`Client.consumer`, and used as ``async with``.

    Iterate it for records, or :meth:`batches` for whole batches. An error ends neither: enter the loop again, and
    it goes on where it was. One task iterates at a time.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        lane: str,
        topics: tuple[str, ...] = (),
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
    ) -> None:
        if config.group_id is not None:
            raise UsageError("this release does not join groups yet: leave group_id out, and assign() partitions")
        for topic in topics:
            check_topic_name(topic)
        self._cluster, self._config, self._topics = cluster, config, topics
        self._key_deserializer, self._value_deserializer = key_deserializer, value_deserializer
        self._positions = Positions(_RESETS[config.auto_offset_reset])
        self._fetcher = Fetcher(cluster, config, self._positions, lane)
        self._following = anyio.CancelScope()
        self._reading: Fetched | None = None
        self._unyielded = 0
        self._yielded_at = 0.0
        self._state = "new"

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise UsageError(f"this consumer is {self._state}: ask the client for another")
        self._cluster.owner.spawn(self._fetcher.run)
        self._state = "open"
        try:
            if self._topics:
                await self._take_all_partitions()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop fetching. May be called again."""
        if self._state == "open":
            self._state = "closed"
            self._following.cancel()
            await self._fetcher.close()

    # --- what to read ----------------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int | OffsetSpec]) -> None:
        """Read these partitions and no others.

        A mapping says where each begins: an offset or an OffsetSpec. Otherwise partitions that were assigned before
        keep their position, and new ones begin where ``auto_offset_reset`` says.

        Raises:
            UsageError: the topics are given already, or what is given is no partition.
        """
        self._require_open()
        if self._topics:
            raise UsageError("this consumer reads all partitions of its topics: make one without topics to assign")
        starts = dict(partitions) if isinstance(partitions, Mapping) else dict.fromkeys(partitions)
        checked: dict[TopicPartition, int | OffsetSpec | None] = {}
        for given, start in starts.items():
            where = check_partition(given)
            if start is not None:
                check_start(where, start)
            checked[where] = start
        self._positions.assign(checked)
        self._fetcher.wake()

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """The partitions that are read."""
        return self._positions.assigned

    def seek(self, partition: TopicPartition, to: int | OffsetSpec) -> None:
        """Go on from an offset, or from where an OffsetSpec leads once it was looked up.

        Raises:
            UsageError: the partition is not assigned, or the offset is negative.
        """
        self._require_open()
        check_start(partition, to)
        self._positions.seek(partition, to)
        self._fetcher.wake()

    def position(self, partition: TopicPartition) -> int | None:
        """The offset after the last record handed out; None while the first is being looked up.

        Raises:
            UsageError: the partition is not assigned.
        """
        return self._positions.require(partition).position

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out no records of these partitions until :meth:`resume`; what was fetched is kept.

        Raises:
            UsageError: one is not assigned.
        """
        self._set_paused(partitions, paused=True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo :meth:`pause`.

        Raises:
            UsageError: one is not assigned.
        """
        self._set_paused(partitions, paused=False)

    def _set_paused(self, partitions: Iterable[TopicPartition], *, paused: bool) -> None:
        for place in [self._positions.require(partition) for partition in partitions]:
            place.paused = paused
        self._fetcher.wake()
        self._fetcher.tell()

    @property
    def paused(self) -> tuple[TopicPartition, ...]:
        """The partitions that :meth:`pause` named."""
        return tuple(place.where for place in self._positions if place.paused)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The end of the partition's log when it was last fetched; None before the first fetch.

        Raises:
            UsageError: the partition is not assigned.
        """
        return self._positions.require(partition).high_watermark

    async def offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look offsets up: the beginning, the end, or by time; None where no record is that late.

        ``timeout`` is in seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            RequestTimeout, TopicNotReady: not all were found in time.
            UsageError: a topic has no such partition.
        """
        allowed = self._cluster.config.default_api_timeout_ms / 1000 if timeout is None else timeout
        asked = {check_partition(where): spec for where, spec in specs.items()}
        return await look_up_offsets(self._cluster, asked, self._cluster.deadline(allowed), self._config.isolation)

    async def _take_all_partitions(self) -> None:
        """Without a group, a consumer of topics reads every partition of them."""
        deadline = self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)
        starts: dict[TopicPartition, int | OffsetSpec | None] = {}
        for name in self._topics:
            known = await self._cluster.topic(name, deadline)
            starts |= {TopicPartition(name, partition.index): None for partition in known.partitions}
        self._positions.assign(starts)
        self._fetcher.wake()
        self._cluster.owner.spawn(self._follow_new_partitions)

    async def _follow_new_partitions(self) -> None:
        snapshot = self._cluster.snapshot
        with self._following:
            while True:
                snapshot = await self._cluster.newer(snapshot)
                self._take_new_partitions(snapshot)

    def _take_new_partitions(self, snapshot: Snapshot) -> None:
        starts: dict[TopicPartition, int | OffsetSpec | None] = dict.fromkeys(self.assignment)
        for name in self._topics:
            topic = snapshot.topics.get(name)
            for partition in topic.partitions if topic is not None else ():
                # A partition that appears while we read has no record that we should not see.
                starts.setdefault(TopicPartition(name, partition.index), OffsetSpec.EARLIEST)
        if len(starts) > len(self.assignment):
            self._positions.assign(starts)
            self._fetcher.wake()

    # --- reading ---------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        return self

    async def __anext__(self) -> ConsumerRecord[K, V]:
        """The next record, waiting for one.

        Raises:
            DeserializationError: the position is past the record, and the loop may be entered again.
            CorruptBatch: a batch is damaged; to go on, seek beyond it.
            KafkaError: fetching fails, at once or for ``default_api_timeout_ms``, and retries do not mend it.
        """
        # Before a record is taken: a cancellation in here must not cost one.
        await self._let_others_run()
        while True:
            reading = self._reading
            if reading is None or reading.reader is None or not self._is_readable(reading):
                reading = self._reading = await self._next_reading()
            reader: AnyReader[K, V] | None = reading.reader
            if reader is None:
                continue
            place = reading.ask.place
            try:
                record = next(reader, None)
            finally:
                place.position = reader.next_offset
            if record is not None:
                return record
            place.position, reading.reader = reading.batch_end, None

    def batches(self) -> AsyncIterator[ConsumerBatch[K, V]]:
        """Iterate whole batches instead of records: the fastest way. The position moves a batch at a time.

        Of a batch that was begun as records, the rest comes. Raises as the iteration of records does.
        """
        return _Batches(self)

    async def _next_batch(self) -> ConsumerBatch[K, V]:
        await self._let_others_run()
        while True:
            reading = await self._next_reading()
            reader: AnyReader[K, V] | None = reading.reader
            if reader is not None:
                reading.reader, reading.ask.place.position = None, reading.batch_end
                return ConsumerBatch(reading.ask.place.where, reader, reading.batch_end)

    async def _next_reading(self) -> Fetched:
        """Fetched data of some partition with a batch begun; waits for it."""
        while True:
            arrived = self._fetcher.arrived
            self._require_open()
            fault = self._fetcher.next_fault()
            if fault is not None:
                raise fault
            for fetched in list(self._fetcher.unread.values()):
                if self._is_readable(fetched) and await self._begin_batch(fetched):
                    return fetched
            await arrived.wait()

    async def _begin_batch(self, fetched: Fetched) -> bool:
        """Make sure that a batch is begun. Data without another one is used up, and makes room for more."""
        if fetched.reader is not None:
            return True
        place, check = fetched.ask.place, self._config.check_crcs
        try:
            batch = fetched.begun = fetched.begun or next(fetched, None)
            if batch is None:
                self._use_up(fetched)
                return False
            if batch.header.codec and batch.header.size > _HEAVY:
                await self._cluster.runtime.offload(partial(batch.prepare, check_crcs=check))
            fetched.reader = batch.records(
                *place.where,
                from_offset=place.position or 0,
                key_deserializer=self._key_deserializer,
                value_deserializer=self._value_deserializer,
                check_crcs=check,
            )
        except CorruptBatch:
            # Whoever enters the loop again must not find the batch behind it: it is fetched anew.
            self._forget(fetched)
            if self._is_readable(fetched):
                raise
            return False
        fetched.begun = None
        # Someone may have sought elsewhere while a thread inflated it.
        return self._is_readable(fetched)

    def _use_up(self, fetched: Fetched) -> None:
        place = fetched.ask.place
        if place.position == fetched.ask.offset:
            size = len(fetched.records)
            told = f"{size} bytes came without a whole batch that reaches it"
            raise CorruptBatch(f"{place.where} at offset {place.position}: {told}; to go on, seek beyond it")
        self._forget(fetched)

    def _forget(self, fetched: Fetched) -> None:
        where, unread = fetched.ask.place.where, self._fetcher.unread
        if unread.get(where) is fetched:
            del unread[where]
        self._fetcher.wake()

    def _is_readable(self, fetched: Fetched) -> bool:
        place = fetched.ask.place
        return fetched.ask.is_current and not place.paused and self._positions.get(place.where) is place

    def _require_open(self) -> None:
        if self._state != "open" or self._fetcher.has_ended:
            state = "closed" if self._fetcher.has_ended else self._state
            raise UsageError(f"the consumer is {state}: use it inside its 'async with'")

    async def _let_others_run(self) -> None:
        """Looking at the clock costs more than a record does: it is done for every few."""
        self._unyielded += 1
        if self._unyielded >= _LOOK_EVERY:
            self._unyielded = 0
            if self._cluster.runtime.now() - self._yielded_at > _YIELD_EVERY:
                await anyio.lowlevel.checkpoint()
                self._yielded_at = self._cluster.runtime.now()


class _Batches(AsyncIterator[ConsumerBatch[K, V]]):
    """An iterator that goes on after an error, which a generator would not."""

    def __init__(self, consumer: Consumer[K, V]) -> None:
        self._consumer = consumer

    async def __anext__(self) -> ConsumerBatch[K, V]:
        return await self._consumer._next_batch()
