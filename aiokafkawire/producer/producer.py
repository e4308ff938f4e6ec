"""The producer: what users call."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import anyio
import anyio.lowlevel

from ..cluster.cluster import Cluster
from ..cluster.metadata import Topic
from ..cluster.retry import Deadline
from ..config import ProducerConfig
from ..errors import BufferFull, DeliveryFailed, ErrorCode, KafkaError, TopicNotReady, UsageError, again
from ..records.batch import Delivery, record_size_bound
from ..records.compression import Codec, check_level
from ..types import Header, Headers, ProducerIdentity, RecordMetadata, TopicPartition, check_topic_name
from .batch import Batch
from .partitioner import make_partitioner
from .sender import Sender

if TYPE_CHECKING:  # many a producer makes none
    from .transacting import Transaction
    from .transactor import Transactor

__all__ = ("Producer",)

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)

_YIELD_EVERY = 256
"""Records after which a caller who never has to wait lets other tasks run."""


class Producer(Generic[K, V]):
    """Sends records; made by :meth:`Client.producer`, and used as ``async with``.

    Records of a partition are written once and in the order in which they were handed over, whatever is tried again,
    if ``acks`` is "all" and the brokers know how (0.11 and later, see ``enable_idempotence``).

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
        identity: ProducerIdentity | None = None,
    ) -> None:
        check_level(Codec.parse(config.compression_type), config.compression_level)
        self._cluster, self._config = cluster, config
        self._serialize_key, self._serialize_value = key_serializer, value_serializer
        self._transactor = _transactor(cluster, config, identity)
        self._sender = Sender(cluster, config, lane, self._made_room, self._transactor)
        self._accumulator = self._sender.accumulator
        self._choose = make_partitioner(config, cluster.runtime.chance, self._sender)
        self._available: dict[str, tuple[Topic, tuple[int, ...]]] = {}
        self._room = anyio.Event()
        self._unyielded = 0
        self._state = "new"

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise UsageError(f"this producer is {self._state}: ask the client for another")
        self._state = "closed"  # whatever comes of it, it is not to be opened twice
        self._cluster.owner.spawn(self._sender.run)
        if self._transactor is not None:
            self._cluster.owner.spawn(self._transactor.run)
            try:
                await self._transactor.until(self._transactor.is_ready, "asking for the producer id")
            except BaseException:
                await self._stop()
                raise
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
        if self._transactor is not None:
            await self._transactor.stop()
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
        batch, index = await self._accept_in_time(topic, value, key, partition, timestamp_ms, headers)
        if index == 0 and self._accumulator.is_idle:
            await self._sender.go_now()
        else:
            self._nudge(batch, index)
        return await batch.result.wait(index)

    async def send_many(
        self,
        topic: str,
        values: Iterable[V | None],
        *,
        keys: Iterable[K | None] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> list[RecordMetadata]:
        """Send many records, and wait until all are acknowledged: where each of them is.

        Args:
            topic: the topic of all.
            values: as ``value`` of :meth:`send`.
            keys: one for each value; without any the records have no keys.
            partition, timestamp_ms, headers: the same for all, as for :meth:`send`.

        Cancelled, those that were accepted go on.

        Raises:
            DeliveryFailed: some were accepted and not delivered; it has their errors.
            ValueError: there are more keys than values, or fewer.
            KafkaError: as :meth:`enqueue`; those before it go on.
        """
        accepted: list[tuple[Batch, int]] = []
        pairs = zip(values, repeat(None)) if keys is None else zip(values, keys, strict=True)
        for value, key in pairs:
            accepted.append(await self._accept_in_time(topic, value, key, partition, timestamp_ms, headers))
            self._nudge(*accepted[-1])
        found, errors = [], []
        for batch, index in accepted:
            try:
                found.append(await batch.result.wait(index))
            except KafkaError as error:
                errors.append(error)
        if errors:
            raise DeliveryFailed(list({str(error): error for error in errors}.values()), len(errors))
        return found

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
        batch, index = await self._accept_in_time(topic, value, key, partition, timestamp_ms, headers)
        self._nudge(batch, index)
        return Delivery(batch.result, index)

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
        batch, index = self._accept(topic, value, key, partition, timestamp_ms, headers)
        self._nudge(batch, index)
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

    # --- transactions ----------------------------------------------------------------------------------

    def transaction(self) -> "Transaction[K, V]":
        """A transaction, to be used as ``async with``: it is committed at the end, and aborted on an exception.

        Raises:
            UsageError: the producer was made without a ``transactional_id``, or is not open.
        """
        if self._transactor is None:
            raise UsageError(
                "a producer needs a transactional_id for transactions: client.producer(transactional_id=...)"
            )
        from .transacting import Transaction

        if self._state != "open":
            raise UsageError(f"the producer is {self._state}: use it inside its 'async with'")
        return Transaction(self, self._sender, self._transactor)

    @property
    def identity(self) -> ProducerIdentity:
        """Its id and epoch, with which ``client.producer(identity=...)`` writes into the transaction that is open here.

        That producer neither begins nor ends transactions: its own are parts of this one. No two producers with one
        identity may write to the same partition, since leaders would take their records for retries of one another.
        To ask for it is to share it: with transactions of version 1 the next one needs another epoch then, which
        brokers before 2.5 do not give.

        Raises:
            UsageError: no transaction is open.
        """
        if self._transactor is None or not self._transactor.has_open():
            raise UsageError("there is an identity to share while a transaction is open")
        return self._transactor.machine.share()

    # --- the parts of a send ---------------------------------------------------------------------------

    async def _accept_in_time(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[Batch, int]:
        """Hand one record over, as soon as there is room and its topic is known."""
        deadline: Deadline | None = None
        # Before the record is accepted: whoever is cancelled in here knows that it was not.
        await self._let_others_run()
        while True:
            room = self._room
            try:
                batch, index = self._accept(topic, value, key, partition, timestamp_ms, headers)
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
                return batch, index

    def _accept(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[Batch, int]:
        """Put one record into a batch: the batch, and its index there."""
        if self._state != "open" or self._sender.has_ended:
            state = "closed" if self._sender.has_ended else self._state
            raise UsageError(f"the producer is {state}: use it inside its 'async with'")
        if self._sender.fatal is not None:
            raise again(self._sender.fatal)
        if timestamp_ms is not None and not (type(timestamp_ms) is int and 0 <= timestamp_ms < 2**63):
            raise UsageError(f"timestamp_ms is ms since the epoch, a whole number from 0 on, got {timestamp_ms!r}")
        known, available = self._partitions(topic)
        raw_key = self._bytes(key, self._serialize_key, "key")
        raw_value = self._bytes(value, self._serialize_value, "value")
        pairs = _header_pairs(headers) if headers else ()
        size = record_size_bound(raw_key, raw_value, pairs)
        if not self._accumulator.has_room(topic, size):
            limit = self._config.buffer_memory
            raise BufferFull(f"{self._accumulator.used} of {limit} bytes wait to be acknowledged (buffer_memory)")
        if partition is None:
            chosen = self._choose(topic, raw_key, available, len(known), size)
        else:
            chosen = _checked(topic, partition, len(known))
        where = TopicPartition(topic, chosen)
        if self._transactor is not None:
            self._transactor.add(where)
        runtime = self._cluster.runtime
        timestamp = runtime.wall_ms() if timestamp_ms is None else timestamp_ms
        return self._accumulator.append(where, timestamp, raw_key, raw_value, pairs, runtime.now())

    def _nudge(self, batch: Batch, index: int) -> None:
        """Have the sender look, if a batch was begun or is full."""
        if index == 0 or self._accumulator.is_full(batch):
            self._sender.wake()

    def _partitions(self, topic: str) -> tuple[Sequence[object], tuple[int, ...]]:
        """The topic's partitions, and the indexes of those with a leader, in one object until they change."""
        known = self._cluster.snapshot.topics.get(topic)
        if known is None or known.error != ErrorCode.NONE or not known.partitions:
            check_topic_name(topic)
            self._cluster.use((topic,))
            self._cluster.outdated(self._cluster.snapshot)
            raise TopicNotReady(f"the partitions of topic {topic!r} are not known yet")
        before = self._available.get(topic)
        if before is None or before[0] is not known:
            led = tuple(one.index for one in known.partitions if one.leader is not None)
            if before is not None and before[1] == led:
                led = before[1]
            before = self._available[topic] = known, led
        return known.partitions, before[1]

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


def _transactor(cluster: Cluster, config: ProducerConfig, identity: ProducerIdentity | None) -> "Transactor | None":
    if config.transactional_id is None:
        return None
    from .transactor import Transactor

    return Transactor(cluster, config, config.transactional_id, identity)


def _checked(topic: str, partition: object, count: int) -> int:
    if not isinstance(partition, int) or isinstance(partition, bool) or not 0 <= partition < count:
        raise UsageError(f"topic {topic!r} has {count} partitions, no {partition!r}")
    return partition


def _header_pairs(headers: Headers) -> Sequence[Header]:
    pairs = list(headers.items()) if isinstance(headers, Mapping) else headers
    for name, content in pairs:
        if not isinstance(name, str) or not (content is None or isinstance(content, bytes)):
            raise UsageError(f"a header is a string and bytes or None, got {name!r}: {content!r}")
    return pairs
