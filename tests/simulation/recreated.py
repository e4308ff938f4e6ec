"""A topic that is deleted and created again and again, under members of a group that read and commit in every way."""

from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final, NoReturn

import anyio
import attrs
from support.lagging import without_topics

from aiokafkawire import Client, CommitFailed, Consumer, ConsumerRecord, KafkaError, OutgoingRecord, TopicPartition
from aiokafkawire.config import ConsumerOptions
from aiokafkawire.errors import BrokerError, ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import ApiError
from aiokafkawire.testing.simulation import Run, Simulation, simulate

from .checks import no_task_fails_unheard, reading_state
from .leftovers import check_nothing_is_left, tasks
from .protocols import COORDINATORS, Protocol
from .scenario import LATE
from .seats import Seats, until_settled
from .taking_part import client_of, logs_of_topics
from .trouble import next_fault

__all__ = ("Outcome", "run", "told")

GROUP: Final = "the members"
TOPIC: Final = "changing"
_RESULTS: Final = "results"
_PATIENCE = 330.0
"""Virtual seconds for the members to read all of the last topic, once all faults are over: a leader of a classic group
that reads no partition learns by `metadata_max_age_ms`, after 300 s, that there are more."""
_WAYS: Final = ("process", "transform", "transactions", "by itself", "all positions", "offsets", "each offset")

Record = ConsumerRecord[bytes, bytes]


@attrs.frozen
class Outcome:
    """What one run came to."""

    protocol: Protocol
    topics: int
    """How many topics of the name there were, one after the other."""
    read: int
    """The records that members have read, of all of them."""
    left: int
    """The records in the last one."""
    members: int
    faults: int
    settled: float


