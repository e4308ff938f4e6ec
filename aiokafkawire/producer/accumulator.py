"""Gathers records into batches, and decides which of them go out now.

The rules:

1. A lane with nothing in flight sends what there is, once ``linger_ms`` have passed. On a busy one records gather
   longer: a batch goes when it is full, or when all is answered that was on its way before it was due.
2. Several batches of a partition may be on their way, one a request and all to the same broker. What has to be tried
   again goes first, in the old order, once nothing that came after it is on its way any more.
3. The first batch of a partition goes alone, and so does the first one after a failure, until it is acknowledged. A
   leader that knows nothing of the producer takes any number for its first: it would write the second batch though
   the first was refused. And nothing new follows what is tried again: a leader remembers the last five batches alone,
   and would not know the old one any more.
4. A batch counts against ``buffer_memory`` from its first record until its outcome is known.
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
from .appending import Budget, OpenBatch
from .batch import Batch
from .idempotence import Sequences, Verdict
from .result import BatchResult

__all__ = ("NOTHING", "NOT_NOW", "NO_LEADER", "Accumulator", "Drained")

T = TypeVar("T")

NO_LEADER: Final = -1
"""Where a partition goes that nobody leads."""
NOT_NOW: Final = -2
"""Where a partition goes whose leader cannot be sent to yet; there is no need to ask who leads."""


@attrs.define(eq=False)
class _Partition:
    """The batches of one partition: those that wait, and those on their way, both in their order."""

    waiting: deque[Batch] = attrs.field(factory=deque)
    on_their_way: deque[Batch] = attrs.field(factory=deque)
    proven: bool = False
    """Whether the leader is known to have what was written before, and so to notice when something is missing."""
    restart: Verdict | None = None
    """Why its numbers begin anew, as soon as nothing is on its way."""

    def went_to_another_topic(self, topic_id: UUID) -> bool:
        """Return whether one of its batches was last sent to another topic than the one that has this id now."""
        return any(batch.went_to_another_topic(topic_id) for batch in (*self.on_their_way, *self.waiting))


@attrs.define
class Drained:
    """What to do now."""

    requests: list[tuple[int, list[Batch]]] = attrs.field(factory=list)
    """Brokers, and what goes to each in one request; a broker may be there more than once, and the order counts."""
    heavy: list[Batch] = attrs.field(factory=list)
    """To be compressed on a thread first."""
    unled: bool = False
    """Whether a partition that is due has no known leader."""
    full: set[int] = attrs.field(factory=set)
    """The brokers that something is due for, and that have as many requests as may be on their way."""
    soonest: float = float("inf")
    """When the first of those will be due by time that came to the head of their partitions just now."""


NOTHING: Final = Drained()
"""What there is to do where nothing was looked at."""


class Accumulator:
    """Batches by partition. Times are seconds of the runtime's clock."""

    def __init__(self, config: ProducerConfig, new_event: Callable[[], Event], sequences: Sequences | None) -> None:
        self._config, self._new_event, self._sequences = config, new_event, sequences
        self._codec = Codec.parse(config.compression_type)
        self._linger = config.linger_ms / 1000
        self._timeout = config.delivery_timeout_ms / 1000
        self._transactional = config.transactional_id is not None
        self._partitions: dict[TopicPartition, _Partition] = {}
        # Those of them with something that waits; who was served goes to the end.
        self._due: dict[TopicPartition, _Partition] = {}
        self._in_flight: dict[int, deque[float]] = {}
        self._batches = 0
        self.begun_at: float = float("-inf")
        """When the last batch was begun."""
        self.budget: Budget = Budget(config.buffer_memory)
        """Bytes that count against ``buffer_memory``."""

    @property
    def has_waiting(self) -> bool:
        """Whether a batch is here that is not on its way."""
        return bool(self._due)

    @property
    def unfinished(self) -> list[Batch]:
        """Every batch whose outcome is open, in order per partition."""
        return [
            batch
            for partition in self._partitions.values()
            for batch in sorted([*partition.on_their_way, *partition.waiting], key=_order)
        ]

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is on its way."""
        return not any(partition.on_their_way for partition in self._partitions.values())

    # --- records come in -------------------------------------------------------------------------------

    @property
    def most(self) -> int:
        """How many bytes a record may take at all, as ``record_size_bound`` says it."""
        return min(self._config.max_request_size, self._config.buffer_memory)

    def refuse(self, topic: str, bound: int) -> RecordTooLarge | BufferFull:
        """Why there is no room for a record of up to ``bound`` bytes."""
        if bound > self.most:
            setting = "max_request_size" if self.most == self._config.max_request_size else "buffer_memory"
            return RecordTooLarge(f"a record of up to {bound} bytes for topic {topic!r}, {setting} allows {self.most}")
        budget = self.budget
        return BufferFull(f"{budget.used} of {budget.limit} bytes wait to be acknowledged (buffer_memory)")

    def append(
        self,
        where: TopicPartition,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        now: float,
    ) -> tuple[Batch, int]:
        """Put a record into its partition's open batch: the batch, and the record's index. There must be room."""
        partition = self._partitions.get(where)
        if partition is None:
            partition = self._partitions[where] = _Partition()
        waiting = partition.waiting
        if waiting:
            index = waiting[-1].opened.append(self.budget, timestamp, key, value, headers)
            if index >= 0:
                return waiting[-1], index
        self.begun_at = now
        batch = self._open(where, now)
        batch.opened.append(self.budget, timestamp, key, value, headers)
        waiting.append(batch)
        self._due[where] = partition
        return batch, 0

    def _open(self, where: TopicPartition, now: float) -> Batch:
        config = self._config
        builder = BatchBuilder(limit=config.batch_size, codec=self._codec, level=config.compression_level)
        self._batches += 1
        result = BatchResult(where, self._new_event)
        opened = OpenBatch(builder, result, result.timestamps)
        return Batch(where, (self._batches, 0), opened, result, now, self._transactional)

    def takes(self, where: TopicPartition, size: int) -> bool:
        """Whether the partition has an open batch with room for a record of up to ``size`` bytes."""
        partition = self._due.get(where)
        if partition is None or partition.waiting[-1].closed:
            return False
        return partition.waiting[-1].builder.size + size <= self._config.batch_size

    def waiting(self, topic: str) -> dict[int, int]:
        """How many batches wait for each of the topic's partitions, where there are any."""
        return {where.partition: len(one.waiting) for where, one in self._due.items() if where.topic == topic}

    @property
    def is_idle(self) -> bool:
        """Whether no request is on its way."""
        return not self._in_flight

    # --- batches go out --------------------------------------------------------------------------------

    def drain(self, route: Callable[[TopicPartition], int], now: float, *, flushing: bool = False) -> Drained:
        """What goes out now. ``route`` says to which broker a partition goes: its node id, NO_LEADER or NOT_NOW.

        What is returned counts as on its way until :meth:`finish` or :meth:`put_back`, and each request until
        :meth:`request_done`. What is returned as heavy comes again once it is ``compressed``.
        """
        drained = Drained()
        while self._due and self._drain_once(drained, route, now, flushing):
            pass
        return drained

    def _drain_once(self, drained: Drained, route: Callable[[TopicPartition], int], now: float, flushing: bool) -> bool:
        """One request to each broker, if anything is due there; whether there was any."""
        requests: dict[int, list[Batch]] = {}
        sizes: dict[int, int] = {}
        for where, partition in self._due.items():
            batch = partition.waiting[0]
            if batch.not_before > now or batch.compressing:
                continue
            # Nearly always nothing of the partition is on its way, which is no question to the rules.
            if (partition.on_their_way or partition.restart is not None) and not self._is_next(partition, batch):
                continue
            leader = route(where)
            if leader < 0:
                drained.unled = drained.unled or leader == NO_LEADER
                continue
            if partition.on_their_way and partition.on_their_way[-1].sent_to != leader:
                continue
            in_flight = self._in_flight.get(leader)
            if not self._is_due(partition, batch, in_flight, now, flushing):
                continue
            if in_flight and len(in_flight) >= self._config.max_in_flight_requests_per_connection:
                drained.full.add(leader)
                continue
            builder = batch.opened.builder
            size = sizes.get(leader, 0) + builder.size
            if leader in requests and size > self._config.max_request_size:
                continue
            if builder.codec and batch.is_heavy:
                batch.close()
                batch.compressing = True
                drained.heavy.append(batch)
                continue
            sizes[leader] = size
            requests.setdefault(leader, []).append(batch)
        for leader, batches in requests.items():
            drained.soonest = min(drained.soonest, self._send(leader, batches, now))
            drained.requests.append((leader, batches))
        return bool(requests)

    def _is_next(self, partition: _Partition, batch: Batch) -> bool:
        """Whether the order allows the partition's first waiting batch to go."""
        if not partition.on_their_way:
            if partition.restart is not None:
                return self._restarted(partition, batch.where)
            return True
        if not batch.tries and partition.on_their_way[0].tries > 1:
            return False
        in_order = partition.on_their_way[-1].order < batch.order
        return in_order and partition.proven and partition.restart is None

    def _restarted(self, partition: _Partition, where: TopicPartition) -> bool:
        verdict = partition.restart
        assert verdict is not None
        if verdict is not Verdict.RESUME:
            if self._sequences is not None and not self._sequences.restart(where, verdict):
                return False
            for batch in partition.waiting:
                batch.forget_number()
        partition.restart, partition.proven = None, False
        return True

    def _is_due(
        self, partition: _Partition, batch: Batch, in_flight: deque[float] | None, now: float, flushing: bool
    ) -> bool:
        opened = batch.opened
        if len(partition.waiting) > 1 or opened.closed or opened.builder.size >= self._config.batch_size:
            return True
        since = batch.created_at if flushing else self._ready_at(batch)
        # However busy the lane is kept by other partitions: what was sent before will be answered, and then it goes.
        return now >= since and (not in_flight or in_flight[0] > since)

    def _ready_at(self, batch: Batch) -> float:
        """When the batch may go, lanes and leaders aside: one that was tried before does not linger again."""
        return batch.not_before if batch.tries else batch.created_at + self._linger

    def _send(self, leader: int, batches: list[Batch], now: float) -> float:
        """When the first of those behind them will be due by time; infinity if all are, or there are none."""
        soonest = float("inf")
        self._in_flight.setdefault(leader, deque()).append(now)
        for batch in batches:
            batch.close()
            batch.tries += 1
            batch.sent_to = leader
            if self._sequences is not None:
                self._sequences.number(batch)
            partition = self._due.pop(batch.where)
            partition.waiting.popleft()
            if partition.waiting:
                self._due[batch.where] = partition
                ready_at = self._ready_at(partition.waiting[0])
                soonest = min(soonest, ready_at) if ready_at > now else soonest
            partition.on_their_way.append(batch)
        return soonest

    def deadline(self, now: float) -> float | None:
        """When time alone will change what to do: a batch has lingered or backed off long enough, or is too old.

        What is due already and still here waits for a lane or a leader, not for time.
        """
        moments = []
        for partition in self._partitions.values():
            moments += [
                batch.created_at + self._timeout for batch in partition.on_their_way if not batch.result.settled
            ]
            if partition.waiting:
                moments.append(partition.waiting[0].created_at + self._timeout)
                moments.append(self._ready_at(partition.waiting[0]))
        return min((moment for moment in moments if moment > now), default=None)

    # --- outcomes --------------------------------------------------------------------------------------

    def request_done(self, leader: int) -> None:
        """The oldest request on its way to this broker is over."""
        in_flight = self._in_flight[leader]
        in_flight.popleft()
        if not in_flight:
            del self._in_flight[leader]

    def is_first(self, batch: Batch) -> bool:
        """Whether nothing of the partition is before this batch, neither on its way nor waiting."""
        partition = self._partitions[batch.where]
        before = [queue[0].order for queue in (partition.on_their_way, partition.waiting) if queue]
        return min(before) >= batch.order

    def arrived(self, batch: Batch) -> None:
        """The batch is not on its way any more."""
        self._partitions[batch.where].on_their_way.remove(batch)
        if batch.result.settled:
            self._partitions[batch.where].proven = False
            self._forget(batch.where)

    def acknowledged(self, batch: Batch) -> None:
        """The batch is written, and those behind it may go together."""
        self._partitions[batch.where].proven = True
        self.finish(batch)

    def finish(self, batch: Batch) -> None:
        """The batch's outcome is known, and its memory free."""
        batch.close()
        self.budget.used -= batch.opened.builder.size
        self._forget(batch.where)

    def put_back(self, batch: Batch, error: KafkaError, not_before: float) -> None:
        """Try the batch again from ``not_before`` on, ahead of what came after it."""
        batch.not_before = not_before
        self._wait_again(batch)
        for held_up in self._partitions[batch.where].waiting:
            held_up.last_error = error

    def put_back_halved(self, batch: Batch) -> None:
        """Try the batch again in two, since it is too large."""
        self.budget.used -= batch.builder.size
        for half in batch.halves():
            self.budget.used += half.builder.size
            self._wait_again(half)

    def restart(self, where: TopicPartition, verdict: Verdict) -> None:
        """The partition's batches get new numbers before any is sent again."""
        self._partitions[where].restart = verdict

    def leave_old_topics(self, topic_id: Callable[[str], UUID]) -> None:
        """Restart the partitions that sent batches to a topic which has another id now."""
        verdict = Verdict.RESUME if self._transactional else Verdict.RENUMBER
        for where, partition in self._partitions.items():
            if partition.restart is None and partition.went_to_another_topic(topic_id(where.topic)):
                partition.restart = verdict

    def _wait_again(self, batch: Batch) -> None:
        partition = self._partitions[batch.where]
        partition.proven = False
        insort(partition.waiting, batch, key=_order)
        self._due[batch.where] = partition

    def _forget(self, where: TopicPartition) -> None:
        partition = self._partitions.get(where)
        if partition is not None and not partition.waiting:
            self._due.pop(where, None)
            if not partition.on_their_way and partition.restart is None:
                del self._partitions[where]

    def expired(self, now: float) -> list[Batch]:
        """Take out the batches that wait for longer than ``delivery_timeout_ms``, but none that is on its way."""
        # The same sum as in deadline(), or rounding might leave a batch neither due nor over.
        late = self.take_waiting(lambda batch: True if now >= batch.created_at + self._timeout else None)
        return [batch for batch, _ in late]

    def take_waiting(self, why: Callable[[Batch], T | None]) -> list[tuple[Batch, T]]:
        """Take out the waiting batches for which there is a reason; they will not be sent."""
        taken: list[tuple[Batch, T]] = []
        for where, partition in list(self._due.items()):
            kept: deque[Batch] = deque()
            for batch in partition.waiting:
                reason = why(batch)
                if reason is None:
                    kept.append(batch)
                else:
                    batch.close()
                    taken.append((batch, reason))
            if len(kept) < len(partition.waiting):
                partition.waiting = kept
                self._forget(where)
        return taken

    def blame(self, error: KafkaError, whose: Callable[[Batch], bool]) -> None:
        """Note why these batches still wait."""
        for partition in self._due.values():
            for batch in partition.waiting:
                if whose(batch):
                    batch.last_error = error

    def stop_numbering(self) -> None:
        """The brokers know nothing of numbers."""
        self._sequences = None

    def overdue(self, now: float) -> list[Batch]:
        """The batches on their way that are older than ``delivery_timeout_ms``: nobody waits for their answer longer.

        They stay on their way until they :meth:`arrived`.
        """
        return [
            batch
            for partition in self._partitions.values()
            for batch in partition.on_their_way
            if now >= batch.created_at + self._timeout and not batch.result.settled
        ]


def _order(batch: Batch) -> tuple[int, int]:
    return batch.order
