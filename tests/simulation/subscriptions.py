"""A group whose members change what they subscribe to, pause and seek, while topics appear, grow and are shortened."""

from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final, NoReturn

import anyio
import attrs

from aiokafkawire import (
    Client,
    CommitFailed,
    Consumer,
    ConsumerRecord,
    KafkaError,
    SubscriptionPattern,
    TopicPartition,
)
from aiokafkawire.config import ConsumerOptions
from aiokafkawire.errors import ConnectionLost, RequestTimeout
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Run, Simulation, simulate

from .checks import no_task_fails_unheard, reading_state
from .leftovers import check_nothing_is_left, tasks
from .protocols import COORDINATORS, Protocol
from .scenario import LATE
from .seats import Seats, until_settled
from .taking_part import logs_of_topics
from .trouble import next_fault, refusing

__all__ = ("Outcome", "run", "told")

GROUP: Final = "the members"
_NAMES: Final = tuple(f"topic-{number}" for number in range(5))
_PATTERNS: Final = ("topic-.*", "topic-[0-2]", ".*-[13]")
_PATIENCE: Final = 120.0
"""Virtual seconds for the members to read everything, once all faults are over."""
_REFUSED: Final = (
    *(ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP),
    *(ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH),
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
)
_IN_TROUBLE: Final = (CommitFailed, ConnectionLost, RequestTimeout)
"""What users may hear of while brokers and networks fail."""

Record = ConsumerRecord[bytes, bytes]


@attrs.frozen
class Outcome:
    """What one run came to."""

    protocol: Protocol
    partitions: int
    read: int
    """The records that members have read; those that were read again count once."""
    members: int
    changes: int
    """How often members have changed what they subscribe to."""
    pauses: int
    faults: int
    settled: float


