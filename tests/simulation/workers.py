"""Workers that process records exactly once: each is slow, cut off, interrupted, or ends while it holds records."""

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Final

import anyio
import attrs

from aiokafkawire import Client, Consumer, ConsumerRecord, KafkaError, Producer, TopicPartition, UsageError
from aiokafkawire.config import AssignmentStrategy, ConsumerOptions, ProducerOptions
from aiokafkawire.producer.transaction import Transaction
from aiokafkawire.testing.simulation import Simulation
from aiokafkawire.testing.virtual.fault_injector import FaultInjector
from aiokafkawire.transform import OutgoingRecord

from .protocols import SESSION_TIMEOUT_MS, Protocol
from .taking_part import client_of, pace_of

__all__ = ("GROUP", "KILLED", "OUTCOMES", "OnPurpose", "Over", "Plan", "Record", "Worker", "outcome_of")

GROUP: Final = "the workers"
OUTCOMES: Final = "outcomes"
_ENDINGS: Final = ("returns", "raises", "is cancelled", "is closed")
KILLED: Final = "is killed"
"""The ending of a worker that is cut off from all brokers before it ends, so that it can say nothing to them."""
_STARTS_WITHIN: Final = 0.5
"""Virtual seconds after which a worker that waits for records looks whether it has to stop."""

Record = ConsumerRecord[bytes, bytes]


class OnPurpose(Exception):
    """A transaction is to be aborted, or a worker is to end."""


class Over(Exception):
    """Nothing more can be done with this producer, or nobody knows how its transaction ended."""


@attrs.frozen
class Plan:
    """What the workers of one run have in common, all from the seed. Times are in ms."""

    topics: Sequence[str]
    transforms: bool
    """They call ``transform`` instead of having a loop of their own."""
    strategies: Sequence[AssignmentStrategy]
    session_timeout_ms: int
    max_poll_interval_ms: int
    protocol: Protocol = "classic"
    static: bool = False
    """Whether each worker has the ``group_instance_id`` of the workers before it on its seat."""

    @classmethod
    def of(
        cls, chance: Random, topics: Sequence[str], protocol: Protocol = "classic", *, transforms: bool = False
    ) -> "Plan":
        """Choose one; ``transforms`` decides that they call ``transform``, else it is chosen."""
        if protocol == "consumer":
            poll_interval = chance.choice((6_000, 10_000, 30_000))
            is_transform = transforms or chance.random() < 0.15
            return cls(topics, is_transform, (), SESSION_TIMEOUT_MS, poll_interval, protocol, chance.random() < 0.2)
        strategies: Sequence[Sequence[AssignmentStrategy]] = (("range",), ("cooperative-sticky",))
        return cls(
            topics,
            transforms or chance.random() < 0.15,
            chance.choice(strategies),
            chance.choice((6_000, 10_000)),
            chance.choice((6_000, 10_000, 30_000)),
            static=chance.random() < 0.2,
        )


def outcome_of(record: Record) -> bytes:
    """What is to be written for a record, once."""
    return f"{record.topic}/{record.partition}/{record.offset}".encode()


