"""Gathers records into batches, and decides which of them go out now.

The rules:

1. One batch of a partition is on its way at a time, so retries never change the order.
2. A lane with nothing in flight sends what there is, once ``linger_ms`` have passed. On a busy one records gather
   longer: a batch goes when it is full, or when all is answered that was on its way before it was due.
3. A batch counts against ``buffer_memory`` from its first record until its outcome is known.
"""

from collections import deque
from collections.abc import Callable, Sequence

import attrs

from ..config import ProducerConfig
from ..errors import KafkaError, RecordTooLarge
from ..records.batch import BatchBuilder
from ..records.compression import Codec
from ..types import Header, TopicPartition
from .result import BatchResult, Event

__all__ = ("Accumulator", "Batch")

MAX_IN_FLIGHT = 5
"""Produce requests on their way to one broker; more bring nothing but memory in use."""


@attrs.define(eq=False)
class Batch:
    """Records of one partition that travel together."""

    where: TopicPartition
    builder: BatchBuilder
    result: BatchResult
    created_at: float
    closed: bool = False
    """Whether it takes no more records: it is full, or was sent once."""
    not_before: float = float("-inf")
    """When it may be tried again."""
    tries: int = 0
    last_error: KafkaError | None = None
    """Why it is still here: what the last try brought, its own or that of the batch before it."""
    sealed: bytes | None = None
    """Its bytes, once built; a retry sends the same."""
    sent_to: int = -1
    """The broker that it was last sent to, and when."""
    sent_at: float = float("-inf")


