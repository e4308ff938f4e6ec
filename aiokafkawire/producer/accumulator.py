"""Gathers records into batches, and decides which batches are sent now.

The rules:

1. If nothing is in flight to a broker, its batches are sent once ``linger_ms`` have passed. Otherwise records gather
   longer: a batch is sent when it is full, or when all requests that were in flight before it was ready are answered.
2. Several batches of a partition may be in flight, each in a request of its own and all to the same broker. Retries
   are sent first, in their original order, once no later batch is in flight.
3. While the leader has acknowledged no batch of a partition, or none since a failure, only one batch is in flight. A
   leader that does not know the producer accepts any sequence number as its first: after refusing the first batch, it
   would write the second. No new batch is sent while a retry is in flight: a leader remembers only the last five
   batches, and would no longer recognise the retried one.
4. A batch counts against ``buffer_memory`` from its first record until it is acknowledged or fails.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
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
"""The route of a partition without a known leader."""
NOT_READY: Final = -2
"""The route of a partition that must wait for a connection, for the producer id, or for the transaction."""


@attrs.define(eq=False)
class _Queue:
    """The batches of one partition that wait to be sent, in their order."""

    waiting: deque[ProducerBatch] = attrs.field(factory=deque)
    proven: bool = False
    """Whether the leader has acknowledged the batches before these, and so would detect a missing one."""
    restart: SequenceAction | None = None
    """The action to carry out as soon as none of the partition's batches is in flight."""


@attrs.define
class ReadyRequests:
    """The result of a drain: the requests to send now, and the other work that it found."""

    requests: list[InFlightRequest] = attrs.field(factory=list)
    """In the order in which to send them; a broker may have several."""
    to_compress: list[ProducerBatch] = attrs.field(factory=list)
    """Batches that a thread must compress before they can be sent."""
    no_leader: bool = False
    """Whether a partition that is due has no known leader."""
    full: set[int] = attrs.field(factory=set)
    """The brokers that have due batches, and the maximum number of requests in flight."""
    next_ready_at: float = float("inf")
    """The earliest time at which a batch queued behind those sent now has lingered or backed off."""