@attrs.define(eq=False)
class Worker:
    """One worker, from its beginning to its end."""

    sim: Simulation
    plan: Plan
    seat: int
    """Which of the workers it is: it has the transactional id of those before it, and fences them."""
    name: str
    calm: Callable[[], bool]
    stop: anyio.Event = attrs.field(factory=anyio.Event)
    """Set once it has to end."""
    wrong: list[str] = attrs.field(factory=list)
    chance: Random = attrs.field(init=False)
    ending: str = attrs.field(init=False)
    pace: float = attrs.field(init=False)
    has: dict[TopicPartition, int] = attrs.field(factory=dict)
    """What it reads, and since which assignment."""
    _assignments: int = 0
    _killed_by: FaultInjector | None = None
    _more: Random = attrs.field(init=False)
    _next: Callable[[Consumer[bytes, bytes]], Awaitable[Sequence[Record]]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.chance = self.sim.chance(self.name)
        self.ending = self.chance.choice((*_ENDINGS, KILLED, KILLED) if self.plan.transforms else _ENDINGS)
        self.pace = self.chance.choice((0.0, 0.01, 0.1))
        self._more = self.sim.chance(f"transactions of {self.name}")
        self._next = self.chance.choice((self._next_record, self._next_poll, self._next_poll_at_once, self._next_batch))

    # --- its life --------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        """Work until it has to stop, and end as it is meant to."""
        try:
            async with client_of(self.sim, self.name, client_id=self.name) as client:
                work = self._transform if self.plan.transforms else self._work
                if self.ending in ("is cancelled", KILLED):
                    await self._cancelled_in_the_end(work, client)
                else:
                    await work(client)
        except (OnPurpose, Over):
            pass
        except UsageError:
            raise
        except KafkaError as error:
            self.sim.note(f"{self.name} is over: {type(error).__name__}: {error}")
        self.sim.note(f"{self.name} {self.ending}")

    def bury(self) -> None:
        """Let the connections of a killed worker end."""
        if self._killed_by is not None:
            self.sim.network.drop(self._killed_by)
            self._killed_by = None

    async def _cancelled_in_the_end(self, work: Callable[[Client], Awaitable[None]], client: Client) -> None:
        failed: Exception | None = None
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._cancel, scope)
                # The group would wrap it.
                try:
                    await work(client)
                except Exception as error:
                    failed = error
                tasks.cancel_scope.cancel()
        if failed is not None:
            raise failed

    async def _cancel(self, scope: anyio.CancelScope) -> None:
        await self.stop.wait()
        if self.ending == KILLED:
            self._killed_by = self.sim.network.injector()
            self._killed_by.partition({self.name})
        scope.cancel()

    def _reads(self) -> ConsumerOptions:
        chance = self.chance
        return ConsumerOptions(
            fetch_max_wait_ms=500,
            max_partition_fetch_bytes=chance.choice((500, 1_048_576)),
        )

    def _writes(self) -> ProducerOptions:
        options = pace_of(self.chance)
        options.pop("delivery_timeout_ms", None)
        options["transaction_timeout_ms"] = self.chance.choice((10_000, 30_000))
        options["max_block_ms"] = self.chance.choice((5_000, 60_000))
        return options

    def _membership(self) -> ConsumerOptions:
        options = ConsumerOptions(max_poll_interval_ms=self.plan.max_poll_interval_ms)
        if self.plan.protocol == "consumer":
            options["group_protocol"] = "consumer"
        else:
            options["session_timeout_ms"] = self.plan.session_timeout_ms
            options["heartbeat_interval_ms"] = self.chance.choice((500, 2_000))
            options["partition_assignment_strategy"] = self.plan.strategies
        if self.plan.static:
            options["group_instance_id"] = f"seat-{self.seat}"
        options.update(self._reads())
        return options

    def _of_group(self) -> ConsumerOptions:
        options = self._membership()
        options["group_id"], options["enable_auto_commit"] = GROUP, False
        options["auto_offset_reset"], options["isolation_level"] = "earliest", "read_committed"
        return options

    def _transactions(self) -> ProducerOptions:
        options = self._writes()
        options["transactional_id"] = f"seat-{self.seat}"
        return options

    async def _work(self, client: Client) -> None:
        consumer, producer = client.consumer(**self._of_group()), client.producer(**self._transactions())
        async with producer, consumer, anyio.create_task_group() as tasks:
            consumer.subscribe(
                *self.plan.topics, on_assigned=self._assigned, on_revoked=self._revoked, on_lost=self._revoked
            )
            if self.ending == "is closed":
                tasks.start_soon(self._close, consumer)
            failed: Exception | None = None
            try:
                await self._process(consumer, producer)
            except Exception as error:
                failed = error
            self.stop.set()
            tasks.cancel_scope.cancel()
        if failed is not None:
            raise failed

    async def _close(self, consumer: Consumer[bytes, bytes]) -> None:
        await self.stop.wait()
        with anyio.CancelScope(shield=True):
            await consumer.close()

    def _assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.sim.note(f"{self.name} gets {', '.join(map(str, partitions))}")
        self._assignments += 1
        self.has.update(dict.fromkeys(partitions, self._assignments))

    def _revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.sim.note(f"{self.name} gives up {', '.join(map(str, partitions))}")
        for partition in partitions:
            self.has.pop(partition, None)

    # --- records ---------------------------------------------------------------------------------------------------

    async def _next_record(self, consumer: Consumer[bytes, bytes]) -> Sequence[Record]:
        async for record in consumer:
            return [record]
        return []

    async def _next_poll(self, consumer: Consumer[bytes, bytes]) -> Sequence[Record]:
        return await consumer.poll(max_records=self.chance.choice((1, 5, 100)), timeout=_STARTS_WITHIN)

    async def _next_poll_at_once(self, consumer: Consumer[bytes, bytes]) -> Sequence[Record]:
        records = await consumer.poll(max_records=50, timeout=0)
        if not records:
            await anyio.sleep(0.05)
        return records

    async def _next_batch(self, consumer: Consumer[bytes, bytes]) -> Sequence[Record]:
        async for batch in consumer.batches():
            return list(batch)
        return []

    async def _process(self, consumer: Consumer[bytes, bytes], producer: Producer[bytes, bytes]) -> None:
        while not self.stop.is_set():
            records: Sequence[Record] = []
            with anyio.move_on_after(self.chance.choice((0.02, _STARTS_WITHIN))):  # an interruption must not cost any
                try:
                    records = await self._next(consumer)
                except KafkaError as error:
                    if isinstance(error, UsageError):
                        raise
                    self.sim.note(f"{self.name} cannot read: {type(error).__name__}: {error}")
            if records:
                await self._count(consumer, producer, records)
        if self.ending == "raises":
            raise OnPurpose

    async def _count(
        self, consumer: Consumer[bytes, bytes], producer: Producer[bytes, bytes], records: Sequence[Record]
    ) -> None:
        """Write the outcome of records and commit their offsets, together; if that fails, go back to the first."""
        since, state = dict(self.has), "begins"
        told = f"{self.name} processes {outcome_of(records[0]).decode()} to {outcome_of(records[-1]).decode()}"
        self.sim.note(told)
        taken = [(records, since)]
        longest = self.chance.choice((0.1, 5.0, 1_000.0, 1_000.0, 1_000.0))
        try:
            with anyio.move_on_after(longest) as scope:
                async with producer.transaction() as transaction:
                    state = "is open"
                    if self._more.random() < 0.3:
                        await self._fill_twice(transaction, consumer, taken)
                    else:
                        await self._fill(transaction, consumer, records, since)
                    if self.chance.random() < 0.05:
                        raise OnPurpose
                    state = "commits"
                state = "counts"
        except OnPurpose:
            self.sim.note(f"{told}: aborted on purpose")
        except KafkaError as error:
            self.sim.note(f"{told}: {state}: {type(error).__name__}: {error}")
            if state == "begins":
                raise Over from error
        else:
            if scope.cancelled_caught and state == "commits":
                raise Over  # whether it counts, the next transaction of this name will know
        if state != "counts":
            for some, then in reversed(taken):
                self._go_back(consumer, some, then)

    async def _fill_twice(
        self,
        transaction: Transaction[bytes, bytes],
        consumer: Consumer[bytes, bytes],
        taken: list[tuple[Sequence[Record], dict[TopicPartition, int]]],
    ) -> None:
        """Write the outcomes of the records taken, and of more, which finish those: their partitions may be revoked."""
        await self._write(transaction, taken[0][0])
        more: Sequence[Record] = []
        with anyio.move_on_after(_STARTS_WITHIN):
            more = await self._next(consumer)
        taken.append((more, dict(self.has)))
        await self._write(transaction, more)
        await transaction.commit_offsets(consumer)

    async def _write(self, transaction: Transaction[bytes, bytes], records: Sequence[Record]) -> None:
        for record in records:
            await transaction.enqueue(OUTCOMES, outcome_of(record))
            await self._dawdle()

    async def _fill(
        self,
        transaction: Transaction[bytes, bytes],
        consumer: Consumer[bytes, bytes],
        records: Sequence[Record],
        since: dict[TopicPartition, int],
    ) -> None:
        await self._write(transaction, records)
        self._check_ownership(consumer, records[-1], since)
        match self.chance.choice(("consumer", "positions", "offsets")):
            case "consumer":
                await transaction.commit_offsets(consumer)
            case "positions":
                await transaction.commit_offsets(consumer.positions(), group=consumer.group_metadata())
            case _:
                after = {TopicPartition(one.topic, one.partition): one.offset + 1 for one in records}
                await transaction.commit_offsets(after, group=consumer.group_metadata())

    def _check_ownership(
        self, consumer: Consumer[bytes, bytes], record: Record, since: dict[TopicPartition, int]
    ) -> None:
        partition = TopicPartition(record.topic, record.partition)
        owns = getattr(consumer, "owns", None)
        if owns is not None and owns(record) and self.has.get(partition) != since.get(partition):
            self.wrong.append(f"{self.name} was assigned {partition} anew, and owns a record from before")

    def _go_back(
        self, consumer: Consumer[bytes, bytes], records: Sequence[Record], since: dict[TopicPartition, int]
    ) -> None:
        first: dict[TopicPartition, int] = {}
        for record in records:
            first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        for partition, offset in first.items():
            if partition in self.has and self.has[partition] == since.get(partition):
                self.sim.note(f"{self.name} goes back to {offset} of {partition}")
                consumer.seek(partition, offset)

    async def _dawdle(self) -> None:
        roll, plan = self.chance.random(), self.plan
        if self.calm():
            return
        if roll < 0.004:
            self.sim.note(f"{self.name} is slow")
            await anyio.sleep(plan.max_poll_interval_ms / 1000 + self.chance.uniform(-1, 8))
        elif roll < 0.01:
            await self._be_cut_off(plan.session_timeout_ms / 1000 + self.chance.uniform(-1, 6))
        elif roll < 0.02:
            await anyio.sleep(self.chance.uniform(0, 4))
        elif self.pace:
            await anyio.sleep(self.chance.uniform(0, self.pace))

    async def _be_cut_off(self, seconds: float) -> None:
        """Reach no broker for a while, as a process that is stopped or blocked, and then go on with what is in hand."""
        injector = self.sim.network.injector()
        injector.partition({self.name})
        try:
            await anyio.sleep(seconds)
        finally:
            self.sim.network.drop(injector)
        await anyio.sleep(self.chance.choice((0.0, 0.5, 5.0)))

    # --- transform -------------------------------------------------------------------------------------------------

    async def _transform(self, client: Client) -> None:
        async def process(records: Sequence[Record]) -> list[OutgoingRecord]:
            for _ in records:
                await self._dawdle()
            return [OutgoingRecord(OUTCOMES, outcome_of(record)) for record in records]

        await client.transform(
            list(self.plan.topics),
            process,
            group_id=GROUP,
            transactional_id="transform",
            max_records=self.chance.choice((1, 20, 500)),
            stop=self.stop if self.ending not in ("is cancelled", KILLED) else None,
            consumer_options=self._membership(),
            producer_options=self._writes(),
        )