def run(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be."""
    with no_task_fails_unheard():
        return simulate(
            lambda sim: _Play(sim).main(),
            seed=seed,
            keep=keep,
            min_insync_replicas=2,
            max_versions="4.4",
            **COORDINATORS,
        )


@attrs.define
class _Member:
    """One member, from its beginning to its end."""

    sim: Simulation
    name: str
    protocol: Protocol
    read: set[bytes | None]
    """Gets the values that it reads."""
    chance: Random = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.chance = self.sim.chance(self.name)

    async def live(self, scope: anyio.CancelScope) -> None:
        """Read and commit until the scope is cancelled, and leave in order then."""
        options = ConsumerOptions(group_id=GROUP, group_protocol=self.protocol, fetch_max_wait_ms=500)
        options["auto_offset_reset"] = "earliest"
        if self.protocol == "classic":
            options["session_timeout_ms"] = 6_000
        way = self.chance.choice(_WAYS)
        self.sim.note(f"{self.name} commits: {way}")
        try:
            async with client_of(self.sim, self.name, client_id=self.name) as client:
                if way in ("process", "transform"):
                    stop = anyio.Event()
                    async with anyio.create_task_group() as living:
                        if way == "process":
                            living.start_soon(self._process, client, options, stop)
                        else:
                            living.start_soon(self._transform, client, options, stop)
                        with scope:
                            await anyio.sleep_forever()
                        stop.set()
                elif way == "transactions":
                    await self._transact(client, options, scope)
                else:
                    await self._consume(client, options, way, scope)
        except KafkaError as error:
            self.sim.note(f"{self.name} is over: {type(error).__name__}: {error}")

    async def _process(self, client: Client, options: ConsumerOptions, stop: anyio.Event) -> None:
        longest, interval = self.chance.choice((0.0, 0.05, 3.0)), self.chance.choice((20, 1_000))

        async def handle(record: Record) -> None:
            await anyio.sleep(self.chance.uniform(0, longest))
            self.read.add(record.value)

        await client.process(TOPIC, handle, stop=stop, commit_interval_ms=interval, drain_timeout=5, **options)

    async def _transform(self, client: Client, options: ConsumerOptions, stop: anyio.Event) -> None:
        longest = self.chance.choice((0.0, 0.05, 1.0))
        del options["group_id"], options["auto_offset_reset"]

        async def convert(records: Sequence[Record]) -> list[OutgoingRecord]:
            await anyio.sleep(self.chance.uniform(0, longest))
            self.read |= {record.value for record in records}
            return [OutgoingRecord(_RESULTS, record.value) for record in records]

        await client.transform(
            TOPIC, convert, group_id=GROUP, transactional_id="t", stop=stop, consumer_options=options
        )

    async def _transact(self, client: Client, options: ConsumerOptions, scope: anyio.CancelScope) -> None:
        longest = self.chance.choice((0.0, 0.05, 1.0))
        options["enable_auto_commit"], options["isolation_level"] = False, "read_committed"
        consumer = client.consumer(TOPIC, **options)
        async with consumer, client.producer(transactional_id=self.name, transaction_timeout_ms=10_000) as producer:
            with scope:
                while True:
                    records = await consumer.poll(self.chance.choice((1, 5, 500)))
                    try:
                        async with producer.transaction() as transaction:
                            for record in records:
                                await producer.enqueue(_RESULTS, record.value)
                            await anyio.sleep(self.chance.uniform(0, longest))
                            await transaction.commit_offsets(consumer)
                        self.read |= {record.value for record in records}
                    except (CommitFailed, BrokerError) as error:
                        self.sim.note(f"{self.name} has not committed: {type(error).__name__}: {error}")

    async def _consume(self, client: Client, options: ConsumerOptions, way: str, scope: anyio.CancelScope) -> None:
        options["enable_auto_commit"] = way == "by itself"
        options["auto_commit_interval_ms"] = self.chance.choice((50, 1_000))
        longest = self.chance.choice((0.0, 0.05, 1.0))
        async with client.consumer(TOPIC, **options) as consumer:
            with scope:
                while True:
                    records = await consumer.poll(self.chance.choice((1, 5, 500)))
                    self.read |= {record.value for record in records}
                    await anyio.sleep(self.chance.uniform(0, longest))
                    try:
                        await self._commit(consumer, way, records)
                    except KafkaError as error:
                        self.sim.note(f"{self.name} has not committed: {type(error).__name__}: {error}")

    async def _commit(self, consumer: Consumer[bytes, bytes], way: str, records: list[Record]) -> None:
        match way:
            case "all positions":
                await consumer.commit()
            case "offsets":
                await consumer.commit({TopicPartition(one.topic, one.partition): one.offset + 1 for one in records})
            case "each offset":
                for one in records:
                    await consumer.commit({TopicPartition(one.topic, one.partition): one.offset + 1})


@attrs.define
class _Play:
    """One run, and what came of it."""

    sim: Simulation
    topics: int = 0
    calm: anyio.Event = attrs.field(factory=anyio.Event)
    read: set[bytes | None] = attrs.field(factory=set)
    number: int = 0
    """The number of the last record that was written."""
    wrong: list[str] = attrs.field(factory=list)
    """Which offsets were committed that are none of the topic there was."""

    async def main(self) -> Outcome:
        """The run, and its checks."""
        sim, chance = self.sim, self.sim.random
        protocols: tuple[Protocol, ...] = ("classic", "consumer")
        protocol = chance.choice(protocols)
        self._create(chance)
        sim.broker.create_topic(_RESULTS)
        before = tasks()
        seats = Seats(sim, self.calm, lambda _, name: _Member(sim, name, protocol, self.read))
        async with anyio.create_task_group() as members:
            for seat in range(chance.randint(1, 3)):
                members.start_soon(seats.sit, seat)
            members.start_soon(self._watch)
            if chance.random() < 0.5:
                sim.chaos(every=(2.0, 10.0), lasting=(0.05, chance.choice((1.0, 5.0))))
            with anyio.move_on_after(chance.uniform(20, 60)):
                async with anyio.create_task_group() as trouble:
                    trouble.start_soon(self._write)
                    trouble.start_soon(self._recreate)
                    trouble.start_soon(self._lag)
            sim.broker.clear_orders()
            await sim.calm()
            self.calm.set()
            sim.network.heal()
            await anyio.sleep(LATE)
            with anyio.move_on_after(5):
                await self._write()
            settled = await until_settled(sim, self._state, limit=_PATIENCE, wrong=self.wrong)
            seats.end()
            await anyio.sleep(LATE)
            members.cancel_scope.cancel()
        assert not self.wrong, self.wrong
        check_nothing_is_left(sim, before)
        left = sum(map(len, logs_of_topics(sim, [TOPIC]).values()))
        return Outcome(protocol, self.topics, len(self.read), left, seats.lives, sim.trace.faults.total(), settled)

    def _create(self, chance: Random) -> None:
        self.sim.broker.create_topic(TOPIC, partitions=chance.randint(1, 3))
        self.topics += 1

    async def _recreate(self) -> NoReturn:
        """Delete the topic, and create it again soon."""
        every = self.sim.chance("recreations")
        longest = every.choice((3.0, 15.0))
        while True:
            chance = await next_fault("recreations", every, (0.5, longest))
            self.sim.note("the topic is deleted")
            self.sim.broker.delete_topic(TOPIC)
            try:
                await anyio.sleep(chance.choice((0.0, 0.0, 0.01, 1.0)))
            finally:
                self.sim.note("the topic is created")
                self._create(chance)

    async def _watch(self) -> NoReturn:
        """See that no offset after the end of the topic is committed: it would be one of an earlier topic."""
        broker = self.sim.broker
        while True:
            for where, committed in broker._cluster.committed.of(GROUP).items():
                with suppress(ApiError):  # there is no such partition any more
                    end = broker.log(*where).log_end_offset
                    if committed.offset > end:
                        self.wrong.append(f"{committed.offset} of {where} is committed, which ends at {end}")
            await anyio.sleep(0.05)

    async def _lag(self) -> NoReturn:
        """Let brokers know less than others for a moment."""
        every = self.sim.chance("lags")
        while True:
            chance = await next_fault("lags", every, (0.1, 3.0))
            api = chance.choice((ApiKey.METADATA, ApiKey.METADATA, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH))
            answer: Any = without_topics(TOPIC) if api == ApiKey.METADATA else ErrorCode.UNKNOWN_TOPIC_ID
            rule = self.sim.broker.on(api, answer=answer, times=chance.choice((1, 3)))
            await anyio.sleep(chance.choice((0.1, 1.0, 3.0)))
            rule.remove()

    async def _write(self) -> NoReturn:
        """Write records, until it is cancelled."""
        chance = self.sim.chance(f"writer from {self.number}")
        client = self.sim.client(f"writer from {self.number}", bootstrap_timeout_ms=60_000)
        async with client, client.producer() as producer:
            while True:
                self.number += 1
                with suppress(KafkaError):
                    await producer.enqueue(TOPIC, b"%d" % self.number)
                await anyio.sleep(chance.choice((0.0, 0.01, 0.3)))

    async def _state(self) -> str:
        return reading_state(logs_of_topics(self.sim, [TOPIC]), self.read)


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value = done.value
    return (
        f"seed {done.seed}: {value.topics} topics of one name, {value.left} records in the last, {value.read} read by "
        f"{value.members} {value.protocol} members, {value.faults} faults, settled in {value.settled:.0f} s, "
        f"{done.seconds:.0f} s of virtual time, trace {done.trace.digest}"
    )
