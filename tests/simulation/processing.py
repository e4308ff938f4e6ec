"""Records that are processed exactly once, by workers that are slow, cut off, interrupted, or lose their partitions."""

from collections.abc import Awaitable, Callable
from typing import NoReturn

import anyio
import attrs
from histories.checking import History
from histories.events import SourceFound
from histories.group_events import OffsetFetched
from support.raw_client import RawClient

from aiokafkawire import KafkaError, TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.transactions import EndTxnRequest, EndTxnResponse
from aiokafkawire.testing.broker import ApiError
from aiokafkawire.testing.simulation import Run, Simulation, simulate

from .blocking_workers import BlockingWorker
from .checks import Logs, check_in_the_end, logs_found, no_task_fails_unheard
from .leftovers import check_nothing_is_left, tasks
from .protocols import COORDINATORS, Protocol, who_takes_part
from .scenario import LATE
from .taking_part import logs_of
from .transactions import committed_offsets, committed_records
from .trouble import next_fault, refusing
from .workers import GROUP, KILLED, OUTCOMES, Plan, Worker

__all__ = ("Outcome", "run", "run_consumer_protocol", "run_transforms", "told")

_PATIENCE = 150.0
"""Virtual seconds until all is processed after the last fault: sessions and transactions of those that are gone end."""
_INSTANCES = 5
_REFUSED = (
    *(ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_FETCH, ApiKey.FETCH, ApiKey.PRODUCE, ApiKey.INIT_PRODUCER_ID),
    *(ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN),
    *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT),
)
_LEAVES_WITHIN = 8.0
"""Virtual seconds after which no worker that has ended may be a member of the group, whatever ended it."""


@attrs.frozen
class Outcome:
    """What one run came to."""

    records: int
    workers: int
    plan: Plan
    removed: int
    """How often somebody removed all members from the group."""
    faults: int
    settled: float
    """Virtual seconds from the end of all faults until every record was processed."""


