"""The producer: what users call."""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import anyio
import anyio.lowlevel

from ..cluster.cluster import Cluster
from ..cluster.metadata import Partition
from ..cluster.retry import Deadline
from ..config import ProducerConfig
from ..errors import BufferFull, DeliveryFailed, ErrorCode, TopicNotReady, UsageError
from ..records.batch import Delivery, record_size_bound
from ..records.compression import Codec, check_level
from ..types import Header, Headers, RecordMetadata, TopicPartition, check_topic_name
from .partitioner import Sticky, partition_for_key
from .sender import Sender

__all__ = ("Producer",)

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)

_YIELD_EVERY = 256
"""Records after which a caller who never has to wait lets other tasks run."""


class Producer(Generic[K, V]):
    """Sends records; made by :meth:`Client.producer`, and used as ``async with``.

    Leaving it sends what is still waiting. When its body was cancelled it stops at once instead, and what was not
    acknowledged fails.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        lane: str,
        key_serializer: Callable[[K], bytes] | None = None,
        value_serializer: Callable[[V], bytes] | None = None,
    ) -> None:
        check_level(Codec.parse(config.compression_type), config.compression_level)
        self._cluster, self._config = cluster, config
        self._serialize_key, self._serialize_value = key_serializer, value_serializer
        self._sender = Sender(cluster, config, lane, self._made_room)
        self._accumulator = self._sender.accumulator
        self._sticky = Sticky(cluster.runtime.chance)
        self._room = anyio.Event()
        self._unyielded = 0
        self._state = "new"

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise UsageError(f"this producer is {self._state}: ask the client for another")
        self._cluster.owner.spawn(self._sender.run)
        self._state = "open"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            await self._stop()
            return
        try:
            await self.close()
        except DeliveryFailed as failed:
            if error is None:
                raise
            # The body's own error is the news; this must not hide it.
            error.add_note(f"besides, {failed}")

    async def close(self) -> None:
        """Send what is waiting, and stop. May be called again. It ends within ``delivery_timeout_ms``.

        Raises:
            DeliveryFailed: records failed that nobody awaited.
        """
        if self._state != "open":
            return
        # What would be accepted from now on, the flush would not wait for.
        self._state = "closing"
        try:
            await self.flush()
        finally:
            await self._stop()

    async def _stop(self) -> None:
        self._state = "closed"
        await self._sender.close()

    # --- sending ---------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> RecordMetadata:
        """Send one record, and wait until it is acknowledged.

        A record whose acknowledgement is lost with a connection is sent again, so it may be written twice.

        Args:
            topic: its topic.
            value: bytes, or what the ``value_serializer`` takes; None is a tombstone.
            key: as ``value``; records with equal keys go to the same partition, as with Kafka's Java client.
            partition: overrides the choice by key.
            timestamp_ms: ms since the epoch; now if not given.
            headers: names and bytes.

        Cancelled before the record was accepted, nothing is sent; afterwards it goes on.

        Raises:
            BufferFull, TopicNotReady: no room, or no such topic, within ``max_block_ms``.
            RecordTooLarge: it exceeds ``max_request_size``.
            RequestTimeout: no acknowledgement within ``delivery_timeout_ms``; it may have been written.
            BrokerError: the broker refuses it.
            UsageError: the topic's name is not allowed, or it has no such partition.
        """
        delivery = await self.enqueue(
            topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )
        return await delivery

    async def enqueue(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Hand one record over: wait for the topic's metadata and for room, not for its acknowledgement.

        Arguments and errors are those of :meth:`send`; what becomes of the record, awaiting the delivery tells.
        """
        deadline: Deadline | None = None
        # Before the record is accepted: whoever is cancelled in here knows that it was not.
        await self._let_others_run()
        while True:
            room = self._room
            try:
                delivery = self.send_nowait(
                    topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
                )
            except TopicNotReady:
                deadline = deadline or self._cluster.deadline(self._config.max_block_ms / 1000)
                await self._cluster.topic(topic, deadline)
            except BufferFull:
                deadline = deadline or self._cluster.deadline(self._config.max_block_ms / 1000)
                with self._sender.hurry(), anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
                    await room.wait()
                if deadline.passed(self._cluster.runtime.now()):
                    raise
            else:
                return delivery

    def send_nowait(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Hand one record over without waiting for anything. Arguments are those of :meth:`send`.

        Raises:
            BufferFull: ``buffer_memory`` is used up.
            TopicNotReady: the topic's partitions are not known yet; its metadata is asked for.
            RecordTooLarge, UsageError: as :meth:`send`.
        """
        if self._state != "open" or self._sender.has_ended:
            state = "closed" if self._sender.has_ended else self._state
            raise UsageError(f"the producer is {state}: use it inside its 'async with'")
        if timestamp_ms is not None and not (type(timestamp_ms) is int and 0 <= timestamp_ms < 2**63):
            raise UsageError(f"timestamp_ms is ms since the epoch, a whole number from 0 on, got {timestamp_ms!r}")
        partitions = self._partitions(topic)
        raw_key = self._bytes(key, self._serialize_key, "key")
        raw_value = self._bytes(value, self._serialize_value, "value")
        pairs = _header_pairs(headers) if headers else ()
        size = record_size_bound(raw_key, raw_value, pairs)
        where = TopicPartition(topic, self._choose(topic, raw_key, partition, partitions, size))
        timestamp = self._cluster.runtime.wall_ms() if timestamp_ms is None else timestamp_ms
        now = self._cluster.runtime.now()
        appended = self._accumulator.append(where, timestamp, raw_key, raw_value, pairs, size, now)
        if appended is None:
            limit = self._config.buffer_memory
            raise BufferFull(f"{self._accumulator.used} of {limit} bytes wait to be acknowledged (buffer_memory)")
        batch, index = appended
        if index == 0 or self._accumulator.is_full(batch):
            self._sender.wake()
        return Delivery(batch.result, index)

    async def flush(self) -> None:
        """Wait until everything handed over so far is acknowledged or has failed.

        Raises:
            DeliveryFailed: records failed since the last flush that nobody awaited.
        """
        await self._sender.flush()

    async def partitions_for(self, topic: str) -> tuple[int, ...]:
        """The topic's partitions, waiting for them up to ``max_block_ms``.

        Raises:
            TopicNotReady: they are not known in time.
            BrokerError: the broker refuses.
        """
        check_topic_name(topic)
        known = await self._cluster.topic(topic, self._cluster.deadline(self._config.max_block_ms / 1000))
        return tuple(partition.index for partition in known.partitions)

    # --- the parts of a send ---------------------------------------------------------------------------

    def _partitions(self, topic: str) -> tuple[Partition, ...]:
        known = self._cluster.snapshot.topics.get(topic)
        if known is None or known.error != ErrorCode.NONE or not known.partitions:
            check_topic_name(topic)
            self._cluster.use((topic,))
            self._cluster.outdated(self._cluster.snapshot)
            raise TopicNotReady(f"the partitions of topic {topic!r} are not known yet")
        return known.partitions

    def _choose(
        self, topic: str, key: bytes | None, partition: int | None, partitions: tuple[Partition, ...], size: int
    ) -> int:
        if partition is not None:
            if not isinstance(partition, int) or not 0 <= partition < len(partitions):
                raise UsageError(f"topic {topic!r} has {len(partitions)} partitions, no {partition!r}")
            return partition
        if key is not None:
            return partition_for_key(key, len(partitions))
        current = self._sticky.current(topic)
        if (
            current is not None
            and current < len(partitions)
            and partitions[current].leader is not None
            and self._accumulator.takes(TopicPartition(topic, current), size)
        ):
            return current
        led = [one.index for one in partitions if one.leader is not None]
        return self._sticky.move_on(topic, led or [one.index for one in partitions])

    @staticmethod
    def _bytes(given: Any, serialize: Callable[[Any], bytes] | None, what: str) -> bytes | None:
        if given is None:
            return None
        raw = serialize(given) if serialize is not None else given
        if not isinstance(raw, bytes):
            made = f"the {what}_serializer gave" if serialize is not None else f"the {what} is"
            raise UsageError(f"{made} a {type(raw).__name__}, and bytes are needed")
        return raw

    async def _let_others_run(self) -> None:
        self._unyielded += 1
        if self._unyielded >= _YIELD_EVERY:
            self._unyielded = 0
            await anyio.lowlevel.checkpoint()

    def _made_room(self) -> None:
        room, self._room = self._room, anyio.Event()
        room.set()


def _header_pairs(headers: Headers) -> Sequence[Header]:
    pairs = list(headers.items()) if isinstance(headers, Mapping) else headers
    for name, content in pairs:
        if not isinstance(name, str) or not (content is None or isinstance(content, bytes)):
            raise UsageError(f"a header is a string and bytes or None, got {name!r}: {content!r}")
    return pairs