class Accumulator:
    """Batches by partition. Times are seconds of the runtime's clock."""

    def __init__(self, config: ProducerConfig, new_event: Callable[[], Event]) -> None:
        self._config, self._new_event = config, new_event
        self._codec = Codec.parse(config.compression_type)
        self._linger = config.linger_ms / 1000
        self._timeout = config.delivery_timeout_ms / 1000
        self._queues: dict[TopicPartition, deque[Batch]] = {}
        self._on_their_way: dict[TopicPartition, Batch] = {}
        self._in_flight: dict[int, int] = {}
        self._used = 0

    @property
    def used(self) -> int:
        """Bytes that count against ``buffer_memory``."""
        return self._used

    @property
    def unfinished(self) -> list[Batch]:
        """Every batch whose outcome is open, in order per partition."""
        waiting = [batch for queue in self._queues.values() for batch in queue]
        return [*self._on_their_way.values(), *waiting]

    def append(
        self,
        where: TopicPartition,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        bound: int,
        now: float,
    ) -> tuple[Batch, int] | None:
        """Put a record into its partition's open batch: the batch, and the record's index; None without room for it.

        ``bound`` is what ``record_size_bound`` says of the record.

        Raises:
            RecordTooLarge: it would never fit.
        """
        limit = min(self._config.max_request_size, self._config.buffer_memory)
        if bound > limit:
            setting = "max_request_size" if limit == self._config.max_request_size else "buffer_memory"
            raise RecordTooLarge(f"a record of up to {bound} bytes for {where}, {setting} allows {limit}")
        if self._used + bound > self._config.buffer_memory:
            return None
        queue = self._queues.get(where)
        if queue is None:
            queue = self._queues[where] = deque()
        batch = queue[-1] if queue and not queue[-1].closed else None
        if batch is not None:
            before = batch.builder.size
            index = batch.builder.append(timestamp, key, value, headers)
            if index >= 0:
                self._used += batch.builder.size - before
                batch.result.timestamps.append(timestamp)
                return batch, index
            batch.closed = True
        return self._open(queue, where, now, timestamp, key, value, headers), 0

    def _open(
        self,
        queue: deque[Batch],
        where: TopicPartition,
        now: float,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> Batch:
        config = self._config
        builder = BatchBuilder(limit=config.batch_size, codec=self._codec, level=config.compression_level)
        builder.append(timestamp, key, value, headers)
        batch = Batch(where, builder, BatchResult(where, self._new_event), now)
        batch.result.timestamps.append(timestamp)
        self._used += builder.size
        queue.append(batch)
        return batch

    def takes(self, where: TopicPartition, size: int) -> bool:
        """Whether the partition has an open batch with room for a record of up to ``size`` bytes."""
        queue = self._queues.get(where)
        if not queue or queue[-1].closed:
            return False
        return queue[-1].builder.size + size <= self._config.batch_size

    def is_full(self, batch: Batch) -> bool:
        """Whether the next record of the batch's partition begins another."""
        return batch.closed or batch.builder.size >= self._config.batch_size

    def drain(
        self, leader_of: Callable[[TopicPartition], int | None], now: float, *, flushing: bool = False
    ) -> tuple[dict[int, list[Batch]], bool]:
        """What to send to each broker now, and whether a partition that is due has no known leader.

        One request a broker; what is returned counts as on its way until :meth:`finish` or :meth:`put_back`.
        """
        requests: dict[int, list[Batch]] = {}
        sizes: dict[int, int] = {}
        unled = False
        oldest: dict[int, float] = {}
        for batch in self._on_their_way.values():
            oldest[batch.sent_to] = min(batch.sent_at, oldest.get(batch.sent_to, now))
        for where, queue in self._queues.items():
            if not queue or where in self._on_their_way:
                continue
            batch = queue[0]
            if batch.not_before > now:
                continue
            leader = leader_of(where)
            if leader is None:
                unled = True
                continue
            in_flight = self._in_flight.get(leader, 0)
            if not self._is_due(batch, len(queue) > 1, in_flight, oldest.get(leader, now), now, flushing):
                continue
            size = sizes.get(leader, 0) + batch.builder.size
            if leader in requests and size > self._config.max_request_size:
                continue
            sizes[leader] = size
            requests.setdefault(leader, []).append(batch)
        for leader, batches in requests.items():
            self._in_flight[leader] = self._in_flight.get(leader, 0) + 1
            for batch in batches:
                batch.closed = True
                batch.tries += 1
                batch.sent_to, batch.sent_at = leader, now
                self._queues[batch.where].popleft()
                self._on_their_way[batch.where] = batch
        return requests, unled

    def _is_due(
        self, batch: Batch, another_waits: bool, in_flight: int, oldest: float, now: float, flushing: bool
    ) -> bool:
        if in_flight >= MAX_IN_FLIGHT:
            return False
        if another_waits or self.is_full(batch):
            return True
        since = batch.created_at if flushing else self._ready_at(batch)
        # However busy the lane is kept by other partitions: what was sent before will be answered, and then it goes.
        return now >= since and (not in_flight or oldest > since)

    def _ready_at(self, batch: Batch) -> float:
        """When the batch may go, lanes and leaders aside: one that was tried before does not linger again."""
        return batch.not_before if batch.tries else batch.created_at + self._linger

    def deadline(self, now: float) -> float | None:
        """When time alone will change what to do: a batch has lingered or backed off long enough, or is too old.

        What is due already and still here waits for a lane or a leader, not for time.
        """
        moments = [batch.created_at + self._timeout for batch in self._on_their_way.values()]
        for where, queue in self._queues.items():
            if queue:
                moments.append(queue[0].created_at + self._timeout)
                if where not in self._on_their_way:
                    moments.append(self._ready_at(queue[0]))
        return min((moment for moment in moments if moment > now), default=None)

    def request_done(self, leader: int) -> None:
        """A request that :meth:`drain` gave for this broker is over."""
        self._in_flight[leader] -= 1
        if not self._in_flight[leader]:
            del self._in_flight[leader]

    def finish(self, batch: Batch) -> None:
        """The batch's outcome is known: its memory is free, and its partition's next batch may go."""
        self._used -= batch.builder.size
        if self._on_their_way.get(batch.where) is batch:
            del self._on_their_way[batch.where]
        if not self._queues.get(batch.where) and batch.where not in self._on_their_way:
            # Several batches that expired together find the first one's work done.
            self._queues.pop(batch.where, None)

    def put_back(self, batch: Batch, error: KafkaError, not_before: float) -> None:
        """Try the batch again from ``not_before`` on, ahead of what came after it."""
        del self._on_their_way[batch.where]
        batch.not_before = not_before
        self._queues[batch.where].appendleft(batch)
        for held_up in self._queues[batch.where]:
            held_up.last_error = error

    def expired(self, now: float) -> list[Batch]:
        """Take out the batches that wait for longer than ``delivery_timeout_ms``, but none that is on its way."""
        old: list[Batch] = []
        for queue in self._queues.values():
            while queue and now >= queue[0].created_at + self._timeout:
                old.append(queue.popleft())
        return old

    def overdue(self, now: float) -> list[Batch]:
        """The batches on their way that are older than ``delivery_timeout_ms``: nobody waits for their answer longer.

        They stay on their way until :meth:`finish`.
        """
        return [batch for batch in self._on_their_way.values() if now >= batch.created_at + self._timeout]

    def take_all(self) -> list[Batch]:
        """Take out every batch whose outcome is open: nothing will be sent any more."""
        left = self.unfinished
        for queue in self._queues.values():
            queue.clear()
        return left