def run(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be."""
    with no_task_fails_unheard():
        return simulate(
            lambda sim: _Play(sim).main(), seed=seed, keep=keep, min_insync_replicas=2, num_partitions=2, **COORDINATORS
        )


@attrs.define
class _Seen:
    """What all members have done so far."""

    read: set[bytes | None] = attrs.field(factory=set)
    """The values that were read."""
    changes: int = 0
    pauses: int = 0
    wrong: list[str] = attrs.field(factory=list)


@attrs.define
class _Member:
    """One member, from its beginning to its end."""

    sim: Simulation
    name: str
    protocol: Protocol
    calm: anyio.Event
    seen: _Seen
    chance: Random = attrs.field(init=False)
    _paused: set[TopicPartition] = attrs.field(factory=set)
    """What was paused, and not given up since."""
    _last: dict[TopicPartition, int] = attrs.field(factory=dict)
    """The offset read last of each partition, since it was assigned, or since a seek."""
    _has_all: bool = False
    """Whether it subscribes to all topics, and has paused nothing, as all do in the end."""

    def __attrs_post_init__(self) -> None:
        self.chance = self.sim.chance(self.name)

    async def live(self, scope: anyio.CancelScope) -> None:
        """Read and commit until the scope is cancelled, and leave in order then."""
        options = ConsumerOptions(group_id=GROUP, group_protocol=self.protocol, fetch_max_wait_ms=500)
        options["auto_offset_reset"] = "earliest"
        options["enable_auto_commit"] = self.chance.random() < 0.5
        options["auto_commit_interval_ms"] = self.chance.choice((50, 1_000))
        if self.protocol == "classic":
            options["session_timeout_ms"] = 6_000
            options["partition_assignment_strategy"] = ["range"]
            if self.chance.random() < 0.5:
                options["partition_assignment_strategy"] = ["cooperative-sticky", "range"]
        try:
            async with self._client() as client, client.consumer(**options) as consumer:
                with scope:
                    await self._read(consumer, commits=not options["enable_auto_commit"])
        except _IN_TROUBLE as error:
            self.sim.note(f"{self.name} is over: {type(error).__name__}: {error}")
        self._gone(tuple(self._last))

    def _client(self) -> Client:
        return self.sim.client(self.name, client_id=self.name, metadata_max_age_ms=5_000, bootstrap_timeout_ms=60_000)

    async def _read(self, consumer: Consumer[bytes, bytes], *, commits: bool) -> None:
        longest = self.chance.choice((0.001, 0.05, 1.0))
        await self._subscribe(consumer)
        while True:
            if self.calm.is_set() and not self._has_all:
                self._want_all(consumer)
            elif not self.calm.is_set():
                await self._interfere(consumer)
            paused = frozenset(self._paused)
            records = await consumer.poll(self.chance.choice((1, 5, 500)), timeout=self.chance.choice((0.0, 0.1, 1.0)))
            self._check(records, paused)
            await anyio.sleep(self.chance.uniform(0.001, longest))
            self.seen.read |= {record.value for record in records}
            if commits:
                await self._commit(consumer)

    async def _commit(self, consumer: Consumer[bytes, bytes]) -> None:
        try:
            await consumer.commit(timeout=self.chance.choice((1.0, 60.0)))
        except _IN_TROUBLE as error:
            self.sim.note(f"{self.name} has not committed: {type(error).__name__}: {error}")

    # --- what it changes ---------------------------------------------------------------------------------------

    async def _interfere(self, consumer: Consumer[bytes, bytes]) -> None:
        """Change the subscription, pause, resume or seek now and then."""
        has = consumer.assignment
        match self.chance.random():
            case draw if draw < 0.04:
                await self._subscribe(consumer)
            case draw if draw < 0.1 and has:
                some = self.chance.sample(has, self.chance.randint(1, len(has)))
                consumer.pause(some)
                self._paused.update(some)
                self.seen.pauses += 1
                self.sim.note(f"{self.name} pauses {', '.join(map(str, some))}")
            case draw if draw < 0.16 and self._paused:
                where = self.chance.choice(sorted(self._paused))
                self._paused.discard(where)
                consumer.resume(where)
                self.sim.note(f"{self.name} resumes {where}")
            case draw if draw < 0.18 and has:
                where = self.chance.choice(has)
                if position := consumer.position(where):
                    to = self.chance.randint(max(0, position - 20), position)
                    self.sim.note(f"{self.name} seeks {to} in {where}")
                    consumer.seek(where, to)
                    self._last[where] = to - 1

    async def _subscribe(self, consumer: Consumer[bytes, bytes]) -> None:
        self.seen.changes += 1
        way = self.chance.choice(("names", "names", "pattern", "pattern of brokers", "unsubscribed"))
        listeners: dict[str, Any] = {"on_assigned": self._assigned, "on_revoked": self._gone}
        if way == "unsubscribed":
            self.sim.note(f"{self.name} unsubscribes")
            await consumer.unsubscribe(self.chance.choice((0.5, 5.0)))
            self._gone(tuple(self._last))
            await anyio.sleep(self.chance.choice((0.0, 1.0)))
        if way == "pattern of brokers" and self.protocol == "consumer":
            pattern = self.chance.choice(_PATTERNS)
            self.sim.note(f"{self.name} subscribes to what brokers match with {pattern}")
            consumer.subscribe(SubscriptionPattern(pattern), **listeners)
        elif way == "pattern":
            pattern = self.chance.choice(_PATTERNS)
            self.sim.note(f"{self.name} subscribes to what matches {pattern}")
            consumer.subscribe(pattern=pattern, **listeners)
        else:
            names = self.chance.sample(_NAMES, self.chance.randint(1, 4))
            self.sim.note(f"{self.name} subscribes to {', '.join(names)}")
            consumer.subscribe(*names, **listeners)

    def _want_all(self, consumer: Consumer[bytes, bytes]) -> None:
        consumer.subscribe(pattern=_PATTERNS[0], on_assigned=self._assigned, on_revoked=self._gone)
        consumer.resume(consumer.paused)
        self._paused.clear()
        self._has_all = True

    # --- what it sees ------------------------------------------------------------------------------------------

    def _assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.sim.note(f"{self.name} gets {', '.join(map(str, partitions))}")
        self._last |= dict.fromkeys(partitions, -1)

    def _gone(self, partitions: Sequence[TopicPartition]) -> None:
        self.sim.note(f"{self.name} reads no more of {', '.join(map(str, partitions))}")
        for where in partitions:
            self._last.pop(where, None)
            self._paused.discard(where)

    def _check(self, records: Sequence[Record], paused: frozenset[TopicPartition]) -> None:
        for record in records:
            where = TopicPartition(record.topic, record.partition)
            if where not in self._last:
                self.seen.wrong.append(f"{self.name} read {where}:{record.offset}, which it does not have")
            elif record.offset <= self._last[where]:
                self.seen.wrong.append(f"{self.name} read {where}:{record.offset} after {self._last[where]}")
            if where in paused & self._paused:
                self.seen.wrong.append(f"{self.name} read {where}:{record.offset}, which was paused")
            self._last[where] = record.offset


@attrs.define
class _Play:
    """One run, and what came of it."""

    sim: Simulation
    calm: anyio.Event = attrs.field(factory=anyio.Event)
    seen: _Seen = attrs.field(factory=_Seen)
    partitions: dict[str, int] = attrs.field(factory=dict)
    """How many partitions each topic has by now."""

    async def main(self) -> Outcome:
        """The run, and its checks."""
        sim, chance = self.sim, self.sim.random
        protocols: tuple[Protocol, ...] = ("classic", "consumer")
        protocol = chance.choice(protocols)
        self._create(_NAMES[0], chance)
        before = tasks()
        seats = Seats(sim, self.calm, lambda _, name: _Member(sim, name, protocol, self.calm, self.seen))
        async with anyio.create_task_group() as members:
            for seat in range(chance.randint(1, 4)):
                members.start_soon(seats.sit, seat)
            members.start_soon(self._watch)
            if chance.random() < 0.5:
                sim.chaos(every=(2.0, 10.0), lasting=(0.05, chance.choice((1.0, 5.0))))
            refuses = chance.random() < 0.5
            with anyio.move_on_after(chance.uniform(20, 60)):
                async with anyio.create_task_group() as trouble:
                    trouble.start_soon(self._write)
                    trouble.start_soon(self._change_topics)
                    if refuses:
                        trouble.start_soon(self._refuse)
            sim.broker.clear_orders()
            await sim.calm()
            self.calm.set()
            sim.network.heal()
            await anyio.sleep(LATE)
            settled = await until_settled(sim, self._state, limit=_PATIENCE, wrong=self.seen.wrong)
            seats.end()
            await anyio.sleep(LATE)
            members.cancel_scope.cancel()
        assert not self.seen.wrong, self.seen.wrong
        check_nothing_is_left(sim, before)
        seen, faults = self.seen, sim.trace.faults.total()
        partitions = sum(self.partitions.values())
        return Outcome(protocol, partitions, len(seen.read), seats.lives, seen.changes, seen.pauses, faults, settled)

    async def _refuse(self) -> None:
        """Let brokers refuse requests, until it is cancelled."""
        async with refusing(self.sim, *_REFUSED):
            await anyio.sleep_forever()

    # --- the topics --------------------------------------------------------------------------------------------

    def _create(self, name: str, chance: Random) -> None:
        self.partitions[name] = chance.randint(1, 3)
        self.sim.broker.create_topic(name, partitions=self.partitions[name])

    async def _change_topics(self) -> NoReturn:
        """Create and extend topics, and delete records that the group has committed."""
        every = self.sim.chance("topics")
        longest = every.choice((3.0, 15.0))
        async with self.sim.client("operator", bootstrap_timeout_ms=60_000) as client:
            while True:
                chance = await next_fault("topics", every, (0.1, longest))
                missing = [name for name in _NAMES if name not in self.partitions]
                what = chance.choice(("create", "extend", "shorten"))
                if what == "create" and missing:
                    self.sim.note(f"{missing[0]} is created")
                    self._create(missing[0], chance)
                elif what == "extend":
                    name = chance.choice(sorted(self.partitions))
                    size = self.partitions[name] + 1
                    self.sim.note(f"{name} gets {size} partitions")
                    with suppress(KafkaError):
                        await client.admin.create_partitions({name: size}, timeout=5)
                    self.partitions[name] = size
                else:
                    committed = self.sim.broker._cluster.committed.of(GROUP)
                    with suppress(KafkaError):
                        await client.admin.delete_records(
                            {TopicPartition(*where): at.offset for where, at in committed.items()}, timeout=5
                        )

    async def _write(self) -> NoReturn:
        """Write records to all topics that there are, until it is cancelled."""
        chance, number = self.sim.chance("writer"), 0
        async with self.sim.client("writer", bootstrap_timeout_ms=60_000) as client, client.producer() as producer:
            while True:
                number += 1
                with suppress(KafkaError):
                    await producer.enqueue(chance.choice(sorted(self.partitions)), b"%d" % number)
                await anyio.sleep(chance.choice((0.0, 0.01, 0.3)))

    # --- the checks --------------------------------------------------------------------------------------------

    async def _watch(self) -> NoReturn:
        """See that everything below a committed offset was read, and stop at the first error."""
        while True:
            logs = logs_of_topics(self.sim, self.partitions)
            for (topic, index), committed in self.sim.broker._cluster.committed.of(GROUP).items():
                where = TopicPartition(topic, index)
                for offset, value in logs.get(where, ()):
                    if offset < committed.offset and value not in self.seen.read:
                        self.seen.wrong.append(f"{committed.offset} of {where} is committed, and {offset} is not read")
            assert not self.seen.wrong, self.seen.wrong
            await anyio.sleep(0.2)

    async def _state(self) -> str:
        return reading_state(logs_of_topics(self.sim, self.partitions), self.seen.read)


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value = done.value
    return (
        f"seed {done.seed}: {value.partitions} partitions, {value.read} records read by {value.members} "
        f"{value.protocol} members, {value.changes} subscriptions, {value.pauses} pauses, {value.faults} faults, "
        f"settled in {value.settled:.0f} s, {done.seconds:.0f} s of virtual time, trace {done.trace.digest}"
    )
