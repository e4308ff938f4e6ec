"""Members of a group, each from its beginning to its end: how they read, commit, dawdle, go back, and go."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from random import Random

import anyio
import attrs
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskGroup, TaskStatus
from histories.checking import History
from histories.events import RecordRead
from histories.group_events import (
    CommitAcknowledged,
    CommitRequested,
    MemberEnded,
    PartitionAssigned,
    PartitionRevoked,
    RecordFinished,
    SeekBack,
)

from aiokafkawire import Client, Consumer, ConsumerRecord, KafkaError, TopicPartition
from aiokafkawire.config import AssignmentStrategy, ConsumerOptions
from aiokafkawire.errors import (
    CommitFailed,
    ConnectionLost,
    FencedInstanceId,
    RequestTimeout,
    UnreleasedInstanceId,
    UsageError,
)
from aiokafkawire.group.classic_membership import ClassicMembership
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Simulation
from aiokafkawire.testing.virtual.study import current_study

from .protocols import SESSION_TIMEOUT_MS, Protocol
from .taking_part import client_of

__all__ = ("CLOSES_WITHIN", "GROUP", "Group", "Member")

GROUP = "the group"
CLOSES_WITHIN = 5.0
"""Virtual seconds in which a consumer is closed, whatever the brokers do."""
_AT_ONCE = 0.01
"""What is over at once takes no longer."""
_IN_TROUBLE = (CommitFailed, RequestTimeout, ConnectionLost, UnreleasedInstanceId)
"""What users may hear of while brokers and networks fail."""

Record = ConsumerRecord[bytes, bytes]


@attrs.frozen
class Group:
    """What its members have in common, all from the seed. Times are in ms."""

    topics: Sequence[str]
    strategies: Sequence[AssignmentStrategy]
    static: bool
    session_timeout_ms: int
    max_poll_interval_ms: int
    protocol: Protocol = "classic"
    is_orderly: bool = False
    """Whether nothing goes wrong: all members commit by themselves, are never too slow, and leave in order."""

    @classmethod
    def of(cls, chance: Random, topics: Sequence[str], protocol: Protocol = "classic") -> "Group":
        """One of those that there may be."""
        if protocol == "consumer":
            poll_interval = chance.choice((6_000, 10_000, 30_000))
            static = chance.random() < 0.3
            return cls(topics, (), static, SESSION_TIMEOUT_MS, poll_interval, protocol)
        known: Sequence[Sequence[AssignmentStrategy]] = (
            ("range",),
            ("cooperative-sticky",),
            ("range", "cooperative-sticky"),
        )
        return cls(
            topics,
            chance.choice(known),
            static=chance.random() < 0.3,
            session_timeout_ms=chance.choice((6_000, 6_000, 15_000)),
            max_poll_interval_ms=chance.choice((6_000, 10_000, 30_000)),
        )


@attrs.define(eq=False)
class Member:
    """One consumer, with a client of its own. Once ``calm`` is set, its user is quick and quiet."""

    sim: Simulation
    history: History
    wrong: list[str]
    """What is wrong besides the anomalies of the history."""
    group: Group
    seat: int
    """Which of the group's members it is; it follows on another."""
    name: str
    calm: anyio.Event
    listen: Callable[[], None]
    """Adds the scenario's rules for requests again, behind those of the member."""
    has: dict[TopicPartition, int] = attrs.field(factory=dict)
    """What it reads, and since which assignment of its own."""
    chance: Random = attrs.field(init=False)
    commits: str = attrs.field(init=False)
    pace: float = attrs.field(init=False)
    _in_hand: Sequence[Record] = ()
    _taken: Sequence[Record] = ()
    """The records that it got last, which the consumer counts as unfinished until it comes for more."""
    _since: dict[TopicPartition, int] = attrs.field(factory=dict)
    """What it read when it got what it has in hand."""
    _since_commit: int = 0
    _assignments: int = 0
    _leaving: bool = False
    _others: TaskGroup | None = None
    """What is done with its consumer besides the reading."""
    _others_do: Random = attrs.field(init=False)
    _removal: float = attrs.field(init=False)
    """When an operator removes it, once it has records in hand."""
    _interference: anyio.Event = attrs.field(factory=anyio.Event)

    def __attrs_post_init__(self) -> None:
        self.chance = self.sim.chance(self.name)
        ways = ("by itself", "by itself", "each", "positions")
        self.commits = "by itself" if self.group.is_orderly else self.chance.choice(ways)
        self.pace = self.chance.choice((0.0, 0.0, 0.01, 0.1))
        self._others_do = self.sim.chance(f"what others do with {self.name}")
        is_removed = self._others_do.random() < (0.6 if self.commits == "each" else 0.2)
        self._removal = self.sim.now() + self._others_do.uniform(0, 20) if is_removed else math.inf

    @property
    def owner(self) -> str:
        """Whose the partitions are: a static member's, or this one's alone."""
        return f"seat-{self.seat}" if self.group.static else self.name

    def _options(self) -> ConsumerOptions:
        chance, group = self.chance, self.group
        options = ConsumerOptions(
            group_id=GROUP,
            max_poll_interval_ms=group.max_poll_interval_ms,
            enable_auto_commit=self.commits == "by itself",
            auto_commit_interval_ms=chance.choice((200, 1_000, 5_000)),
            auto_offset_reset="earliest",
            fetch_max_wait_ms=chance.choice((500, 900)),
            fetch_max_bytes=chance.choice((1_000, 52_428_800)),
            max_partition_fetch_bytes=chance.choice((500, 1_048_576)),
        )
        if group.protocol == "consumer":
            options["group_protocol"] = "consumer"
            options["group_remote_assignor"] = chance.choice((None, "uniform", "range"))
        else:
            options["session_timeout_ms"] = group.session_timeout_ms
            options["heartbeat_interval_ms"] = chance.choice((500, 1_000, 2_000))
            options["partition_assignment_strategy"] = group.strategies
        if group.static:
            options["group_instance_id"] = self.owner
        return options

    # --- its life --------------------------------------------------------------------------------------------------

    async def live(self, scope: anyio.CancelScope) -> None:
        """Read until the scope is cancelled, then leave in order."""
        try:
            async with client_of(self.sim, self.name, client_id=self.name) as client:
                await self._take_part(client, scope)
        except FencedInstanceId as error:
            self.sim.note(f"{self.name} has a successor: {error}")
        except ExceptionGroup as group:  # of a commit that it makes beside its reading
            if group.split(FencedInstanceId)[1] is not None:
                raise
            self.sim.note(f"{self.name} has a successor: {group.exceptions[0]}")
        except _IN_TROUBLE as error:
            self.sim.note(f"{self.name} is over: {type(error).__name__}: {error}")
        finally:
            self.history.add(MemberEnded(self.name))
            self.sim.note(f"{self.name} is gone")

    async def _take_part(self, client: Client, scope: anyio.CancelScope) -> None:
        consumer = client.consumer(**self._options())
        failed: Exception | None = None
        async with consumer, anyio.create_task_group() as others:
            others.start_soon(self._interfere, consumer)
            self._others = others
            # The group would wrap it.
            try:
                await self._read_until_cancelled(consumer, scope)
            except Exception as error:
                failed = error
            others.cancel_scope.cancel()
        if failed is not None:
            raise failed

    async def _read_until_cancelled(self, consumer: Consumer[bytes, bytes], scope: anyio.CancelScope) -> None:
        try:
            with scope:
                consumer.subscribe(
                    *self.group.topics,
                    on_assigned=self._assigned,
                    on_revoked=lambda partitions: self._revoked(consumer, partitions),
                    on_lost=self._lost,
                )
                await self._read(consumer)
        finally:
            await self._close(consumer)

    async def _interfere(self, consumer: Consumer[bytes, bytes]) -> None:
        """Poll the consumer in a second task, whenever this member has it do so while it has records in hand."""
        while True:
            await self._interference.wait()
            self._interference = anyio.Event()
            try:
                records = await consumer.poll(timeout=0)
            except UsageError as error:
                self.sim.note(f"a second task of {self.name} is told: {error}")
            else:
                self.wrong.append(f"a second task of {self.name} got {len(records)} records, and no error")

    async def _close(self, consumer: Consumer[bytes, bytes]) -> None:
        self._leaving = True
        within, began = self.chance.choice((0.5, CLOSES_WITHIN)), self.sim.now()
        await consumer.close(within)
        took = self.sim.now() - began
        if took > within + _AT_ONCE:
            self.wrong.append(f"{self.name} took {took:.2f} s to close, and was given {within}")

    # --- its partitions --------------------------------------------------------------------------------------------

    def _assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.sim.note(f"{self.name} gets {', '.join(map(str, partitions))}")
        for where in partitions:
            self.history.add(PartitionAssigned(self.name, where))
            self._assignments += 1
            self.has[where] = self._assignments

    async def _revoked(self, consumer: Consumer[bytes, bytes], partitions: Sequence[TopicPartition]) -> None:
        self.sim.note(f"{self.name} gives up {', '.join(map(str, partitions))}")
        # What was lost meanwhile is nobody's to wait for, not even if it has come back.
        places = {TopicPartition(record.topic, record.partition) for record in self._in_hand}
        in_hand = {where for where in places if self.has.get(where) == self._since.get(where)}
        if not self._leaving and not in_hand.isdisjoint(partitions):
            self.wrong.append(f"{self.name} is to give up {partitions}, and has {in_hand} in hand")
        try:
            if self.commits != "by itself" and self.chance.random() < 0.8:
                at = consumer.positions()
                done = [where for where in partitions if where in at and where not in in_hand]
                await self._commit(consumer, {where: at[where].offset for where in done})
        except FencedInstanceId as error:  # the next heartbeat says so too, unless the coordinator only pretended
            self.sim.note(f"{self.name} has a successor: {error}")
        except KafkaError as error:
            self.wrong.append(f"{self.name} may not commit what it gives up: {type(error).__name__}: {error}")
        finally:
            self._lost(partitions, commits=self.group.is_orderly)

    def _lost(self, partitions: Sequence[TopicPartition], *, commits: bool = False) -> None:
        self.sim.note(f"{self.name} reads no more of {', '.join(map(str, partitions))}")
        for where in partitions:
            taken = (record.offset for record in self._taken if (record.topic, record.partition) == where)
            self.history.add(PartitionRevoked(self.name, where, commits, min(taken, default=None)))
            del self.has[where]

    # --- reading ---------------------------------------------------------------------------------------------------

    async def _read(self, consumer: Consumer[bytes, bytes]) -> None:
        """Read on and on; loops are cancelled, and entered again."""
        read = self.chance.choice((self._records, self._polls, self._batches))
        impatience = self.chance.choice((0.05, 1.0, 1_000.0))
        while True:
            self._put_down()  # who comes for more is done, whatever became of it
            try:
                with anyio.move_on_after(impatience):
                    await read(consumer)
            except FencedInstanceId:
                raise
            except _IN_TROUBLE as error:
                self.sim.note(f"{self.name} is told: {type(error).__name__}: {error}")

    async def _records(self, consumer: Consumer[bytes, bytes]) -> None:
        async for record in consumer:
            await self._use(consumer, [record])

    async def _polls(self, consumer: Consumer[bytes, bytes]) -> None:
        while True:
            await self._use(consumer, await consumer.poll(self.chance.choice((1, 20, 500)), timeout=1.0))

    async def _batches(self, consumer: Consumer[bytes, bytes]) -> None:
        async for batch in consumer.batches():
            await self._use(consumer, list(batch))

    async def _use(self, consumer: Consumer[bytes, bytes], records: Sequence[Record]) -> None:
        """What the user does with records; some of it takes long, or is given up in the middle."""
        self._in_hand, self._since = records, dict(self.has)
        self._taken = records
        for record in records:
            self._note(consumer, record)
        has_lost = False
        for record in records:
            await self._dawdle()
            where = TopicPartition(record.topic, record.partition)
            self.history.add(RecordFinished(where, record.offset))
            if self.sim.now() >= self._removal and not (self.calm.is_set() or self.group.is_orderly):
                await self._be_removed(consumer, {where: record.offset + 1})
            # What was lost meanwhile is not its own to commit, and the consumer has to know that.
            has_lost = has_lost or self.has.get(where) != self._since.get(where)
            if self.commits == "each" and (self.chance.random() < 0.3 or has_lost):
                await self._commit(consumer, {where: record.offset + 1})
        self._since_commit += len(records)
        if self.commits == "positions" and (self._since_commit > self.chance.choice((1, 20, 100)) or has_lost):
            self._since_commit = 0
            await self._commit(consumer)
        self._in_hand = ()
        if records and self.chance.random() < 0.01 and not (self.calm.is_set() or self.group.is_orderly):
            await self._go_back(consumer)

    def _put_down(self) -> None:
        for record in self._in_hand:
            self.history.add(RecordFinished(TopicPartition(record.topic, record.partition), record.offset))
        self._in_hand = ()

    def _note(self, consumer: Consumer[bytes, bytes], record: Record) -> None:
        where = TopicPartition(record.topic, record.partition)
        part = consumer._in_group
        assert part is not None
        if isinstance(part.machine, ClassicMembership):
            generation = part.machine.assigned_generation
        else:
            assert part.machine.last_group is not None
            generation = part.machine.last_group.generation_id
        self.history.add(RecordRead(self.name, where, record.offset, record.value, generation, self.owner))

    async def _dawdle(self) -> None:
        chance = self.chance.random()
        if self.calm.is_set() or self.group.is_orderly:
            await anyio.sleep(min(self.pace, 0.001))
        elif chance < 0.0005:
            self.sim.note(f"{self.name} asks for nothing")
            await self._pause(self.group.max_poll_interval_ms / 1000 + self.chance.uniform(-1, 10))
        elif chance < 0.005:
            await anyio.sleep(self.chance.uniform(0, 4))
        elif chance < 0.008:
            self._interference.set()
            await anyio.sleep(0.01)
        elif self.pace:
            await anyio.sleep(self.chance.uniform(0, self.pace))

    async def _be_removed(self, consumer: Consumer[bytes, bytes], finished: dict[TopicPartition, int]) -> None:
        """Keep records in hand while an operator removes this member, perhaps until it is a member again."""
        self._removal = math.inf
        if current_study().admits("removal"):
            self.sim.note(f"{self.name} is to be removed")
            assert self._others is not None
            self._others.start_soon(self._remove, consumer, finished)
            await self._pause(self._others_do.uniform(0, 10))

    async def _remove(self, consumer: Consumer[bytes, bytes], finished: dict[TopicPartition, int]) -> None:
        """Remove this member, in some runs while a commit waits for its answer, and another one for the first."""
        if self.commits == "each" and self._others_do.random() < 0.7:
            unanswered = self.sim.broker.on(ApiKey.OFFSET_COMMIT, swallow="before", times=None, client_id=self.name)
            self.listen()
            assert self._others is not None
            for timeout in (5.0, 60.0):
                await self._others.start(partial(self._commit, consumer, finished, timeout=timeout))
            await anyio.sleep(0.5)
            unanswered.remove()
        with anyio.move_on_after(5), suppress(KafkaError):
            async with client_of(self.sim, f"operator for {self.name}") as client:
                (group,) = (await client.admin.describe_groups([GROUP])).values()
                await client.admin.remove_members(GROUP, [one for one in group.members if one.client_id == self.name])
                self.sim.note(f"{self.name} is removed")

    async def _pause(self, seconds: float) -> None:
        """Do nothing for so long, or until the faults are over: no group settles while a user is away."""
        with anyio.move_on_after(seconds):
            await self.calm.wait()

    async def _go_back(self, consumer: Consumer[bytes, bytes]) -> None:
        """Read some of a partition again, and commit that."""
        positions = consumer.positions()
        there = [where for where in self.has if where in positions]
        if not there:
            return
        where = self.chance.choice(there)
        to = max(0, positions[where].offset - self.chance.randint(1, 30))
        self.sim.note(f"{self.name} goes back to {to} in {where}")
        self.history.add(SeekBack(self.name, where, to))
        consumer.seek(where, to)
        await self._commit(consumer, {where: to})

    async def _commit(
        self,
        consumer: Consumer[bytes, bytes],
        offsets: dict[TopicPartition, int] | None = None,
        *,
        timeout: float | None = None,
        task_status: TaskStatus[None] = TASK_STATUS_IGNORED,
    ) -> None:
        in_hand = {TopicPartition(one.topic, one.partition): one.offset + 1 for one in self._in_hand}
        asked = in_hand if offsets is None else offsets
        for where, offset in asked.items():
            self.history.add(CommitRequested(self.name, where, offset))
        task_status.started()  # commits are made in the order of their calls
        try:
            await consumer.commit(offsets, timeout=timeout or self.chance.choice((1.0, 5.0, 60.0)))
        except _IN_TROUBLE as error:
            self.sim.note(f"{self.name} could not commit: {type(error).__name__}: {error}")
        else:
            for where, offset in asked.items():
                self.history.add(CommitAcknowledged(self.name, where, offset))