def run(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be."""
    return _run(seed, keep, "classic")


def run_consumer_protocol(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run of workers in a group whose coordinator assigns (KIP-848)."""
    return _run(seed, keep, "consumer")


def run_transforms(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run of five instances of ``transform``, some of which are killed, in a group of one of the protocols."""
    return _run(seed, keep, "consumer" if seed % 2 else "classic", transforms=True)


def _run(seed: int, keep: int, protocol: Protocol, *, transforms: bool = False) -> Run[Outcome]:
    with no_task_fails_unheard():
        return simulate(
            lambda sim: _Play(sim, protocol, transforms).main(),
            seed=seed,
            keep=keep,
            min_insync_replicas=2,
            **COORDINATORS,
        )


@attrs.define
class _Play:
    """One run, and what came of it."""

    sim: Simulation
    protocol: Protocol
    transforms: bool
    """Whether all workers are instances of ``transform``, whatever the seed."""
    plan: Plan = attrs.field(init=False)
    sources: list[TopicPartition] = attrs.field(factory=list)
    outcomes: list[TopicPartition] = attrs.field(factory=list)
    calm: anyio.Event = attrs.field(factory=anyio.Event)
    there: dict[int, Worker] = attrs.field(factory=dict)
    """The worker in each seat."""
    dead: list[Worker] = attrs.field(factory=list)
    """The workers that have ended since the connections of such workers ended."""
    wrong: list[str] = attrs.field(factory=list)
    lives: int = 0
    removed: int = 0
    ended: bool = False

    async def main(self) -> Outcome:
        """The run, and its checks."""
        sim, chance = self.sim, self.sim.random
        topics = ["flights", "delays"][: chance.randint(1, 2)]
        self.plan = Plan.of(chance, topics, self.protocol, transforms=self.transforms)
        self.sources = [TopicPartition(topic, index) for topic in topics for index in range(chance.randint(1, 3))]
        self.outcomes = [TopicPartition(OUTCOMES, index) for index in range(2)]
        for topic in (*topics, OUTCOMES):
            sim.broker.create_topic(topic, partitions=sum(one.topic == topic for one in self.sources + self.outcomes))
        await self._write()
        seats, before = _INSTANCES if self.transforms else chance.randint(1, 3), tasks()
        async with anyio.create_task_group() as workers:
            for seat in range(seats):
                workers.start_soon(self._sit, seat)
            if self.transforms:
                workers.start_soon(self._write_on)
            if self.transforms or chance.random() < 0.7:
                sim.chaos(every=(0.5, chance.choice((4.0, 10.0))), lasting=(0.05, chance.choice((1.0, 5.0))))
            with anyio.move_on_after(chance.uniform(10, 60)):
                async with refusing(sim, *_REFUSED):
                    await self._trouble()
            await self._end_faults()
            settled = await self._settle()
            self.ended = True
            for worker in self.there.values():
                worker.stop.set()
        await self._check_nobody_is_left()
        await anyio.sleep(LATE)
        check_nothing_is_left(sim, before)
        await self._check_results()
        records = sum(map(len, self._source_logs().values()))
        return Outcome(records, self.lives, self.plan, self.removed, sim.trace.faults.total(), settled)

    async def _write(self) -> None:
        """Fill the topics; some records are large and compressed, some partitions have transactions in them."""
        chance = self.sim.chance("writer")
        async with self.sim.client("writer") as client:
            for partition in self.sources:
                large, count = chance.random() < 0.2, chance.randint(0, 60)
                in_transactions = chance.random() < 0.3
                async with client.producer(
                    compression_type="gzip" if large else "none",
                    batch_size=1_000_000 if large else chance.choice((100, 1_000)),
                    linger_ms=50 if large else 0,
                    transactional_id="writer" if in_transactions else None,
                ) as producer:
                    # Two transactions: the marker of the last one is the end of the log.
                    for part in (range(count // 2), range(count // 2, count)):
                        values = [b"%d" % number + chance.randbytes(5_000 if large else 0) for number in part]
                        if in_transactions:
                            async with producer.transaction() as transaction:
                                await transaction.send_many(partition.topic, values, partition=partition.partition)
                        else:
                            await producer.send_many(partition.topic, values, partition=partition.partition)

    async def _write_on(self) -> None:
        """Write more records until the faults end, so that there is work whenever an instance is killed."""
        sim, chance = self.sim, self.sim.chance("writer of more")
        try:
            async with sim.client("writer of more") as client, client.producer() as producer:
                while not self.calm.is_set():
                    partition = chance.choice(self.sources)
                    await producer.enqueue(partition.topic, b"more", partition=partition.partition)
                    await anyio.sleep(chance.uniform(0, 0.4))
        except KafkaError as error:
            sim.note(f"no more is written: {type(error).__name__}: {error}")

    # --- who takes part ------------------------------------------------------------------------------------------

    async def _sit(self, seat: int) -> None:
        """One worker after the other; the last one stays until the end."""
        chance = self.sim.chance(f"seat {seat}")
        await self._pause(chance.uniform(0, 10))
        while not self.ended:
            self.lives += 1
            blocks = chance.random() < 0.3
            worker = self.there[seat] = (BlockingWorker if blocks else Worker)(
                self.sim, self.plan, seat, f"worker-{seat}.{self.lives}", self.calm.is_set, wrong=self.wrong
            )
            async with anyio.create_task_group() as living:
                living.start_soon(self._stop_in_time, worker, chance.choice((3.0, 20.0, 60.0)))
                await worker.live()
                living.cancel_scope.cancel()
            self.dead.append(worker)
            if self.calm.is_set():
                self._bury_the_dead()
            await self._pause(chance.choice((0.0, 1.0, chance.uniform(0, 10))))

    async def _stop_in_time(self, worker: Worker, longest: float) -> None:
        await self._pause(self.sim.chance(f"life of {worker.name}").uniform(0.1, longest))
        if not self.calm.is_set():
            worker.stop.set()

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.calm.wait()

    # --- trouble -------------------------------------------------------------------------------------------------

    async def _trouble(self) -> NoReturn:
        """Remove all members now and then, move coordinators, and lose answers."""
        sim, every = self.sim, self.sim.chance("trouble")
        longest = every.choice((5.0, 20.0))
        async with sim.client("operator") as operator:
            while True:
                chance = await next_fault("trouble", every, (0.5, longest))
                match chance.choice(("remove", "move", "lose", *(("fence",) if self.plan.transforms else ()))):
                    case "remove":
                        with anyio.move_on_after(5):
                            await self._remove(operator.admin.remove_members)
                    case "move":
                        try:
                            node, loading = chance.choice(sim.broker.node_ids), chance.choice((0.0, 2.0))
                            sim.broker.move_coordinator(GROUP, node, loading=loading)
                            sim.note(f"broker {node} coordinates the group, in {loading} s")
                        except ApiError:
                            pass  # it is down, or not in sync
                    case "fence":
                        # Nobody knows then whether the transaction counts; the instance has to find out.
                        sim.note("a producer is fenced when it commits")
                        answer = _fenced if chance.random() < 0.5 else ErrorCode.PRODUCER_FENCED
                        sim.broker.on(ApiKey.END_TXN, answer=answer)
                    case _:
                        lost = chance.choice((ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN, ApiKey.HEARTBEAT))
                        sim.note(f"the next answer to {lost.name} is lost")
                        sim.broker.on(lost, drop="after", times=1)

    async def _remove(self, remove_members: Callable[[str], Awaitable[None]]) -> None:
        try:
            await remove_members(GROUP)
        except KafkaError as error:
            self.sim.note(f"nobody is removed: {type(error).__name__}: {error}")
        else:
            self.removed += 1
            self.sim.note("all members are removed")

    async def _end_faults(self) -> None:
        self.sim.broker.clear_orders()
        await self.sim.calm()
        self._bury_the_dead()
        self.calm.set()

    def _bury_the_dead(self) -> None:
        while self.dead:
            self.dead.pop().bury()

    # --- the end -------------------------------------------------------------------------------------------------

    async def _settle(self) -> float:
        """Wait until every record is processed; how long that took."""
        began = self.sim.now()
        await anyio.sleep(LATE)
        while (missing := self._missing()) or self.wrong:
            assert not self.wrong, self.wrong
            late = self.sim.now() - began
            assert late < _PATIENCE, f"{late:g} s after all faults {len(missing)} are missing, such as {missing[:3]}"
            await anyio.sleep(1)
        return self.sim.now() - began

    def _source_logs(self) -> Logs:
        return logs_of(self.sim, self.sources)

    def _due(self) -> list[bytes]:
        return [_result(partition, offset) for partition, log in self._source_logs().items() for offset, _ in log]

    def _missing(self) -> list[bytes]:
        there = {value for log in logs_of(self.sim, self.outcomes).values() for _, value in log}
        if missing := [value for value in self._due() if value not in there]:
            return missing
        logs = [self.sim.broker.log(*partition) for partition in self.outcomes]
        if any(log.last_stable_offset < log.log_end_offset for log in logs):
            return [b"the end of a transaction"]
        counted = {value for log in committed_records(self.sim, self.outcomes).values() for _, value in log}
        return [value for value in self._due() if value not in counted]

    async def _check_results(self) -> None:
        """The result of every record counts once; its offset is committed, and nothing beyond the ends."""
        history, sources = History(), self._source_logs()
        for partition, log in sources.items():
            results = tuple((offset, _result(partition, offset)) for offset, _ in log)
            history.add(SourceFound(partition, results, self.sim.broker.log(*partition).log_end_offset))
        history.extend(logs_found(committed_records(self.sim, self.outcomes), is_committed=True))
        found = await committed_offsets(self.sim, GROUP, self.sources)
        history.extend(OffsetFetched(GROUP, partition, offset) for partition, offset in found.items())
        check_in_the_end(history)

    async def _check_nobody_is_left(self) -> None:
        """Every worker has left the group, whatever ended it; static members stay."""
        if self.plan.static:
            return
        await anyio.sleep(_LEAVES_WITHIN)
        coordinator = self.sim.broker.coordinator(GROUP)
        (at,) = (address for address, node in self.sim.broker.addresses.items() if node == coordinator)
        async with RawClient(await self.sim.network.connector("who looks at groups")(*at)) as client:
            members = [member.client_id for member in (await who_takes_part(client, GROUP, self.protocol))[1]]
        last = [worker for worker in self.there.values() if worker.ending != KILLED]
        ends = [f"{worker.name}, which {worker.ending}" for worker in last if worker.name in members]
        assert not ends, f"members of the group are still {', '.join(ends)}"


def _fenced(_: EndTxnRequest, answer: EndTxnResponse) -> EndTxnResponse:
    """Return what a producer hears after its transaction has ended if another one has its id by then."""
    return EndTxnResponse(throttle_time_ms=answer.throttle_time_ms, error_code=int(ErrorCode.PRODUCER_FENCED))


def _result(partition: TopicPartition, offset: int) -> bytes:
    return f"{partition.topic}/{partition.partition}/{offset}".encode()


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value, plan = done.value, done.value.plan
    strategies = " and ".join(plan.strategies) or "served"
    return (
        f"seed {done.seed}: {value.records} records, {value.workers} "
        f"{'transforms' if plan.transforms else strategies + ' workers'}, {value.removed} times "
        f"removed, {value.faults} faults, settled in {value.settled:.0f} s, {done.seconds:.0f} s of virtual time, "
        f"trace {done.trace.digest}"
    )
