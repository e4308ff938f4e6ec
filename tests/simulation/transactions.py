"""Transactions on a cluster in trouble: writers that abort, crash and are followed by others with their name."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from random import Random

import anyio
import attrs
from histories.checking import History
from histories.group_events import OffsetFetched
from histories.transactions import End, ends_of, ends_told
from support.raw_client import RawClient

from aiokafkawire import TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.group_offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from aiokafkawire.records.batch import AnyReader
from aiokafkawire.testing.logs.end_marker import EndMarker
from aiokafkawire.testing.simulation import Run, Simulation, simulate

from .checks import Logs, check_in_the_end, logs_found, no_task_fails_unheard
from .coordinators import trouble_coordinators, upgrade
from .lives import LONGEST, Life, group_of
from .scenario import LATE, PATIENCE
from .taking_part import Reader, logs_of, read_until, topics_of
from .trouble import refusing

__all__ = ("Outcome", "committed_offsets", "committed_records", "run", "told")

_REFUSED = (
    *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.INIT_PRODUCER_ID),
    *(ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN),
)
_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE)
_FENCES = {
    ApiKey.PRODUCE: (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE),
    ApiKey.INIT_PRODUCER_ID: _FENCED[:2],
    ApiKey.ADD_PARTITIONS_TO_TXN: _FENCED,
    ApiKey.ADD_OFFSETS_TO_TXN: _FENCED,
    ApiKey.END_TXN: _FENCED,
}
"""The answers to a producer whose name another one has taken."""
_RELEASES = (None, None, None, "4.0", "3.9", "3.6", "2.8", "2.4")
"""Of Apache Kafka; None is the newest. From 4.0 on transactions are of version 2; up to 2.4 no epoch is bumped."""


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


def run(seed: int, *, keep: int = 2_000, releases: Sequence[str] = ()) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be.

    Brokers begin as the first of the releases of Kafka, and restart as any of them.
    """
    chance = Random(f"{seed}/cluster")
    release, largest = chance.choice(_RELEASES), chance.choice((1_048_588, 1_048_588, 3_000, 700))
    release = next(iter(releases), release)
    with no_task_fails_unheard():
        return simulate(
            _Play(release, releases).main,
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
    releases: Sequence[str]
    history: History = attrs.field(factory=History)
    numbers: Iterator[int] = attrs.field(factory=count)
    dead: list[str] = attrs.field(factory=list)
    """Clients that nothing comes from any more."""
    lives: int = 0

    async def main(self, sim: Simulation) -> Outcome:
        """The run, and its checks."""
        chance = sim.random
        partitions = topics_of(sim)
        writers = [f"writer-{number}" for number in range(chance.randint(1, 3))]
        if self.release is None and chance.random() < 0.3:
            upgrade(sim, chance.uniform(0, 20))
        reader = Reader(sim, self.history, 0, partitions, is_committed=True)
        async with anyio.create_task_group() as reading:
            reading.start_soon(reader.read)
            async with anyio.create_task_group() as tasks:
                every, lasting = (0.2, chance.choice((1.0, 4.0, 10.0))), (0.05, chance.choice((1.0, 5.0, 20.0)))
                sim.chaos(every=every, lasting=lasting, releases=self.releases)
                for writer in writers:
                    tasks.start_soon(self._write, sim, writer, partitions)
                with anyio.move_on_after(chance.uniform(10, 60)):
                    async with refusing(sim, *_REFUSED, final=_FENCES):
                        await trouble_coordinators(sim, writers)
                sim.broker.clear_orders()
                await sim.calm()
            sim.network.heal()
            await anyio.sleep(LATE)
            await _nothing_stays_open(sim, partitions)
            for writer in writers:
                await self._life(sim, writer, partitions).live_well()
            await _nothing_stays_open(sim, partitions)
            await read_until([reader], committed_records(sim, partitions), PATIENCE)
            reading.cancel_scope.cancel()
        return await self._check(sim, writers, partitions)

    async def _check(self, sim: Simulation, writers: list[str], partitions: list[TopicPartition]) -> Outcome:
        history = self.history
        history.extend(logs_found(logs_of(sim, partitions)))
        history.extend(logs_found(committed_records(sim, partitions), is_committed=True))
        for group in map(group_of, writers):
            fetched = await committed_offsets(sim, group, partitions)
            history.extend(OffsetFetched(group, partition, offset) for partition, offset in fetched.items())
        check_in_the_end(history)
        unknown = sum(end is End.UNKNOWN for end in ends_told(history.events).values())
        return Outcome(self.release, Counter(ends_of(history.events).values()), unknown, self.lives, sim.trace.faults)

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

    def _life(self, sim: Simulation, writer: str, partitions: list[TopicPartition]) -> Life:
        self.lives += 1
        return Life(sim, writer, self.lives, partitions, self.history, self.numbers)


async def _nothing_stays_open(sim: Simulation, partitions: list[TopicPartition]) -> None:
    """Whoever has left a transaction open, the brokers abort it in time."""
    logs = {where: sim.broker.log(*where) for where in partitions}
    for _ in range(LONGEST // 1000):
        if all(log.last_stable_offset == log.log_end_offset for log in logs.values()):
            break
        await anyio.sleep(1)
    for where, log in logs.items():
        told = f"{where} is stable up to {log.last_stable_offset}, and ends at {log.log_end_offset}"
        assert log.last_stable_offset == log.high_watermark == log.log_end_offset, told


def committed_records(sim: Simulation, partitions: list[TopicPartition]) -> Logs:
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


async def committed_offsets(
    sim: Simulation, group: str, partitions: list[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """What a group has committed, as its coordinator tells; -1 for nothing."""
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
        f"Kafka {value.release or 'now'}: {ends}, {value.unknown} in doubt, {value.faults.total()} faults, "
        f"{done.seconds:.0f} s of virtual time, trace {done.trace.digest}"
    )