NOTHING_READY: Final = ReadyRequests()
"""The result of a call that did not examine the queues."""


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
        """When the last batch was opened."""
        self.space: BufferSpace = BufferSpace(config.buffer_memory)
        self._space_freed: Event | None = None

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
        """Every batch that is in flight or waits to be sent, in order per partition."""
        by_partition: dict[TopicPartition, list[ProducerBatch]] = {}
        for batch in self.in_flight.all_batches():
            by_partition.setdefault(batch.partition, []).append(batch)
        for partition, queue in self._ready.items():
            by_partition.setdefault(partition, []).extend(queue.waiting)
        return [batch for batches in by_partition.values() for batch in sorted(batches, key=_order)]

    # --- appending -------------------------------------------------------------------------------------

    @property
    def max_record_size(self) -> int:
        """The maximum of what ``record_size_bound`` may return for a record, in bytes."""
        return min(self._config.max_request_size, self._config.buffer_memory)

    def no_space(self, topic: str, bound: int) -> RecordTooLarge | BufferFull:
        """Return why there is no space for a record of up to ``bound`` bytes."""
        limit = self.max_record_size
        if bound > limit:
            setting = "max_request_size" if limit == self._config.max_request_size else "buffer_memory"
            return RecordTooLarge(f"a record of up to {bound} bytes for topic {topic!r}, {setting} allows {limit}")
        return BufferFull(f"{self.space.used} of {self.space.limit} bytes wait to be acknowledged (buffer_memory)")

    async def wait_for_space(self) -> None:
        """Wait until a batch frees its space."""
        if self._space_freed is None:
            self._space_freed = self._new_event()
        await self._space_freed.wait()

    def append(
        self,
        partition: TopicPartition,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        now: float,
    ) -> tuple[ProducerBatch, int]:
        """Append a record to its partition's last batch or to a new one; there must be space for it.

        Return the batch and the record's index in it.
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

    def _queue(self, partition: TopicPartition) -> _Queue:
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = _Queue()
        return queue

    def _open(self, partition: TopicPartition, now: float) -> ProducerBatch:
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
        """Return the number of waiting batches for each of the topic's partitions that has any."""
        return {
            partition.partition: len(queue.waiting)
            for partition, queue in self._ready.items()
            if partition.topic == topic
        }

    # --- sending ---------------------------------------------------------------------------------------

    def drain(self, route: Callable[[TopicPartition], int], now: float, *, flushing: bool = False) -> ReadyRequests:
        """Return the requests to send now, which count as in flight from here on.

        ``route`` returns the node id of a partition's leader, NO_LEADER or NOT_READY. A batch in ``to_compress`` is
        sent by a later call, once it is ``compressed``.
        """
        ready = ReadyRequests()
        while self._ready and self._drain_once(ready, route, now, flushing):
            pass
        return ready

    def _drain_once(
        self, ready: ReadyRequests, route: Callable[[TopicPartition], int], now: float, flushing: bool
    ) -> bool:
        """Add one request to ``ready`` for each broker with due batches; return whether there was any."""
        requests: dict[int, list[ProducerBatch]] = {}
        sizes: dict[int, int] = {}
        for partition, queue in self._ready.items():
            batch = queue.waiting[0]
            if batch.not_before > now or batch.compressing:
                continue
            # Nearly always the partition has nothing in flight, and the rules need no check.
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
        """Return whether ``batch``, the partition's first waiting one, may follow its batches ``in_flight``."""
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
        """Return the time at which the batch has lingered or, if it is a retry, backed off."""
        return batch.not_before if batch.attempts else batch.created_at + self._linger

    def _take(self, leader: int, batches: list[ProducerBatch], now: float) -> float:
        """Remove batches from their queues to send them; return the earliest time at which a batch behind is ready."""
        next_ready_at = float("inf")
        for batch in batches:
            batch.close()
            batch.attempts += 1
            batch.sent_to = leader
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
        """Return the first time after ``now`` at which a batch expires, or has lingered or backed off; None if none.

        Earlier times do not count: a batch that was ready by then waits for a connection or a leader.
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
        """Return whether no batch of the partition is before this one, neither in flight nor waiting."""
        queues = self.in_flight.batches(batch.partition), self._queue(batch.partition).waiting
        return all(queue[0].order >= batch.order for queue in queues if queue)

    def acknowledge(self, batch: ProducerBatch) -> None:
        """Free the space of a written batch; several of its partition's next batches may be in flight."""
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
        """Discard a batch that expired in flight, now that its request has ended."""
        self._queue(batch.partition).proven = False
        self._discard(batch.partition)

    def requeue(self, batch: ProducerBatch, error: KafkaError, not_before: float) -> None:
        """Return the batch to its position in the queue, to be sent again from the time ``not_before`` on.

        ``error`` becomes the reason why the partition's batches wait.
        """
        batch.not_before = not_before
        for held_up in self._wait_again(batch).waiting:
            held_up.last_error = error

    def requeue_split(self, batch: ProducerBatch) -> None:
        """Split a batch that is too large, and return its halves to the queue."""
        self.space.used -= batch.builder.size
        for half in batch.split():
            self.space.used += half.builder.size
            self._wait_again(half)

    def restart(self, partition: TopicPartition, action: SequenceAction) -> None:
        """Schedule the action for when none of the partition's batches is in flight; none is sent before."""
        self._queue(partition).restart = action

    def restart_recreated(self, topic_id: Callable[[str], UUID]) -> None:
        """Restart the partitions with batches sent under an old topic id; ``topic_id`` returns a topic's current id."""
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
        """Discard the partition's queue if nothing is waiting, in flight or to be restarted."""
        queue = self._queues.get(partition)
        if queue is not None and not queue.waiting:
            self._ready.pop(partition, None)
            if not self.in_flight.batches(partition) and queue.restart is None:
                del self._queues[partition]

    def take_expired(self, now: float) -> list[ProducerBatch]:
        """Return the batches older than ``delivery_timeout_ms``, and remove the waiting ones from their queues.

        The others stay in flight until their requests end.
        """
        in_flight = [
            batch
            for batch in self.in_flight.all_batches()
            if now >= batch.created_at + self._timeout and not batch.result.completed
        ]
        # deadline() computes the same sum: with another one, rounding could end a wait before the batch expires.
        waiting = self.take_waiting(lambda batch: True if now >= batch.created_at + self._timeout else None)
        return in_flight + [batch for batch, _ in waiting]

    def take_waiting(self, reason_of: Callable[[ProducerBatch], T | None]) -> list[tuple[ProducerBatch, T]]:
        """Remove each waiting batch for which ``reason_of`` returns a reason; return these batches and reasons."""
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
        """Record the error as the reason for waiting of each batch for which ``concerns`` returns True."""
        for queue in self._ready.values():
            for batch in queue.waiting:
                if concerns(batch):
                    batch.last_error = error


def _order(batch: ProducerBatch) -> tuple[int, int]:
    return batch.order
