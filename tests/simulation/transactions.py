"""Transactions on a cluster in trouble: writers that abort, crash and are followed by others with their name."""

from collections import Counter
from contextlib import nullcontext, suppress
from functools import partial
from random import Random
from typing import Any, NoReturn

import anyio
import attrs
from support.raw_client import RawClient

from aiokafkawire import Delivery, KafkaError, Producer, TopicPartition
from aiokafkawire.config import ProducerOptions
from aiokafkawire.errors import UsageError
from aiokafkawire.producer.transacting import Transaction
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.group_offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from aiokafkawire.protocol.messages.metadata import ApiVersionsResponse
from aiokafkawire.protocol.schema import Request, Response
from aiokafkawire.records.batch import AnyReader
from aiokafkawire.testing.broker import Refused
from aiokafkawire.testing.logs.end_marker import EndMarker
from aiokafkawire.testing.simulation import Run, Simulation, simulate

from .checks import Logs, Seen, check_reading, no_task_fails_unheard
from .scenario import LATE, PATIENCE
from .taking_part import client_of, logs_of, read, read_until
from .transaction_checks import End, Group, Wrote, check_all_or_nothing, check_offsets, check_order

__all__ = ("Outcome", "run", "told")

_RELEASES = (None, None, None, "4.0", "3.9", "3.6", "2.8", "2.4")
"""Of Apache Kafka; None is the newest. From 4.0 on transactions are of version 2; up to 2.4 no epoch is bumped."""
_LONGEST = 30_000
"""The longest that a transaction may be open, in ms."""


@attrs.frozen
class Outcome:
    """What one run came to."""

    release: str | None
    ends: Counter[End]
    unknown: int
    """Transactions whose writer does not know how they ended."""
    lives: int
    """Producers."""
    faults: Counter[str]


class _OnPurpose(Exception):
    """A transaction is to be aborted."""


