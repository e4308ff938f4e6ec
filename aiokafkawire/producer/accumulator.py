"""Gathers records into batches, and decides which batches to send now.

The rules:

1. A batch is sent when it is full; or when it has lingered for ``linger_ms``, and all requests that were sent to the
   broker before that time are answered. While a batch waits for these answers, it gathers more records.
2. Several batches of a partition may be in flight, each in a request of its own and all to the same broker. Batches to
   retry are sent before new ones, in their original order, and only once no later batch is in flight.
3. Only one batch of a partition is in flight until the leader has acknowledged one, and again after a failure. A leader
   that does not know the producer accepts any sequence number as the first: after refusing the first batch, the leader
   would write the second. No new batch is sent while a retry is in flight: a leader remembers only the last five
   batches, and would no longer recognise the retried one.
4. A batch counts against ``buffer_memory`` from its first record until it is acknowledged or fails.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar
from uuid import UUID

import attrs

from ..config import ProducerConfig
from ..errors import BufferFull, KafkaError, RecordTooLarge
from ..records.batch import BatchBuilder
from ..records.compression import Codec
from ..types import Event, Header, TopicPartition
from ._implementation import BufferSpace, OpenBatch
from .batch import BatchResult, ProducerBatch
from .idempotence import SequenceAction, SequenceNumbers
from .in_flight_requests import InFlightRequest, InFlightRequests

__all__ = ("NOTHING_READY", "NOT_READY", "NO_LEADER", "ReadyRequests", "RecordAccumulator")

T = TypeVar("T")

NO_LEADER: Final = -1
"""The result of a ``route`` function (see :meth:`RecordAccumulator.drain`) for a partition without a known leader."""
NOT_READY: Final = -2
"""The result of a ``route`` function if a connection, the producer id or the transaction is not ready yet."""


@attrs.define(eq=False)
class _Queue:
    """The queue of one partition's batches that wait to be sent."""

    waiting: deque[ProducerBatch] = attrs.field(factory=deque)
    proven: bool = False
    """Whether the leader has acknowledged a batch since the last failure, and so would detect a missing batch."""
    restart: SequenceAction | None = None
    """The restart that is due once none of the partition's batches is in flight; None if no restart is due."""


@attrs.define
class ReadyRequests:
    """The result of :meth:`RecordAccumulator.drain`: the requests to send now, and other work to do."""

    requests: list[InFlightRequest] = attrs.field(factory=list)
    """The requests in the order in which to send them; several may go to one broker."""
    to_compress: list[ProducerBatch] = attrs.field(factory=list)
    """Batches that a thread must compress before they can be sent."""
    no_leader: bool = False
    """Whether a partition with a batch to send has no known leader."""
    full: set[int] = attrs.field(factory=set)
    """The node ids of brokers to which the maximum number of requests is in flight, although more batches are due."""
    next_ready_at: float = float("inf")
    """The earliest later time at which another batch of the sent batches' partitions has lingered or backed off."""


NOTHING_READY: Final = ReadyRequests()
"""The result to use instead of calling :meth:`RecordAccumulator.drain`."""