def run(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be."""
    chance = Random(f"{seed}/cluster")
    release, largest = chance.choice(_RELEASES), chance.choice((1_048_588, 1_048_588, 3_000, 700))
    with no_task_fails_unheard():
        return simulate(
            _Play(release).main,
            seed=seed,
            keep=keep,
            min_insync_replicas=2,
            max_versions=release,
            message_max_bytes=largest,
        )


@attrs.define
class _Play:
    """One run, and what came of it."""

    release: str | None
    wrote: list[Wrote] = attrs.field(factory=list)
    dead: list[str] = attrs.field(factory=list)
    """Clients that nothing comes from any more."""
    lives: int = 0

    async def main(self, sim: Simulation) -> Outcome:
        """The run, and its checks."""
        chance = sim.random
        topics = ["flights", "delays", "gates"][: chance.randint(1, 3)]
        partitions = [TopicPartition(topic, index) for topic in topics for index in range(chance.randint(1, 4))]
        for topic in topics:
            sim.broker.create_topic(topic, partitions=sum(where.topic == topic for where in partitions))
        writers = [f"writer-{number}" for number in range(chance.randint(1, 3))]
        if self.release is None and chance.random() < 0.3:
            _upgrade(sim, chance.uniform(0, 20))
        seen: Seen = {}
        async with anyio.create_task_group() as readers:
            readers.start_soon(partial(read, sim, 0, partitions, seen, committed=True))
            async with anyio.create_task_group() as tasks:
                sim.chaos(every=(0.2, chance.choice((1.0, 4.0, 10.0))), lasting=(0.05, chance.choice((1.0, 5.0, 20.0))))
                for writer in writers:
                    tasks.start_soon(self._write, sim, writer, partitions)
                with anyio.move_on_after(chance.uniform(10, 60)):
                    await _trouble_coordinators(sim, writers)
                await sim.calm()
            sim.network.heal()
            await anyio.sleep(LATE)
            await _nothing_stays_open(sim, partitions)
            for writer in writers:
                await self._life(sim, writer, partitions).live_well()
            await _nothing_stays_open(sim, partitions)
            committed = _committed(sim, partitions)
            await read_until([seen], committed, PATIENCE)
            readers.cancel_scope.cancel()
        unknown = sum(one.end is End.UNKNOWN for one in self.wrote)
        check_order(self.wrote, logs_of(sim, partitions))
        check_all_or_nothing(self.wrote, committed)
        check_offsets(self.wrote, {writer: await _offsets(sim, writer, partitions) for writer in writers})
        check_reading(seen, committed)
        ends = Counter(one.end for one in self.wrote)
        return Outcome(self.release, ends, unknown, self.lives, sim.trace.faults)

    async def _write(self, sim: Simulation, writer: str, partitions: list[TopicPartition]) -> None:
        """One producer after the other; some crash, and some go on when their successor is there."""
        chance = sim.chance(writer)
        async with anyio.create_task_group() as zombies:
            for _ in range(chance.randint(1, 5)):
                life = self._life(sim, writer, partitions)
                seconds = chance.choice((0.1, 0.5, 3.0, 20.0))
                match chance.choice(("close", "crash", "power cut", "zombie")):
                    case "zombie":
                        zombies.start_soon(life.live)
                        await anyio.sleep(seconds)
                    case "crash":
                        with anyio.move_on_after(seconds):
                            await life.live()
                    case "power cut":
                        async with anyio.create_task_group() as living:
                            living.start_soon(life.live)
                            await anyio.sleep(seconds)
                            self._cut_off(sim, life.name)
                            living.cancel_scope.cancel()
                    case _:
                        await life.live()

    def _cut_off(self, sim: Simulation, client: str) -> None:
        """What it sent arrives when the network is healed, and nothing else will."""
        self.dead.append(client)
        sim.network.partition(*({one} for one in self.dead))

    def _life(self, sim: Simulation, writer: str, partitions: list[TopicPartition]) -> "_Life":
        self.lives += 1
        return _Life(sim, writer, self.lives, partitions, self.wrote)


@attrs.define
class _Life:
    """One producer of a writer, from its beginning to its end."""

    sim: Simulation
    writer: str
    number: int
    partitions: list[TopicPartition]
    wrote: list[Wrote]
    refused: Wrote | None = None
    """Its transaction that it wanted to commit, and that it was told it could not."""
    chance: Random = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.chance = self.sim.chance(self.name)

    @property
    def name(self) -> str:
        """What the network calls its client."""
        return f"{self.writer}.{self.number}"

    def _options(self) -> ProducerOptions:
        chance = self.chance
        options = ProducerOptions(
            transactional_id=self.writer,
            transaction_timeout_ms=chance.choice((2_000, 10_000, _LONGEST)),
            max_block_ms=chance.choice((3_000, 60_000)),
            linger_ms=chance.choice((0, 5, 100)),
            batch_size=chance.choice((100, 1_000, 16_384)),
            compression_type=chance.choice(("none", "none", "gzip", "lz4")),
            delivery_timeout_ms=chance.choice((2_000, 10_000, 120_000)),
            max_in_flight_requests_per_connection=chance.randint(1, 5),
        )
        if chance.random() < 0.5:
            options["request_timeout_ms"] = chance.choice((500, 2_000, 30_000))
        return options

    async def live(self) -> None:
        """Make transactions until it has made enough, or can make no more."""
        try:
            async with client_of(self.sim, self.name) as client, client.producer(**self._options()) as producer:
                for _ in range(self.chance.randint(1, 10)):
                    await self._transact_or_not(producer)
                    await anyio.sleep(self.chance.choice((0.0, 0.01, 0.5)))
        except UsageError:
            raise
        except KafkaError as error:
            self.sim.note(f"{self.name} is over: {type(error).__name__}: {error}")

    async def live_well(self) -> None:
        """All is calm, and so nothing may fail."""
        client = client_of(self.sim, self.name)
        async with client, client.producer(transactional_id=self.writer) as producer:
            for _ in range(2):
                wrote = self._next()
                async with producer.transaction() as transaction:
                    await self._fill(transaction, wrote, largest=200)
                    await self._commit_offsets(transaction, wrote)
                wrote.end = End.COMMITTED

    def _next(self) -> Wrote:
        self.wrote.append(Wrote(self.writer, (self.number, len(self.wrote))))
        return self.wrote[-1]

    async def _transact_or_not(self, producer: Producer[bytes, bytes]) -> None:
        """One transaction. What makes its producer useless comes out."""
        wrote = self._next()
        told = f"{self.name} makes transaction {wrote.turn[1]}"
        try:
            with anyio.move_on_after(self.chance.choice((0.05, 1.0, 1_000, 1_000, 1_000))) as scope:
                await self._transact(producer, wrote)
        except _OnPurpose:
            self.sim.note(f"{told}: aborted on purpose")
        except UsageError:
            raise
        except KafkaError as error:
            self.sim.note(f"{told}: {type(error).__name__}: {error}")
            if wrote.end is End.UNKNOWN:
                self.refused = wrote
        else:
            self.sim.note(f"{told}: {'cancelled' if scope.cancelled_caught else 'committed'}")

    async def _transact(self, producer: Producer[bytes, bytes], wrote: Wrote) -> None:
        chance = self.chance
        async with producer.transaction() as transaction:
            if self.refused is not None:  # whoever can go on knows that the one before was aborted
                self.refused.end, self.refused = End.ABORTED, None
            self.sim.note(f"{self.name} begins transaction {wrote.turn[1]}")
            with suppress(KafkaError) if chance.random() < 0.2 else nullcontext():
                await self._fill(transaction, wrote)
                if chance.random() < 0.5:
                    await self._commit_offsets(transaction, wrote)
            if chance.random() < 0.2:
                raise _OnPurpose
            wrote.end = End.UNKNOWN
        wrote.end = End.COMMITTED

    async def _fill(self, transaction: Transaction[bytes, bytes], wrote: Wrote, *, largest: int = 2_000) -> None:
        """Hand over a few records, and wait for some of them."""
        chance = self.chance
        for number in range(chance.choice((0, 1, 5, 20))):
            value = f"{self.name}/{wrote.turn[1]}/{number}/".encode() + bytes(chance.choice((0, 0, 200, largest)))
            where = chance.choice(self.partitions)
            partition = where.partition if chance.random() < 0.5 else None
            delivery: Delivery = await transaction.enqueue(where.topic, value, partition=partition)
            wrote.values.append(value)
            if chance.random() < 0.2:
                await delivery
            if chance.random() < 0.2:
                await anyio.sleep(chance.choice((0.001, 0.05, 1.0, 3.0)))

    async def _commit_offsets(self, transaction: Transaction[bytes, bytes], wrote: Wrote) -> None:
        offsets = {where: wrote.turn[1] for where in self.partitions if self.chance.random() < 0.5}
        wrote.offsets.update(offsets)
        await transaction.commit_offsets(offsets, group=_group(self.writer))


def _upgrade(sim: Simulation, at: float) -> None:
    """Until then the cluster has ``transaction.version`` 1."""

    def told(_: Request[Any], answer: Response) -> Response:
        assert isinstance(answer, ApiVersionsResponse)
        if sim.now() < at:
            answer.finalized_features_epoch -= 1
            for feature in answer.finalized_features:
                if feature.name == "transaction.version":
                    feature.max_version_level = feature.min_version_level = 1
        return answer

    sim.broker.on(ApiKey.API_VERSIONS, answer=told, times=None)


async def _trouble_coordinators(sim: Simulation, writers: list[str]) -> NoReturn:
    """They move, and take their time to read what was written; transactions take theirs to be completed."""
    chance = sim.chance("coordinators")
    longest = chance.choice((3.0, 30.0))
    while True:
        await anyio.sleep(chance.uniform(0.5, longest))
        writer, node, loading = chance.choice(writers), chance.choice(sim.broker.node_ids), chance.choice((0.0, 2.0))
        kind = chance.choice(("transactions", "group", "markers"))
        sim.note(f"trouble with {kind} of {writer}")
        try:
            match kind:
                case "transactions":
                    sim.broker.move_transaction_coordinator(writer, node, loading=loading)
                case "group":
                    sim.broker.move_coordinator(_group(writer), node, loading=loading)
                case _:
                    sim.broker.hold_markers(writer)
                    try:
                        await anyio.sleep(loading)
                    finally:
                        sim.broker.release_markers(writer)
        except Refused:
            pass  # it is down, or not in sync


async def _nothing_stays_open(sim: Simulation, partitions: list[TopicPartition]) -> None:
    """Whoever has left a transaction open, the brokers abort it in time."""
    logs = {where: sim.broker.log(*where) for where in partitions}
    for _ in range(_LONGEST // 1000):
        if all(log.last_stable_offset == log.log_end_offset for log in logs.values()):
            break
        await anyio.sleep(1)
    for where, log in logs.items():
        told = f"{where} is stable up to {log.last_stable_offset}, and ends at {log.log_end_offset}"
        assert log.last_stable_offset == log.high_watermark == log.log_end_offset, told


def _committed(sim: Simulation, partitions: list[TopicPartition]) -> Logs:
    """The records of committed transactions, as their markers tell."""
    logs: dict[TopicPartition, list[tuple[int, bytes | None]]] = {}
    for where in partitions:
        records = logs.setdefault(where, [])
        pending: dict[int, list[tuple[int, bytes | None]]] = {}
        for batch in sim.broker.log(*where).batches():
            header = batch.header
            if header.is_control:
                ended = pending.pop(header.producer_id, [])
                records.extend(ended if EndMarker(batch).commit else ())
            else:
                reader: AnyReader[bytes, bytes] = batch.records(*where)
                pending.setdefault(header.producer_id, []).extend((one.offset, one.raw_value) for one in reader)
        assert not pending, f"a transaction in {where} has no end"
        records.sort()
    return logs


def _group(writer: str) -> str:
    return f"group of {writer}"


async def _offsets(sim: Simulation, writer: str, partitions: list[TopicPartition]) -> Group:
    """What the writer's group has committed, as its coordinator tells."""
    group = _group(writer)
    coordinator = sim.broker.coordinator(group)
    (at,) = (address for address, node in sim.broker.addresses.items() if node == coordinator)
    asked = [OffsetFetchRequestTopic(name=topic, partition_indexes=[index]) for topic, index in partitions]
    async with RawClient(await sim.network.connector("who looks at groups")(*at)) as client:
        answer = await client.ask(OffsetFetchRequest(group_id=group, topics=asked), 5)
    assert answer.error_code == 0
    return {
        TopicPartition(topic.name, one.partition_index): one.committed_offset
        for topic in answer.topics
        for one in topic.partitions
    }


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value = done.value
    ends = ", ".join(f"{value.ends[end]} {end.value}" for end in End)
    return (
        f"seed {done.seed}: {value.ends.total()} transactions of {value.lives} producers, "
        f"Kafka {value.release or 'now'}: {ends}, {value.unknown} in doubt, {value.faults.total()} faults, {done.seconds:.0f} s of virtual time, "
        f"trace {done.trace.digest}"
    )