class RecordAccumulator:
    """The batches of one producer, in a queue for each partition. Times are in seconds of the runtime's clock."""

    def __init__(
        self, config: ProducerConfig, new_event: Callable[[], Event], sequences: SequenceNumbers | None
    ) -> None:
        self._config, self._new_event = config, new_event
        self.sequences: SequenceNumbers | None = sequences
        """The batches' sequence numbers; None for a producer that is not idempotent."""
        self.in_flight: InFlightRequests = InFlightRequests()
        self._codec = Codec.parse(config.compression_type)
        self._linger = config.linger_ms / 1000
        self._timeout = config.delivery_timeout_ms / 1000
        self._transactional = config.transactional_id is not None
        self._queues: dict[TopicPartition, _Queue] = {}
        # The queues with waiting batches; a queue from which a batch is sent moves to the end.
        self._ready: dict[TopicPartition, _Queue] = {}
        self._batches = 0
        self.last_batch_at: float = float("-inf")
        """The time at which the last batch was opened."""
        self.space: BufferSpace = BufferSpace(config.buffer_memory)
        self._space_freed: Event | None = None
        self.blocked: int = 0
        """The number of calls of :meth:`wait_for_space` that wait."""

    @property
    def has_waiting(self) -> bool:
        """Whether a batch waits to be sent."""
        return bool(self._ready)

    @property
    def needs_producer_id(self) -> bool:
        """Whether batches need sequence numbers, but the producer has no id yet."""
        return self.sequences is not None and self.sequences.needs_producer_id

    @property
    def unfinished(self) -> list[ProducerBatch]:
        """All batches that are in flight or wait to be sent; those of one partition are in their original order."""
        by_partition: dict[TopicPartition, list[ProducerBatch]] = {}
        for batch in self.in_flight.all_batches():
            by_partition.setdefault(batch.partition, []).append(batch)
        for partition, queue in self._ready.items():
            by_partition.setdefault(partition, []).extend(queue.waiting)
        return [batch for batches in by_partition.values() for batch in sorted(batches, key=_order)]

    # --- appending -------------------------------------------------------------------------------------

    @property
    def max_record_size(self) -> int:
        """The maximum size of a record in bytes, as computed by ``record_size_bound``."""
        return min(self._config.max_request_size, self._config.buffer_memory)

    def no_space(self, topic: str, bound: int) -> RecordTooLarge | BufferFull:
        """Return the error for a record for which there is no space; the record has up to ``bound`` bytes."""
        limit = self.max_record_size
        if bound > limit:
            setting = "max_request_size" if limit == self._config.max_request_size else "buffer_memory"
            return RecordTooLarge(f"a record of up to {bound} bytes for topic {topic!r}, {setting} allows {limit}")
        return BufferFull(f"{self.space.used} of {self.space.limit} bytes wait to be acknowledged (buffer_memory)")

    async def wait_for_space(self) -> None:
        """Wait until the space of any batch is freed."""
        if self._space_freed is None:
            self._space_freed = self._new_event()
        self.blocked += 1
        try:
            await self._space_freed.wait()
        finally:
            self.blocked -= 1

    def append(
        self,
        partition: TopicPartition,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        now: float,
    ) -> tuple[ProducerBatch, int]:
        """Append a record to the partition's last batch or a new one; return the batch and the record's index in it.

        The caller must have checked that there is buffer space for the record.
        """
        queue = self._queue(partition)
        if queue.waiting:
            last = queue.waiting[-1]
            index = last.opened.append(self.space, timestamp, key, value, headers)
            if index >= 0:
                return last, index
        self.last_batch_at = now
        batch = self._open(partition, now)
        batch.opened.append(self.space, timestamp, key, value, headers)
        queue.waiting.append(batch)
        self._ready[partition] = queue
        return batch, 0

    def append_batch(
        self, partition: TopicPartition, builder: BatchBuilder, timestamps: Iterable[int], now: float
    ) -> ProducerBatch:
        """Append a batch that the caller has filled, after the partition's records so far; no record is added to it.

        The caller must have checked that there is buffer space for the batch.
        """
        queue = self._queue(partition)
        if queue.waiting:
            queue.waiting[-1].close()
        self.last_batch_at = now
        batch = self._open(partition, now, builder)
        batch.result.timestamps.extend(timestamps)
        batch.close()
        self.space.used += builder.size
        queue.waiting.append(batch)
        self._ready[partition] = queue
        return batch

    def _queue(self, partition: TopicPartition) -> _Queue:
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = _Queue()
        return queue

    def _open(self, partition: TopicPartition, now: float, builder: BatchBuilder | None = None) -> ProducerBatch:
        if builder is None:
            config = self._config
            builder = BatchBuilder(limit=config.batch_size, codec=self._codec, level=config.compression_level)
        self._batches += 1
        result = BatchResult(partition, self._new_event)
        opened = OpenBatch(builder, result, result.timestamps)
        return ProducerBatch(partition, (self._batches, 0), opened, result, now, self._transactional)

    def has_room(self, partition: TopicPartition, size: int) -> bool:
        """Return whether the partition has an open batch with room for a record of up to ``size`` bytes."""
        queue = self._ready.get(partition)
        if queue is None or queue.waiting[-1].closed:
            return False
        return queue.waiting[-1].builder.size + size <= self._config.batch_size

    def queue_lengths(self, topic: str) -> dict[int, int]:
        """Return the number of waiting batches by partition index, for the topic's partitions with waiting batches."""
        return {
            partition.partition: len(queue.waiting)
            for partition, queue in self._ready.items()
            if partition.topic == topic
        }

    # --- sending ---------------------------------------------------------------------------------------

    def drain(self, route: Callable[[TopicPartition], int], now: float, *, flushing: bool = False) -> ReadyRequests:
        """Return the requests to send now, and count them as in flight; with ``flushing``, batches do not linger.

        ``route`` returns the node id of a partition's leader, NO_LEADER or NOT_READY. A batch in the result's
        ``to_compress`` is not in a request yet: a later call sends it, after a thread has compressed it.
        """
        ready = ReadyRequests()
        while self._ready and self._drain_once(ready, route, now, flushing):
            pass
        return ready

    def _drain_once(
        self, ready: ReadyRequests, route: Callable[[TopicPartition], int], now: float, flushing: bool
    ) -> bool:
        """Add one request to ``ready`` for each broker with due batches; return whether a request was added."""
        requests: dict[int, list[ProducerBatch]] = {}
        sizes: dict[int, int] = {}
        for partition, queue in self._ready.items():
            batch = queue.waiting[0]
            if batch.not_before > now or batch.compressing:
                continue
            # Nearly always no batch of the partition is in flight, and rules 2 and 3 need no check.
            in_flight = self.in_flight.batches(partition)
            if (in_flight or queue.restart is not None) and not self._is_next(queue, batch, in_flight):
                continue
            leader = route(partition)
            if leader < 0:
                ready.no_leader = ready.no_leader or leader == NO_LEADER
                continue
            if in_flight and in_flight[-1].sent_to != leader:
                continue
            sent = self.in_flight.requests(leader)
            if not self._is_due(queue, batch, sent, now, flushing):
                continue
            if len(sent) >= self._config.max_in_flight_requests_per_connection:
                ready.full.add(leader)
                continue
            builder = batch.opened.builder
            size = sizes.get(leader, 0) + builder.size
            if leader in requests and size > self._config.max_request_size:
                continue
            if builder.codec and batch.needs_thread:
                batch.close()
                batch.compressing = True
                ready.to_compress.append(batch)
                continue
            sizes[leader] = size
            requests.setdefault(leader, []).append(batch)
        for leader, batches in requests.items():
            ready.next_ready_at = min(ready.next_ready_at, self._take(leader, batches, now))
            request = InFlightRequest(leader, batches, now)
            self.in_flight.add(request)
            ready.requests.append(request)
        return bool(requests)

    def _is_next(self, queue: _Queue, batch: ProducerBatch, in_flight: Sequence[ProducerBatch]) -> bool:
        """Return whether ``batch``, the queue's first, may be sent now, given the partition's batches ``in_flight``."""
        if not in_flight:
            return queue.restart is None or self._restarted(queue, batch.partition)
        if not batch.attempts and in_flight[0].attempts > 1:
            return False
        in_order = in_flight[-1].order < batch.order
        return in_order and queue.proven and queue.restart is None

    def _restarted(self, queue: _Queue, partition: TopicPartition) -> bool:
        action = queue.restart
        assert action is not None
        if action is not SequenceAction.RESUME:
            if self.sequences is not None and not self.sequences.restart(partition, action):
                return False
            for batch in queue.waiting:
                batch.reset_sequence()
        queue.restart, queue.proven = None, False
        return True

    def _is_due(
        self, queue: _Queue, batch: ProducerBatch, sent: Sequence[InFlightRequest], now: float, flushing: bool
    ) -> bool:
        opened = batch.opened
        if len(queue.waiting) > 1 or opened.closed or opened.builder.size >= self._config.batch_size:
            return True
        ready_at = batch.created_at if flushing else self._ready_at(batch)
        # Other partitions may keep the connection busy: the batch waits only for requests sent before it was ready.
        return now >= ready_at and (not sent or sent[0].sent_at > ready_at)

    def _ready_at(self, batch: ProducerBatch) -> float:
        """Return the time at which the batch has lingered or, for a retry, backed off."""
        return batch.not_before if batch.attempts else batch.created_at + self._linger

    def _take(self, leader: int, batches: list[ProducerBatch], now: float) -> float:
        """Take ``batches`` from their queues, to send them to ``leader``.

        Return the earliest time after ``now`` at which a next batch in these queues is ready; infinity if none is.
        """
        next_ready_at = float("inf")
        for batch in batches:
            batch.close()
            batch.attempts += 1
            batch.sent_to = leader
            if batch.first_sent_at is None:
                batch.first_sent_at = now
            if self.sequences is not None:
                self.sequences.number(batch)
            queue = self._ready.pop(batch.partition)
            queue.waiting.popleft()
            if queue.waiting:
                self._ready[batch.partition] = queue
                ready_at = self._ready_at(queue.waiting[0])
                next_ready_at = min(next_ready_at, ready_at) if ready_at > now else next_ready_at
        return next_ready_at

    def deadline(self, now: float) -> float | None:
        """Return the first time after ``now`` at which a batch expires or becomes ready to send; None if none does.

        Earlier times do not count, since a batch that was ready before ``now`` waits for a connection or a leader.
        """
        moments = [
            batch.created_at + self._timeout for batch in self.in_flight.all_batches() if not batch.result.completed
        ]
        for queue in self._ready.values():
            first = queue.waiting[0]
            moments += first.created_at + self._timeout, self._ready_at(first)
        return min((moment for moment in moments if moment > now), default=None)

    # --- completing ------------------------------------------------------------------------------------

    def is_first(self, batch: ProducerBatch) -> bool:
        """Return whether ``batch`` is its partition's first: no earlier one is in flight or waits to be sent."""
        queues = self.in_flight.batches(batch.partition), self._queue(batch.partition).waiting
        return all(queue[0].order >= batch.order for queue in queues if queue)

    def acknowledge(self, batch: ProducerBatch) -> None:
        """Free the space of a written batch, and allow several batches of its partition to be in flight (rule 3)."""
        self._queue(batch.partition).proven = True
        self.remove(batch)

    def remove(self, batch: ProducerBatch) -> None:
        """Free the space of a batch that is acknowledged or has failed."""
        batch.close()
        self.space.used -= batch.opened.builder.size
        self._discard(batch.partition)
        if self._space_freed is not None:
            self._space_freed.set()
            self._space_freed = None

    def discard_expired(self, batch: ProducerBatch) -> None:
        """Discard an expired batch whose request has ended; from now on only one batch may be in flight (rule 3)."""
        self._queue(batch.partition).proven = False
        self._discard(batch.partition)

    def requeue(self, batch: ProducerBatch, error: KafkaError, not_before: float) -> None:
        """Return the batch to its position in the queue, to be sent again at the time ``not_before`` or later.

        ``error`` becomes the ``last_error`` of all waiting batches of the partition.
        """
        batch.not_before = not_before
        for held_up in self._wait_again(batch).waiting:
            held_up.last_error = error

    def requeue_split(self, batch: ProducerBatch) -> None:
        """Split a batch that a broker does not accept as a whole, and put its halves into the queue."""
        self.space.used -= batch.builder.size
        for half in batch.split():
            self.space.used += half.builder.size
            self._wait_again(half)

    def restart(self, partition: TopicPartition, action: SequenceAction) -> None:
        """Stop sending the partition's batches; once none is in flight, restart its sequence numbers by ``action``."""
        self._queue(partition).restart = action

    def restart_recreated(self, topic_id: Callable[[str], UUID]) -> None:
        """Restart a partition's numbers if a batch was sent under another topic id than ``topic_id`` now returns."""
        action = SequenceAction.RESUME if self._transactional else SequenceAction.RENUMBER
        for partition, queue in self._queues.items():
            now_id = topic_id(partition.topic)
            sent = (*self.in_flight.batches(partition), *queue.waiting)
            if queue.restart is None and any(batch.has_other_topic(now_id) for batch in sent):
                queue.restart = action

    def _wait_again(self, batch: ProducerBatch) -> _Queue:
        queue = self._queue(batch.partition)
        queue.proven = False
        insort(queue.waiting, batch, key=_order)
        self._ready[batch.partition] = queue
        return queue

    def _discard(self, partition: TopicPartition) -> None:
        """Discard the partition's queue if no batch waits or is in flight, and no restart is due."""
        queue = self._queues.get(partition)
        if queue is not None and not queue.waiting:
            self._ready.pop(partition, None)
            if not self.in_flight.batches(partition) and queue.restart is None:
                del self._queues[partition]

    def take_expired(self, now: float) -> list[ProducerBatch]:
        """Return the batches older than ``delivery_timeout_ms``.

        Batches that wait to be sent are removed from their queues; those in flight stay until their requests end.
        """
        in_flight = [
            batch
            for batch in self.in_flight.all_batches()
            if now >= batch.created_at + self._timeout and not batch.result.completed
        ]
        # The same sum as in deadline(): if it were rounded differently, the sender could wake before the batch expires.
        waiting = self.take_waiting(lambda batch: True if now >= batch.created_at + self._timeout else None)
        return in_flight + [batch for batch, _ in waiting]

    def take_waiting(self, reason_of: Callable[[ProducerBatch], T | None]) -> list[tuple[ProducerBatch, T]]:
        """Remove each waiting batch for which ``reason_of`` returns a reason; return these batches with the reasons."""
        taken: list[tuple[ProducerBatch, T]] = []
        for partition, queue in list(self._ready.items()):
            kept: deque[ProducerBatch] = deque()
            for batch in queue.waiting:
                reason = reason_of(batch)
                if reason is None:
                    kept.append(batch)
                else:
                    batch.close()
                    taken.append((batch, reason))
            if len(kept) < len(queue.waiting):
                queue.waiting = kept
                self._discard(partition)
        return taken

    def record_error(self, error: KafkaError, concerns: Callable[[ProducerBatch], bool]) -> None:
        """Set ``last_error`` of each waiting batch for which ``concerns`` returns True."""
        for queue in self._ready.values():
            for batch in queue.waiting:
                if concerns(batch):
                    batch.last_error = error


def _order(batch: ProducerBatch) -> tuple[int, int]:
    return batch.order
